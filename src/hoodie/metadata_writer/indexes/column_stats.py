"""Records of `column_stats`: the value ranges of indexed columns in every file.

1. Files are read one by one: footers of base files, blocks of log files. Whoever has just written one says what is in
   it (`file_facts`), and it is not opened.
   A bootstrap skeleton has the ranges of its meta columns, and those of its source: it stands for the rows of both.
2. Removed files get deletes, for every column that may have a record.
3. What was found of the files of one update is kept in the context: statistics of partitions need it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from hoodie.engine import LocalEngine, TaskId
from hoodie.metadata import COLUMN_STATS, IndexDefinition, MetadataTable
from hoodie.metadata.keys import column_stats_key
from hoodie.metadata.partitions import RecordType
from hoodie.metadata.store import READING_THREADS
from hoodie.metadata_writer.column_range import ColumnRange
from hoodie.metadata_writer.data_files import FILES_PER_TASK, DataFile, committed_files, written_files
from hoodie.metadata_writer.file_facts import IndexNeeds
from hoodie.metadata_writer.file_ranges import base_file_ranges, log_file_ranges, typed_range
from hoodie.metadata_writer.index_check import CheckedTable, IndexCheck, SliceShown, Trouble, index_path
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.indexed_columns import COLUMN_LIST, grown_columns, indexed_columns
from hoodie.metadata_writer.metadata_index import (
    IndexRequest,
    MetadataIndex,
    MetadataIndexKind,
    MetadataRecords,
    Records,
    RecordTask,
    group_file_ids,
)
from hoodie.metadata_writer.range_checks import SliceRanges, range_troubles
from hoodie.metadata_writer.skeletons import Sources, skeleton_sources, source_of_base
from hoodie.metadata_writer.stats_rows import StatsRow, stats_rows
from hoodie.metadata_writer.update import TableUpdate
from hoodie.records import is_meta, with_meta
from hoodie.records.columns import type_at
from hoodie.storage import Storage
from hoodie.view import BaseFile, FileSlice, LogFile

ENABLE: Final = "hoodie.metadata.index.column.stats.enable"
_FILE_GROUPS: Final = "hoodie.metadata.index.column.stats.file.group.count"
_MEMO: Final = "ranges of files"
_SHOWN: Final = "ranges of shown slices"


@dataclass(frozen=True, slots=True, eq=False)
class RangesTask:
    """Files and the columns whose ranges are wanted; `schema` are the table's columns, meta columns included. `sources`
    has the other halves of those files that are bootstrap skeletons. `exact`: no range is to be wider than the values
    of a base file.
    """

    storage: Storage
    files: tuple[DataFile, ...]
    columns: tuple[str, ...]
    schema: pa.Schema
    version: str
    sources: Sources = field(default_factory=dict)
    exact: bool = False


class ColumnStatsIndex(MetadataIndex):
    """Value ranges of columns in files."""

    partition = COLUMN_STATS

    def file_ids(self, context: IndexContext) -> tuple[str, ...]:
        """As many groups as the options say; 2 by default."""
        return group_file_ids("col-stats-", context.options.config.integer(_FILE_GROUPS))

    def initial(self, context: IndexContext) -> Iterator[Records]:
        """Ranges of all files of completed writes."""
        schema = context.columns_before()
        if schema is None:
            return
        columns = columns_now(context, schema)
        for task in tasks_of(context, committed_files(context), columns, schema):
            yield RecordTask(column_stats_records, task)

    def updated(self, context: IndexContext, update: TableUpdate) -> Iterator[Records]:
        """Ranges of written files; deletes for removed ones."""
        columns, schema = columns_of_update(context, update), context.columns_after(update)
        found = {} if schema is None else ranges_of_update(context, update, columns, schema)
        rows = [
            StatsRow(column_stats_key(column_range.column, file.partition, file.name), file.name, column_range)
            for file, ranges in found.items()
            for column_range in ranges
        ]
        gone = [
            column_stats_key(column, partition, name.rpartition("/")[2])
            for partition, names in update.deleted.items()
            for name in names
            for column in columns
        ]
        if rows or gone:
            table = stats_rows(rows, RecordType.COLUMN_STATS, stats_version(context))
            yield MetadataRecords(COLUMN_STATS, table, pa.array(gone, pa.string()))

    def check(self, table: CheckedTable) -> IndexCheck:
        """Compares ranges with those of files, or of the rows a snapshot reads."""
        return ColumnStatsCheck(table.metadata, shown_ranges(table))


def stats_version(context: IndexContext) -> str:
    """How bounds are stored: as the index's definition says, else as new ones are."""
    definition = context.definition_of(COLUMN_STATS)
    return context.handle.profile.indexes.version if definition is None else definition.version


