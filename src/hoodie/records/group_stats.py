"""What a parquet footer says of the values in a row group: rows, nulls, least and greatest value of each flat column.

Arrow's metadata objects are not asked: they end the process over some damaged footers (no exception of C++ is caught
where they look at a column chunk). Known are what Hudi's tables have: whole numbers, floats, booleans, text and bytes,
dates, times, timestamps and decimals, in the fields that follow a type's own order (`min_value`, `max_value`). Whatever
is missing, odd or of another type is told as not known.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa

from hoodie.records.page_index import FileFooter
from hoodie.records.thrift import Struct

_BOOLEAN, _INT32, _INT64, _FLOAT, _DOUBLE, _BYTE_ARRAY, _FIXED = 0, 1, 2, 4, 5, 6, 7
_TYPE, _PATH, _STATISTICS = 1, 3, 12
_NULL_COUNT, _MAX_VALUE, _MIN_VALUE = 3, 5, 6
_NUMBER_BYTES: Final = {_INT32: 4, _INT64: 8}
_FLOATS: Final = {_FLOAT: struct.Struct("<f"), _DOUBLE: struct.Struct("<d")}
_DECIMALS: Final = Context(prec=76)
_ODD: Final = (
    KeyError,
    AttributeError,
    TypeError,
    IndexError,
    ValueError,
    ArithmeticError,
    struct.error,
    pa.ArrowException,
)


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Statistics of one column in one row group: rows, nulls, smallest and largest value; None: not known."""

    rows: int
    nulls: int | None
    low: Any
    high: Any


def group_stats(footer: FileFooter, group: int, schema: pa.Schema) -> dict[str, ColumnStats]:
    """Statistics of those columns of `schema`, which are the file's own types, that are flat and have any."""
    found: dict[str, ColumnStats] = {}
    for field in schema:
        try:
            found[field.name] = _column_stats(footer, group, field)
        except _ODD:
            continue
    return found


def _column_stats(footer: FileFooter, group: int, field: pa.Field) -> ColumnStats:
    chunk: Struct = footer.chunks(group)[footer.flat[field.name]][3].value
    if chunk[_PATH].value.values != [field.name.encode()]:
        raise ValueError("statistics of another column")
    stats = chunk[_STATISTICS].value
    rows = footer.rows(group)
    nulls = stats[_NULL_COUNT].value if _NULL_COUNT in stats else None
    if nulls is not None and not (isinstance(nulls, int) and 0 <= nulls <= rows):
        raise ValueError("a number of nulls that cannot be")
    if not {_MIN_VALUE, _MAX_VALUE} <= stats.keys():
        return ColumnStats(rows, nulls, None, None)
    low, high = (_value(stats[at].value, chunk[_TYPE].value, field.type) for at in (_MIN_VALUE, _MAX_VALUE))
    if low is None or high is None or low > high:
        low = high = None
    return ColumnStats(rows, nulls, low, high)


def _value(stored: bytes, physical: int, to: pa.DataType) -> Any:
    """A value as statistics store it: like a value in encoding PLAIN, but bytes without their length."""
    if not stored and not pa.types.is_string(to) and not pa.types.is_binary(to):
        raise ValueError("no bytes")
    if pa.types.is_decimal(to):
        if len(stored) != _NUMBER_BYTES.get(physical, len(stored)):
            raise ValueError("another number of bytes")
        number = int.from_bytes(stored, "little" if physical in _NUMBER_BYTES else "big", signed=True)
        return _DECIMALS.scaleb(Decimal(number), -to.scale)
    if physical in _NUMBER_BYTES:
        return _number(stored, physical, to)
    if physical in _FLOATS and pa.types.is_floating(to):
        (found,) = _FLOATS[physical].unpack(stored)
        return None if math.isnan(found) else found
    if physical == _BOOLEAN and len(stored) == 1:
        return bool(stored[0])
    if physical == _BYTE_ARRAY and pa.types.is_string(to):
        return bytes(stored).decode()
    if (physical == _BYTE_ARRAY and pa.types.is_binary(to)) or (
        physical == _FIXED and pa.types.is_fixed_size_binary(to)
    ):
        return bytes(stored)
    return None


def _number(stored: bytes, physical: int, to: pa.DataType) -> Any:
    size = _NUMBER_BYTES[physical]
    if len(stored) != size:
        raise ValueError("another number of bytes")
    number = int.from_bytes(stored, "little", signed=True)
    if pa.types.is_signed_integer(to):
        return number
    if not pa.types.is_temporal(to) or to.bit_width != 8 * size:
        return None
    return pa.array([number], pa.int32() if size == 4 else pa.int64()).view(to)[0].as_py()
