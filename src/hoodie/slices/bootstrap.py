"""Rows of a table that was made over the files of another one (bootstrap), without rewriting them.

1. A *skeleton* is a base file of instant `00000000000001`: meta columns only. Row i of a skeleton and row i of its
   source file are one row. Later base files of the group are ordinary, and so are those of a full-record bootstrap
   (instant `00000000000002`).
2. Which source file belongs to a skeleton stands in the bootstrap index. Source files lie below
   `hoodie.bootstrap.base.path`, outside the table; paths of the index can not leave it. It may be a stranger's: it is
   followed on the kind of storage that the table is on, so a table on S3 reads no file of this machine.
3. Source files have no meta columns, and mostly no partition columns. These have the values of the partition path here,
   as they have in the base files that Hudi makes of skeletons; what no path tells is read from the source.
4. Both files are read as streams side by side: memory is two batches, and only what is asked for is read.

How to use it. Planning: `sources = load_slice_sources(storage, config, slices)`; the source travels to the worker with
the slice. Reading: where a slice has a source, `iter_stitched(storage, base.path, source, schema, batch_rows)` gives
what `iter_batches(storage, base.path, schema=schema)` gives elsewhere. Merging logs, mapping columns by id and filling
partition columns come after it as ever. The footer of the skeleton alone tells how many rows there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

import pyarrow as pa

from hoodie.errors import Corrupt, Missing, Unsupported
from hoodie.hfile import open_hfile
from hoodie.records import COMMIT_TIME_FIELD, is_meta, iter_batches, partition_values, read_footer
from hoodie.records.base_file import DEFAULT_BATCH_ROWS
from hoodie.spec import METADATA_BOOTSTRAP_INSTANT, TableConfig
from hoodie.spec.bootstrap_index import (
    BOOTSTRAP_PARTITIONS_FILE,
    BootstrapPartition,
    parse_bootstrap_partition,
    partition_key,
)
from hoodie.storage import Storage, open_storage
from hoodie.view import BaseFile, FileSlice, GroupId, LogFile

BOOTSTRAP_BASE_PATH = "hoodie.bootstrap.base.path"

_REMEDY = "Restore it from a copy, or put the source back where the bootstrap found it"
_COUNTED: Final = pa.schema([pa.field(COMMIT_TIME_FIELD, pa.string())])
"""What is read of a skeleton to know how many rows there are: a column of one value."""


@dataclass(frozen=True, slots=True)
class BootstrapSource:
    """A file of the source table, `size_bytes` long when it was bootstrapped (0: nobody knows). Picklable; opens
    nothing until it is read. `partition` is that of the skeleton; the table's `layout` tells what its path says of
    columns.
    """

    storage: Storage
    path: str
    size_bytes: int = 0
    partition: str = ""
    layout: TableConfig | None = field(default=None, compare=False, repr=False)

    def path_values(self, schema: pa.Schema) -> dict[str, Any]:
        """The values of those columns of `schema` that the partition path gives."""
        return {} if self.layout is None else partition_values(self.partition, schema, self.layout)


def is_skeleton(part: FileSlice, config: TableConfig) -> bool:
    """Whether the rows of the slice's base file are partly in the source table."""
    return is_skeleton_file(part.base) and bool(config.raw.get(BOOTSTRAP_BASE_PATH))


def is_skeleton_file(file: BaseFile | LogFile | None) -> TypeGuard[BaseFile]:
    """Whether a file of a bootstrapped table has meta columns only: a base file which the bootstrap made."""
    return isinstance(file, BaseFile) and file.name.instant == METADATA_BOOTSTRAP_INSTANT


def source_of(
    sources: Mapping[GroupId, BootstrapSource], partition: str, base: BaseFile | None
) -> BootstrapSource | None:
    """That of `sources` which belongs to the base file; None: the file is no skeleton."""
    return sources.get((partition, base.name.file_id)) if is_skeleton_file(base) else None


def load_slice_sources(
    storage: Storage, config: TableConfig, slices: Iterable[FileSlice]
) -> Mapping[GroupId, BootstrapSource]:
    """The source files of those of the slices whose base files are skeletons. Raises as `load_sources`."""
    return load_sources(storage, config, {part.group_id for part in slices if is_skeleton(part, config)})


def load_sources(storage: Storage, config: TableConfig, groups: Iterable[GroupId]) -> Mapping[GroupId, BootstrapSource]:
    """The source file of each of these file groups. Reads the entries of their partitions from the bootstrap index.

    Raises:
        Corrupt: the index is damaged or gone, or does not know one of the groups.
        Unsupported: the source lies on a storage there is none for, or on another kind than the table.
    """
    wanted: dict[str, set[str]] = defaultdict(set)
    for partition, file_id in groups:
        wanted[partition].add(file_id)
    if not wanted:
        return {}
    # The source may lie in another bucket of the same store: what the table was opened with opens it, too.
    options: Mapping[str, str] = getattr(storage, "options", {})
    base = open_storage(config.raw.get(BOOTSTRAP_BASE_PATH, ""), options)
    _ensure_same_kind(storage, base)
    known = _index_entries(storage, wanted)
    found: dict[GroupId, BootstrapSource] = {}
    for partition, file_ids in wanted.items():
        for file_id in file_ids:
            path = known[partition].sources.get(file_id) if partition in known else None
            if path is None:
                raise Corrupt(
                    f"The bootstrap index has no source file for file group {file_id} in partition {partition!r}",
                    remedy="Restore the bootstrap index from a copy",
                    path=BOOTSTRAP_PARTITIONS_FILE,
                    partition=partition,
                    file_id=file_id,
                )
            size_bytes = known[partition].sizes.get(file_id, 0)
            found[partition, file_id] = BootstrapSource(base, path, size_bytes, partition, config)
    return found


