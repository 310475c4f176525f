"""A constant of a SQL condition, and its value in the type of what it is compared with.

A literal has no type of its own: `day = '2024-01-01'` compares dates, `id = '5'` numbers. Timestamps without a zone in
the text are in the zone that is given.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa

from hoodie.errors import Invalid

_MAX_SHOWN: Final = 200
_MAX_DIGITS: Final = 38
_WHOLE_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}
_TRUE: Final = frozenset({"t", "true", "y", "yes", "1"})
_FALSE: Final = frozenset({"f", "false", "n", "no", "0"})
_WHOLE: Final = re.compile(r"[+-]?\d+")
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NO_NUMBER: Final = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE)
_LOWEST: Final = (1, 1, 1, 0, 0, 0)
_MOMENT: Final = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(?P<fraction>\d*))?)?)?"
    r" *(?P<zone>[A-Za-z+-].*)?)?)?)?)?"
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?([0-5]\d))?")


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant that has not met its type yet. `kind`: number, string, boolean, null."""

    text: str
    kind: str


def parse_zone(text: str) -> tzinfo:
    """The zone named `text`: a region, or an offset as Spark's session has it (`+01:00`, `UTC+1`, `GMT-08:00`, `Z`).

    Raises:
        Invalid: there is no such zone.
    """
    offset = _OFFSET.fullmatch(text)
    try:
        if offset is not None:
            return (
                datetime.fromisoformat(f"2000-01-01T00:00{offset[1]}{int(offset[2]):02}:{offset[3] or '00'}").tzinfo
                or UTC
            )
        return ZoneInfo("UTC" if text == "Z" else text)
    except (ValueError, OSError, KeyError) as error:
        raise Invalid(f"There is no time zone {text!r}", remedy="Use a name such as Europe/Paris, or +01:00") from error


def zone_text(zone: tzinfo) -> str:
    """The zone as Arrow names it."""
    return str(zone) if isinstance(zone, ZoneInfo) else datetime(2000, 1, 1, tzinfo=zone).isoformat()[19:]


def natural_type(literal: Literal) -> pa.DataType:
    """The type of a literal by itself: of a whole number the first that holds it, of another a decimal with the digits
    that are written, with an exponent a double.

    Raises:
        Invalid: a number has more digits than Spark's decimals.
    """
    match literal.kind:
        case "number":
            return _number_type(literal.text)
        case "boolean":
            return pa.bool_()
    return pa.string()


def typed_scalar(literal: Literal, wanted: pa.DataType, zone: tzinfo, sql: str) -> pa.Scalar:
    """A literal in the type of what it meets, or in the one both are compared in: `i < 5.5` compares decimals,
    `i < 1e18` doubles, as in Spark.

    Raises:
        Invalid: the text is no value of that type.
    """
    if literal.kind == "null":
        return pa.scalar(None, wanted)
    try:
        return _typed(literal, wanted, zone)
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        raise Invalid(
            f"{shown(literal.text)} in the filter {shown(sql)} is not a value of type {wanted}",
            remedy="Compare columns with values of their own type",
        ) from error


def typed_array(literals: Sequence[Literal], wanted: pa.DataType, zone: tzinfo, sql: str) -> pa.Array:
    """Literals that all meet one thing, in the type in which they are all compared with it. Zeros of floating point
    numbers are there with both signs: they are equal, and Arrow's sets take them apart.

    Raises:
        Invalid: a text is no value of that type.
    """
    plain = _plain_array(literals, wanted)
    if plain is not None:
        return plain
    scalars = [typed_scalar(one, wanted, zone, sql) for one in literals]
    kinds = sorted({scalar.type for scalar in scalars}, key=pa.types.is_string)  # of a text and a number: the number
    together = functools.reduce(common_type, [*([wanted] if is_number(wanted) or not kinds else []), *kinds])
    try:
        alike = (one if one.type == together else one.cast(together, safe=False) for one in scalars)
        values = pa.array([one.as_py() for one in alike], together)
    except pa.ArrowException as error:
        raise Invalid(
            f"A list of the filter {shown(sql)} has values that do not compare with each other",
            remedy="Compare columns with values of their own type",
        ) from error
    if pa.types.is_floating(together) and 0.0 in values.to_pylist():
        values = pa.concat_arrays([values, pa.array([0.0, -0.0], together)])
    return values


def _plain_array(literals: Sequence[Literal], wanted: pa.DataType) -> pa.Array | None:
    """Texts among texts and whole numbers among whole numbers at once, as long lists have them; None for others."""
    kinds, texts = {one.kind for one in literals}, [one.text for one in literals]
    try:
        if kinds == {"string"} and pa.types.is_string(wanted):
            return pa.array(texts, wanted)
        if kinds == {"number"} and pa.types.is_integer(wanted):
            return pa.array(texts, pa.string()).cast(wanted)
    except pa.ArrowException:  # one of them has a point, or does not fit
        pass
    return None


