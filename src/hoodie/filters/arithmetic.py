"""Sums, differences, products and quotients of two values, with the types Spark gives them in ANSI mode.

1. Whole numbers stay in the wider of their types, and fail in a row where that cannot hold the result; quotients of
   them are doubles.
2. Decimals among themselves and with whole numbers are decimals, of Spark's digits: beyond 38 the last ones go. A whole
   constant has as many digits as are written.
3. Two floats are a float; a float with anything else is a double.
4. A text is a number of what it meets: BIGINT with whole numbers, DOUBLE with others.
5. A division by zero, which Spark refuses in a row, is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.filters.casts import cast_constant, cast_value, rounded
from hoodie.filters.comparisons import Operand, Value, as_value, in_type
from hoodie.filters.literals import Literal, decimal_of, decimal_parts, is_number, natural_type
from hoodie.filters.tree import Node

_Parts = tuple[int, int]

_MAX_DIGITS: Final = 38
_MAX_ARROW_DIGITS: Final = 76
_KEPT_DECIMALS: Final = 6

OPERATIONS: Final[Mapping[type[Any], Callable[[pc.Expression, pc.Expression], pc.Expression]]] = {
    exp.Add: pc.add_checked,
    exp.Sub: pc.subtract_checked,
    exp.Mul: pc.multiply_checked,
    exp.Div: pc.divide,
}


def computed(node: Node, left: Operand, right: Operand, zone: tzinfo, sql: str) -> Value | None:
    """What an operation gives for its two sides; None if that is not known here.

    Raises:
        Invalid: a constant text is no number.
    """
    one, two = _as_number(left, right, zone, sql), _as_number(right, left, zone, sql)
    if one is None or two is None or one.type is None or two.type is None:
        return None
    kinds = (one.type, two.type)
    types = pa.types
    if any(map(types.is_floating, kinds)) or (isinstance(node, exp.Div) and all(map(types.is_integer, kinds))):
        is_float = all(map(types.is_float32, kinds)) and not isinstance(node, exp.Div)
        return _in_one_type(node, one, two, pa.float32() if is_float else pa.float64(), zone)
    if all(map(types.is_integer, kinds)):
        return _in_one_type(node, one, two, max(kinds, key=lambda kind: kind.bit_width), zone)
    return _of_decimals(node, one, two)


def negated(operand: Operand, zone: tzinfo, sql: str) -> Value | None:
    """The number with the other sign; None for what is no number."""
    found = _as_number(operand, Value(pc.scalar(None), pa.float64()), zone, sql)
    return None if found is None else Value(pc.negate_checked(found.expression), found.type, found.is_number)


def result_type(node: Node, one: _Parts, two: _Parts) -> pa.DataType:
    """The type of an operation on decimals of so many digits, of which so many are behind the point."""
    (digits, scale), (other_digits, other_scale) = one, two
    if isinstance(node, exp.Mul):
        return _at_most_38(digits + other_digits + 1, scale + other_scale)
    if isinstance(node, exp.Div):
        decimals = max(_KEPT_DECIMALS, scale + other_digits + 1)
        return _at_most_38(digits - scale + other_scale + decimals, decimals)
    decimals = max(scale, other_scale)
    return _at_most_38(max(digits - scale, other_digits - other_scale) + decimals + 1, decimals)


def _at_most_38(digits: int, scale: int) -> pa.DataType:
    if digits <= _MAX_DIGITS:
        return pa.decimal128(digits, scale)
    kept = max(_MAX_DIGITS - (digits - scale), min(scale, _KEPT_DECIMALS))
    return pa.decimal128(_MAX_DIGITS, kept)


def _as_number(operand: Operand, other: Operand, zone: tzinfo, sql: str) -> Value | None:
    meets = natural_type(other) if isinstance(other, Literal) else other.type
    if isinstance(operand, Literal) and operand.kind == "null":
        return cast_constant(operand, meets, zone, sql) if meets is not None and is_number(meets) else None
    if isinstance(operand, Literal) and operand.kind == "number":
        if pa.types.is_integer(natural_type(operand)) and meets is not None and pa.types.is_decimal(meets):
            return cast_constant(operand, pa.decimal128(len(operand.text.lstrip("+-0")) or 1, 0), zone, sql)
        return as_value(operand, zone, sql)
    found = natural_type(operand) if isinstance(operand, Literal) else operand.type
    if found is not None and pa.types.is_string(found) and meets is not None and is_number(meets):
        wanted = pa.int64() if pa.types.is_integer(meets) else pa.float64()
        if isinstance(operand, Literal):
            return cast_constant(operand, wanted, zone, sql)
        expression = cast_value(operand, wanted, zone)
        return None if expression is None else Value(expression, wanted)
    return operand if isinstance(operand, Value) and found is not None and is_number(found) else None


def _in_one_type(node: Node, one: Value, two: Value, wanted: pa.DataType, zone: tzinfo) -> Value:
    first, second = (in_type(side, wanted, zone).expression for side in (one, two))
    return Value(_operated(node, first, second, wanted), wanted)


def _of_decimals(node: Node, left: Value, right: Value) -> Value | None:
    one, two = (pa.decimal128(*decimal_parts(side.type)) for side in (left, right))
    result = result_type(node, (one.precision, one.scale), (two.precision, two.scale))
    working = _working_types(node, one, two, result)
    if working is None:
        return None
    first = left.expression.cast(one).cast(working[0])
    second = right.expression.cast(two).cast(working[1])
    return Value(rounded(_operated(node, first, second, working[1]), working[2], result), result)


def _operated(node: Node, one: pc.Expression, two: pc.Expression, kind: pa.DataType) -> pc.Expression:
    if isinstance(node, exp.Div):
        two = pc.if_else(two == pc.scalar(pa.scalar(0, kind)), pa.scalar(None, kind), two)
    return OPERATIONS[type(node)](one, two)


def _working_types(
    node: Node, one: pa.DataType, two: pa.DataType, result: pa.DataType
) -> tuple[pa.DataType, pa.DataType, pa.DataType] | None:
    """Types of both sides in which Arrow computes all digits, or of a quotient more than the result has, and the type
    it gives then; None if those are too many.
    """
    if isinstance(node, exp.Div):  # Arrow cuts quotients off, and has so many digits of them
        scale = max(one.scale, result.scale + 1)
        digits = one.precision - one.scale + scale
        decimals = max(4, scale + two.precision - two.scale + 1)
        found_digits, found_scale = digits - scale + two.scale + decimals, decimals
        one_digits, one_scale = digits, scale
        two_digits, two_scale = two.precision, two.scale
    elif isinstance(node, exp.Mul):
        found_digits, found_scale = one.precision + two.precision + 1, one.scale + two.scale
        (one_digits, one_scale), (two_digits, two_scale) = (one.precision, one.scale), (two.precision, two.scale)
    else:
        found_scale = max(one.scale, two.scale)
        one_digits, one_scale = one.precision - one.scale + found_scale, found_scale
        two_digits, two_scale = two.precision - two.scale + found_scale, found_scale
        found_digits = max(one_digits, two_digits) + 1
    most = max(found_digits, one_digits, two_digits)
    if most > _MAX_ARROW_DIGITS:
        return None
    make = decimal_of if most <= _MAX_DIGITS else pa.decimal256
    return make(one_digits, one_scale), make(two_digits, two_scale), make(found_digits, found_scale)
