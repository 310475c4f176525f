"""Records of expression indexes: value ranges, or bloom filters, of a function of a column in every file.

1. The function is computed from the values in the file: of base files one column is read (of bootstrap skeletons that
   of their source), of log files all rows of their data blocks.
2. Ranges are records as `column_stats` has them, with the sizes of whole files, and one for each partition over its
   live files. Counts are of all rows, nulls included. Their type is that of the result in every file, also in one
   without rows: Hudi joins ranges of one type only.
3. Filters hold the results as text; NULL is not in them. Their size is for the options of the index to say. Log files
   have filters as well.
4. Removed files get deletes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config import Config, resolve
from hoodie.engine import LocalEngine, TaskId
from hoodie.logs import read_block_rows, read_blocks
from hoodie.metadata import COLUMN_STATS, IndexDefinition
from hoodie.metadata.keys import (
    EXPRESSION_PARTITION_STATS,
    bloom_filter_key,
    column_stats_key,
    name_hash,
    partition_hash,
)
from hoodie.metadata.partitions import RecordType
from hoodie.metadata.store import READING_THREADS
from hoodie.metadata_writer.column_range import ColumnRange, as_type, join_ranges, range_of_values
from hoodie.metadata_writer.file_ranges import values_at
from hoodie.metadata_writer.index_functions import IndexFunction, parse_function
from hoodie.metadata_writer.indexes.bloom_filters import StoredFilter, filter_rows
from hoodie.metadata_writer.indexes.column_stats import FILES_PER_TASK, DataFile, committed_files, written_files
from hoodie.metadata_writer.indexes.partition_stats import live_files, stored_ranges
from hoodie.metadata_writer.layout import group_file_ids
from hoodie.metadata_writer.metadata_index import IndexContext, MetadataRecords, Records, RecordTask
from hoodie.metadata_writer.skeletons import Sources, skeleton_sources, source_of_base
from hoodie.metadata_writer.slices_after import slices_after
from hoodie.metadata_writer.stats_rows import StatsRow, expression_rows, is_storable
from hoodie.metadata_writer.table_columns import columns_after, columns_before
from hoodie.metadata_writer.update import TableUpdate
from hoodie.records import BloomOptions, align, opened_once, read_columns, read_footer, with_meta
from hoodie.records.bloom import DYNAMIC, SIMPLE
from hoodie.records.columns import type_at
from hoodie.records.java_text import java_text
from hoodie.slices.bootstrap import iter_stitched
from hoodie.storage import Storage
from hoodie.view import LogFile

_FILE_GROUPS = "hoodie.metadata.index.expression.file.group.count"
_PARQUET = ".parquet"
_BATCH_ROWS = 65_536
_BLOOM_KEYS = {
    "filtertype": "hoodie.bloom.index.filter.type",
    "numentries": "hoodie.index.bloom.num_entries",
    "fpp": "hoodie.index.bloom.fpp",
    "maxentries": "hoodie.bloom.index.filter.dynamic.max.entries",
}
"""Options of an index of filters, and the options of a write that say the same of base files."""


@dataclass(frozen=True, slots=True, eq=False)
class ExpressionTask:
    """Files, and the function of a column that is wanted of them. `schema` are the table's columns."""

    storage: Storage
    partition: str
    column: str
    function: IndexFunction
    version: str
    schema: pa.Schema
    files: tuple[DataFile, ...]
    bloom: BloomOptions | None = None
    sources: Sources = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpressionIndex:
    """The source of the expression index that `definition` is about."""

    definition: IndexDefinition

    @property
    def partition(self) -> str:
        """The name of the index's partition."""
        return self.definition.name

    @property
    def has_ranges(self) -> bool:
        """Whether it keeps ranges; filters otherwise."""
        return self.definition.kind == COLUMN_STATS

    def file_ids(self, context: IndexContext) -> tuple[str, ...]:
        """As many groups as the options say; 2 by default."""
        return group_file_ids(self.partition, context.options.config.integer(_FILE_GROUPS))

    def initial(self, context: IndexContext) -> Iterator[Records]:
        """Records of all files of completed writes; of partitions with live files."""
        schema = columns_before(context)
        if schema is None:
            return
        files = committed_files(context)
        for at in range(0, len(files), FILES_PER_TASK):
            task = self._task(context, schema, files[at : at + FILES_PER_TASK])
            yield RecordTask(records_of_files, task)
        if self.has_ranges:
            for own in live_files(context.view().slices_at()).values():
                yield RecordTask(records_of_partition, self._task(context, schema, own))

    def updated(self, context: IndexContext, update: TableUpdate) -> Iterator[Records]:
        """Records of written files and the partitions they are in; deletes for removed files."""
        schema = columns_after(context, update)
        if schema is None:
            return
        files = written_files(update)
        gone = pa.array(list(self._gone(update)), pa.string())
        if not self.has_ranges:
            tasks = [self._task(context, schema, [file]) for file in files]
            some = LocalEngine(READING_THREADS).run(_filters_of, tasks, "expression index")
            found = [one for of_file in some for one in of_file]
            if found or len(gone):
                yield MetadataRecords(self.partition, filter_rows(found), gone)
            return
        tasks = [self._task(context, schema, [file]) for file in files]
        of_files = LocalEngine(READING_THREADS).run(_range_of, tasks, "expression index")
        ranges = dict(zip(files, of_files, strict=True))
        rows = [_file_row(file, found) for file, found in ranges.items()]
        if rows or len(gone):
            yield MetadataRecords(self.partition, expression_rows(rows, RecordType.COLUMN_STATS, self._version), gone)
        yield from self._partitions(context, update, schema, ranges)

    def _partitions(
        self, context: IndexContext, update: TableUpdate, schema: pa.Schema, written: dict[DataFile, ColumnRange]
    ) -> Iterator[MetadataRecords]:
        """Ranges over the live files of the partitions an action touched."""
        touched = {file.partition for file in written} | set(update.replaced)
        if not touched:
            return
        live = live_files(slices_after(context.view(touched), update, touched).values())
        parts: dict[str, list[ColumnRange]] = defaultdict(list)
        others = [file for files in live.values() for file in files if file not in written]
        table = context.metadata_table()
        column = type_at(with_meta(schema), self._column)
        if others and table is not None and table.has(self.partition) and column is not None:
            result = self._function.result_of(column)
            for name, found in stored_ranges(table.store, self.partition, others, {self._column: result}):
                parts[name].append(found)
        for file, found in written.items():
            if file in live.get(file.partition, ()):
                parts[file.partition].append(found)
        joined = {name: _joined(found) for name, found in parts.items()}
        rows = [_partition_row(name, found) for name, found in joined.items() if found.is_known]
        gone = [
            _partition_key(self._column, name) for name in touched if name not in joined or not joined[name].is_known
        ]
        table_rows = expression_rows(rows, RecordType.PARTITION_STATS, self._version)
        yield MetadataRecords(self.partition, table_rows, pa.array(gone, pa.string()))

    def _gone(self, update: TableUpdate) -> Iterator[str]:
        for partition, names in update.deleted.items():
            for path in names:
                name = path.rpartition("/")[2]
                if self.has_ranges:
                    yield column_stats_key(self._column, partition, name)
                else:
                    yield bloom_filter_key(partition, name)

    def _task(self, context: IndexContext, schema: pa.Schema, files: Sequence[DataFile]) -> ExpressionTask:
        return ExpressionTask(
            context.handle.storage,
            self.partition,
            self._column,
            self._function,
            self._version,
            with_meta(schema),
            tuple(files),
            None if self.has_ranges else bloom_options(context.options.config, self.definition.options),
            skeleton_sources(context.handle, ((file.partition, file.file) for file in files)),
        )

    @property
    def _column(self) -> str:
        return self.definition.source_fields[0]

    @property
    def _function(self) -> IndexFunction:
        return parse_function(self.definition.function, self.definition.options)

    @property
    def _version(self) -> str:
        return self.definition.version