def common_type(one: pa.DataType, two: pa.DataType) -> pa.DataType:
    """The type in which values of two types are compared; `one` where they are of different kinds."""
    if one == two or not (is_number(one) and is_number(two)):
        return one
    if pa.types.is_floating(one) or pa.types.is_floating(two):
        return pa.float64()
    if pa.types.is_decimal(one) or pa.types.is_decimal(two):
        (digits, scale), (other_digits, other_scale) = decimal_parts(one), decimal_parts(two)
        decimals = max(scale, other_scale)
        return decimal_of(max(digits - scale, other_digits - other_scale) + decimals, decimals)
    return max(one, two, key=lambda kind: kind.bit_width)


def decimal_of(digits: int, scale: int) -> pa.DataType:
    """Arrow's decimal of so many digits.

    Raises:
        ValueError: there are too many.
    """
    return pa.decimal128(digits, scale) if digits <= _MAX_DIGITS else pa.decimal256(digits, scale)


def decimal_parts(number: pa.DataType) -> tuple[int, int]:
    """All digits of a decimal or whole number, and those behind the point."""
    if pa.types.is_decimal(number):
        return number.precision, number.scale
    return _WHOLE_DIGITS[number.bit_width], 0


def is_number(data_type: pa.DataType) -> bool:
    """Whether it is a type of numbers."""
    types = pa.types
    return bool(types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type))


def fits(number: int, whole: pa.DataType) -> bool:
    """Whether a type of whole numbers holds the number."""
    limit = 1 << (whole.bit_width - 1)
    return bool(-limit <= number < limit)


def shown(text: str) -> str:
    """A text as messages show it: in quotes, and not longer than a few lines."""
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")


def _typed(literal: Literal, wanted: pa.DataType, zone: tzinfo) -> pa.Scalar:
    text = literal.text.strip() if not pa.types.is_string(wanted) else literal.text
    types = pa.types
    if types.is_string(wanted):
        return pa.scalar(text) if literal.kind != "number" else _number(text, pa.int64())
    if types.is_boolean(wanted):
        if literal.kind == "number" or text.lower() not in _TRUE | _FALSE:
            raise ValueError("neither true nor false")
        return pa.scalar(text.lower() in _TRUE)
    if literal.kind == "boolean":
        raise ValueError("a truth value is compared with truth values only")
    if is_number(wanted):
        return _number(text, wanted)
    if literal.kind == "number":
        raise ValueError("a number is compared with numbers only")
    if types.is_date(wanted):
        return pa.scalar(_moment(text, UTC)[0].date(), pa.date32())
    if types.is_timestamp(wanted):
        found, own_zone = _moment(text, zone)
        unit = pa.timestamp(wanted.unit if wanted.unit == "ns" else "us", wanted.tz)
        # What has no zone compares with what the text says, whatever zone stands in it.
        return pa.scalar(found if wanted.tz is None else found.replace(tzinfo=own_zone).astimezone(UTC), unit)
    if types.is_binary(wanted):
        return pa.scalar(text.encode(), wanted)
    raise ValueError(f"no literals of type {wanted}")


def _number(text: str, wanted: pa.DataType) -> pa.Scalar:
    if not _NUMBER.fullmatch(text):
        if pa.types.is_floating(wanted) and _NO_NUMBER.fullmatch(text):
            return pa.scalar(float(text), wanted)
        raise ValueError("not a number")
    if pa.types.is_floating(wanted):
        near = pa.scalar(float(text), pa.float64())
        is_exact = pa.types.is_float64(wanted) or near.cast(wanted).cast(pa.float64()) == near
        return near.cast(wanted) if is_exact else near
    if "e" in text.lower():
        return pa.scalar(float(text), pa.float64())
    exact = Decimal(text)
    if pa.types.is_decimal(wanted):
        together = common_type(wanted, _decimal_type(exact))
        return pa.scalar(exact, together)
    if exact == exact.to_integral_value():
        for kind in (wanted, pa.int64()):
            if fits(int(exact), kind):
                return pa.scalar(int(exact), kind)
    return pa.scalar(exact, common_type(wanted, _decimal_type(exact)))


def _number_type(text: str) -> pa.DataType:
    if "e" in text.lower():
        return pa.float64()
    if _WHOLE.fullmatch(text):
        for kind in (pa.int32(), pa.int64()):
            if fits(int(text), kind):
                return kind
    exact = Decimal(text).as_tuple()
    if max(len(exact.digits), -int(exact.exponent)) > _MAX_DIGITS:
        raise Invalid(
            f"The number {shown(text)} in a filter has more than {_MAX_DIGITS} digits",
            remedy="Write it with an exponent, which makes it a double",
        )
    return _decimal_type(Decimal(text))


def _decimal_type(value: Decimal) -> pa.DataType:
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    return decimal_of(max(len(digits), scale, 1), scale)


def _moment(text: str, zone: tzinfo) -> tuple[datetime, tzinfo]:
    """What a text says, as Spark reads it, and the zone it says it in: `zone` when it names none."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError("no date or time")
    year, month, day, hour, minute, second = (
        int(part or least) for part, least in zip(found.groups(), _LOWEST, strict=False)
    )
    micros = int((found["fraction"] or "")[:6].ljust(6, "0"))
    moment = datetime(year, month, day, hour, minute, second, micros)
    return moment, parse_zone(found["zone"]) if found["zone"] else zone
