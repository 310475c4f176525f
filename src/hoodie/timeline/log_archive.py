"""The archive of version 6: log files of Avro blocks, an entry for each state of each instant.

1. Files are `.commits_.archive.<n>_1-0-1`, read in ascending n. Neither they nor their entries are in order of time.
2. An instant may stand in several of them: while small archives are merged (`mergeArchivePlan` names what into what),
   and after a downgrade, which appends again what an older archive has. Any one will do; the first that knows its
   completion time counts.
3. A damaged span is skipped, as in Hudi: it is what an archiver or a merger left that died. What it was about to
   archive is still where it was before.
4. Hudi 0.x archives to `archived`, tables of version 6 made by 1.x to `history`. Tables that went to and fro have
   both: both are read.

One block is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from hoodie.errors import Missing
from hoodie.spec import (
    RECORD_LENGTH_BYTES,
    BlockKind,
    CleanMetadata,
    CommitMetadata,
    Instant,
    LogBlock,
    State,
    comparable_action,
    parse_archived_clean,
    parse_archived_commit,
    parse_archived_entry,
    parse_log_file,
    parse_log_file_name,
    parse_record_marks,
)
from hoodie.spec.keys import HOODIE_DIR
from hoodie.storage import FileInfo, Storage
from hoodie.timeline.archived_instant import ArchivedInstant, LogPlace

ARCHIVE_FILE_ID = "commits"
_KNOWN_FOLDERS = (f"{HOODIE_DIR}/archived", f"{HOODIE_DIR}/history")
_ATTEMPTS = 3


def list_archives(storage: Storage, folder: str) -> tuple[FileInfo, ...]:
    """The archives of a table whose archive folder is `folder`, oldest first. Lists two folders."""
    found: list[tuple[int, FileInfo]] = []
    for one in dict.fromkeys((folder, *_KNOWN_FOLDERS)):
        for file in storage.list_dir(one).files:
            name = parse_log_file_name(file.path.rpartition("/")[2])
            if name is not None and name.kind == "archive" and name.file_id == ARCHIVE_FILE_ID:
                found.append((name.version, file))
    return tuple(file for _, file in sorted(found, key=lambda one: (one[0], one[1].path)))


def load_log_archive(storage: Storage, folder: str) -> tuple[ArchivedInstant, ...]:
    """Every completed instant of the archives, in timeline order. Reads all of them.

    Raises:
        Corrupt: an archive is damaged in other ways than a writer that died leaves it.
    """
    found: dict[tuple[str, str], ArchivedInstant] = {}
    for _ in range(_ATTEMPTS):
        gone = False
        for file in list_archives(storage, folder):
            try:
                for one in _instants(storage, file):
                    known = found.get(one.instant.logical)
                    if known is None or (known.instant.completed is None and one.instant.completed is not None):
                        found[one.instant.logical] = one
            except Missing:  # merged into another one since the listing, maybe one that was not there yet
                gone = True
        if not gone:
            break
    return tuple(sorted(found.values(), key=lambda one: one.instant))


def has_torn_spans(storage: Storage, files: Iterable[FileInfo]) -> bool:
    """Whether some of the archives have spans that are skipped. Reads the frames of their blocks."""
    blocks = (block for file in files for block in _blocks(storage, file))
    return any(block.kind is BlockKind.CORRUPT for block in blocks)


def load_archived_logicals(storage: Storage, file: FileInfo) -> frozenset[tuple[str, str]]:
    """Requested time and completed action of the instants that one archive has as completed.

    Raises:
        Corrupt: the archive is damaged in other ways than a writer that died leaves it.
    """
    return frozenset(one.instant.logical for one in _instants(storage, file))


def load_log_metadata(storage: Storage, place: LogPlace) -> CommitMetadata:
    """What the commit at a place did.

    Raises:
        Corrupt: the archive is damaged. Missing: it was merged into another one.
    """
    data = storage.read_range(place.path, place.start, place.size_bytes)
    return parse_archived_commit(data, place.schema, place.path, place.start)


def load_log_clean(storage: Storage, place: LogPlace) -> CleanMetadata | None:
    """What the clean at a place did; None when its entry does not say. Raises as `load_log_metadata`."""
    data = storage.read_range(place.path, place.start, place.size_bytes)
    return parse_archived_clean(data, place.schema, place.path, place.start)


def _instants(storage: Storage, file: FileInfo) -> Iterator[ArchivedInstant]:
    for block in _blocks(storage, file):
        if block.kind is BlockKind.AVRO_DATA:
            yield from _of_block(storage, block)


def _blocks(storage: Storage, file: FileInfo) -> Iterable[LogBlock]:
    return parse_log_file(
        lambda start, length: storage.read_range(file.path, start, length), file.size_bytes, file.path
    )


def _of_block(storage: Storage, block: LogBlock) -> Iterator[ArchivedInstant]:
    content = storage.read_range(block.path, block.content_start, block.content_bytes)
    for mark, end in pairwise(parse_record_marks(content, block.path, block.content_start)):
        start = mark + RECORD_LENGTH_BYTES
        at = block.content_start + start
        entry = parse_archived_entry(content[start:end], block.schema, block.path, at)
        if entry.is_completed:
            instant = Instant(entry.requested, comparable_action(entry.action), State.COMPLETED, entry.changed)
            yield ArchivedInstant(instant, LogPlace(block.path, at, end - start, block.schema))
