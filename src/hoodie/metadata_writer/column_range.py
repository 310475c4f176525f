"""The range of values of one column in some rows, in the numbers and texts that are stored.

1. A bound is a bool, a whole number (days of a date, units of a time, a decimal without its point), a float, a text or
   bytes. None: there is no value, or nobody knows.
2. Bounds of text are in the order of UTF-8, those of floats in Spark's, where NaN is greater than every number.
3. Least zero is -0.0 and greatest is 0.0, as Hudi's readers of parquet footers have it.

Pure. Which wrapper holds a bound is decided by `stats_rows`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.records.align import widened

Bound: TypeAlias = bool | int | float | str | bytes


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """What is known of a column (a path with dots). `data_type` is the column's; None where nobody knows it, since
    there are no rows. `rows` counts all of them, nulls included. `size_bytes` and `plain_bytes` are what its values
    take in a base file, compressed and not; 0 for log files.
    """

    column: str
    data_type: pa.DataType | None
    low: Bound | None
    high: Bound | None
    rows: int
    nulls: int
    size_bytes: int = 0
    plain_bytes: int = 0

    @property
    def is_known(self) -> bool:
        """Whether the bounds hold for every value there is."""
        return (self.low is not None and self.high is not None) or self.nulls == self.rows


def can_have_range(data_type: pa.DataType) -> bool:
    """Whether values of the type have an order that is kept: all but lists, maps and structs."""
    return not (pa.types.is_nested(data_type) or pa.types.is_null(data_type))


def range_of_values(column: str, values: pa.Array | pa.ChunkedArray) -> ColumnRange:
    """The range of a column in rows that were read."""
    data_type = values.type
    found = ColumnRange(column, data_type, None, None, len(values), values.null_count)
    if found.nulls == found.rows:
        return found
    if pa.types.is_floating(data_type):
        return _range_of_floats(found, values)
    ends = pc.min_max(in_order(values))
    low, high = (stored_bound(ends[end].as_py(), data_type) for end in ("min", "max"))
    return replace(found, low=low, high=high)


def join_ranges(ranges: Iterable[ColumnRange]) -> ColumnRange:
    """The range of one column over the rows of all ranges (at least one). Without bounds where any is not known."""
    found = list(ranges)
    if len(found) == 1 and found[0].is_known:
        return found[0]
    lows = [one.low for one in found if one.low is not None]
    highs = [one.high for one in found if one.high is not None]
    is_known = all(one.is_known for one in found)
    return replace(
        found[0],
        low=min(lows, key=_order) if lows and is_known else None,
        high=max(highs, key=_order) if highs and is_known else None,
        rows=sum(one.rows for one in found),
        nulls=sum(one.nulls for one in found),
        size_bytes=sum(one.size_bytes for one in found),
        plain_bytes=sum(one.plain_bytes for one in found),
    )


def with_signed_zeros(found: ColumnRange) -> ColumnRange:
    """The range with a least zero of -0.0 and a greatest of 0.0, where its bounds are floats."""
    low = -0.0 if isinstance(found.low, float) and found.low == 0.0 else found.low
    high = 0.0 if isinstance(found.high, float) and found.high == 0.0 else found.high
    return replace(found, low=low, high=high)


def stored_bound(value: Any, data_type: pa.DataType) -> Bound | None:
    """A Python value of the type (numbers for dates and times) as it is stored."""
    if isinstance(value, Decimal):
        digits = value.as_tuple()
        number = int("".join(map(str, digits.digits)))
        factor: int = 10 ** (data_type.scale + int(digits.exponent))
        return (-number if digits.sign else number) * factor
    known: Bound | None = value
    return known


def as_type(found: ColumnRange, data_type: pa.DataType) -> ColumnRange:
    """The range of the same values in the type their column has now, as rows show them; without bounds where they have
    no place in it.
    """
    old = found.data_type
    if old == data_type:
        return found
    if old is None or found.low is None or found.high is None:
        return replace(found, data_type=data_type)
    types = pa.types
    if types.is_decimal(old) and types.is_decimal(data_type) and data_type.scale >= old.scale:
        factor = 10 ** (data_type.scale - old.scale)
        return replace(found, data_type=data_type, low=int(found.low) * factor, high=int(found.high) * factor)
    if types.is_floating(data_type) and (types.is_integer(old) or types.is_floating(old)):
        low, high = widened(pa.array([found.low, found.high], old), data_type).to_pylist()
        return replace(found, data_type=data_type, low=low, high=high)
    if types.is_integer(old) and types.is_integer(data_type):
        return replace(found, data_type=data_type)
    return replace(found, data_type=data_type, low=None, high=None)


def in_order(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The values in a type whose least and greatest Arrow finds, dates and times as numbers."""
    data_type = values.type
    if pa.types.is_date32(data_type) or pa.types.is_time32(data_type):
        return values.cast(pa.int32())
    if pa.types.is_timestamp(data_type) or pa.types.is_time64(data_type):
        return values.cast(pa.int64())
    return values.cast(pa.binary()) if pa.types.is_fixed_size_binary(data_type) else values


def _range_of_floats(found: ColumnRange, values: pa.Array | pa.ChunkedArray) -> ColumnRange:
    """The range, which ends at infinity where there is NaN: to Spark that is greater than all numbers. Hudi takes an
    end that is NaN itself for less than every number, and leaves all rows of the file out.
    """
    ends = pc.min_max(values)  # leaves NaN out, unless there is nothing else
    low, high = ends["min"].as_py(), ends["max"].as_py()
    has_nan = pc.any(pc.is_nan(values)).as_py()
    return with_signed_zeros(replace(found, low=low, high=math.inf if has_nan else high))


def _order(bound: Bound) -> Any:
    """What bounds of one column are compared by: NaN last."""
    if isinstance(bound, float):
        return (1, 0.0) if math.isnan(bound) else (0, bound)
    return bound
