"""Records of `partition_stats`: the value ranges of indexed columns over all live files of a partition.

1. They are tight: computed anew from the files a snapshot reads whenever an action touches the partition, so they
   shrink as well as grow, and a newer record replaces an older one.
2. Where an action has only added files, the range of the others is what the partition's record says, if it is tight:
   it was computed from just these. Else ranges of files that an action did not write come from `column_stats`, or from
   the files where there is no such partition.
3. A range that nobody knows for one of the files is not known for the partition: it has no record then. Nor have
   partitions without live files. Nobody knows the ranges of a bootstrap skeleton of which `column_stats` has none: what
   has no range in another file is not there, but a skeleton's columns stand elsewhere.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.metadata import COLUMN_STATS, PARTITION_STATS, IndexDefinition, MetadataTable
from hoodie.metadata.column_stats import partition_ranges
from hoodie.metadata.keys import file_hash, name_hash, partition_hash, partition_stats_key
from hoodie.metadata.listing import by_group
from hoodie.metadata.merge import STATS, merge_stats, outlived_keys
from hoodie.metadata.partitions import RecordType
from hoodie.metadata.records import EVERYTHING, KEY, Wanted, concat_records
from hoodie.metadata.stat_values import ranges_of
from hoodie.metadata.store import MetadataStore
from hoodie.metadata_writer.column_range import ColumnRange, as_type, in_order, join_ranges, stored_bound
from hoodie.metadata_writer.data_files import DataFile, files_of
from hoodie.metadata_writer.file_facts import IndexNeeds
from hoodie.metadata_writer.index_check import CheckedTable, IndexCheck, SliceShown, Trouble, index_path
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.indexes.column_stats import (
    RangesTask,
    columns_now,
    columns_of_update,
    ranges_of_file,
    ranges_of_update,
    ranges_task,
    shown_ranges,
    stats_version,
)
from hoodie.metadata_writer.metadata_index import (
    IndexRequest,
    MetadataIndex,
    MetadataIndexKind,
    MetadataRecords,
    Records,
    RecordTask,
    group_file_ids,
)
from hoodie.metadata_writer.range_checks import SliceRanges, left_out, rows_of
from hoodie.metadata_writer.skeletons import skeletons_among
from hoodie.metadata_writer.slices_after import slices_after
from hoodie.metadata_writer.stats_rows import StatsRow, stats_rows
from hoodie.metadata_writer.update import TableUpdate
from hoodie.records import KEY_FIELD, with_meta
from hoodie.records.columns import type_at
from hoodie.view import FileSlice

PARTITIONS_PER_TASK = 16
"""Partitions one task of an initialisation looks at."""

ENABLE: Final = "hoodie.metadata.index.partition.stats.enable"
_FILE_GROUPS: Final = "hoodie.metadata.index.partition.stats.file.group.count"
_MAX_PREFIXES = 2_000

_TIGHT = "isTightBound"

Files = Mapping[str, Sequence[DataFile]]
"""Files by partition."""

Ranges = Mapping[tuple[str, str], ColumnRange]
"""Ranges by partition and column."""


class PartitionStatsIndex(MetadataIndex):
    """Value ranges of columns over partitions."""

    partition = PARTITION_STATS

    def file_ids(self, context: IndexContext) -> tuple[str, ...]:
        """As many groups as the options say; one by default."""
        return group_file_ids("partition-stats-", context.options.config.integer(_FILE_GROUPS))

    def initial(self, context: IndexContext) -> Iterator[Records]:
        """Ranges of all partitions with live files."""
        schema = context.columns_before()
        if schema is None:
            return
        columns = columns_now(context, schema)
        files = files_of(context.view().slices_at())
        partitions = sorted(files)
        for at in range(0, len(partitions), PARTITIONS_PER_TASK):
            some = tuple(file for name in partitions[at : at + PARTITIONS_PER_TASK] for file in files[name])
            yield RecordTask(partition_stats_records, ranges_task(context, some, columns, schema))

    def updated(self, context: IndexContext, update: TableUpdate) -> Iterator[Records]:
        """Ranges of the partitions that got or lost files."""
        schema = context.columns_after(update)
        touched = {stat.partition_path for stat in update.stats if stat.path is not None} | set(update.replaced)
        if schema is None or not touched:
            return
        columns = columns_of_update(context, update)
        written = ranges_of_update(context, update, columns, schema)
        view = context.view(touched)
        live = files_of(slices_after(view, update, touched).values())
        grown = _grown(files_of(view.slices_at(None, touched)), live, written)
        before = _ranges_before(context, grown, columns, schema)
        others = [file for files in live.values() for file in files if file not in written]
        others = [file for file in others if file.partition not in before]
        parts: dict[tuple[str, str], list[ColumnRange]] = defaultdict(list)
        for partition, found in chain(
            ((partition, found) for partition, ranges in before.items() for found in ranges),
            _known_ranges(context, others, columns, schema),
            (
                (partition, found)
                for partition, files in live.items()
                for file in files
                for found in written.get(file, ())
            ),
        ):
            parts[partition, found.column].append(found)
        ranges = _joined(parts, with_meta(schema))
        yield _records(ranges, touched, columns, stats_version(context))

    def check(self, table: CheckedTable) -> IndexCheck:
        """Compares ranges of partitions with those of their live slices."""
        return PartitionStatsCheck(table.metadata, shown_ranges(table))


def _grown(before: Files, live: Files, written: Collection[DataFile]) -> list[str]:
    """The partitions that had files and have all of them still, as they were: an action has only added some."""
    return [
        partition
        for partition, files in before.items()
        if set(files) <= set(live.get(partition, ())).difference(written)
    ]


def _ranges_before(
    context: IndexContext, partitions: Sequence[str], columns: Sequence[str], schema: pa.Schema
) -> dict[str, list[ColumnRange]]:
    """Ranges of the columns over all live files of those of the partitions whose records say them, tightly. A record
    that is not there may mean that a file has no values, or that nobody knows them: the files are asked then.
    """
    table = context.metadata_table() if partitions else None
    if table is None or not table.has(PARTITION_STATS):
        return {}
    types = column_types(columns, schema)
    names = [partition_stats_key(column, partition) for column in types for partition in partitions]
    wanted = by_group(table.store, PARTITION_STATS, names)
    found_parts = table.store.read(PARTITION_STATS, wanted, (STATS,), outlived_keys)
    merged = [merge_stats(parts) for parts in found_parts if parts]
    if not merged or not types:
        return {}
    rows = concat_records(merged).combine_chunks()
    stats = rows.column(STATS).combine_chunks()
    if stats.type.get_field_index(_TIGHT) < 0:
        return {}
    stored = pc.index_in(pa.array(names, pa.string()), value_set=rows.column(KEY))
    is_tight = pc.fill_null(pc.struct_field(stats, _TIGHT).take(stored), False)
    found: dict[str, list[ColumnRange]] = defaultdict(list)
    columns_there, count = list(types), len(partitions)
    for data_type, places in _of_one_type(types).items():
        at = pa.array([place * count + number for place in places for number in range(count)], pa.int64())
        at = at.filter(is_tight.take(at))
        for owner, column_range in _of_records(data_type, stats.take(stored.take(at)), at):
            place, number = divmod(owner, count)
            if column_range.is_known:
                found[partitions[number]].append(replace(column_range, column=columns_there[place]))
    return {partition: ranges for partition, ranges in found.items() if len(ranges) == len(types)}


def _of_one_type(types: Mapping[str, pa.DataType]) -> dict[pa.DataType, list[int]]:
    """Places of the columns of each type: what is asked of a few records costs as much as of one."""
    found: dict[pa.DataType, list[int]] = defaultdict(list)
    for place, data_type in enumerate(types.values()):
        found[data_type].append(place)
    return found


def column_types(columns: Sequence[str], schema: pa.Schema) -> dict[str, pa.DataType]:
    """The types that those of the columns (paths with dots) have that are there; `schema`: the data columns."""
    full = with_meta(schema)
    return {column: found for column in columns if (found := type_at(full, column)) is not None}


def partition_stats_records(task: RangesTask) -> MetadataRecords:
    """The records of the partitions whose files a task has."""
    parts: dict[tuple[str, str], list[ColumnRange]] = defaultdict(list)
    for file in task.files:
        for column_range in ranges_of_file(task, file):
            parts[file.partition, column_range.column].append(column_range)
    return _records(_joined(parts, task.schema), (), (), task.version)


def _joined(parts: Mapping[tuple[str, str], Sequence[ColumnRange]], schema: pa.Schema) -> Ranges:
    """One range for each column of a partition, in the type the table has for it; those that are known."""
    found: dict[tuple[str, str], ColumnRange] = {}
    for key, ranges in parts.items():
        data_type = type_at(schema, key[1])
        joined = join_ranges(ranges if data_type is None else [as_type(part, data_type) for part in ranges])
        if joined.is_known:
            found[key] = joined
    return found


def _known_ranges(
    context: IndexContext, files: Sequence[DataFile], columns: Sequence[str], schema: pa.Schema
) -> Iterator[tuple[str, ColumnRange]]:
    """Ranges over files that were there before, with their partition: by file, or of several files at once."""
    table = context.metadata_table() if files else None
    if table is not None and table.has(COLUMN_STATS):
        types = column_types(columns, schema)
        halves = skeletons_among(context.handle, ((file.partition, file.file) for file in files))
        yield from stored_ranges(table.store, COLUMN_STATS, files, types, halves)
        return
    task = ranges_task(context, files, columns, schema)
    for file in files:
        for column_range in ranges_of_file(task, file):
            yield file.partition, column_range


def stored_ranges(
    store: MetadataStore,
    index: str,
    files: Sequence[DataFile],
    types: Mapping[str, pa.DataType],
    halves: Collection[str] = (),
) -> Iterator[tuple[str, ColumnRange]]:
    """The ranges an index of statistics has over the files of each partition, one by column and partition. `types`:
    the columns, and the types their bounds have now. `halves`: paths of files with columns the index may not know of.
    """
    partitions = sorted({file.partition for file in files})
    wanted = EVERYTHING
    if len(partitions) * len(types) <= _MAX_PREFIXES:
        starts = {name_hash(column) + partition_hash(name) for column in types for name in partitions}
        wanted = Wanted(prefixes=tuple(sorted(starts)))
    merged = [merge_stats(parts) for parts in store.read(index, wanted, (STATS,)) if parts]
    if not merged:
        return
    rows = concat_records(merged).combine_chunks()
    stats = rows.column(STATS).combine_chunks()
    names = [partition_hash(file.partition) + file_hash(file.name) for file in files]
    of_files = pa.array([file.partition for file in files], pa.string())
    is_half = pa.array([file.file.path in halves for file in files], pa.bool_())
    for column, data_type in types.items():
        start = name_hash(column)
        at = pc.index_in(pa.array([start + name for name in names], pa.string()), value_set=rows.column(KEY))
        for partition, column_range in _by_owner(data_type, stats.take(at), of_files, is_half):
            yield partition, replace(column_range, column=column)


def _of_records(data_type: pa.DataType, stats: pa.StructArray, owners: pa.Array) -> Iterator[tuple[Any, ColumnRange]]:
    """The range in each record, with its owner and without a column's name."""
    for row in _facts(data_type, stats, owners, pa.repeat(False, len(owners))).to_pylist():
        yield row["owner"], _range_of(data_type, row)


