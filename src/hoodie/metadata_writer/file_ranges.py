"""Ranges of the columns of one data file: from a base file's footer, from a log file's blocks.

1. Footers say the ranges of their row groups; nothing else of the file is read. Where a footer does not say them
   (INT96, NaN, texts that another writer thought too long), the column is read. Those of long texts of ours are wider
   than the values.
2. A log file's ranges are those of all rows in its data blocks, whatever becomes of them when they are merged. Blocks
   of parquet say them in their footers. Deletes have none: a file without rows has a range of nothing.
3. A column that a base file does not have has no range.

It does not know how ranges are stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.logs import BlockKind, LogBlock, RangeStorage, read_block_rows, read_blocks
from hoodie.logs.content_input import ContentStorage
from hoodie.metadata_writer.column_range import (
    Bound,
    ColumnRange,
    as_type,
    can_have_range,
    join_ranges,
    range_of_values,
    with_signed_zeros,
)
from hoodie.records import BaseFooter, read_columns, read_footer
from hoodie.records.base_file import InputStorage
from hoodie.records.bounds import CUT_FROM_BYTES
from hoodie.records.columns import type_at
from hoodie.storage import Storage

_PARQUET: Final = ".parquet"


def base_file_ranges(storage: Storage, path: str, columns: Sequence[str], *, exact: bool = False) -> list[ColumnRange]:
    """Ranges of those of the columns (paths with dots) that a base file has. Other files than parquet have none.
    `exact`: columns are read, too, whose bounds may be wider than their values.

    Raises:
        Corrupt: the file is damaged. Missing: it is gone.
    """
    if not path.endswith(_PARQUET):
        return []
    return footer_ranges(storage, read_footer(storage, path), columns, exact=exact)


def footer_ranges(
    storage: InputStorage, footer: BaseFooter, columns: Sequence[str], *, exact: bool = False
) -> list[ColumnRange]:
    """The same for a parquet file whose footer was read."""
    said = _said_of_columns(footer, columns)
    return [one if one.is_known and not (exact and _may_be_cut(one)) else _read(storage, footer, one) for one in said]


def said_ranges(footer: BaseFooter, columns: Sequence[str]) -> tuple[ColumnRange, ...] | None:
    """The same as far as the footer says it: None where the file has to be read for one of the columns."""
    said = tuple(_said_of_columns(footer, columns))
    return said if all(one.is_known for one in said) else None


def log_file_ranges(
    storage: Storage, path: str, size_bytes: int, columns: Sequence[str], schema: pa.Schema
) -> list[ColumnRange]:
    """Ranges of all the columns in the rows of a log file; `schema` has the table's columns, meta columns included.

    Raises:
        Corrupt: the file is damaged. Missing: it is gone.
    """
    blocks = [block for block in read_blocks(storage, path, size_bytes) if block.kind.is_data]
    by_block = [block_ranges(storage, block, columns) for block in blocks]
    return [typed_range(one, schema) for one in joined_blocks(by_block, columns)]


def block_ranges(storage: RangeStorage, block: LogBlock, columns: Sequence[str]) -> dict[str, ColumnRange]:
    """Ranges by column of those that a data block of a log file has.

    Raises:
        Corrupt: it is damaged.
    """
    return {one.column: one for one in _block_ranges(storage, block, columns)}


def joined_blocks(blocks: Sequence[Mapping[str, ColumnRange]], columns: Sequence[str]) -> list[ColumnRange]:
    """Ranges of all the columns in a log file with these data blocks, in the types that the last ones have; of nothing
    where none of them has the column.
    """
    return [_joined(column, [ranges[column] for ranges in blocks if column in ranges]) for column in columns]


def typed_range(found: ColumnRange, schema: pa.Schema) -> ColumnRange:
    """The range with the type the table has for its column, where there are rows and none of them says."""
    if found.data_type is not None or not found.rows:
        return found
    return replace(found, data_type=type_at(schema, found.column))


def values_at(rows: pa.Table, column: str) -> pa.ChunkedArray:
    """The values of a column given by its path; NULL where a struct on the way is."""
    first, *rest = column.split(".")
    values = rows.column(first)
    return values if not rest else pc.struct_field(values, rest)


def _said_of_columns(footer: BaseFooter, columns: Sequence[str]) -> Iterator[ColumnRange]:
    places = _places(footer.native)
    for column in columns:
        data_type = type_at(footer.schema, column)
        if data_type is not None and column in places and can_have_range(data_type):
            yield _said(footer.native, places[column], column, data_type)


def _joined(column: str, parts: Sequence[ColumnRange]) -> ColumnRange:
    newest = next((part.data_type for part in reversed(parts) if part.data_type is not None), None)
    if newest is None:
        return ColumnRange(column, None, None, None, 0, 0)
    return join_ranges(as_type(part, newest) for part in parts)


def _places(native: Any) -> Mapping[str, int]:
    """Leaf columns of a parquet file by path."""
    schema = native.schema
    return {schema.column(at).path: at for at in range(len(schema))}


def _said(native: Any, place: int, column: str, data_type: pa.DataType) -> ColumnRange:
    """The range that the footer says, as far as it does."""
    groups = [ColumnRange(column, data_type, None, None, 0, 0)]
    for at in range(native.num_row_groups):
        chunk = native.row_group(at).column(place)
        stats = chunk.statistics
        nulls, low, high = 0, None, None
        if stats is not None and stats.has_null_count:
            nulls = stats.null_count
            if stats.has_min_max:
                low, high = _raw(stats.min_raw, data_type), _raw(stats.max_raw, data_type)
                if isinstance(low, float) and isinstance(high, float) and (math.isnan(low) or math.isnan(high)):
                    low = high = None
        sizes = chunk.total_compressed_size, chunk.total_uncompressed_size
        groups.append(ColumnRange(column, data_type, low, high, chunk.num_values, nulls, *sizes))
    return with_signed_zeros(join_ranges(groups))


def _may_be_cut(found: ColumnRange) -> bool:
    """Whether a bound may be none of the values (`bounds.cut_bounds`)."""
    stored = (end.encode() if isinstance(end, str) else end for end in (found.low, found.high))
    return any(isinstance(end, bytes) and len(end) >= CUT_FROM_BYTES for end in stored)


def _raw(value: Any, data_type: pa.DataType) -> Bound | None:
    """A bound as parquet stores it, as it is stored in statistics."""
    if not isinstance(value, bytes):
        bound: Bound = value
        return bound
    if pa.types.is_decimal(data_type):
        return int.from_bytes(value, "big", signed=True)
    if pa.types.is_string(data_type):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return value


def _read(storage: InputStorage, footer: BaseFooter, said: ColumnRange) -> ColumnRange:
    """The range of the values in the file; its sizes are those of the footer."""
    rows = read_columns(storage, footer.path, [said.column.partition(".")[0]], footer=footer)
    found = range_of_values(said.column, values_at(rows, said.column))
    return replace(found, size_bytes=said.size_bytes, plain_bytes=said.plain_bytes)


def _block_ranges(storage: RangeStorage, block: LogBlock, columns: Sequence[str]) -> Iterator[ColumnRange]:
    if block.kind is BlockKind.PARQUET_DATA:
        content = ContentStorage(storage, block, whole=False)
        for one in footer_ranges(content, read_footer(content, block.path), columns):
            yield replace(one, size_bytes=0, plain_bytes=0)
        return
    rows = read_block_rows(storage, block, columns={column.partition(".")[0] for column in columns})
    for column in columns:
        data_type = type_at(rows.schema, column)
        if data_type is not None and can_have_range(data_type):
            yield range_of_values(column, values_at(rows, column))
