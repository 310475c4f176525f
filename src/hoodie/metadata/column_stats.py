"""Statistics of columns: by file, by partition, and of what an expression index computes.

1. Records are found by hashes of names, so statistics are asked for by column, partition and file name, and come back
   in the order they were asked for.
2. A few files are looked up by their keys; for many the records of the whole column (or of some partitions of it) are
   read, which lie side by side.
3. A file without a record, or with a tombstone, has statistics nobody knows.
4. Log files have records of their own. What a file slice may hold is what any of its files may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.metadata.keys import column_stats_key, name_hash, partition_hash, partition_stats_key
from hoodie.metadata.listing import by_group
from hoodie.metadata.merge import STATS, merge_stats
from hoodie.metadata.partitions import COLUMN_STATS, PARTITION_STATS
from hoodie.metadata.ranges import Ranges
from hoodie.metadata.records import KEY, Wanted, concat_records
from hoodie.metadata.stat_values import ranges_of
from hoodie.metadata.store import MetadataStore

MAX_LOOKED_UP: Final = 2_000
MAX_PARTITIONS: Final = 200


@dataclass(frozen=True, slots=True)
class FileOf:
    """A data file by partition and name."""

    partition: str
    name: str


def file_ranges(
    store: MetadataStore,
    column: str,
    files: Sequence[FileOf],
    data_type: pa.DataType,
    partition: str = COLUMN_STATS,
    *,
    in_doubt: bool = False,
) -> Ranges:
    """Ranges of a column (a path with dots) in files, in their order. `partition`: an expression index instead, whose
    ranges are those of the function's result. `in_doubt`: see `ranges_of`.

    Raises:
        Corrupt: the metadata table is damaged. Invalid: the partition is not available.
    """
    names = [column_stats_key(column, file.partition, file.name) for file in files]
    return _in_order(_read(store, partition, column, names, files), names, data_type, in_doubt=in_doubt)


def file_ranges_of_columns(
    store: MetadataStore,
    asked: Sequence[tuple[str, Sequence[FileOf], pa.DataType]],
    partition: str = COLUMN_STATS,
    *,
    in_doubt: bool = False,
) -> list[Ranges]:
    """What `file_ranges` says of each column, and with `in_doubt` more (`ranges_of`). The index is read once for all,
    where that is a few look-ups.

    Raises:
        Corrupt: the metadata table is damaged. Invalid: the partition is not available.
    """
    if not asked:
        return []
    if sum(len(files) for _, files, _ in asked) > MAX_LOOKED_UP:
        return [
            file_ranges(store, column, files, data_type, partition, in_doubt=in_doubt)
            for column, files, data_type in asked
        ]
    names = [[column_stats_key(column, file.partition, file.name) for file in files] for column, files, _ in asked]
    found = _looked_up(store, partition, [name for own in names for name in own])
    return [
        _in_order(found, own, data_type, in_doubt=in_doubt) for own, (_, _, data_type) in zip(names, asked, strict=True)
    ]


def partition_ranges(
    store: MetadataStore, columns: Mapping[str, pa.DataType], partitions: Sequence[str]
) -> dict[str, Ranges]:
    """Ranges of each column over partitions of the table, in their order. Counts and bounds may be those of some of the
    files only, where others have no statistics.

    Raises:
        Corrupt: the metadata table is damaged. Invalid: there are no such statistics.
    """
    names = {column: [partition_stats_key(column, partition) for partition in partitions] for column in columns}
    found = _looked_up(store, PARTITION_STATS, [name for own in names.values() for name in own])
    return {column: _in_order(found, names[column], data_type) for column, data_type in columns.items()}


def column_stats(store: MetadataStore, column: str, partition: str = COLUMN_STATS) -> pa.Table:
    """All statistics of a column as they are stored: `key` and the struct `ColumnStatsMetadata`, tombstones left out.

    Raises:
        Corrupt: the metadata table is damaged. Invalid: the partition is not available.
    """
    parts = store.read(partition, Wanted(prefixes=(name_hash(column),)), (STATS,))
    merged = [merge_stats(group) for group in parts if group]
    if not merged:
        return pa.table({KEY: pa.array([], pa.string())})
    rows = concat_records(merged)
    gone = pc.fill_null(pc.struct_field(rows.column(STATS), "isDeleted"), True)
    return rows.filter(pc.invert(gone))


def _read(
    store: MetadataStore, partition: str, column: str, names: Sequence[str], files: Sequence[FileOf]
) -> list[pa.Table]:
    if len(names) <= MAX_LOOKED_UP:
        return _looked_up(store, partition, names)
    partitions = {file.partition for file in files}
    prefixes = [name_hash(column)]
    if len(partitions) <= MAX_PARTITIONS:
        prefixes = [prefixes[0] + partition_hash(one) for one in sorted(partitions)]
    groups = store.read(partition, Wanted(prefixes=tuple(prefixes)), (STATS,))
    return [merge_stats(group) for group in groups if group]


def _looked_up(store: MetadataStore, partition: str, names: Sequence[str]) -> list[pa.Table]:
    wanted = by_group(store, partition, list(dict.fromkeys(names)))
    return [merge_stats(group) for group in store.read(partition, wanted, (STATS,)) if group]


def _in_order(
    merged: list[pa.Table], names: Sequence[str], data_type: pa.DataType, *, in_doubt: bool = False
) -> Ranges:
    found = [table for table in merged if STATS in table.column_names and table.num_rows]
    if not found:
        unknown = pa.nulls(len(names), data_type)
        counts = pa.nulls(len(names), pa.int64())
        return Ranges(unknown, unknown, counts, counts)
    rows = concat_records(found).combine_chunks()
    at = pc.index_in(pa.array(names, pa.string()), value_set=rows.column(KEY))
    stats = rows.column(STATS).combine_chunks()
    return ranges_of(stats.take(at), data_type, in_doubt=in_doubt)
