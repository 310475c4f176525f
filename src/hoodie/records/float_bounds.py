"""Which floating point columns of a base file have bounds: those without NaN, and they in all of its row groups.

1. Arrow leaves NaN out of its bounds. To Spark and Hudi it is greater than every number: who compares `x > 5` with such
   bounds loses the rows of NaN. So a leaf column with NaN has none: not in statistics, and not of pages (the column
   index).
2. Hudi joins the bounds of all row groups to column stats of the file, and takes one without bounds for one of zeros:
   beside bounds of others that is a range which nobody knows for wrong. So there are bounds in all row groups or in
   none. Those in which all is NULL have none and hide nothing.
3. Bounds of NaN, as Hudi's own writer (parquet-mr) stores them, are none: so its readers take them.
4. The number of nulls is always said: Hudi takes a chunk without statistics for one of nothing but NULL.

Format page: docs/format/base-file.md.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.records import thrift
from hoodie.records.parquet_leaves import leaf_values, leaves_of
from hoodie.records.thrift import Field, Struct, encode_struct, parse_struct

# Numbers of fields of FileMetaData, RowGroup, ColumnChunk, ColumnMetaData, Statistics and SchemaElement.
_ROW_GROUPS, _COLUMNS, _META, _VALUES, _STATISTICS = 4, 1, 3, 5, 12
_COLUMN_INDEX, _COLUMN_INDEX_BYTES = 6, 7
_NULL_COUNT, _BOUNDS, _OLD_BOUNDS = 3, (5, 6), (1, 2)
_TYPE, _LOGICAL, _FLOAT16 = 1, 10, 15
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
    """Places, among all leaf columns, of floats that have no bounds in one of these row groups, though it has values.
    `elements`: `SchemaElement` of all columns, root first; `groups`: `ColumnMetaData` of each leaf column.
    """
    leaves = [element for element in elements if _TYPE in element]
    floats = {place: kind for place, leaf in enumerate(leaves) if (kind := _float_of(leaf)) is not None}
    return frozenset(
        place for place, kind in floats.items() if any(_hides_values(group[place], kind) for group in groups)
    )


def without_bounds(meta: Struct) -> Struct:
    """`ColumnMetaData` which says no more of values than how many are NULL."""
    said = meta[_STATISTICS].value if _STATISTICS in meta else {}
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


def _float_of(leaf: Struct) -> struct.Struct | None:
    """How a leaf column of floating point numbers stores one; None for a column of others."""
    if _LOGICAL in leaf and _FLOAT16 in leaf[_LOGICAL].value:
        return _HALF
    return _FLOATS.get(leaf[_TYPE].value)


def _hides_values(meta: Struct, kind: struct.Struct) -> bool:
    """Whether a chunk has values between no bounds. Readers look at the old ones where there are no new ones."""
    said = meta[_STATISTICS].value if _STATISTICS in meta else {}
    for ends in (_BOUNDS, _OLD_BOUNDS):
        if all(end in said for end in ends):
            return any(_is_no_bound(said[end].value, kind) for end in ends)
    return _NULL_COUNT not in said or said[_NULL_COUNT].value != meta[_VALUES].value


def _is_no_bound(stored: bytes, kind: struct.Struct) -> bool:
    return len(stored) != kind.size or math.isnan(kind.unpack(stored)[0])