def _by_owner(
    data_type: pa.DataType, stats: pa.StructArray, owners: pa.Array, is_half: pa.BooleanArray
) -> Iterator[tuple[Any, ColumnRange]]:
    """The range over the records of each owner, without a column's name; null: a file without statistics."""
    table = _facts(data_type, stats, owners, is_half)
    how = {"low": "min", "high": "max", "unknown": "any", "nan": "any"}
    others = [name for name in table.column_names if name != "owner"]
    found = table.group_by("owner").aggregate([(name, how.get(name, "sum")) for name in others])
    for row in found.select(["owner", *(f"{name}_{how.get(name, 'sum')}" for name in others)]).to_pylist():
        yield row["owner"], _range_of(data_type, dict(zip(table.column_names, row.values(), strict=True)))


def _facts(data_type: pa.DataType, stats: pa.StructArray, owners: pa.Array, is_half: pa.BooleanArray) -> pa.Table:
    """What records say, one row each, with their owners. Of records that are not there only halves stay."""
    ranges = ranges_of(stats, data_type, as_stored=True)
    is_told = ranges.rows.is_valid()
    has_values = pc.fill_null(pc.less(ranges.nulls, ranges.rows), False)
    no_bounds = pc.or_(ranges.low.is_null(), ranges.high.is_null())
    high = in_order(ranges.high)
    stays = pc.or_(is_told, is_half)
    facts = pa.table(
        {
            "owner": owners,
            "low": in_order(ranges.low),
            "high": high,
            "rows": ranges.rows,
            "nulls": ranges.nulls,
            "size": pc.struct_field(stats, "totalSize"),
            "plain": pc.struct_field(stats, "totalUncompressedSize"),
            "unknown": pc.or_(pc.and_(has_values, no_bounds), pc.and_not(is_half, is_told)),
            "nan": pc.is_nan(high) if pa.types.is_floating(high.type) else pa.repeat(False, len(high)),
        }
    )
    return facts if stays.true_count == len(stays) else facts.filter(stays)


