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

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config import Config, resolve
from hoodie.engine import LocalEngine, TaskId
from hoodie.errors import Invalid, Unsupported
from hoodie.metadata import BLOOM_FILTERS, COLUMN_STATS, FileOf, IndexDefinition, MetadataTable
from hoodie.metadata.bloom_filters import load_bloom_filters
from hoodie.metadata.keys import (
    EXPRESSION_PARTITION_STATS,
    bloom_filter_key,
    column_stats_key,
    name_hash,
    partition_hash,
)
from hoodie.metadata.partitions import EXPRESSION_PREFIX, RecordType
from hoodie.metadata.store import READING_THREADS
from hoodie.metadata_writer.column_range import ColumnRange, as_type, join_ranges, range_of_values
from hoodie.metadata_writer.data_files import FILES_PER_TASK, DataFile, committed_files, files_of, written_files
from hoodie.metadata_writer.expression_values import (
    ExpressionTask,
    filter_of_file,
    range_of_file,
    result_texts,
)
from hoodie.metadata_writer.file_ranges import values_at
from hoodie.metadata_writer.index_check import CheckedTable, IndexCheck, SliceShown, Trouble, index_path, some
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.index_functions import IndexFunction, parse_function
from hoodie.metadata_writer.indexes.bloom_filters import StoredFilter, filter_rows
from hoodie.metadata_writer.indexes.partition_stats import stored_ranges
from hoodie.metadata_writer.metadata_index import (
    IndexRequest,
    MetadataIndex,
    MetadataIndexKind,
    MetadataRecords,
    Records,
    RecordTask,
    group_file_ids,
    prefixed,
)
from hoodie.metadata_writer.range_checks import range_troubles
from hoodie.metadata_writer.skeletons import skeleton_sources
from hoodie.metadata_writer.slices_after import slices_after
from hoodie.metadata_writer.stats_rows import StatsRow, expression_rows
from hoodie.metadata_writer.update import TableUpdate
from hoodie.records import BloomOptions, with_meta
from hoodie.records.bloom import DYNAMIC, SIMPLE
from hoodie.records.columns import type_at
from hoodie.view import FileSlice

ENABLE: Final = "hoodie.metadata.index.expression.enable"
COLUMN: Final = "hoodie.metadata.index.expression.column"
OPTIONS: Final = "hoodie.metadata.index.expression.options"
USING: Final = "hoodie.expression.index.type"
NAME: Final = "hoodie.index.name"

_FILE_GROUPS: Final = "hoodie.metadata.index.expression.file.group.count"
_FUNCTION: Final = "expr"
_OPTION: Final = re.compile(r"\s*([^=,\s]+)\s*=\s*(?:'(.*?)'|([^,]*))\s*(?:,|$)")
_KEEPS: Final = (COLUMN_STATS, BLOOM_FILTERS)
"""Kinds of definitions: ranges of results, or filters of them."""

_BLOOM_KEYS: Final = {
    "filtertype": "hoodie.bloom.index.filter.type",
    "numentries": "hoodie.index.bloom.num_entries",
    "fpp": "hoodie.index.bloom.fpp",
    "maxentries": "hoodie.bloom.index.filter.dynamic.max.entries",
}
"""Options of an index of filters, and the options of a write that say the same of base files."""


