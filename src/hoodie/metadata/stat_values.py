"""Least and greatest values out of statistics records, in the type their column has now.

1. Bounds are stored in a union of wrappers. Statistics of version V1 say no more than the wrapper; those of V2 name the
   type by its number (`valueType`), and store it in the wrapper of a primitive type.
2. A value is widened as the column was (int to long, to double, to a wider decimal). Any other change of type leaves
   the bound unknown: text orders otherwise than numbers.
3. Bounds that Hudi gets wrong are not believed: NaN, all of binary columns (compared as signed bytes in one place and
   unsigned in another), and texts with characters from U+E000 on (Java sorts UTF-16 units, which differs from the order
   of bytes only there).
4. Hudi joins the bounds of a file's row groups, and takes one without for one of zeros, or of texts for none; where it
   has no statistics at all (as a text of more than 4 KiB) all its rows for NULL besides. Of floats every one with NaN
   is such. So floats between whose bounds zero lies, other numbers that do and have NULL, and texts that have NULL are
   not believed, nor that a file of zeros or without texts has nothing but NULL.

Grammar and examples: docs/format/metadata-table.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.metadata.ranges import Ranges
from hoodie.records.align import widened
from hoodie.records.byte_columns import bytes_of

_V1: Final = 0
_DECIMAL: Final = 10
_DECIMAL_BYTES: Final = 16
_LATE_CHARACTERS: Final = "[\\x{E000}-\\x{10FFFF}]"

_WRAPPED: Final[Mapping[int, pa.DataType]] = {
    0: pa.bool_(),
    1: pa.int32(),
    2: pa.int64(),
    3: pa.float32(),
    4: pa.float64(),
    6: pa.string(),
    7: pa.date32(),
    8: pa.decimal128(30, 15),
    9: pa.int64(),
    10: pa.timestamp("us", tz="UTC"),
    11: pa.date32(),
}
"""Place of a wrapper in the union (null left out) → type of its values in V1."""

_NAMED: Final[Mapping[int, pa.DataType]] = {
    2: pa.bool_(),
    3: pa.int32(),
    4: pa.int64(),
    5: pa.float32(),
    6: pa.float64(),
    7: pa.string(),
    11: pa.string(),
    12: pa.date32(),
    13: pa.int32(),
    14: pa.int64(),
    15: pa.timestamp("ms", tz="UTC"),
    16: pa.timestamp("us", tz="UTC"),
    17: pa.timestamp("ns", tz="UTC"),
    18: pa.timestamp("ms"),
    19: pa.timestamp("us"),
    20: pa.timestamp("ns"),
}
"""Number of a type in V2 → type. 0 means V1, 1 no value, 8 and 9 bytes; 10 is a decimal, which says its digits."""


def ranges_of(stats: pa.StructArray, wanted: pa.DataType, *, as_stored: bool = False, in_doubt: bool = False) -> Ranges:
    """The ranges in records of statistics (null: not known, as are tombstones), with bounds of type `wanted`.

    `as_stored`: also bounds that are not believed, for writing them into other statistics. `in_doubt`: those that would
    only be wrong in a file of several row groups, for checks.
    """
    gone = pc.or_(stats.is_null(), pc.fill_null(pc.struct_field(stats, "isDeleted"), True))
    has_gone = gone.true_count > 0

    def known(name: str) -> pa.Array:
        values = pc.struct_field(stats, name)
        return pc.if_else(gone, pa.scalar(None, values.type), values) if has_gone else values

    kinds = _kinds(stats)
    low, high = (_typed(known(name), kinds, wanted, as_stored) for name in ("minValue", "maxValue"))
    rows, nulls = known("valueCount"), known("nullCount")
    found = Ranges(low, high, rows, nulls)
    return found if as_stored or len(stats) == 0 else _believed(found, in_doubt=in_doubt)


def _believed(said: Ranges, *, in_doubt: bool) -> Ranges:
    """The ranges without what Hudi may have made of row groups that say nothing of their values."""
    kind = said.low.type
    if pa.types.is_floating(kind):
        is_nan = pc.or_kleene(pc.is_nan(said.low), pc.is_nan(said.high))
        is_wrong = pc.or_kleene(is_nan, _has_zero(said, only=in_doubt))
        is_untold = _has_zero(said, only=True)
    elif in_doubt or not _is_counted(kind):
        return said
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        is_wrong, is_untold = pc.greater(said.nulls, 0), said.low.is_null()
    elif pa.types.is_decimal(kind):
        is_wrong, is_untold = _has_zero(said), pc.or_kleene(said.low.is_null(), _has_zero(said, only=True))
    else:
        is_wrong, is_untold = _has_zero(said), _has_zero(said, only=True)
    if not pa.types.is_floating(kind):
        is_wrong = pc.and_kleene(is_wrong, pc.greater(said.nulls, 0))
    is_untold = pc.and_kleene(is_untold, pc.equal(said.nulls, said.rows))
    low, high = (_unless(is_wrong, bound) for bound in (said.low, said.high))
    return Ranges(low, high, said.rows, _unless(is_untold, said.nulls))


def _is_counted(kind: pa.DataType) -> bool:
    """Whether a column has statistics of values. Of a nested one none are known."""
    kinds = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_temporal, pa.types.is_decimal)
    return any(is_kind(kind) for is_kind in (*kinds, pa.types.is_string, pa.types.is_binary))


def _unless(is_wrong: pa.Array, values: pa.Array) -> pa.Array:
    return pc.if_else(pc.fill_null(is_wrong, False), pa.scalar(None, values.type), values)


def _has_zero(said: Ranges, *, only: bool = False) -> pa.Array:
    """Whether zero lies between the bounds; or whether both are."""
    low, high = _signs(said.low), _signs(said.high)
    if only:
        return pc.and_kleene(pc.equal(low, 0), pc.equal(high, 0))
    return pc.and_kleene(pc.less_equal(low, 0), pc.greater_equal(high, 0))


def _signs(bounds: pa.Array) -> pa.Array:
    """-1, 0 or 1 for each bound: dates and times as the numbers that are stored, false as 0."""
    kind = bounds.type
    if pa.types.is_boolean(kind) or pa.types.is_temporal(kind):
        stored = pa.int64() if kind.bit_width == 64 else pa.int32()
        bounds = bounds.cast(pa.int8()) if pa.types.is_boolean(kind) else bounds.cast(stored)
    return pc.sign(bounds)


def _kinds(stats: pa.StructArray) -> list[tuple[int, str]]:
    """Type number and what it adds, for each record; V1 where nothing is said."""
    if stats.type.get_field_index("valueType") < 0:
        return [(_V1, "")] * len(stats)
    types = pc.struct_field(stats, "valueType")
    numbers = pc.fill_null(pc.struct_field(types, "typeOrdinal"), _V1).to_pylist()
    return list(zip(numbers, pc.fill_null(pc.struct_field(types, "additionalInfo"), "").to_pylist(), strict=True))


def _typed(wrapped: pa.StructArray, kinds: list[tuple[int, str]], wanted: pa.DataType, as_stored: bool) -> pa.Array:
    result = pa.nulls(len(wrapped), wanted)
    used = []  # most of the wrappers have no value in any record
    for place, field in enumerate(wrapped.type):
        if pa.types.is_struct(field.type) and field.type.get_field_index("value") >= 0:
            values = pc.struct_field(wrapped, [place, field.type.get_field_index("value")])
            if values.null_count < len(values):
                used.append((place, values))
    different = set(kinds)
    for kind in different:
        of_kind = pa.array([one == kind for one in kinds], pa.bool_())
        for place, all_values in used:
            values = all_values
            if len(different) > 1:
                values = pc.if_else(of_kind, values, pa.scalar(None, values.type))
            natural = None
            if values.null_count < len(values):
                natural = _natural(values, place, kind, wanted, as_stored)
            if natural is not None and _widens(natural.type, wanted):
                result = pc.coalesce(result, _widened(natural, wanted))
    return result


def _natural(
    values: pa.Array, place: int, kind: tuple[int, str], wanted: pa.DataType, as_stored: bool
) -> pa.Array | None:
    """The values of one wrapper in the type they were written as; None when that is not known or not believed."""
    number, added = kind
    if number == _DECIMAL:
        return _decimals(values, added)
    if pa.types.is_binary(values.type) and as_stored and pa.types.is_binary(wanted):
        return values
    natural = _WRAPPED.get(place) if number == _V1 else _NAMED.get(number)
    if number == _V1 and (place, wanted) in _OLD_SPELLINGS:
        natural = wanted
    if natural is None or pa.types.is_binary(values.type):
        return None
    if pa.types.is_string(natural) and not as_stored:
        late = pc.match_substring_regex(values, _LATE_CHARACTERS)
        return pc.if_else(pc.fill_null(late, False), pa.scalar(None, pa.string()), values)
    try:
        return values.cast(natural)
    except pa.ArrowInvalid:
        return None


_OLD_SPELLINGS: Final = frozenset({(1, pa.date32()), (2, pa.timestamp("us", tz="UTC")), (2, pa.timestamp("us"))})
"""Wrapper and type of a column: what V1 writes as plain numbers in some places."""


def _widened(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The values as the column has them now; unknown when they do not fit."""
    try:
        return widened(values, wanted)
    except pa.ArrowInvalid:
        return pa.nulls(len(values), wanted)