def _range_of(data_type: pa.DataType, facts: Mapping[str, Any]) -> ColumnRange:
    low, high = (stored_bound(facts[end], data_type) for end in ("low", "high"))
    if facts["unknown"]:
        low = high = None
    elif facts["nan"]:
        high = math.inf  # as of a column with NaN now
    counts = (facts[name] or 0 for name in ("rows", "nulls", "size", "plain"))
    return ColumnRange("", data_type, low, high, *counts)


def _records(ranges: Ranges, touched: Collection[str], columns: Sequence[str], version: str) -> MetadataRecords:
    """Records of ranges; deletes for columns of touched partitions that have none."""
    rows = [
        StatsRow(partition_stats_key(column, partition), partition, found)
        for (partition, column), found in ranges.items()
    ]
    gone = [
        partition_stats_key(column, partition)
        for partition in sorted(touched)
        for column in columns
        if (partition, column) not in ranges
    ]
    table = stats_rows(rows, RecordType.PARTITION_STATS, version, is_tight=True)
    return MetadataRecords(PARTITION_STATS, table, pa.array(gone, pa.string()))


class PartitionStatsCheck(IndexCheck):
    """Bounds of partitions say at least what their live slices have. Readers believe what is said of as many rows as
    have a key.
    """

    def __init__(self, table: MetadataTable, ranges: SliceRanges) -> None:
        self._table = table
        self._ranges = ranges

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        """The indexed columns, where the rows are not those of one file."""
        return self._ranges.columns(part)

    def compare(self, shown: SliceShown) -> Iterator[Trouble]:
        """Yields no findings yet: what is said is asked for all slices at once."""
        self._ranges.add(shown)
        yield from ()

    def finish(self) -> Iterator[Trouble]:
        """Partitions with values outside of what is said of them."""
        by_column = self._ranges.by_column
        names = sorted({part.partition for shown in by_column.values() for part, _ in shown})
        types = {KEY_FIELD: pa.string(), **{column: self._ranges.types[column] for column in by_column}}
        said = partition_ranges(self._table.store, types, names)
        all_rows = said[KEY_FIELD].rows.to_pylist()
        for column, shown in by_column.items():
            actual: dict[str, list[ColumnRange]] = defaultdict(list)
            for part, column_range in shown:
                actual[part.partition].append(column_range)
            for at, (name, rows) in enumerate(zip(names, all_rows, strict=True)):
                if actual[name] and rows is not None and said[column].rows[at].as_py() == rows:
                    wrong = left_out(rows_of(said[column], at, 1), join_ranges(actual[name]))
                    if wrong:
                        where = f"column {column!r} of the partition {name!r}"
                        yield index_path(PARTITION_STATS), f"says of {where} {wrong}"


