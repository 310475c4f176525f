"""Writing the history of version 8 and later: a parquet file for what an archiver brings, merged with others later.

1. An instant is a row: its times, its completed action, the bytes of its completed file, and those of its plan where it
   had one. Rows of a file are in order of requested time.
2. A file is complete before a manifest names it. What lies there under its name and is not named is in the way of
   nobody: it is removed first.
3. When a level has as many files as a batch, the oldest of them become one file of the next level; so the number of
   files grows with the logarithm of the number of runs.
4. Old manifests are kept for readers that began with them, and so is what they name.

Which instants leave the timeline is for `hoodie.services`. Reading: `lsm_history`. Bytes: `docs/format/history.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hoodie.errors import Missing
from hoodie.spec import MANIFEST_PREFIX, HistoryFile, Instant, InstantTime, schema
from hoodie.storage import Storage, translated
from hoodie.timeline.lsm_manifest import CurrentManifest, load_manifest, load_manifest_files, publish

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROW_GROUP_BYTES = 32 << 20
"""Bytes of metadata after which a row group ends: what is in memory while history is written or merged."""

_ROW_VERSION = 1
_TIMES = ["instantTime", "completionTime", "action"]
_COLUMNS = [*_TIMES, "metadata", "plan", "version"]
_NAME = re.compile(r"([0-9]+)_([0-9]+)_([0-9])\.parquet")
_LAST_LEVEL = 9
_GZIP_LEVEL = 1


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A completed instant on its way into the history. `metadata` and `plan` are the bytes of its files."""

    instant: Instant
    metadata: bytes
    plan: bytes | None = None

    @property
    def size_bytes(self) -> int:
        return len(self.metadata) + len(self.plan or b"")


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """How history is kept. Performance: `batch_files` of one level are merged into one, until `target_bytes`;
    `kept_manifests` stay for readers.
    """

    batch_files: int = 10
    target_bytes: int = 1048576000
    kept_manifests: int = 3


def append_history(
    storage: Storage, folder: str, first: InstantTime, last: InstantTime, rows: Iterable[Sequence[HistoryRow]]
) -> HistoryFile:
    """The new file of the history with `rows`, given in portions and in order of requested time from `first` to `last`.

    The history has them when this returns, not earlier.
    """
    current = load_manifest(storage, folder)
    name = f"{first}_{last}_0.parquet"
    with _new_file(storage, folder, name, current) as output:
        for portion in rows:
            output.add(_table(portion))
    written = HistoryFile(name, output.size_bytes)
    publish(storage, folder, current, written)
    return written


def compact_history(storage: Storage, folder: str, limits: HistoryLimits) -> int:
    """How many files were made by merging others. Afterwards, manifests and files that nobody needs are removed."""
    current = load_manifest(storage, folder)
    level = 0
    while level < _LAST_LEVEL and (batch := _batch(current.files, level, limits)):
        current = _merge(storage, folder, current, batch, level)
        level += 1
    _sweep(storage, folder, current, limits.kept_manifests + level)
    return level


def _merge(
    storage: Storage, folder: str, current: CurrentManifest, batch: Sequence[HistoryFile], level: int
) -> CurrentManifest:
    names = [_parsed(file.name) for file in batch]
    first, last = min(name[0] for name in names), max(name[1] for name in names)
    name = f"{first}_{last}_{level + 1}.parquet"
    with _new_file(storage, folder, name, current) as output:
        for file in batch:
            for table in _tables(storage, f"{folder}/{file.name}"):
                output.add(table)
    return publish(storage, folder, current, HistoryFile(name, output.size_bytes), {file.name for file in batch})


def _batch(files: Iterable[HistoryFile], level: int, limits: HistoryLimits) -> list[HistoryFile]:
    """The oldest files of a level that are to become one; empty when there is nothing to do."""
    found = sorted((file for file in files if _level(file.name) == level), key=lambda file: file.name)
    if len(found) < limits.batch_files:
        return []
    batch: list[HistoryFile] = []
    for file in found:
        batch.append(file)
        if len(batch) >= limits.batch_files:
            break
        if sum(one.size_bytes for one in batch) > limits.target_bytes:
            if len(batch) > 1:
                break
            batch.clear()  # large enough as it is
    return batch if len(batch) > 1 else []


def _sweep(storage: Storage, folder: str, current: CurrentManifest, kept: int) -> None:
    versions = [version for version in current.versions if version <= current.version]
    old, new = versions[:-kept], versions[-kept:]
    if not old:
        return
    needed: set[str] = set()
    for version in new:
        try:
            needed.update(file.name for file in load_manifest_files(storage, folder, version, current.sizes))
        except Missing:
            continue
    # Manifests go before what only they name: one that is there must be true.
    for version in old:
        storage.delete(f"{folder}/{MANIFEST_PREFIX}{version}")
    for name in current.sizes:
        if name.endswith(".parquet") and name not in needed:
            storage.delete(f"{folder}/{name}")


def _level(name: str) -> int | None:
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[3])


def _parsed(name: str) -> tuple[InstantTime, InstantTime]:
    match = _NAME.fullmatch(name)
    assert match is not None, "files of a level have such names"
    return match[1], match[2]


class _Output:
    """A history file being written, row group by row group."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._waiting: list[pa.Table] = []
        self.size_bytes = 0

    def add(self, table: pa.Table) -> None:
        self._waiting.append(table)
        if sum(one.nbytes for one in self._waiting) >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        import pyarrow as pa  # noqa: PLC0415 - heavy: times alone do without pyarrow

        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting).combine_chunks())
            self._waiting.clear()


@contextmanager
def _new_file(storage: Storage, folder: str, name: str, current: CurrentManifest) -> Iterator[_Output]:
    import pyarrow.parquet as pq  # noqa: PLC0415 (as in `lsm_history`)

    path = f"{folder}/{name}"
    if name in current.sizes:
        storage.delete(path)
    with translated("write", path, writes=True), storage.open_output(path) as file:
        options = {"use_dictionary": False, "store_schema": False, "write_statistics": _TIMES}
        with pq.ParquetWriter(file, _schema(), compression="gzip", compression_level=_GZIP_LEVEL, **options) as writer:
            output = _Output(writer)
            yield output
            output.flush()
            writer.add_key_value_metadata(
                {"parquet.avro.schema": schema("HoodieLSMTimelineInstant").text, "writer.model.name": "avro"}
            )
        output.size_bytes = file.tell()


def _tables(storage: Storage, path: str) -> Iterator[pa.Table]:
    """The row groups of a history file."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - heavy: times alone do without pyarrow

    with translated("read", path), storage.open_input(path) as source:
        file = pq.ParquetFile(source)
        for group in range(file.num_row_groups):
            yield file.read_row_group(group, _COLUMNS).select(_COLUMNS).cast(_schema())


def _table(rows: Sequence[HistoryRow]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - heavy: times alone do without pyarrow

    columns: list[list[object]] = [
        [row.instant.requested for row in rows],
        [row.instant.completed for row in rows],
        [row.instant.comparable_action for row in rows],
        [row.metadata for row in rows],
        [row.plan for row in rows],
        [_ROW_VERSION] * len(rows),
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _schema(), strict=True)]
    return pa.Table.from_arrays(arrays, schema=_schema())


def _schema() -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415 - heavy: times alone do without pyarrow

    texts = [pa.field(name, pa.string()) for name in _TIMES]
    blobs = [pa.field(name, pa.binary()) for name in ("metadata", "plan")]
    return pa.schema([*texts, *blobs, pa.field("version", pa.int32(), nullable=False)])
