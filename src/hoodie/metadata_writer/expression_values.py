"""What a function of a column gives in the files of a table: the range of its results, or a bloom filter of them.

1. The function is computed from the values in the file: of base files one column is read (of bootstrap skeletons that
   of their source), of log files all rows of their data blocks.
2. Filters hold the results as text; NULL is not in them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.logs import read_block_rows, read_blocks
from hoodie.metadata.keys import bloom_filter_key
from hoodie.metadata_writer.column_range import ColumnRange, range_of_values
from hoodie.metadata_writer.data_files import DataFile
from hoodie.metadata_writer.file_ranges import values_at
from hoodie.metadata_writer.index_functions import IndexFunction
from hoodie.metadata_writer.indexes.bloom_filters import StoredFilter
from hoodie.metadata_writer.skeletons import Sources, source_of_base
from hoodie.metadata_writer.stats_rows import is_storable
from hoodie.records import BloomOptions, align, opened_once, read_columns, read_footer
from hoodie.records.java_text import java_text
from hoodie.slices.bootstrap import iter_stitched
from hoodie.storage import Storage
from hoodie.view import LogFile

_PARQUET: Final = ".parquet"
_BATCH_ROWS: Final = 65_536


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


def filter_of_file(task: ExpressionTask, file: DataFile) -> StoredFilter:
    """The bloom filter of the function's results in one file."""
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
