"""The functions expression indexes are made of, on whole columns.

1. A function takes a column and the index's options (`format`, `days`, `pos`, `len`, `pattern` ...), which Hudi checks
   when an index is made, and so does `parse_function`.
2. Results are those of Spark's functions of the same name. NULL and what a function has no answer for give NULL.
3. Times are taken in UTC: an index has no zone of its own, so whoever asks it has to mean the same.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid, Unsupported
from hoodie.records.joda_format import parse_pattern, printed
from hoodie.records.joda_zones import zone_named

Values: TypeAlias = pa.Array | pa.ChunkedArray
Function: TypeAlias = Callable[[Values], Values]

IDENTITY: Final = "identity"
_FAR_MILLIS: Final = 253_402_300_800_000
"""The first moment of the year 10000, milliseconds since 1970."""
DEFAULT_FORMAT: Final = "yyyy-MM-dd HH:mm:ss"

_MILLIS: Final = 1000
_MICROS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class IndexFunction:
    """A function with its options. `result`: the type of what it computes, where that is not for its column to say."""

    name: str
    options: Mapping[str, str]
    result: pa.DataType | None

    def result_of(self, column: pa.DataType) -> pa.DataType:
        """The type of what it computes from a column of a type: Spark's, whose timestamps count micros."""
        found = column if self.result is None else self.result
        return pa.timestamp("us", found.tz) if pa.types.is_timestamp(found) else found

    def of(self, values: Values) -> Values:
        """The function of every value.

        Raises:
            Invalid: it is not defined for values of this type.
        """
        try:
            found = _FUNCTIONS[self.name](values, self.options)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise Invalid(
                f"The function {self.name} of an expression index cannot be computed from {values.type}: {error}",
                remedy="Drop the index, and make one on a column of a fitting type",
            ) from error
        return found.cast(self.result_of(values.type))


def parse_function(name: str, options: Mapping[str, str]) -> IndexFunction:
    """The function an index's definition names.

    Raises:
        Unsupported: nobody here knows it. Invalid: an option it needs is not given.
    """
    known = (name or IDENTITY).lower()
    if known not in _FUNCTIONS:
        raise Unsupported(
            f"Expression indexes on the function {name!r} are not known",
            remedy=f"Known are {', '.join(sorted(_FUNCTIONS))}",
        )
    missing = [option for option in _NEEDED.get(known, ()) if option not in options]
    if missing:
        raise Invalid(
            f"An expression index on {known} needs the option {missing[0]!r}",
            remedy=f"Give {', '.join(_NEEDED[known])}",
        )
    return IndexFunction(known, dict(options), _RESULTS.get(known))


def _format_of(options: Mapping[str, str]) -> str:
    return options.get("format") or DEFAULT_FORMAT


def _printed(millis: Values, pattern: str) -> Values:
    """Moments, milliseconds since 1970, as texts."""
    distinct = millis.dictionary_encode()
    distinct = distinct.combine_chunks() if isinstance(distinct, pa.ChunkedArray) else distinct
    known = np.asarray(distinct.dictionary.to_numpy(zero_copy_only=False), dtype=np.int64)
    numbers, texts = printed(parse_pattern(pattern), known, zone_named("UTC"))
    made = pa.array(texts, pa.string()).take(pa.array(numbers))
    if pattern.count("y") == 4 and (known >= _FAR_MILLIS).any():
        made = pa.array([_with_sign(text, moment) for text, moment in zip(made.to_pylist(), known, strict=True)])
    return made.take(distinct.indices)


def _with_sign(text: str, millis: np.int64) -> str:
    """`text` as Java spells it: a year of more digits than the pattern's four has a sign."""
    if millis < _FAR_MILLIS:
        return text
    year = str(np.datetime64(int(millis), "ms").astype("datetime64[Y]"))
    return text.replace(year, f"+{year}", 1)


def _from_unixtime(values: Values, options: Mapping[str, str]) -> Values:
    seconds = values.cast(pa.int64())
    return _printed(pc.multiply(seconds, _MILLIS), _format_of(options))


def _date_format(values: Values, options: Mapping[str, str]) -> Values:
    millis = pc.floor(pc.divide(_micros(values).cast(pa.float64()), float(_MILLIS))).cast(pa.int64())
    return _printed(millis, _format_of(options))


def _micros(values: Values) -> Values:
    return values.cast(pa.timestamp("us")).cast(pa.int64())


def _moments(values: Values) -> Values:
    """Dates and timestamps as timestamps without a zone; texts as what they spell."""
    if pa.types.is_string(values.type):
        return values.cast(pa.timestamp("us"))
    return values.cast(pa.timestamp("us"))


def _part(kernel: Callable[[Values], Values]) -> Callable[[Values, Mapping[str, str]], Values]:
    return lambda values, options: kernel(_moments(values))


def _text(kernel: Callable[[Values], Values]) -> Callable[[Values, Mapping[str, str]], Values]:
    return lambda values, options: kernel(values.cast(pa.string()))


