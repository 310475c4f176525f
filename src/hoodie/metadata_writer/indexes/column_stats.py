"""Records of `column_stats`: the value ranges of indexed columns in every file.

1. Files are asked one by one: footers of base files, blocks of log files. Whoever has just written one says what is in
   it (`file_facts`), and it is not opened.
   A bootstrap skeleton has the ranges of its meta columns, and those of its source: it stands for the rows of both.
2. Removed files get deletes, for every column that may have a record.
3. What was found of the files of one update is kept in the context: statistics of partitions need it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.engine import LocalEngine, TaskId
from hoodie.metadata import COLUMN_STATS
from hoodie.metadata.keys import column_stats_key
from hoodie.metadata.partitions import RecordType
from hoodie.metadata.store import READING_THREADS
from hoodie.metadata_writer.column_range import ColumnRange
from hoodie.metadata_writer.file_ranges import base_file_ranges, log_file_ranges, typed_range
from hoodie.metadata_writer.index_state import kept_definition
from hoodie.metadata_writer.indexed_columns import grown_columns, indexed_columns
from hoodie.metadata_writer.layout import group_file_ids
from hoodie.metadata_writer.metadata_index import IndexContext, MetadataRecords, Records, RecordTask
from hoodie.metadata_writer.skeletons import Sources, skeleton_sources, source_of_base
from hoodie.metadata_writer.slices_after import base_file_of, log_file_of
from hoodie.metadata_writer.stats_rows import StatsRow, stats_rows
from hoodie.metadata_writer.table_columns import columns_after, columns_before
from hoodie.metadata_writer.update import TableUpdate
from hoodie.records import is_meta, with_meta
from hoodie.storage import Storage
from hoodie.view import BaseFile, LogFile

FILES_PER_TASK = 64
"""Files one task of an initialisation looks at."""

_FILE_GROUPS = "hoodie.metadata.index.column.stats.file.group.count"
_MEMO = "ranges of files"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A base or log file in a partition of the table."""

    partition: str
    file: BaseFile | LogFile

    @property
    def name(self) -> str:
        """Its name in the folder of the partition."""
        return self.file.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, eq=False)
class RangesTask:
    """Files and the columns whose ranges are wanted; `schema` are the table's columns, meta columns included. `sources`
    has the other halves of those files that are bootstrap skeletons.
    """

    storage: Storage
    files: tuple[DataFile, ...]
    columns: tuple[str, ...]
    schema: pa.Schema
    version: str
    sources: Sources = field(default_factory=dict)


class ColumnStatsIndex:
    """The source of `column_stats`."""

    partition = COLUMN_STATS

    def file_ids(self, context: IndexContext) -> tuple[str, ...]:
        """As many groups as the options say; 2 by default."""
        return group_file_ids(COLUMN_STATS, context.options.config.integer(_FILE_GROUPS))

    def initial(self, context: IndexContext) -> Iterator[Records]:
        """Ranges of all files of completed writes."""
        schema = columns_before(context)
        if schema is None:
            return
        columns = columns_now(context, schema)
        for task in tasks_of(context, committed_files(context), columns, schema):
            yield RecordTask(column_stats_records, task)

    def updated(self, context: IndexContext, update: TableUpdate) -> Iterator[Records]:
        """Ranges of written files; deletes for removed ones."""
        columns, schema = columns_of_update(context, update), columns_after(context, update)
        found = {} if schema is None else ranges_of_update(context, update, columns, schema)
        rows = [
            StatsRow(column_stats_key(one.column, file.partition, file.name), file.name, one)
            for file, ranges in found.items()
            for one in ranges
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


def stats_version(context: IndexContext) -> str:
    """How bounds are stored: as the index's definition says, else as new ones are."""
    definition = kept_definition(context, COLUMN_STATS)
    return context.handle.profile.indexes.version if definition is None else definition.version


def columns_now(context: IndexContext, schema: pa.Schema) -> tuple[str, ...]:
    """The columns of the index as it is, or would be made for the table's columns `schema`."""
    definition, handle = kept_definition(context, COLUMN_STATS), context.handle
    if definition is not None and definition.source_fields:
        return definition.source_fields
    return indexed_columns(schema, handle.config, handle.profile, context.options.config)


def columns_of_update(context: IndexContext, update: TableUpdate) -> tuple[str, ...]:
    """The columns of the index after an action."""
    definition, handle, schema = kept_definition(context, COLUMN_STATS), context.handle, columns_after(context, update)
    if definition is not None and (schema is None or update.schema is None) and definition.source_fields:
        return definition.source_fields
    if schema is None:
        return ()
    config = context.options.config
    return grown_columns(definition, columns_before(context), schema, handle.config, handle.profile, config)


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
    return [typed_range(one, with_meta(schema)) for one in facts.ranges]


def written_files(update: TableUpdate) -> list[DataFile]:
    """The files an action wrote; one it wrote to several times as large as it was at the end."""
    found: dict[str, DataFile] = {}
    for stat in sorted(update.stats, key=lambda stat: stat.file_size_bytes):
        if stat.path is not None:
            found[stat.path] = DataFile(stat.partition_path, log_file_of(stat) if stat.is_log else base_file_of(stat))
    return list(found.values())


def committed_files(context: IndexContext) -> list[DataFile]:
    """All files of completed writes, in old slices too."""
    return [
        DataFile(part.partition, file)
        for part in context.view().all_slices()
        for file in (part.base, *part.logs)
        if file is not None
    ]


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
        StatsRow(column_stats_key(one.column, file.partition, file.name), file.name, one)
        for file in task.files
        for one in ranges_of_file(task, file)
    ]
    return MetadataRecords(COLUMN_STATS, stats_rows(rows, RecordType.COLUMN_STATS, task.version))


def ranges_of_file(task: RangesTask, file: DataFile) -> list[ColumnRange]:
    """The ranges of the task's columns in one file."""
    if isinstance(file.file, LogFile):
        return log_file_ranges(task.storage, file.file.path, file.file.size_bytes, task.columns, task.schema)
    own = base_file_ranges(task.storage, file.file.path, task.columns)
    source = source_of_base(task.sources, file.partition, file.file)
    if source is None:
        return own
    elsewhere = source.path_values(task.schema)
    columns = [one for one in task.columns if not is_meta(one) and one.partition(".")[0] not in elsewhere]
    return [*own, *base_file_ranges(source.storage, source.path, columns)]


def _ranges_of_file(_: TaskId, task: RangesTask) -> list[ColumnRange]:
    return ranges_of_file(task, task.files[0])