def columns_now(context: IndexContext, schema: pa.Schema) -> tuple[str, ...]:
    """The columns of the index as it is, or would be made for the table's columns `schema`."""
    definition, handle = context.definition_of(COLUMN_STATS), context.handle
    if definition is not None and definition.source_fields:
        return definition.source_fields
    return indexed_columns(schema, handle.config, handle.profile, context.options.config)


def columns_of_update(context: IndexContext, update: TableUpdate) -> tuple[str, ...]:
    """The columns of the index after an action."""
    definition, handle, schema = context.definition_of(COLUMN_STATS), context.handle, context.columns_after(update)
    if definition is not None and (schema is None or update.schema is None) and definition.source_fields:
        return definition.source_fields
    if schema is None:
        return ()
    config = context.options.config
    return grown_columns(definition, context.columns_before(), schema, handle.config, handle.profile, config)


def ranges_of_update(
    context: IndexContext, update: TableUpdate, columns: Sequence[str], schema: pa.Schema
) -> dict[DataFile, list[ColumnRange]]:
    """The ranges of every file that an action wrote: as its writer says, else read once, by threads of this process."""
    memo = f"{_MEMO} {update.instant}"
    if memo not in context.memo:
        told = {file: _told_ranges(update, file, columns, schema) for file in written_files(update)}
        files = [file for file, ranges in told.items() if ranges is None]
        tasks = [RangesTask(context.handle.storage, (file,), tuple(columns), with_meta(schema), "") for file in files]
        found = LocalEngine(READING_THREADS).run(_ranges_of_file, tasks, "column statistics")
        read = dict(zip(files, found, strict=True))
        context.memo[memo] = {file: read[file] if ranges is None else ranges for file, ranges in told.items()}
    known: dict[DataFile, list[ColumnRange]] = context.memo[memo]
    return known


def _told_ranges(
    update: TableUpdate, file: DataFile, columns: Sequence[str], schema: pa.Schema
) -> list[ColumnRange] | None:
    """What the writer of the file says of these columns, if it was asked for them and could tell."""
    facts = update.facts.get(file.file.path)
    if facts is None or facts.ranges is None or facts.needs.columns != tuple(columns):
        return None
    if isinstance(file.file, BaseFile):
        return list(facts.ranges)
    return [typed_range(found, with_meta(schema)) for found in facts.ranges]


def ranges_task(
    context: IndexContext, files: Sequence[DataFile], columns: Sequence[str], schema: pa.Schema
) -> RangesTask:
    """The task of asking files that were there before."""
    sources = skeleton_sources(context.handle, ((file.partition, file.file) for file in files))
    storage, version = context.handle.storage, stats_version(context)
    return RangesTask(storage, tuple(files), tuple(columns), with_meta(schema), version, sources)


def tasks_of(
    context: IndexContext, files: Sequence[DataFile], columns: Sequence[str], schema: pa.Schema
) -> Iterator[RangesTask]:
    """Tasks for some files each."""
    for at in range(0, len(files), FILES_PER_TASK):
        yield ranges_task(context, files[at : at + FILES_PER_TASK], columns, schema)


def column_stats_records(task: RangesTask) -> MetadataRecords:
    """The records of the files of a task."""
    rows = [
        StatsRow(column_stats_key(found.column, file.partition, file.name), file.name, found)
        for file in task.files
        for found in ranges_of_file(task, file)
    ]
    return MetadataRecords(COLUMN_STATS, stats_rows(rows, RecordType.COLUMN_STATS, task.version))


def ranges_of_file(task: RangesTask, file: DataFile) -> list[ColumnRange]:
    """The ranges of the task's columns in one file."""
    if isinstance(file.file, LogFile):
        return log_file_ranges(task.storage, file.file.path, file.file.size_bytes, task.columns, task.schema)
    ranges = base_file_ranges(task.storage, file.file.path, task.columns, exact=task.exact)
    source = source_of_base(task.sources, file.partition, file.file)
    if source is None:
        return ranges
    elsewhere = source.path_values(task.schema)
    columns = [name for name in task.columns if not is_meta(name) and name.partition(".")[0] not in elsewhere]
    return [*ranges, *base_file_ranges(source.storage, source.path, columns, exact=task.exact)]


