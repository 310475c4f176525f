"""Ranges of columns as records: which wrapper holds a bound, and what is said of its type.

1. V1 (tables of version 6 and 8) says no types: the wrapper is that of the value's own kind, decimals have 15 digits
   behind the point. V2 (version 9) names the type by its number and stores values in wrappers of primitive types.
2. A range of nothing, of no type, has no bounds; in V2 its type is NULL.
3. V1 holds timestamps of a column as plain numbers, those that a function of an expression index gives as timestamps:
   Hudi joins ranges by comparing what it took out of the wrappers, and does not compare one kind with another.

Pure. Grammar and examples: docs/format/metadata-table.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from hoodie.metadata.merge import STATS
from hoodie.metadata.partitions import RecordType
from hoodie.metadata.records import KEY, TYPE
from hoodie.metadata_writer.column_range import Bound, ColumnRange

BOOLEAN, INT, LONG, FLOAT, DOUBLE, BYTES, STRING, DATE, DECIMAL, TIME, TIMESTAMP = range(11)
"""Places of wrappers in the union of values, null left out."""

V1_DECIMAL: Final = pa.decimal128(30, 15)

_WRAPPERS: Final[tuple[pa.DataType, ...]] = (
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.binary(),
    pa.string(),
    pa.int32(),
    V1_DECIMAL,
    pa.int64(),
    pa.int64(),
)
_WIDE: Final = Context(prec=60)
_MICROS_SINCE_1970: Final = 16


@dataclass(frozen=True, slots=True)
class StatsRow:
    """One record: its key, what `fileName` says (a file, or a partition), and the range."""

    key: str
    name: str
    range: ColumnRange


def stats_rows(rows: Sequence[StatsRow], kind: RecordType, version: str, *, is_tight: bool = False) -> pa.Table:
    """The records of ranges, in their order. `version`: V1 or V2."""
    places = [_place(row.range.data_type, version) for row in rows]
    return _rows(rows, places, kind, version, is_tight)


def expression_rows(rows: Sequence[StatsRow], kind: RecordType, version: str) -> pa.Table:
    """The records of an expression index's ranges, in their order; those of partitions are tight."""
    places = [_place(row.range.data_type, version) for row in rows]
    if version == "V1":
        is_moment = [type_number(row.range.data_type) == _MICROS_SINCE_1970 for row in rows]
        places = [TIMESTAMP if moment else place for moment, place in zip(is_moment, places, strict=True)]
    return _rows(rows, places, kind, version, kind is RecordType.PARTITION_STATS)


def _rows(
    rows: Sequence[StatsRow], places: Sequence[int | None], kind: RecordType, version: str, is_tight: bool
) -> pa.Table:
    found = [row.range for row in rows]
    low = _wrapped([one.low for one in found], places, found, version)
    high = _wrapped([one.high for one in found], places, found, version)
    columns = {
        "fileName": pa.array([row.name for row in rows], pa.string()),
        "columnName": pa.array([one.column for one in found], pa.string()),
        "minValue": low,
        "maxValue": high,
        "valueCount": pa.array([one.rows for one in found], pa.int64()),
        "nullCount": pa.array([one.nulls for one in found], pa.int64()),
        "totalSize": pa.array([one.size_bytes for one in found], pa.int64()),
        "totalUncompressedSize": pa.array([one.plain_bytes for one in found], pa.int64()),
        "isDeleted": pa.repeat(False, len(found)),
        "isTightBound": pa.repeat(is_tight, len(found)),
    }
    if version != "V1":
        columns["valueType"] = _value_types(found)
    return pa.table(
        {
            KEY: pa.array([row.key for row in rows], pa.string()),
            TYPE: pa.repeat(pa.scalar(int(kind), pa.int32()), len(found)),
            STATS: pa.StructArray.from_arrays(list(columns.values()), names=list(columns)),
        }
    )


def is_storable(data_type: pa.DataType, version: str, *, with_bytes: bool) -> bool:
    """Whether bounds of a column of this type are kept. `with_bytes`: in V1 those of bytes and decimals, too."""
    if _place(data_type, version) is None:
        return False
    if version != "V1":
        return True
    if _is_decimal(data_type):
        whole = V1_DECIMAL.precision - V1_DECIMAL.scale
        fits = data_type.scale <= V1_DECIMAL.scale and data_type.precision - data_type.scale <= whole
        return with_bytes and fits
    is_bytes = pa.types.is_binary(data_type) or pa.types.is_fixed_size_binary(data_type)
    return with_bytes or not is_bytes