def _widens(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether every value keeps its place in the order when its type changes so."""
    types = pa.types
    if types.is_timestamp(old) and types.is_timestamp(new):
        return old.tz == new.tz and _UNITS.index(old.unit) <= _UNITS.index(new.unit)
    if types.is_integer(old):
        return bool(types.is_integer(new) or types.is_floating(new) or types.is_decimal(new))
    if types.is_floating(old):
        return bool(types.is_floating(new) and new.bit_width >= old.bit_width)
    return bool(old == new or (types.is_decimal(old) and types.is_decimal(new)))


_UNITS: Final = ("s", "ms", "us", "ns")


def _decimals(values: pa.Array, digits: str) -> pa.Array | None:
    """Big-endian two's complement numbers of any length as decimals of `precision,scale`."""
    precision, comma, scale = digits.partition(",")
    if not pa.types.is_binary(values.type) or not comma or not (precision.isdecimal() and scale.isdecimal()):
        return None
    data, offsets = bytes_of(values)
    lengths = np.diff(offsets)
    if not 1 <= int(precision) <= 38 or int(scale) > 38 or lengths.max(initial=0) > _DECIMAL_BYTES:
        return None
    little = np.zeros((len(values), _DECIMAL_BYTES), dtype=np.uint8)
    for length in set(lengths.tolist()) - {0}:
        _spread(little, data, offsets, np.flatnonzero(lengths == length), length)
    valid = pc.and_(values.is_valid(), pc.greater(pc.binary_length(values), 0))
    wide = pa.Array.from_buffers(
        pa.decimal128(38, int(scale)), len(values), [None, pa.py_buffer(np.ascontiguousarray(little))]
    )
    return pc.if_else(pc.fill_null(valid, False), wide, pa.scalar(None, wide.type))


def _spread(
    little: npt.NDArray[np.uint8],
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    length: int,
) -> None:
    """Fill the rows of `little` with the numbers of one length, least byte first, sign extended."""
    big = data[offsets[rows][:, None] + np.arange(length)]
    little[rows] = np.where(big[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    little[rows, :length] = big[:, ::-1]
