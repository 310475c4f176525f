"""The timestamp key generator: a number, date or text becomes a formatted time, which is the partition path.

1. value → milliseconds (by `kind`, saturating like Java's TimeUnit) → text in the output zone.
2. NULL is not the default partition: it counts as 1 in the configured unit, and as 1970-01-01 in the first input format
   for text kinds.
3. Times are cut to what the output format shows before any text is made: a column of millions of instants costs as
   many texts as there are folders.

Properties: `hoodie.keygen.timebased.*`, with the older prefix `hoodie.deltastreamer.keygen.timebased.*`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.records.civil import MS_PER_DAY, MS_PER_HOUR, MS_PER_MINUTE, MS_PER_SECOND, Ints
from hoodie.records.joda_format import Pattern, parse_pattern, print_one, printed
from hoodie.records.joda_parse import parse_times
from hoodie.records.joda_zones import UTC_ZONE, Zone, zone_named
from hoodie.records.schema import is_text

PREFIXES = ("hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased.")
DEFAULT_PIVOT_YEAR = 1996

LONGEST = 2**63 - 1
SHORTEST = -(2**63)


class TimeKind(Enum):
    """What the values of the partition column are (`timestamp.type`)."""

    UNIX_TIMESTAMP = "UNIX_TIMESTAMP"
    EPOCHMILLISECONDS = "EPOCHMILLISECONDS"
    EPOCHMICROSECONDS = "EPOCHMICROSECONDS"
    SCALAR = "SCALAR"
    DATE_STRING = "DATE_STRING"
    MIXED = "MIXED"

    @property
    def reads_text(self) -> bool:
        return self in (TimeKind.DATE_STRING, TimeKind.MIXED)


@dataclass(frozen=True, slots=True)
class Unit:
    """A Java TimeUnit as a ratio to milliseconds: `multiply` for coarser, `divide` for finer ones."""

    multiply: int = 1
    divide: int = 1


UNITS: Mapping[str, Unit] = {
    "NANOSECONDS": Unit(divide=1_000_000),
    "MICROSECONDS": Unit(divide=1_000),
    "MILLISECONDS": Unit(),
    "SECONDS": Unit(multiply=MS_PER_SECOND),
    "MINUTES": Unit(multiply=MS_PER_MINUTE),
    "HOURS": Unit(multiply=MS_PER_HOUR),
    "DAYS": Unit(multiply=MS_PER_DAY),
}


@dataclass(frozen=True, slots=True)
class TimestampOptions:
    """How partition values are read and written. Zones are None where nothing is configured.

    `pivot_year` decides the century of two-digit years in the input (Joda: thirty years before now).
    """

    kind: TimeKind
    output: Pattern
    unit: Unit = UNITS["MILLISECONDS"]
    inputs: tuple[Pattern, ...] = ()
    input_zone: Zone | None = None
    output_zone: Zone | None = None
    pivot_year: int = DEFAULT_PIVOT_YEAR


def parse_timestamp_options(properties: Mapping[str, str]) -> TimestampOptions:
    """The options as they stand in table properties or write options, under either prefix.

    Raises:
        Invalid: a needed property is missing or has a value that means nothing.
    """
    kind_text = _needed(properties, "timestamp.type").upper()
    if kind_text not in TimeKind.__members__:
        raise Invalid(
            f"{PREFIXES[0]}timestamp.type is {kind_text!r}", remedy=f"Use one of {', '.join(TimeKind.__members__)}"
        )
    kind = TimeKind(kind_text)
    both_zones = _property(properties, "timezone")
    return TimestampOptions(
        kind=kind,
        output=parse_pattern(_needed(properties, "output.dateformat")),
        unit=_unit(kind, _property(properties, "timestamp.scalar.time.unit") or "SECONDS"),
        inputs=_input_patterns(properties, kind),
        input_zone=_zone(both_zones if both_zones is not None else _property(properties, "input.timezone")),
        output_zone=_zone(both_zones if both_zones is not None else _property(properties, "output.timezone")),
    )


def timestamp_texts(
    values: pa.Array, field: str, options: TimestampOptions, consistent_timestamps: bool = False
) -> tuple[Ints, list[str]]:
    """Partition texts of a column: a code per value, and the distinct texts the codes number.

    With `consistent_timestamps` a timestamp column (with a zone) means its own time whatever the kind; without, it is
    the number of micros since 1970 read in the kind's unit, as in Hudi.

    Raises:
        Invalid: a value's type does not suit the kind, or a text is no date; names `field`.
    """
    try:
        if options.kind.reads_text:
            return _from_text(values, options)
        return _from_numbers(values, options, consistent_timestamps)
    except Invalid as error:
        raise Invalid(
            f"Partition column {field!r}: {error.cause}", remedy=error.remedy, **{**error.facts, "column": field}
        ) from error


def _from_numbers(values: pa.Array, options: TimestampOptions, consistent_timestamps: bool) -> tuple[Ints, list[str]]:
    numbers = _longs(values, options.kind)
    means_itself = consistent_timestamps and pa.types.is_timestamp(values.type) and values.type.tz is not None
    millis = _to_millis(pc.fill_null(numbers, 0).to_numpy(), UNITS["MICROSECONDS"] if means_itself else options.unit)
    if numbers.null_count:
        default = _to_millis(np.ones(1, dtype=np.int64), options.unit)[0]
        millis = np.where(numbers.is_null().to_numpy(zero_copy_only=False), default, millis)
    return printed(options.output, millis, options.output_zone or UTC_ZONE)


def _from_text(values: pa.Array, options: TimestampOptions) -> tuple[Ints, list[str]]:
    if not (is_text(values.type) or pa.types.is_null(values.type)):
        raise Invalid(
            f"{options.kind.value} needs text, but the values are {values.type}",
            remedy="Use EPOCHMILLISECONDS, EPOCHMICROSECONDS, UNIX_TIMESTAMP or SCALAR for numbers",
        )
    default = print_one(options.inputs[0], 1, options.input_zone or UTC_ZONE)
    filled = pc.fill_null(values.cast(pa.string()), default)
    parsed = parse_times(filled, options.inputs, options.input_zone, options.pivot_year)
    codes = np.zeros(len(filled), dtype=np.int64)
    texts: list[str] = []
    for number, zone in enumerate(parsed.zones):
        rows = parsed.codes == number
        zone_codes, zone_texts = printed(options.output, parsed.millis[rows], options.output_zone or zone)
        codes[rows] = zone_codes + len(texts)
        texts += zone_texts
    return codes, texts


def _longs(values: pa.Array, kind: TimeKind) -> pa.Array:
    """`values` as Java's `longValue()` of their Avro form: timestamps as micros, dates as days, fractions cut off."""
    value_type = values.type
    if pa.types.is_timestamp(value_type):
        return values.cast(pa.timestamp("us", value_type.tz), safe=False).cast(pa.int64())
    if pa.types.is_date(value_type):
        return values.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    if pa.types.is_floating(value_type):
        return _saturated(values)
    if pa.types.is_decimal(value_type):
        return pc.trunc(values).cast(pa.int64(), safe=False)
    if pa.types.is_integer(value_type) or pa.types.is_null(value_type):
        return values.cast(pa.int64())
    remedy = "Use DATE_STRING for text" if is_text(value_type) else "Use a number, date, timestamp or text column"
    raise Invalid(f"{kind.value} needs numbers, but the values are {value_type}", remedy=remedy)