def _ensure_same_kind(storage: Storage, source: Storage) -> None:
    if source.scheme != storage.scheme and "memory" not in (source.scheme, storage.scheme):
        raise Unsupported(
            f"{BOOTSTRAP_BASE_PATH} leads from a table on {storage.scheme} to {source.scheme}: {source.uri}",
            remedy="If you trust the table, copy it to the kind of storage that its source is on",
            path=source.uri,
        )


def iter_stitched(
    storage: Storage,
    skeleton: str,
    source: BootstrapSource,
    schema: pa.Schema,
    batch_rows: int = DEFAULT_BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Rows of a skeleton and its source in `schema`, in file order, at most `batch_rows` at a time.

    Raises:
        Corrupt: a file is damaged or gone, or they have different numbers of rows.
    """
    given = source.path_values(schema)
    meta = pa.schema([field for field in schema if is_meta(field.name)])
    data = pa.schema([field for field in schema if not is_meta(field.name) and field.name not in given])
    left = iter_batches(storage, skeleton, schema=meta if meta.names else _COUNTED, batch_rows=batch_rows)
    sides: Iterator[tuple[pa.RecordBatch, ...]]
    if not data.names:
        sides = ((mine,) for mine in left)
    else:
        _ensure_same_length(read_footer(storage, skeleton).rows, source, skeleton)
        right = _source_batches(source, data, batch_rows)
        sides = _side_by_side(left, right) if meta.names else ((theirs,) for theirs in right)
    for side in sides:
        yield _put_together(side, schema, given)


def _index_entries(storage: Storage, partitions: Iterable[str]) -> dict[str, BootstrapPartition]:
    path = BOOTSTRAP_PARTITIONS_FILE
    try:
        size_bytes = storage.head(path).size_bytes
        index = open_hfile(lambda start, length: storage.read_range(path, start, length), size_bytes, path)
        found = index.lookup(sorted(partition_key(partition) for partition in partitions))
    except Missing as error:
        raise Corrupt(
            f"The table has bootstrap skeletons, but its bootstrap index {path} is gone",
            remedy="Restore the bootstrap index from a copy",
            path=path,
        ) from error
    values = (
        bytes(found.data[start:end]) for start, end in zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    )
    entries = (parse_bootstrap_partition(value, path) for value in values)
    return {entry.partition: entry for entry in entries}


def _source_batches(source: BootstrapSource, schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
    try:
        yield from iter_batches(source.storage, source.path, schema=schema, batch_rows=batch_rows)
    except Missing as error:
        raise _gone(source) from error


def _ensure_same_length(rows: int, source: BootstrapSource, skeleton: str) -> None:
    try:
        there = read_footer(source.storage, source.path).rows
    except Missing as error:
        raise _gone(source) from error
    if there != rows:
        raise Corrupt(
            f"{source.storage.absolute(source.path)} has {there} rows, but the bootstrap found {rows} in it "
            f"(skeleton {skeleton}): it was changed since",
            remedy=_REMEDY,
            path=source.storage.absolute(source.path),
            rows=there,
            expected=rows,
        )


def _gone(source: BootstrapSource) -> Corrupt:
    path = source.storage.absolute(source.path)
    return Corrupt(f"{path}, a source file of the bootstrapped table, is gone", remedy=_REMEDY, path=path)


def _put_together(sides: tuple[pa.RecordBatch, ...], schema: pa.Schema, given: Mapping[str, Any]) -> pa.RecordBatch:
    """Rows of `schema` of the columns of all sides and of values that are `given`."""
    found = {name: side.column(name) for side in sides for name in side.schema.names}
    rows = sides[0].num_rows
    columns = [
        pa.repeat(pa.scalar(given[field.name], field.type), rows) if field.name in given else found[field.name]
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _side_by_side(
    left: Iterator[pa.RecordBatch], right: Iterator[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Pieces of equal length of two streams of equal length."""
    mine, theirs = next(left, None), next(right, None)
    while mine is not None and theirs is not None:
        rows = min(mine.num_rows, theirs.num_rows)
        yield mine.slice(0, rows), theirs.slice(0, rows)
        mine = mine.slice(rows) if mine.num_rows > rows else next(left, None)
        theirs = theirs.slice(rows) if theirs.num_rows > rows else next(right, None)