def _trimmed(kernel: Callable[[Values, str], Values]) -> Callable[[Values, Mapping[str, str]], Values]:
    return lambda values, options: kernel(values.cast(pa.string()), options.get("trimString", " "))


def _unix_timestamp(values: Values, options: Mapping[str, str]) -> Values:
    if pa.types.is_string(values.type):
        values = _parsed(values, options)
    return pc.floor(pc.divide(_micros(values).cast(pa.float64()), float(_MICROS)))


def _parsed(values: Values, options: Mapping[str, str]) -> Values:
    """Texts as moments by a pattern of letters that stand for numbers of fixed width."""
    pattern = _format_of(options)
    for letters, directive in _DIRECTIVES:
        pattern = pattern.replace(letters, directive)
    return pc.strptime(values, format=pattern, unit="us", error_is_null=True)


_DIRECTIVES: Final = (("yyyy", "%Y"), ("MM", "%m"), ("dd", "%d"), ("HH", "%H"), ("mm", "%M"), ("ss", "%S"))


def _to_timestamp(values: Values, options: Mapping[str, str]) -> Values:
    return _parsed(values, options) if pa.types.is_string(values.type) else _moments(values)


def _to_date(values: Values, options: Mapping[str, str]) -> Values:
    if pa.types.is_string(values.type) and "format" in options:
        values = _parsed(values, options)
    return (
        values.cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
        if _is_moment(values)
        else values.cast(pa.date32())
    )


def _is_moment(values: Values) -> bool:
    return bool(pa.types.is_timestamp(values.type))


def _days_added(sign: int) -> Callable[[Values, Mapping[str, str]], Values]:
    def added(values: Values, options: Mapping[str, str]) -> Values:
        days = _to_date(values, {}).cast(pa.int32())
        return pc.add(days, pa.scalar(sign * int(options["days"]), pa.int32())).cast(pa.date32())

    return added


def _substring(values: Values, options: Mapping[str, str]) -> Values:
    """From a place that counts from 1, or back from the end."""
    start, length = int(options["pos"]), max(0, int(options["len"]))
    first = start - 1 if start > 0 else start
    end = first + length
    return pc.utf8_slice_codeunits(values, first, None if first < 0 <= end else end)


def _regexp_replace(values: Values, options: Mapping[str, str]) -> Values:
    return pc.replace_substring_regex(values, options["pattern"], options["replacement"].replace("$", "\\"))


def _regexp_extract(values: Values, options: Mapping[str, str]) -> Values:
    """A group of the first match; empty text where there is none."""
    groups = re.compile(options["pattern"]).groups
    number = int(options["idx"])
    if not 0 <= number <= groups:
        raise Invalid(f"The pattern {options['pattern']!r} has no group {number}")
    inner = iter(range(1, groups + 1))
    named = re.sub(r"(?<!\\)\((?!\?)", lambda _: f"(?P<g{next(inner)}>", options["pattern"])
    found = pc.extract_regex(values, f"(?P<g0>{named})")
    return pc.if_else(values.is_valid(), pc.fill_null(pc.struct_field(found, f"g{number}"), ""), None)


def _same(values: Values, options: Mapping[str, str]) -> Values:
    del options
    return values


_FUNCTIONS: Final[Mapping[str, Callable[[Any, Mapping[str, str]], Any]]] = {
    IDENTITY: _same,
    "from_unixtime": _from_unixtime,
    "date_format": _date_format,
    "unix_timestamp": _unix_timestamp,
    "to_timestamp": _to_timestamp,
    "to_date": _to_date,
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "hour": _part(pc.hour),
    "date_add": _days_added(1),
    "date_sub": _days_added(-1),
    "upper": _text(pc.utf8_upper),
    "lower": _text(pc.utf8_lower),
    "trim": _trimmed(pc.utf8_trim),
    "ltrim": _trimmed(pc.utf8_ltrim),
    "rtrim": _trimmed(pc.utf8_rtrim),
    "length": _text(pc.utf8_length),
    "substring": _substring,
    "regexp_replace": _regexp_replace,
    "regexp_extract": _regexp_extract,
}
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "date_add": ("days",),
    "date_sub": ("days",),
    "substring": ("pos", "len"),
    "regexp_replace": ("pattern", "replacement"),
    "regexp_extract": ("pattern", "idx"),
}
_RESULTS: Final[Mapping[str, pa.DataType]] = {
    **dict.fromkeys(("from_unixtime", "date_format", "upper", "lower", "trim", "ltrim", "rtrim"), pa.string()),
    **dict.fromkeys(("substring", "regexp_replace", "regexp_extract"), pa.string()),
    **dict.fromkeys(("year", "month", "day", "hour", "length"), pa.int32()),
    **dict.fromkeys(("to_date", "date_add", "date_sub"), pa.date32()),
    "unix_timestamp": pa.int64(),
    "to_timestamp": pa.timestamp("us", tz="UTC"),
}