def _saturated(values: pa.Array) -> pa.Array:
    """Java's `(long) double`: toward zero, ends of the range for what lies outside, 0 for NaN."""
    missing = values.is_null().to_numpy(zero_copy_only=False)
    numbers = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy()
    cut = np.trunc(np.nan_to_num(numbers, nan=0.0))
    inside = (cut > -(2.0**63)) & (cut < 2.0**63)
    longs = np.where(inside, cut, 0).astype(np.int64)
    return pa.array(np.where(inside, longs, np.where(cut > 0, LONGEST, SHORTEST)), mask=missing)


def _to_millis(numbers: Ints, unit: Unit) -> Ints:
    """TimeUnit.toMillis: toward zero for finer units, ends of the range on overflow for coarser ones."""
    if unit.divide > 1:
        quotient = np.abs(numbers // unit.divide)
        exact = numbers % unit.divide == 0
        return np.where(numbers >= 0, numbers // unit.divide, np.where(exact, -quotient, 1 - quotient))
    limit = LONGEST // unit.multiply
    inside = np.where((numbers <= limit) & (numbers >= -limit), numbers, 0)
    return np.where(numbers > limit, LONGEST, np.where(numbers < -limit, SHORTEST, inside * unit.multiply))


def _unit(kind: TimeKind, scalar: str) -> Unit:
    match kind:
        case TimeKind.UNIX_TIMESTAMP:
            return UNITS["SECONDS"]
        case TimeKind.EPOCHMICROSECONDS:
            return UNITS["MICROSECONDS"]
        case TimeKind.SCALAR:
            if scalar.upper() not in UNITS:
                raise Invalid(
                    f"{PREFIXES[0]}timestamp.scalar.time.unit is {scalar!r}", remedy=f"Use one of {', '.join(UNITS)}"
                )
            return UNITS[scalar.upper()]
    return UNITS["MILLISECONDS"]


def _input_patterns(properties: Mapping[str, str], kind: TimeKind) -> tuple[Pattern, ...]:
    if not kind.reads_text:
        return ()
    formats = _needed(properties, "input.dateformat")
    delimiter = _property(properties, "input.dateformat.list.delimiter.regex") or ","
    return tuple(parse_pattern(text.strip()) for text in re.split(delimiter, formats) if text.strip())


def _zone(name: str | None) -> Zone | None:
    return zone_named(name.strip()) if name and name.strip() else None


def _property(properties: Mapping[str, str], name: str) -> str | None:
    for prefix in PREFIXES:
        if prefix + name in properties:
            return properties[prefix + name]
    return None


def _needed(properties: Mapping[str, str], name: str) -> str:
    value = _property(properties, name)
    if not value:
        raise Invalid(f"The timestamp key generator needs {PREFIXES[0]}{name}", remedy="Set it", key=PREFIXES[0] + name)
    return value