@dataclass(frozen=True, slots=True)
class ExpressionIndex(MetadataIndex):
    """The expression index that `definition` is about."""

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
        return group_file_ids(self.partition.replace("_", "-") + "-", context.options.config.integer(_FILE_GROUPS))

    def initial(self, context: IndexContext) -> Iterator[Records]:
        """Records of all files of completed writes; of partitions with live files."""
        schema = context.columns_before()
        if schema is None:
            return
        files = committed_files(context)
        for at in range(0, len(files), FILES_PER_TASK):
            task = self._task(context, schema, files[at : at + FILES_PER_TASK])
            yield RecordTask(records_of_files, task)
        if self.has_ranges:
            for of_partition in files_of(context.view().slices_at()).values():
                yield RecordTask(records_of_partition, self._task(context, schema, of_partition))

    def updated(self, context: IndexContext, update: TableUpdate) -> Iterator[Records]:
        """Records of written files and the partitions they are in; deletes for removed files."""
        schema = context.columns_after(update)
        if schema is None:
            return
        files = written_files(update)
        gone = pa.array(list(self._gone(update)), pa.string())
        if not self.has_ranges:
            tasks = [self._task(context, schema, [file]) for file in files]
            found = LocalEngine(READING_THREADS).run(_filter_of, tasks, "expression index")
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

    def check(self, table: CheckedTable) -> IndexCheck:
        """Compares ranges, or filters, with the function's results."""
        if self.has_ranges:
            return ExpressionRangesCheck(table.metadata, self.definition, self._function, table.schema)
        return ExpressionFiltersCheck(table.metadata, self.definition, self._function)

    def _partitions(
        self, context: IndexContext, update: TableUpdate, schema: pa.Schema, written: dict[DataFile, ColumnRange]
    ) -> Iterator[MetadataRecords]:
        """Ranges over the live files of the partitions an action touched."""
        touched = {file.partition for file in written} | set(update.replaced)
        if not touched:
            return
        live = files_of(slices_after(context.view(touched), update, touched).values())
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
        return MetadataRecords(task.partition, filter_rows([filter_of_file(task, file) for file in task.files]))
    rows = [_file_row(file, range_of_file(task, file)) for file in task.files]
    return MetadataRecords(task.partition, expression_rows(rows, RecordType.COLUMN_STATS, task.version))


def records_of_partition(task: ExpressionTask) -> MetadataRecords:
    """The record of the partition whose live files a task has; none where the range is not known."""
    found = _joined([range_of_file(task, file) for file in task.files])
    rows = [_partition_row(task.files[0].partition, found)] if found.is_known else []
    return MetadataRecords(task.partition, expression_rows(rows, RecordType.PARTITION_STATS, task.version))


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


def _filter_of(_: TaskId, task: ExpressionTask) -> StoredFilter:
    return filter_of_file(task, task.files[0])


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
    types = [found.data_type for found in ranges if found.data_type is not None]
    return join_ranges([as_type(found, types[-1]) if types else found for found in ranges])


class ExpressionRangesCheck(IndexCheck):
    """Bounds and counts of files say at least what there is."""

    def __init__(
        self, table: MetadataTable, definition: IndexDefinition, function: IndexFunction, schema: pa.Schema
    ) -> None:
        self._table = table
        self._definition = definition
        self._function = function
        self._column = definition.source_fields[0]
        data_type = type_at(schema, self._column)
        self._type = None if data_type is None else function.result_of(data_type)
        self._slices: list[tuple[FileSlice, ColumnRange]] = []

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        """The column it is on."""
        del part
        return None if self._type is None else (self._column.partition(".")[0],)

    def compare(self, shown: SliceShown) -> Iterator[Trouble]:
        """Yields no findings yet: what is said is asked for all slices at once."""
        if self._type is not None:
            results = self._function.of(values_at(shown.rows, self._column))
            self._slices.append((shown.part, range_of_values(self._column, results)))
        yield from ()

    def finish(self) -> Iterator[Trouble]:
        """Files with results outside of what is said of them."""
        if self._type is not None:
            name = self._definition.name
            found = range_troubles(self._table.store, name, {self._column: self._type}, {self._column: self._slices})
            yield from ((index_path(name), f"says of its results for {what}") for _, what in found)


