"""A constant of a SQL condition, and its value in the type of what it is compared with.

A literal has no type of its own: `day = '2024-01-01'` compares dates, `id = '5'` numbers. Timestamps without a zone in
the text are in the zone that is given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal, InvalidOperation
from zoneinfo import ZoneInfo

import pyarrow as pa

from hoodie.errors import Invalid

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
    """The type of a literal that meets nothing with a type."""
    match literal.kind:
        case "number":
            return pa.int64() if literal.text.lstrip("+-").isdigit() else pa.float64()
        case "boolean":
            return pa.bool_()
    return pa.string()


def typed_scalar(literal: Literal, wanted: pa.DataType, zone: tzinfo, sql: str) -> pa.Scalar:
    """A literal in the type of what it meets, or in a wider one when the value does not fit there.

    Raises:
        Invalid: the text is no value of that type.
    """
    if literal.kind == "null":
        return pa.scalar(None, wanted)
    try:
        return _typed(literal, wanted, zone)
    except (ValueError, InvalidOperation, pa.ArrowException) as error:
        raise Invalid(
            f"{literal.text!r} in the filter {sql!r} is not a value of type {wanted}",
            remedy="Compare columns with values of their own type",
        ) from error


def _typed(literal: Literal, wanted: pa.DataType, zone: tzinfo) -> pa.Scalar:
    text = literal.text.strip() if not pa.types.is_string(wanted) else literal.text
    types = pa.types
    if types.is_string(wanted):
        return pa.scalar(text) if literal.kind != "number" else _number(text)
    if types.is_boolean(wanted):
        if text.lower() not in ("true", "false"):
            raise ValueError("neither true nor false")
        return pa.scalar(text.lower() == "true")
    if types.is_integer(wanted) or types.is_floating(wanted):
        return _number(text, wanted)
    if types.is_decimal(wanted):
        return pa.scalar(Decimal(text))
    if types.is_date(wanted):
        return _date(text, zone)
    if types.is_timestamp(wanted):
        return pa.scalar(_moment(text, wanted, zone), wanted)
    if types.is_binary(wanted):
        return pa.scalar(text.encode(), wanted)
    raise ValueError(f"no literals of type {wanted}")


def _number(text: str, wanted: pa.DataType | None = None) -> pa.Scalar:
    whole = text.lstrip("+-").isdigit()
    if wanted is not None and (whole or pa.types.is_floating(wanted)):
        try:
            return pa.scalar(int(text) if pa.types.is_integer(wanted) else float(text), wanted)
        except (OverflowError, pa.ArrowException):
            pass
    return pa.scalar(int(text), pa.int64()) if whole else pa.scalar(float(text), pa.float64())


def _date(text: str, zone: tzinfo) -> pa.Scalar:
    if len(text) <= len("2024-01-01"):
        return pa.scalar(date.fromisoformat(text), pa.date32())
    return pa.scalar(_moment(text, pa.timestamp("us"), zone), pa.timestamp("us"))


def _moment(text: str, wanted: pa.DataType, zone: tzinfo) -> datetime:
    found = datetime.fromisoformat(text)
    if wanted.tz is None:
        return found.replace(tzinfo=None) if found.tzinfo is None else found.astimezone(zone).replace(tzinfo=None)
    return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
