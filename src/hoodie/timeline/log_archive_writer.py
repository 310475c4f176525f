"""Writing the archive of version 6: a new log file for each run, and small ones merged.

1. Every run writes a file of its own, numbered one more than the last. It appears as a whole when it is closed.
2. Entries stand in blocks of a few; each block repeats the schema of its entries.
3. Merging: a plan says which files become which new one; the new file, the removal of the old ones, and the removal of
   the plan follow. While all the old files are there the new one may be damaged; once one is gone it is complete.

What is archived is for `hoodie.services`. Reading: `log_archive`. Bytes: `docs/format/history.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from hoodie.errors import Corrupt, Missing
from hoodie.spec import (
    BlockKind,
    HeaderKey,
    LogFileName,
    encode_block,
    encode_container,
    encode_records,
    parse_container,
    parse_log_file,
    parse_log_file_name,
)
from hoodie.spec.file_names import UNKNOWN_WRITE_TOKEN
from hoodie.spec.typed_values import text_of, texts_of
from hoodie.storage import FileInfo, Storage
from hoodie.timeline.log_archive import ARCHIVE_FILE_ID, list_archives

MERGE_PLAN_FILE = "mergeArchivePlan"
_MERGE_RECORD = "HoodieMergeArchiveFilePlan"


@dataclass(frozen=True, slots=True)
class MergeLimits:
    """Which archives are merged: `batch_files` or more neighbours that are smaller than `small_bytes` each."""

    batch_files: int = 10
    small_bytes: int = 20971520


def append_archive(storage: Storage, folder: str, schema: str, blocks: Iterable[Sequence[bytes]]) -> str:
    """The path of the new archive with these entries (bare Avro of `schema`), one block for each sequence of them."""
    path = f"{folder}/{_name(_next_number(storage, folder))}"
    with storage.open_output(path) as file:
        for entries in blocks:
            file.write(encode_block(BlockKind.AVRO_DATA, {HeaderKey.SCHEMA: schema}, encode_records(entries)))
    return path


def merge_archives(storage: Storage, folder: str, limits: MergeLimits) -> str | None:
    """The path of the archive that took the place of small ones; None when there are not enough of them.

    Raises:
        Corrupt: an archive is damaged in other ways than a writer that died leaves it.
    """
    own = [file for file in list_archives(storage, folder) if file.path.startswith(f"{folder}/")]
    batch = list(takewhile(lambda file: file.size_bytes < limits.small_bytes, own))[: limits.batch_files]
    if len(batch) < max(2, limits.batch_files):
        return None
    name = _name(_next_number(storage, folder))
    plan = {"candidate": [file.path.rpartition("/")[2] for file in batch], "mergedArchiveFileName": name}
    storage.create(f"{folder}/{MERGE_PLAN_FILE}", encode_container(_MERGE_RECORD, plan, "0.15"))
    with storage.open_output(f"{folder}/{name}") as merged:
        for file in batch:
            for block in _sound_blocks(storage, file):
                merged.write(block)
    _finish(storage, folder, [file.path for file in batch])
    return f"{folder}/{name}"


def settle_merge(storage: Storage, folder: str) -> None:
    """Finish or take back a merge whose writer died; nothing when there is none.

    Raises:
        Corrupt: its plan is damaged.
    """
    path = f"{folder}/{MERGE_PLAN_FILE}"
    try:
        data = storage.read(path)
    except Missing:
        return
    if data:
        record = parse_container(data, path)[1]
        candidates = [f"{folder}/{_checked(name, path)}" for name in texts_of(record, "candidate", path)]
        there = {file.path for file in storage.list_dir(folder).files}
        if not there.issuperset(candidates):
            _finish(storage, folder, candidates)
            return
        storage.delete(f"{folder}/{_checked(text_of(record, 'mergedArchiveFileName', path), path)}")
    storage.delete(path)


def _finish(storage: Storage, folder: str, candidates: Iterable[str]) -> None:
    for path in candidates:
        storage.delete(path)
    storage.delete(f"{folder}/{MERGE_PLAN_FILE}")


def _sound_blocks(storage: Storage, file: FileInfo) -> Iterable[bytes]:
    blocks = parse_log_file(
        lambda start, length: storage.read_range(file.path, start, length), file.size_bytes, file.path
    )
    for block in blocks:
        if block.kind is not BlockKind.CORRUPT:
            yield storage.read_range(file.path, block.start, block.size_bytes)


def _checked(name: str, path: str) -> str:
    """A name in a merge plan, bare or with folders before it as Hudi writes it, as the name of an archive."""
    bare = name.rpartition("/")[2]
    parsed = parse_log_file_name(bare)
    if parsed is None or parsed.kind != "archive" or parsed.file_id != ARCHIVE_FILE_ID:
        raise Corrupt(f"{path} names {name[:200]!r}, which is no archive", remedy="Delete the plan", path=path)
    return bare


def _next_number(storage: Storage, folder: str) -> int:
    names = (parse_log_file_name(file.path.rpartition("/")[2]) for file in storage.list_dir(folder).files)
    return max((name.version for name in names if name is not None and name.kind == "archive"), default=0) + 1


def _name(number: int) -> str:
    return LogFileName(ARCHIVE_FILE_ID, "", number, UNKNOWN_WRITE_TOKEN, kind="archive").text