class ExpressionFiltersCheck(IndexCheck):
    """A filter of one of the files of a slice holds every result that there is in its rows."""

    def __init__(self, table: MetadataTable, definition: IndexDefinition, function: IndexFunction) -> None:
        self._table = table
        self._definition = definition
        self._function = function
        self._column = definition.source_fields[0]

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        """The column it is on."""
        del part
        return (self._column.partition(".")[0],)

    def compare(self, shown: SliceShown) -> Iterator[Trouble]:
        """Results that no filter of the slice's files holds."""
        part = shown.part
        files = [FileOf(part.partition, file.name) for file in files_of([part])[part.partition]]
        filters = load_bloom_filters(self._table.store, files, self._definition.name)
        if len(filters) < len(files):
            return
        results = self._function.of(values_at(shown.rows, self._column))
        for chunk in results.chunks if isinstance(results, pa.ChunkedArray) else [results]:
            texts = pc.drop_null(result_texts(chunk)).unique()
            is_held = np.zeros(len(texts), dtype=np.bool_)
            for bloom in filters.values():
                is_held |= bloom.contains(texts)
            lost = texts.filter(pa.array(~is_held))
            if len(lost):
                where = f"{part.partition}/{files[-1].name}".lstrip("/")
                yield index_path(self._definition.name), f"has filters of {where} without {some(lost)} of its results"


def expression_index(
    name: str, column: str, function: str, options: Mapping[str, str] | None = None, *, using: str = COLUMN_STATS
) -> IndexDefinition:
    """An index of a function of a column, `using` column_stats or bloom_filters. `options`: those of the function.

    Raises:
        Invalid: another kind, or an option the function needs is not there. Unsupported: the function is not known.
    """
    if using not in _KEEPS:
        raise Invalid(f"An expression index cannot use {using!r}", remedy="Use column_stats or bloom_filters")
    made = parse_function(function, options or {})
    said = {"expr": made.name, **made.options}
    return IndexDefinition(prefixed(EXPRESSION_PREFIX, name), using, made.name, (column,), said)


def parse_expression_options(text: str) -> dict[str, str]:
    """The options of `expr=from_unixtime, format='yyyy-MM-dd'` by name; a value in quotes may have commas.

    Raises:
        Invalid: it is not such a list.
    """
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _OPTION.match(text, at)
        if match is None:
            raise Invalid(
                f"{OPTIONS} is {text!r}, which is no list of options",
                remedy="Write for example expr=from_unixtime,format=yyyy-MM-dd",
                key=OPTIONS,
            )
        name, quoted, plain = match.groups()
        found[name] = plain.strip() if quoted is None else quoted
        at = match.end()
    return found


class ExpressionIndexKind(MetadataIndexKind):
    """Expression indexes. The definition says of which function and column, and whether ranges or filters are kept."""

    name = EXPRESSION_PREFIX
    is_named = True

    def open(self, partition: str, context: IndexContext) -> ExpressionIndex | None:
        """The index of that name, if its function and its options are known here."""
        definition = context.definitions.get(partition)
        if definition is None or len(definition.source_fields) != 1 or definition.kind not in _KEEPS:
            return None
        try:
            parse_function(definition.function, definition.options)
            bloom_options(context.options.config, definition.options)
        except (Invalid, Unsupported):
            return None
        return ExpressionIndex(definition)

    def requested(self, config: Config) -> IndexDefinition | None:
        """The index that options ask for; called like its column where they give it no name."""
        column = config.text(COLUMN)
        if not config.flag(ENABLE) or not column:
            return None
        options = parse_expression_options(config.text(OPTIONS))
        if _FUNCTION not in options:
            raise Invalid(
                f"{COLUMN} asks for an index, and {OPTIONS} names no function for it",
                remedy=f"Set {OPTIONS} to the function and its options, for example expr=identity",
                key=OPTIONS,
            )
        function, using = options.pop(_FUNCTION), config.text(USING).lower()
        return expression_index(config.text(NAME) or column, column, function, options, using=using)

    def satisfies(self, known: IndexDefinition, wanted: IndexDefinition) -> bool:
        """Names of functions in any case of letters."""
        function = wanted.options.get(_FUNCTION, "").lower()
        same = known.options.get(_FUNCTION, "").lower() == function
        named = {**known.options, _FUNCTION: wanted.options.get(_FUNCTION, "")}
        return same and MetadataIndexKind.satisfies(self, replace(known, options=named), wanted)

    def described(self, request: IndexRequest) -> IndexDefinition | None:
        """The index of a function of one column."""
        if request.function is None:
            return None
        return expression_index(
            request.name, request.columns[0], request.function, request.options, using=request.using
        )


KIND: Final = ExpressionIndexKind()
