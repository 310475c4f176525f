"""Which leaf columns of a base file have bounds: in all of its row groups, or in none.

1. Arrow leaves NaN out of its bounds. To Spark and Hudi it is greater than every number: who compares `x > 5` with such
   bounds loses the rows of NaN. So a leaf column with NaN has none: not in statistics, and not of pages (the column
   index).
2. Hudi joins the bounds of all row groups to column stats of the file. Of one without bounds it takes numbers for
   zeros, and texts for none: beside bounds of others that is a range which nobody knows for wrong. So there are bounds
   in all row groups or in none. Those in which all is NULL have none and hide nothing.
3. Bounds of NaN, as Hudi's own writer (parquet-mr) stores them, are none: so its readers take them. So are those of
   another width than the values of the column.
4. The number of nulls is always said: Hudi takes a chunk without statistics for one of nothing but NULL.

Format page: docs/format/base-file.md.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.records import thrift
from hoodie.records.parquet_leaves import leaf_values, leaves_of
from hoodie.records.thrift import Field, Struct, encode_struct, parse_struct

# Numbers of fields of FileMetaData, RowGroup, ColumnChunk, ColumnMetaData, Statistics and SchemaElement.
_ROW_GROUPS, _COLUMNS, _META, _PATH, _VALUES, _STATISTICS = 4, 1, 3, 3, 5, 12
_COLUMN_INDEX, _COLUMN_INDEX_BYTES = 6, 7
_NULL_COUNT, _BOUNDS, _OLD_BOUNDS = 3, (5, 6), (1, 2)
_TYPE, _LENGTH, _LOGICAL, _FLOAT16 = 1, 2, 10, 15
_INT96, _BYTE_ARRAY, _FIXED = 3, 6, 7
_WIDTHS: Final = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
"""Bytes of a value by physical type. Byte arrays have any number, fixed ones what their column says."""
_FLOATS: Final = {4: struct.Struct("<f"), 5: struct.Struct("<d")}
_HALF: Final = struct.Struct("<e")


def nan_places(rows: pa.Table) -> frozenset[int]:
    """Places, among all leaf columns, of those with NaN."""
    found: set[int] = set()
    first = 0
    for field, column in zip(rows.schema, rows.columns, strict=True):
        leaves = leaves_of(field)
        if any(pa.types.is_floating(data_type) for _, data_type in leaves):
            found |= {first + at for at, values in enumerate(leaf_values(column)) if _has_nan(values)}
        first += len(leaves)
    return frozenset(found)


def half_bounded_places(elements: Sequence[Struct], groups: Sequence[Sequence[Struct]]) -> frozenset[int]:
    """Places, among all leaf columns, of those that have no bounds in one of these row groups, though it has values.
    `elements`: `SchemaElement` of all columns, root first; `groups`: `ColumnMetaData` of each leaf column.
    """
    return frozenset(
        place
        for place, leaf in enumerate(_leaves(elements))
        if any(_hides_values(leaf, group[place]) for group in groups)
    )


def untold(elements: Sequence[Struct], groups: Sequence[Sequence[Struct]]) -> str | None:
    """What these row groups do not say of a column, in words, that they would if they were encoded anew; None: they say
    all that can be said. Bounds of floats, which may be NaN, are not missed, nor those of INT96, which have no order.
    Arguments as those of `half_bounded_places`.
    """
    leaves = list(_leaves(elements))
    for group in groups:
        for leaf, meta in zip(leaves, group, strict=True):
            if _NULL_COUNT not in _said(meta):
                return f"how many values of column {_path(meta)!r} are NULL"
            if _float_of(leaf) is None and leaf[_TYPE].value != _INT96 and _hides_values(leaf, meta):
                return f"between which bounds column {_path(meta)!r} is"
    return None


def without_bounds(meta: Struct) -> Struct:
    """`ColumnMetaData` which says no more of values than how many are NULL."""
    said = _said(meta)
    nulls = {_NULL_COUNT: said[_NULL_COUNT]} if _NULL_COUNT in said else {}
    return meta | {_STATISTICS: Field(thrift.STRUCT, nulls)}


def footer_without_bounds(footer: bytes, places: Collection[int]) -> bytes:
    """The footer of a parquet file without bounds of these leaf columns."""
    file = parse_struct(footer)
    for group in file[_ROW_GROUPS].value.values:
        for place in places:
            chunk = group[_COLUMNS].value.values[place]
            chunk[_META] = Field(thrift.STRUCT, without_bounds(chunk[_META].value))
            chunk.pop(_COLUMN_INDEX, None)
            chunk.pop(_COLUMN_INDEX_BYTES, None)
    return encode_struct(file)


def _has_nan(values: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py() is True


def _leaves(elements: Sequence[Struct]) -> Iterator[Struct]:
    return (element for element in elements if _TYPE in element)


def _said(meta: Struct) -> Struct:
    """`Statistics` of a chunk; without fields where there are none."""
    found: Struct = meta[_STATISTICS].value if _STATISTICS in meta else {}
    return found


def _path(meta: Struct) -> str:
    return b".".join(meta[_PATH].value.values).decode(errors="replace")


def _hides_values(leaf: Struct, meta: Struct) -> bool:
    """Whether a chunk has values between no bounds. Readers look at the old ones where there are no new ones, and at
    those of numbers alone: in which order others are was not said.
    """
    said = _said(meta)
    is_number = leaf[_TYPE].value not in {_INT96, _BYTE_ARRAY, _FIXED}
    for ends in (_BOUNDS, _OLD_BOUNDS) if is_number else (_BOUNDS,):
        if all(end in said for end in ends):
            return any(_is_no_bound(leaf, said[end].value) for end in ends)
    return _NULL_COUNT not in said or said[_NULL_COUNT].value != meta[_VALUES].value


def _is_no_bound(leaf: Struct, stored: bytes) -> bool:
    width = leaf[_LENGTH].value if leaf[_TYPE].value == _FIXED else _WIDTHS.get(leaf[_TYPE].value, len(stored))
    number = _float_of(leaf)
    return len(stored) != width or (number is not None and math.isnan(number.unpack(stored)[0]))


def _float_of(leaf: Struct) -> struct.Struct | None:
    """How a leaf column of floating point numbers stores one; None for a column of others."""
    if _LOGICAL in leaf and _FLOAT16 in leaf[_LOGICAL].value:
        return _HALF
    return _FLOATS.get(leaf[_TYPE].value)