@lru_cache(256)
def type_number(data_type: pa.DataType | None) -> int:
    """The number V2 gives a type; 1 (NULL) for none."""
    if data_type is None:
        return 1
    for matches, number in _NUMBERS:
        if matches(data_type):
            return number
    if pa.types.is_timestamp(data_type):
        return (15 if data_type.tz is not None else 18) + ("ms", "us", "ns").index(data_type.unit)
    return 1


_NUMBERS: Final[tuple[tuple[Any, int], ...]] = (
    (pa.types.is_boolean, 2),
    (lambda one: pa.types.is_integer(one) and one.bit_width <= 32, 3),
    (pa.types.is_integer, 4),
    (pa.types.is_float32, 5),
    (pa.types.is_floating, 6),
    (pa.types.is_string, 7),
    (pa.types.is_decimal, 10),
    (pa.types.is_fixed_size_binary, 9),
    (pa.types.is_binary, 8),
    (pa.types.is_date32, 12),
    (pa.types.is_time32, 13),
    (pa.types.is_time64, 14),
)


def _place(data_type: pa.DataType | None, version: str) -> int | None:
    """The wrapper for bounds of a type; None when there is none."""
    number = type_number(data_type)
    if version == "V1" and number in _V1_PLACES:
        return _V1_PLACES[number]
    return _PLACES.get(number)


_PLACES: Final = {
    2: BOOLEAN, 3: INT, 4: LONG, 5: FLOAT, 6: DOUBLE, 7: STRING, 8: BYTES, 9: BYTES, 10: BYTES,
    12: INT, 13: INT, 14: LONG, 15: LONG, 16: LONG, 17: LONG, 18: LONG, 19: LONG, 20: LONG,
}  # fmt: skip
_V1_PLACES: Final = {10: DECIMAL, 12: DATE}


def _wrapped(
    bounds: Sequence[Bound | None], places: Sequence[int | None], ranges: Sequence[ColumnRange], version: str
) -> pa.StructArray:
    """The union of wrappers as Arrow has it: of the structs `member0` ... at most one is set in a row."""
    is_none = [bound is None or place is None for bound, place in zip(bounds, places, strict=True)]
    members: list[pa.Array] = []
    for place, stored in enumerate(_WRAPPERS):
        if place not in places:
            members.append(pa.nulls(len(bounds), pa.struct([pa.field("value", stored)])))
            continue
        is_here = [other == place and not none for other, none in zip(places, is_none, strict=True)]
        values = [
            _stored(bound, one, version) if mine else None
            for bound, one, mine in zip(bounds, ranges, is_here, strict=True)
        ]
        mask = pa.array([not mine for mine in is_here], pa.bool_())
        members.append(pa.StructArray.from_arrays([pa.array(values, stored)], names=["value"], mask=mask))
    names = [f"member{place}" for place in range(len(members))]
    return pa.StructArray.from_arrays(members, names=names, mask=pa.array(is_none, pa.bool_()))


def _stored(bound: Bound | None, found: ColumnRange, version: str) -> Any:
    """The bound as its wrapper takes it."""
    if not _is_decimal(found.data_type) or not isinstance(bound, int) or found.data_type is None:
        return bound
    if version == "V1":
        return Decimal(bound).scaleb(-found.data_type.scale, _WIDE).quantize(Decimal(1).scaleb(-15), context=_WIDE)
    return bound.to_bytes((bound + (bound < 0)).bit_length() // 8 + 1, "big", signed=True)


def _value_types(ranges: Sequence[ColumnRange]) -> pa.StructArray:
    digits = [
        f"{one.data_type.precision},{one.data_type.scale}" if one.data_type and _is_decimal(one.data_type) else None
        for one in ranges
    ]
    numbers = [type_number(one.data_type) for one in ranges]
    return pa.StructArray.from_arrays(
        [pa.array(numbers, pa.int32()), pa.array(digits, pa.string())], names=["typeOrdinal", "additionalInfo"]
    )


def _is_decimal(data_type: pa.DataType | None) -> bool:
    return data_type is not None and bool(pa.types.is_decimal(data_type))
