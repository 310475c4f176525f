"""What the indexes of a metadata table say otherwise than the rows of the table do.

1. Every live slice is read once, with the columns that the checks of all indexes want of it, some slices at a time. An
   index that is not ready yet is not looked at.
2. An index that cannot be read is a trouble of its own; the others go on.

Cost: the key column of the table, columns of secondary and expression indexes; of slices with log files all columns
with statistics. Nothing for a table without indexes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.config import Config
from hoodie.engine import Engine, TaskId
from hoodie.errors import HudiError
from hoodie.metadata import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX, MetadataTable
from hoodie.metadata.partitions import EXPRESSION_PREFIX, SECONDARY_PREFIX
from hoodie.metadata_writer.column_range import ColumnRange
from hoodie.metadata_writer.contents.check import IndexCheck, SliceShown, Trouble, index_path
from hoodie.metadata_writer.contents.filters import BloomFiltersCheck, ExpressionFiltersCheck
from hoodie.metadata_writer.contents.ranges import ExpressionRangesCheck, StatisticsCheck
from hoodie.metadata_writer.contents.record_index import RecordIndexCheck
from hoodie.metadata_writer.contents.secondary_index import SecondaryIndexCheck
from hoodie.metadata_writer.index_functions import parse_function
from hoodie.metadata_writer.indexes.column_stats import DataFile, columns_now, ranges_of_file, ranges_task
from hoodie.metadata_writer.metadata_index import IndexContext
from hoodie.metadata_writer.options import MetadataOptions
from hoodie.metadata_writer.skeletons import skeleton_sources
from hoodie.metadata_writer.slice_rows import SliceRows, slice_rows
from hoodie.metadata_writer.table_columns import columns_before
from hoodie.records import with_meta
from hoodie.records.columns import type_at
from hoodie.state.handle import TableHandle
from hoodie.timeline import Timeline
from hoodie.view import FileSlice

SLICES_AT_ONCE = 16


def index_troubles(
    handle: TableHandle, timeline: Timeline, slices: Sequence[FileSlice], engine: Engine
) -> Iterator[Trouble]:
    """What is wrong with the contents of the indexes. `slices` are the live ones as they lie on storage at `timeline`.

    Of a table whose rows do not carry their keys nothing is compared.
    """
    if set(handle.config.metadata_partitions) <= {"files"} or not handle.config.populate_meta_fields:
        return
    context = IndexContext(handle, timeline, engine, MetadataOptions(config=Config()), {})
    try:
        table, schema = context.metadata_table(), columns_before(context)
        if table is None or schema is None:
            return
        checks = dict(_checks(table, context, schema, slices))
    except HudiError as error:
        yield str(error.facts.get("path") or index_path("")), error.cause
        return
    for at in range(0, len(slices), SLICES_AT_ONCE):
        tasks = [_task(context, schema, part, checks) for part in slices[at : at + SLICES_AT_ONCE]]
        try:
            shown = engine.run(_show, tasks, "compare indexes")
        except HudiError as error:
            yield str(error.facts.get("path") or handle.config.name), error.cause
            return
        for one in shown:
            for name in tuple(checks):
                yield from _guarded(checks, name, one)
    for name in tuple(checks):
        yield from _guarded(checks, name, None)


def _guarded(checks: dict[str, IndexCheck], name: str, shown: SliceShown | None) -> Iterator[Trouble]:
    """What one check finds. One whose index cannot be read is given up."""
    try:
        yield from checks[name].finish() if shown is None else checks[name].compare(shown)
    except HudiError as error:
        del checks[name]
        yield str(error.facts.get("path") or index_path(name)), error.cause


def _checks(
    table: MetadataTable, context: IndexContext, schema: pa.Schema, slices: Sequence[FileSlice]
) -> Iterator[tuple[str, IndexCheck]]:
    """The checks of all indexes that are ready, by the names of their partitions."""
    keys = slice_rows(context, schema)
    keys = keys.having(skeleton_sources(context.handle, ((part.partition, part.base) for part in slices)))
    for name in table.partitions:
        definition = table.definitions.get(name)
        if name == RECORD_INDEX:
            yield name, RecordIndexCheck(table, {part.group_id: part for part in slices}, keys)
        elif name == BLOOM_FILTERS:
            yield name, BloomFiltersCheck(table, keys)
        elif name == COLUMN_STATS:
            yield name, _statistics(table, context, schema)
        elif name.startswith(SECONDARY_PREFIX) and definition is not None:
            yield name, SecondaryIndexCheck(table, definition)
        elif name.startswith(EXPRESSION_PREFIX) and definition is not None:
            function = parse_function(definition.function, definition.options)
            if definition.kind == COLUMN_STATS:
                yield name, ExpressionRangesCheck(table, definition, function, schema)
            else:
                yield name, ExpressionFiltersCheck(table, definition, function)


def _statistics(table: MetadataTable, context: IndexContext, schema: pa.Schema) -> StatisticsCheck:
    known, full = table.definitions.get(COLUMN_STATS), with_meta(schema)
    columns = known.source_fields if known is not None and known.source_fields else columns_now(context, schema)
    types = {column: found for column in columns if (found := type_at(full, column)) is not None}

    def base_ranges(part: FileSlice) -> list[ColumnRange]:
        file = DataFile(part.partition, part.base) if part.base is not None else None
        return [] if file is None else ranges_of_file(ranges_task(context, [file], tuple(types), schema), file)

    return StatisticsCheck(table, types, base_ranges, of_partitions=table.has(PARTITION_STATS))


@dataclass(frozen=True, slots=True, eq=False)
class _ShowTask:
    """A slice to show; no `rows`: nobody looks at its rows."""

    part: FileSlice
    rows: SliceRows | None


def _task(context: IndexContext, schema: pa.Schema, part: FileSlice, checks: dict[str, IndexCheck]) -> _ShowTask:
    asked = [columns for one in checks.values() if (columns := one.columns(part)) is not None]
    if not asked:
        return _ShowTask(part, None)
    wanted = tuple(dict.fromkeys(column for columns in asked for column in columns))
    rows = slice_rows(context, schema, wanted)
    return _ShowTask(part, rows.having(skeleton_sources(context.handle, [(part.partition, part.base)])))


def _show(_: TaskId, task: _ShowTask) -> SliceShown:
    return SliceShown(task.part, pa.table({}) if task.rows is None else task.rows.of(task.part))
