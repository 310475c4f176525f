"""CAST of a constant or a computed value, as Spark does it in ANSI mode, which is its default.

1. To whole numbers it cuts off behind the point, to decimals it rounds half away from zero, to floats to the nearest.
2. What does not fit fails: a constant where the condition is parsed, a row where it is computed.
3. A cast that Arrow does otherwise, or Spark not at all, is not known here.
"""

from __future__ import annotations

import re
from datetime import tzinfo
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid, Unsupported
from hoodie.filters.column_types import prints_as_spark
from hoodie.filters.comparisons import Value, cast
from hoodie.filters.literals import Literal, decimal_parts, fits, is_number, natural_type, shown, typed_scalar

_WIDE: Final = Context(prec=1_000)
_MAX_DIGITS: Final = 76
_EXACT_BITS: Final = 16
_WHOLE_TEXT: Final = re.compile(r"[+-]?\d+")
_NUMBER_TEXT: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?")


def cast_constant(literal: Literal, wanted: pa.DataType, zone: tzinfo, sql: str) -> Value:
    """The constant in another type.

    Raises:
        Invalid: it is no value of that type. Unsupported: it is a double, and a text is wanted.
    """
    if literal.kind == "number" and pa.types.is_string(wanted) and pa.types.is_floating(natural_type(literal)):
        raise Unsupported(
            f"The filter {shown(sql)} makes a text of the double {shown(literal.text)}, which is not supported here",
            remedy="Write the text in quotes",
        )
    try:
        scalar = _cast_scalar(literal, wanted)
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        raise Invalid(
            f"The filter {shown(sql)} casts {shown(literal.text)} to {wanted}, of which it is no value",
            remedy="Cast to a type that can hold it",
        ) from error
    if scalar is None:
        scalar = typed_scalar(literal, wanted, zone, sql)
    is_ordered = scalar.is_valid and pa.types.is_floating(wanted) and scalar.as_py() == scalar.as_py()
    return Value(pc.scalar(scalar), wanted, is_ordered)


def cast_value(value: Value, wanted: pa.DataType, zone: tzinfo) -> pc.Expression | None:
    """The value in another type; None for a cast that is not known here."""
    found, expression, types = value.type, value.expression, pa.types
    if found is None or found == wanted:
        return expression if found == wanted else None
    if types.is_string(found):
        return _cast_text(value, wanted, zone)
    if types.is_string(wanted):
        return expression.cast(wanted) if prints_as_spark(found) else None
    if types.is_temporal(found) or types.is_temporal(wanted):
        is_known = types.is_temporal(found) and types.is_temporal(wanted)
        return cast(value, wanted, zone) if is_known else None
    if types.is_boolean(found):
        return _cast_number(expression.cast(pa.int8()), pa.int8(), wanted, zone)
    return _cast_number(expression, found, wanted, zone) if is_number(found) else None


def rounded(expression: pc.Expression, found: pa.DataType, wanted: pa.DataType) -> pc.Expression:
    """A decimal with fewer or more digits, rounded half away from zero. What does not fit fails in its row."""
    if wanted.scale < found.scale:
        wide = pa.decimal256(min(found.precision + 1, _MAX_DIGITS), found.scale)  # for the digit that rounding carries
        expression = pc.round(expression.cast(wide), wanted.scale, "half_towards_infinity")
    return expression.cast(wanted)


def _cast_number(
    expression: pc.Expression, found: pa.DataType, wanted: pa.DataType, zone: tzinfo
) -> pc.Expression | None:
    types = pa.types
    if types.is_boolean(wanted):
        return expression != pc.scalar(pa.scalar(0, found))
    if types.is_integer(wanted):
        if types.is_floating(found):
            return pc.trunc(expression.cast(pa.float64())).cast(wanted)
        return expression.cast(options=pc.CastOptions(wanted, allow_decimal_truncate=True))
    if types.is_floating(wanted):
        if types.is_float32(wanted) and types.is_integer(found) and found.bit_width > _EXACT_BITS:
            return None  # Spark forgets this cast where another one to DOUBLE follows
        return cast(Value(expression, found), wanted, zone)
    if not types.is_decimal(wanted) or types.is_floating(found):
        return None
    if types.is_integer(found):
        found = pa.decimal128(*decimal_parts(found))
        expression = expression.cast(found)
    return rounded(expression, found, wanted)


def _cast_text(value: Value, wanted: pa.DataType, zone: tzinfo) -> pc.Expression:
    if not is_number(wanted) and not pa.types.is_boolean(wanted):
        return cast(value, wanted, zone)
    trimmed = pc.utf8_trim_whitespace(value.expression)
    return pc.replace_substring_regex(trimmed, "[xX]", "?").cast(wanted)  # Arrow would take 0x1F for a number


def _cast_scalar(literal: Literal, wanted: pa.DataType) -> pa.Scalar | None:
    """The constant in another type; None where it is what it is in comparisons, too."""
    types, text = pa.types, literal.text.strip()
    if literal.kind == "null":
        return None
    if types.is_string(wanted):
        return pa.scalar(_text_of(literal), wanted)
    if types.is_boolean(wanted) and literal.kind == "number":
        return pa.scalar(Decimal(text) != 0)
    if not is_number(wanted):
        return None
    if literal.kind == "boolean":
        text = "1" if literal.text == "true" else "0"
    if types.is_floating(wanted):
        if _NUMBER_TEXT.fullmatch(text):
            return pa.scalar(text.removeprefix("+")).cast(wanted)
        return None
    if literal.kind == "string" and not (_WHOLE_TEXT if types.is_integer(wanted) else _NUMBER_TEXT).fullmatch(text):
        raise ValueError("not a number")
    exact = Decimal(repr(float(text))) if literal.kind == "number" and "e" in text.lower() else Decimal(text)
    return _whole(exact, wanted) if types.is_integer(wanted) else _decimal(exact, wanted)


def _whole(exact: Decimal, wanted: pa.DataType) -> pa.Scalar:
    number = int(exact.to_integral_value(ROUND_DOWN))
    if not fits(number, wanted):
        raise ValueError("too large")
    return pa.scalar(number, wanted)


def _decimal(exact: Decimal, wanted: pa.DataType) -> pa.Scalar:
    return pa.scalar(exact.quantize(Decimal(1).scaleb(-wanted.scale), ROUND_HALF_UP, _WIDE), wanted)


def _text_of(literal: Literal) -> str:
    if literal.kind != "number":
        return literal.text
    exact = Decimal(literal.text)
    return format(exact if exact else abs(exact), "f")
