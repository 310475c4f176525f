"""Rows of a table that was made over the files of another one (bootstrap), without rewriting them.

1. A *skeleton* is a base file of instant `00000000000001`: meta columns only. Row i of a skeleton and row i of its
   source file are one row. Later base files of the group are ordinary, and so are those of a full-record bootstrap
   (instant `00000000000002`).
2. Which source file belongs to a skeleton stands in the bootstrap index. Source files lie below
   `hoodie.bootstrap.base.path`, outside the table; paths of the index can not leave it.
3. Source files have no meta columns, and mostly no partition columns: those are null here and come from the partition
   path, as for any file.
4. Both files are read as streams side by side: memory is two batches, and only what is asked for is read.

How to use it. Planning: `skeletons = [part.group_id for part in slices if is_skeleton(part, config)]`, then
`sources = load_sources(storage, config, skeletons)`; the source travels to the worker with the slice. Reading: where a
slice has a source, `iter_stitched(storage, base.path, source, schema, batch_rows)` gives what
`iter_batches(storage, base.path, schema=schema)` gives elsewhere. Merging logs, mapping columns by id and filling
partition columns come after it as ever. The footer of the skeleton alone tells how many rows there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from hoodie.errors import Corrupt, Missing
from hoodie.hfile import open_hfile
from hoodie.records import is_meta, iter_batches, read_footer
from hoodie.spec import (
    BOOTSTRAP_PARTITIONS_FILE,
    METADATA_BOOTSTRAP_INSTANT,
    TableConfig,
    parse_bootstrap_partition,
    partition_key,
)
from hoodie.storage import Storage, open_storage
from hoodie.view import FileSlice, GroupId

BOOTSTRAP_BASE_PATH = "hoodie.bootstrap.base.path"

_REMEDY = "Restore it from a copy, or put the source back where the bootstrap found it"


@dataclass(frozen=True, slots=True)
class BootstrapSource:
    """A file of the source table. Picklable; opens nothing until it is read."""

    storage: Storage
    path: str


def is_skeleton(part: FileSlice, config: TableConfig) -> bool:
    """Whether the rows of the slice's base file are partly in the source table."""
    made_by_bootstrap = part.base is not None and part.base.name.instant == METADATA_BOOTSTRAP_INSTANT
    return made_by_bootstrap and bool(config.raw.get(BOOTSTRAP_BASE_PATH))


def load_sources(storage: Storage, config: TableConfig, groups: Iterable[GroupId]) -> Mapping[GroupId, BootstrapSource]:
    """The source file of each of these file groups. Reads the entries of their partitions from the bootstrap index.

    Raises:
        Corrupt: the index is damaged or gone, or does not know one of the groups.
        Unsupported: the source lies on a storage there is none for.
    """
    wanted: dict[str, set[str]] = defaultdict(set)
    for partition, file_id in groups:
        wanted[partition].add(file_id)
    if not wanted:
        return {}
    # The source may lie in another bucket of the same store: what the table was opened with opens it, too.
    options: Mapping[str, str] = getattr(storage, "options", {})
    base = open_storage(config.raw.get(BOOTSTRAP_BASE_PATH, ""), options)
    known = _index_entries(storage, wanted)
    found: dict[GroupId, BootstrapSource] = {}
    for partition, file_ids in wanted.items():
        for file_id in file_ids:
            path = known.get(partition, {}).get(file_id)
            if path is None:
                raise Corrupt(
                    f"The bootstrap index has no source file for file group {file_id} in partition {partition!r}",
                    remedy="Restore the bootstrap index from a copy",
                    path=BOOTSTRAP_PARTITIONS_FILE,
                    partition=partition,
                    file_id=file_id,
                )
            found[partition, file_id] = BootstrapSource(base, path)
    return found


def iter_stitched(
    storage: Storage, skeleton: str, source: BootstrapSource, schema: pa.Schema, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Rows of a skeleton and its source in `schema`, in file order, at most `batch_rows` at a time.

    Raises:
        Corrupt: a file is damaged or gone, or they have different numbers of rows.
    """
    meta = pa.schema([field for field in schema if is_meta(field.name)])
    data = pa.schema([field for field in schema if not is_meta(field.name)])
    if not data.names:
        yield from iter_batches(storage, skeleton, schema=meta, batch_rows=batch_rows)
        return
    _ensure_same_length(read_footer(storage, skeleton).rows, source, skeleton)
    right = _source_batches(source, data, batch_rows)
    if not meta.names:
        yield from right
        return
    left = iter_batches(storage, skeleton, schema=meta, batch_rows=batch_rows)
    for mine, theirs in _side_by_side(left, right):
        columns = [(mine if is_meta(name) else theirs).column(name) for name in schema.names]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _index_entries(storage: Storage, partitions: Iterable[str]) -> dict[str, Mapping[str, str]]:
    path = BOOTSTRAP_PARTITIONS_FILE
    try:
        size_bytes = storage.head(path).size_bytes
        index = open_hfile(lambda start, length: storage.read_range(path, start, length), size_bytes, path)
        found = index.lookup(sorted(partition_key(one) for one in partitions))
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
    return {one.partition: one.sources for one in entries}


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
