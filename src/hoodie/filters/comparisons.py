"""Comparing two sides of a condition as Spark does.

1. Both sides take one type first: numbers the wider one, decimals enough digits for both, whole numbers and decimals
   with floats are doubles; a date becomes midnight, and what has no zone is in the session's.
2. NaN equals NaN and is greater than every number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.filters.literals import Literal, common_type, is_number, natural_type, shown, typed_scalar, zone_text

Compare = Callable[[pc.Expression, pc.Expression], pc.Expression]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A computed value and its type (None when Arrow decides). `is_number`: a constant, and not NaN."""

    expression: pc.Expression
    type: pa.DataType | None = None
    is_number: bool = False


Operand = Value | Literal


def compared(compare: Compare, one: Operand, two: Operand, zone: tzinfo, sql: str) -> pc.Expression:
    """The comparison of both sides.

    Raises:
        Invalid: a constant is no value of what it meets, or the sides are of kinds that do not compare.
    """
    left, right = aligned(one, two, zone, sql)
    if compare in (operator.lt, operator.le):
        compare = operator.gt if compare is operator.lt else operator.ge
        left, right = right, left
    plain = compare(left.expression, right.expression)
    if left.type is None or not pa.types.is_floating(left.type) or (left.is_number and right.is_number):
        return plain
    if compare in (operator.eq, operator.ne):
        if left.is_number or right.is_number:
            return plain
        both = left.expression.is_nan() & right.expression.is_nan()
        return (plain | both) if compare is operator.eq else (plain & ~both)
    if left.is_number:  # no number is greater than NaN, which Arrow says as well
        return plain
    if right.is_number:
        return plain | left.expression.is_nan()
    if compare is operator.gt:
        return plain | (left.expression.is_nan() & ~right.expression.is_nan())
    known = (right.expression == right.expression) | right.expression.is_nan()  # true, or NULL
    return plain | (left.expression.is_nan() & known)


def aligned(one: Operand, two: Operand, zone: tzinfo, sql: str) -> tuple[Value, Value]:
    """Both sides in one type.

    Raises:
        Invalid: a constant is no value of what it meets, or the sides are of kinds that do not compare.
    """
    if isinstance(one, Literal) and isinstance(two, Literal):
        if {one.kind, two.kind} == {"number", "string"}:
            one, two = (_constant(side, pa.float64(), zone, sql) for side in (one, two))
        else:
            one, two = as_value(one, zone, sql), as_value(two, zone, sql)
    elif isinstance(one, Literal):
        right, left = aligned(two, one, zone, sql)
        return left, right
    elif isinstance(two, Literal):
        two = _constant(two, one.type or natural_type(two), zone, sql)
        if one.type is not None and pa.types.is_string(one.type) and two.type != one.type:
            return Value(one.expression.cast(two.type, safe=False), two.type), two
    assert isinstance(one, Value)
    assert isinstance(two, Value)
    if one.type is None or two.type is None or one.type == two.type:
        return one, two
    if not _go_together(one.type, two.type):
        raise Invalid(
            f"The filter {shown(sql)} compares {one.type} with {two.type}, which does not go together",
            remedy="Compare columns with values of their own type, or cast one side",
        )
    common = together(one.type, two.type)
    return in_type(one, common, zone), in_type(two, common, zone)


def as_value(operand: Operand, zone: tzinfo, sql: str) -> Value:
    """The operand as a value: a constant in its own type."""
    return operand if isinstance(operand, Value) else _constant(operand, natural_type(operand), zone, sql)


def cast(value: Value, wanted: pa.DataType, zone: tzinfo) -> pc.Expression:
    """The value in another type; what has no zone is in `zone`."""
    found, expression = value.type, value.expression
    types = pa.types
    if found is not None and types.is_timestamp(found) and found.tz is not None:
        if types.is_date(wanted) or (types.is_timestamp(wanted) and wanted.tz is None):
            local = expression.cast(pa.timestamp("us", zone_text(zone)), safe=False)
            expression = pc.local_timestamp(local)
    elif types.is_timestamp(wanted) and wanted.tz is not None and found is not None and types.is_temporal(found):
        naive = expression.cast(pa.timestamp("us"), safe=False)
        expression = pc.assume_timezone(naive, zone_text(zone), ambiguous="earliest", nonexistent="latest")
    if found is not None and types.is_decimal(found) and types.is_floating(wanted):
        return expression.cast(pa.string()).cast(wanted)  # Arrow's own cast is often not the nearest
    return expression.cast(wanted, safe=False)


def in_type(value: Value, wanted: pa.DataType, zone: tzinfo) -> Value:
    """The value, cast where it has another type."""
    return value if value.type == wanted else Value(cast(value, wanted, zone), wanted, value.is_number)


def together(one: pa.DataType, two: pa.DataType) -> pa.DataType:
    """The type in which values of two types are compared."""
    types = pa.types
    for wide, narrow in ((one, two), (two, one)):
        if types.is_timestamp(wide) and types.is_date(narrow):
            return wide
        if types.is_timestamp(wide) and types.is_timestamp(narrow) and wide.tz is not None and narrow.tz is None:
            return pa.timestamp("ns" if "ns" in (wide.unit, narrow.unit) else "us", wide.tz)
        if types.is_string(narrow) and not types.is_string(wide):
            if types.is_integer(wide):
                return pa.int64()
            return pa.float64() if types.is_decimal(wide) or types.is_floating(wide) else wide
    return common_type(one, two)


def _go_together(one: pa.DataType, two: pa.DataType) -> bool:
    """Whether values of two types compare: of numbers and truth values only those of one kind, and texts with any."""
    if pa.types.is_string(one) or pa.types.is_string(two):
        return True
    return is_number(one) == is_number(two) and pa.types.is_boolean(one) == pa.types.is_boolean(two)


def _constant(literal: Literal, wanted: pa.DataType, zone: tzinfo, sql: str) -> Value:
    scalar = typed_scalar(literal, wanted, zone, sql)
    is_number = pa.types.is_floating(scalar.type) and scalar.as_py() == scalar.as_py()
    return Value(pc.scalar(scalar), scalar.type, is_number and scalar.is_valid)