def records_of_files(task: ExpressionTask) -> MetadataRecords:
    """The records of the files of a task."""
    if task.bloom is not None:
        return MetadataRecords(task.partition, filter_rows([_filter_of(task, file) for file in task.files]))
    rows = [_file_row(file, range_of_file(task, file)) for file in task.files]
    return MetadataRecords(task.partition, expression_rows(rows, RecordType.COLUMN_STATS, task.version))


def records_of_partition(task: ExpressionTask) -> MetadataRecords:
    """The record of the partition whose live files a task has; none where the range is not known."""
    found = _joined([range_of_file(task, file) for file in task.files])
    rows = [_partition_row(task.files[0].partition, found)] if found.is_known else []
    return MetadataRecords(task.partition, expression_rows(rows, RecordType.PARTITION_STATS, task.version))


def range_of_file(task: ExpressionTask, file: DataFile) -> ColumnRange:
    """The range of the function in one file."""
    found = range_of_values(task.column, task.function.of(_values(task, file)))
    size = file.file.size_bytes
    if found.data_type is None or not is_storable(found.data_type, task.version, with_bytes=True):
        found = replace(found, low=None, high=None)
    return replace(found, size_bytes=size, plain_bytes=2 * size)


def _values(task: ExpressionTask, file: DataFile) -> pa.ChunkedArray:
    """The column's values in a file; NULL where it has no such column."""
    first = task.column.partition(".")[0]
    wanted = pa.schema([task.schema.field(first).with_nullable(True)])
    if isinstance(file.file, LogFile):
        blocks = [one for one in read_blocks(task.storage, file.file.path, file.file.size_bytes) if one.kind.is_data]
        parts = [align(read_block_rows(task.storage, block, columns=[first]), wanted) for block in blocks]
        return values_at(pa.concat_tables([wanted.empty_table(), *parts]), task.column)
    if not file.name.endswith(_PARQUET):
        return values_at(wanted.empty_table(), task.column)
    source = source_of_base(task.sources, file.partition, file.file)
    if source is not None:
        batches = iter_stitched(task.storage, file.file.path, source, wanted, _BATCH_ROWS)
        return values_at(pa.Table.from_batches(batches, wanted), task.column)
    with opened_once(task.storage) as storage:
        footer = read_footer(storage, file.file.path)
        if footer.schema.get_field_index(first) < 0:
            nothing = pa.table([pa.nulls(footer.rows, wanted.field(0).type)], schema=wanted)
            return values_at(nothing, task.column)
        rows = read_columns(storage, file.file.path, [first], footer=footer)
    return values_at(align(rows, wanted), task.column)