def _ranges_of_file(_: TaskId, task: RangesTask) -> list[ColumnRange]:
    return ranges_of_file(task, task.files[0])


class ColumnStatsCheck(IndexCheck):
    """Bounds and counts of files say at least what there is."""

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
        """Files with values outside of what is said of them."""
        found = range_troubles(self._table.store, COLUMN_STATS, self._ranges.types, self._ranges.by_column)
        for column, what in found:
            yield index_path(COLUMN_STATS), f"says of column {column!r} of {what}"


def shown_ranges(table: CheckedTable) -> SliceRanges:
    """The ranges of indexed columns in live slices, gathered once for all indexes of statistics."""
    if _SHOWN not in table.context.memo:
        columns, full = columns_now(table.context, table.schema), with_meta(table.schema)
        types = {column: found for column in columns if (found := type_at(full, column)) is not None}

        def base_ranges(part: FileSlice) -> list[ColumnRange]:
            file = DataFile(part.partition, part.base) if part.base is not None else None
            task = None if file is None else ranges_task(table.context, [file], tuple(types), table.schema)
            return [] if file is None or task is None else ranges_of_file(replace(task, exact=True), file)

        table.context.memo[_SHOWN] = SliceRanges(types, base_ranges)
    ranges: SliceRanges = table.context.memo[_SHOWN]
    return ranges


def column_stats_index(*columns: str) -> IndexDefinition:
    """An index of value ranges of columns (paths with dots) in every file; without columns of the first ones."""
    return IndexDefinition(COLUMN_STATS, COLUMN_STATS, COLUMN_STATS, columns)


class ColumnStatsKind(MetadataIndexKind):
    """Value ranges of columns in files. The definition says of which columns, and grows with the schema."""

    name = COLUMN_STATS
    option = ENABLE

    def open(self, partition: str, context: IndexContext) -> ColumnStatsIndex:
        """The statistics of any table."""
        del partition, context
        return ColumnStatsIndex()

    def is_wanted(self, context: IndexContext) -> bool:
        """As the options say; without a word as tables of the version have them."""
        config = context.options.config
        by_default = context.handle.profile.indexes.column_stats_by_default
        return config.flag(ENABLE) if config.is_set(ENABLE) else by_default

    def is_outdated(self, context: IndexContext) -> bool:
        """Whether options name other columns than those it has."""
        definition, config = context.definition_of(COLUMN_STATS), context.options.config
        schema = context.columns_before() if definition is not None and config.is_set(COLUMN_LIST) else None
        if definition is None or schema is None or not definition.source_fields:
            return False
        handle = context.handle
        return set(indexed_columns(schema, handle.config, handle.profile, config)) != set(definition.source_fields)

    def described(self, request: IndexRequest) -> IndexDefinition | None:
        """The index of that name, of the columns that are named."""
        return column_stats_index(*request.columns) if request.name == COLUMN_STATS else None

    def definition(self, context: IndexContext) -> IndexDefinition:
        """The columns it has, or would have by the options."""
        schema = context.columns_before()
        columns = () if schema is None else columns_now(context, schema)
        return replace(column_stats_index(*columns), version=context.handle.profile.indexes.version)

    def stored(self, described: IndexDefinition, made: IndexDefinition | None, version: str) -> IndexDefinition | None:
        """The columns that are named, behind those that every index has; without names those of the options."""
        if made is None or not described.source_fields:
            return made
        always = tuple(column for column in made.source_fields if is_meta(column))
        fields = tuple(column for column in described.source_fields if column not in always)
        return replace(described, source_fields=(*always, *fields), version=version)

    def definition_after(self, context: IndexContext, update: TableUpdate, known: IndexDefinition) -> IndexDefinition:
        """With the columns that came with the action."""
        return known if update.schema is None else replace(known, source_fields=columns_of_update(context, update))

    def file_needs(self, context: IndexContext, update: TableUpdate) -> IndexNeeds:
        """The ranges of the columns it has after the write."""
        return IndexNeeds(columns_of_update(context, update))


KIND: Final = ColumnStatsKind()