def partition_stats_index() -> IndexDefinition:
    """An index of value ranges over the partitions of a table."""
    return IndexDefinition(PARTITION_STATS, PARTITION_STATS)


class PartitionStatsKind(MetadataIndexKind):
    """Value ranges of columns over partitions, of the columns of `column_stats`. They have no definition."""

    name = PARTITION_STATS
    needs = (COLUMN_STATS,)
    option = ENABLE
    is_defined = False

    def open(self, partition: str, context: IndexContext) -> PartitionStatsIndex:
        """The statistics of any table."""
        del partition, context
        return PartitionStatsIndex()

    def is_wanted(self, context: IndexContext) -> bool:
        """In a partitioned table, unless the options say no."""
        is_possible = context.handle.profile.indexes.can_have(PARTITION_STATS)
        is_partitioned = bool(context.handle.config.partition_fields)
        return is_possible and is_partitioned and context.options.config.flag(ENABLE)

    def described(self, request: IndexRequest) -> IndexDefinition | None:
        """The index of that name."""
        return partition_stats_index() if request.name == PARTITION_STATS else None

    def file_needs(self, context: IndexContext, update: TableUpdate) -> IndexNeeds:
        """The ranges of the columns of `column_stats` after the write."""
        return IndexNeeds(columns_of_update(context, update))


KIND: Final = PartitionStatsKind()