def _filter_of(task: ExpressionTask, file: DataFile) -> StoredFilter:
    bloom = (task.bloom or BloomOptions()).new_filter()
    found = task.function.of(_values(task, file))
    for chunk in found.chunks if isinstance(found, pa.ChunkedArray) else [found]:
        bloom.add(result_texts(chunk).drop_null())
    instant = file.file.name.instant
    return StoredFilter(bloom_filter_key(file.partition, file.name), bloom.type_code, bloom.to_text(), instant)


def result_texts(values: pa.Array) -> pa.Array:
    """Results as Spark's rows print them: timestamps with as many digits as they need."""
    if not pa.types.is_timestamp(values.type):
        return java_text(values)
    texts = pc.strftime(values.cast(pa.timestamp("us")), format="%Y-%m-%d %H:%M:%S")
    return pc.replace_substring_regex(texts, r"(\.[0-9]+?)0+$", r"\1")


def bloom_options(config: Config, options: Mapping[str, str]) -> BloomOptions:
    """The kind of filters an index has: as its own options say, else as those of base files.

    Raises:
        Invalid: an option of the index has a value it cannot have.
    """
    config = config.overridden(resolve({key: options[name] for name, key in _BLOOM_KEYS.items() if name in options}))
    kind = config.text("hoodie.bloom.index.filter.type")
    return BloomOptions(
        SIMPLE if kind == SIMPLE else DYNAMIC,
        config.integer("hoodie.index.bloom.num_entries"),
        config.number("hoodie.index.bloom.fpp"),
        config.integer("hoodie.bloom.index.filter.dynamic.max.entries"),
    )


def _filters_of(_: TaskId, task: ExpressionTask) -> list[StoredFilter]:
    return [_filter_of(task, file) for file in task.files]


def _range_of(_: TaskId, task: ExpressionTask) -> ColumnRange:
    return range_of_file(task, task.files[0])


def _file_row(file: DataFile, found: ColumnRange) -> StatsRow:
    return StatsRow(column_stats_key(found.column, file.partition, file.name), file.name, found)


def _partition_row(partition: str, found: ColumnRange) -> StatsRow:
    return StatsRow(_partition_key(found.column, partition), partition, found)


def _partition_key(column: str, partition: str) -> str:
    return name_hash(column) + name_hash(EXPRESSION_PARTITION_STATS) + partition_hash(partition)


def _joined(ranges: Sequence[ColumnRange]) -> ColumnRange:
    """One range over several, in the type that most of them know."""
    types = [one.data_type for one in ranges if one.data_type is not None]
    return join_ranges([as_type(one, types[-1]) if types else one for one in ranges])
