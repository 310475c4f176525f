"""Reading text by Joda patterns, whole columns at a time.

1. A pattern becomes one regular expression, its fields become integer columns, the calendar is arithmetic on them. Text
   of fixed width skips the expression.
2. As lenient as Joda: fewer digits than letters are fine, `yyyy` takes up to nine digits unless a number follows, names
   match in any of the usual cases, literals match in any case.
3. What a pattern does not mention is 1970-01-01T00:00, but the year 2000 when its coarsest field is a month or day.
4. A two-digit year lies in the century around `pivot_year`: from 50 years before it to 49 after.

It refuses what no partition format needs: weeks, eras, centuries, weekday without a date, full zone names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid, Unsupported
from hoodie.records.civil import (
    MS_PER_DAY,
    MS_PER_HOUR,
    MS_PER_MINUTE,
    MS_PER_SECOND,
    Ints,
    civil,
    days_in_month,
    days_since_epoch,
)
from hoodie.records.joda_format import MONTHS, WEEKDAYS, Pattern, Token
from hoodie.records.joda_zones import UTC_ZONE, Zone, offset_zone, zone_named

MAX_YEAR_DIGITS = 9
YEAR_WITHOUT_ONE = 2000
_MAX_DIGITS = {"M": 2, "d": 2, "D": 3, "h": 2, "H": 2, "k": 2, "K": 2, "m": 2, "s": 2}
_FIXED_DIGITS = {"y": 4, "M": 2, "d": 2, "D": 3, "H": 2, "k": 2, "m": 2, "s": 2}
_OFFSET = r"Z|z|[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?"
# The names `z` may read, and where Joda puts them.
SHORT_ZONES = {
    "UT": "UTC",
    "UTC": "UTC",
    "GMT": "UTC",
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "MST": "America/Denver",
    "MDT": "America/Denver",
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
}


# A field's place in the pattern → its text (Arrow) or its number (NumPy), one per row.
Groups = Mapping[int, Any]


@dataclass(frozen=True, slots=True)
class Parsed:
    """Instants, and the zone each text was in: `zones[codes[i]]`."""

    millis: Ints
    codes: Ints
    zones: tuple[Zone, ...]


def parse_times(texts: pa.Array, patterns: Sequence[Pattern], zone: Zone | None, pivot_year: int) -> Parsed:
    """The instants of `texts` (no NULL), each read by the first pattern that matches all of it.

    `zone` places texts without an offset and is the zone of the result; with None a text keeps the offset it carries,
    and is in UTC if it carries none.

    Raises:
        Invalid: a text fits no pattern or is no date; facts carry `value`.
        Unsupported: a pattern has letters that can be printed only.
    """
    millis = np.zeros(len(texts), dtype=np.int64)
    codes = np.zeros(len(texts), dtype=np.int64)
    zones: list[Zone] = []
    left = np.arange(len(texts))
    for pattern in patterns:
        _ensure_readable(pattern)
        for read in (_fixed_groups, _regex_groups):
            here = texts.take(pa.array(left))
            matched, groups = read(here, pattern)
            if matched.any():
                rows = left[matched]
                fields = _Fields(groups, here.filter(pa.array(matched)), pattern, pivot_year)
                parsed = _parsed(fields, zone)
                millis[rows] = parsed.millis
                codes[rows] = parsed.codes + len(zones)
                zones.extend(parsed.zones)
            left = left[~matched]
            if not len(left):
                return Parsed(millis, codes, tuple(zones))
    value = texts[int(left[0])].as_py()
    raise Invalid(
        f"{value!r} does not fit the date format{'s' if len(patterns) > 1 else ''} "
        + ", ".join(repr(pattern.text) for pattern in patterns),
        remedy="Correct the value or hoodie.keygen.timebased.input.dateformat",
        value=value,
    )


def _parsed(fields: _Fields, zone: Zone | None) -> Parsed:
    local = fields.days() * MS_PER_DAY + fields.ms_of_day()
    zones = fields.zone_texts()
    if zones is None:
        read_in = zone or UTC_ZONE
        return Parsed(read_in.instants_ms(local), np.zeros_like(local), (read_in,))
    encoded = zones.dictionary_encode()
    zone_codes = encoded.indices.to_numpy().astype(np.int64)
    named_zones = tuple(_zone_of(text) for text in encoded.dictionary.to_pylist())
    millis = np.zeros_like(local)
    for code, named in enumerate(named_zones):
        rows = zone_codes == code
        millis[rows] = named.instants_ms(local[rows])
    if zone is not None:
        return Parsed(millis, np.zeros_like(local), (zone,))
    return Parsed(millis, zone_codes, named_zones)


class _Fields:
    """The columns of one match, checked and combined."""

    def __init__(self, groups: Groups, texts: pa.Array, pattern: Pattern, pivot_year: int) -> None:
        self._texts = texts
        self._pivot_year = pivot_year
        self._groups = {
            token.letter: (token, groups[position]) for position, token in enumerate(pattern.tokens) if token.letter
        }

    def days(self) -> Ints:
        year = self._year()
        if "D" in self._groups:
            in_year = self._number("D", 1, 366)
            self._ensure(in_year <= 365 + (days_in_month(year, np.full_like(year, 2)) == 29), "day of year")
            return days_since_epoch(year, np.ones_like(year), np.ones_like(year)) + in_year - 1
        month = self._month()
        day = self._number("d", 1, 31)
        self._ensure(day <= days_in_month(year, month), "day of month")
        days = days_since_epoch(year, month, day)
        if "E" in self._groups:
            self._ensure(civil(days * MS_PER_DAY).weekday == self._names("E", WEEKDAYS), "weekday")
        return days

    def ms_of_day(self) -> Ints:
        hour = self._hour() * MS_PER_HOUR
        minute = self._number("m", 0, 59) * MS_PER_MINUTE
        second = self._number("s", 0, 59) * MS_PER_SECOND
        return hour + minute + second + self._fraction()

    def zone_texts(self) -> pa.Array | None:
        for letter in ("Z", "z"):
            if letter in self._groups:
                return self._groups[letter][1]
        return None

    def _year(self) -> Ints:
        letter = "y" if "y" in self._groups else "Y"
        if letter not in self._groups:
            has_date = any(field in self._groups for field in "MdDE")
            return np.full(len(self._texts), YEAR_WITHOUT_ONE if has_date else 1970, dtype=np.int64)
        token, text = self._groups[letter]
        if isinstance(text, np.ndarray):
            return text
        year = _integers(pc.utf8_ltrim(text, "+"))
        if token.count != 2:
            return year
        low = self._pivot_year - 50
        two_digits = pc.match_substring_regex(text, r"^\d{2}$").to_numpy(zero_copy_only=False)
        return np.where(two_digits, low + (year - low) % 100, year)

    def _month(self) -> Ints:
        if "M" in self._groups and self._groups["M"][0].count >= 3:
            return self._names("M", MONTHS)
        return self._number("M", 1, 12)

    def _hour(self) -> Ints:
        if "H" in self._groups:
            return self._number("H", 0, 23)
        if "k" in self._groups:
            return self._number("k", 1, 24) % 24
        half = self._number("h", 1, 12) % 12 if "h" in self._groups else self._number("K", 0, 11)
        if "a" not in self._groups:
            return half
        afternoon = pc.equal(pc.utf8_upper(self._groups["a"][1]), "PM").to_numpy(zero_copy_only=False)
        hours: Ints = half + 12 * afternoon
        return hours

    def _fraction(self) -> Ints:
        if "S" not in self._groups:
            return np.zeros(len(self._texts), dtype=np.int64)
        token, text = self._groups["S"]
        if isinstance(text, np.ndarray):
            millis: Ints = text * 1000 // 10**token.count
            return millis
        return _integers(pc.utf8_slice_codeunits(pc.utf8_rpad(text, 3, "0"), 0, 3))

    def _names(self, letter: str, names: tuple[str, ...]) -> Ints:
        short = pc.utf8_lower(pc.utf8_slice_codeunits(self._groups[letter][1], 0, 3))
        numbers = pc.index_in(short, pa.array([name[:3].lower() for name in names]))
        found: Ints = numbers.to_numpy().astype(np.int64) + 1
        return found

    def _number(self, letter: str, low: int, high: int) -> Ints:
        if letter not in self._groups:
            return np.full(len(self._texts), low, dtype=np.int64)
        number = _integers(self._groups[letter][1])
        self._ensure((number >= low) & (number <= high), f"pattern letter {letter}")
        return number

    def _ensure(self, right: npt.NDArray[np.bool_], what: str) -> None:
        if right.all():
            return
        value = self._texts[int(np.argmin(right))].as_py()
        raise Invalid(f"{value!r} is no date: {what} is out of range", remedy="Correct the value", value=value)


def _integers(group: Any) -> Ints:
    if isinstance(group, np.ndarray):
        return group
    numbers: Ints = pc.cast(group, pa.int64()).to_numpy()
    return numbers


def _regex_groups(texts: pa.Array, pattern: Pattern) -> tuple[npt.NDArray[np.bool_], Groups]:
    """Which texts the pattern matches, and the text of each field in those."""
    distinct = texts.dictionary_encode()
    found = pc.extract_regex(distinct.dictionary, _regex(pattern)).take(distinct.indices)
    matched = found.is_valid()
    fields = found.filter(matched)
    groups = {
        position: pc.struct_field(fields, _group(position))
        for position, token in enumerate(pattern.tokens)
        if token.letter
    }
    return matched.to_numpy(zero_copy_only=False), groups


def _fixed_groups(texts: pa.Array, pattern: Pattern) -> tuple[npt.NDArray[np.bool_], Groups]:
    """The same for texts with exactly the digits the pattern shows (`2024-01-02` for `yyyy-MM-dd`), many times faster.

    Such texts stand one below the other as a matrix of bytes, and a field is a few of its columns.
    """
    matched = np.zeros(len(texts), dtype=np.bool_)
    if not all(_is_fixed(token) for token in pattern.tokens):
        return matched, {}
    width = sum(token.count or len(token.text) for token in pattern.tokens)
    shaped = pc.equal(pc.binary_length(texts), width).to_numpy(zero_copy_only=False)
    chosen = texts.filter(pa.array(shaped)).cast(pa.large_string())
    start = np.frombuffer(chosen.buffers()[1], dtype=np.int64)[chosen.offset] if len(chosen) else 0
    data = np.frombuffer(chosen.buffers()[2] or b"\0", dtype=np.uint8)[start : start + width * len(chosen)]
    # Bytes below "0" wrap around to large numbers, so one comparison tells digits from all else.
    digits = data.reshape(len(chosen), width) - np.uint8(ord("0"))
    fits = np.ones(len(chosen), dtype=np.bool_)
    groups: dict[int, Ints] = {}
    place = 0
    for position, token in enumerate(pattern.tokens):
        span = digits[:, place : place + (token.count or len(token.text))]
        if token.letter:
            groups[position] = np.zeros(len(chosen), dtype=np.int64)
            for column in span.T:
                fits &= column <= 9
                groups[position] = groups[position] * 10 + column
        else:
            literal = np.frombuffer(token.text.encode(), dtype=np.uint8) - np.uint8(ord("0"))
            for column, byte in zip(span.T, literal, strict=True):
                fits &= column == byte
        place += span.shape[1]
    matched[shaped] = fits
    return matched, {position: values[fits] for position, values in groups.items()}


def _is_fixed(token: Token) -> bool:
    if not token.letter:
        return token.text.isascii()
    return _FIXED_DIGITS.get(token.letter) == token.count or (token.letter == "S" and token.count <= MAX_YEAR_DIGITS)


def _zone_of(text: str) -> Zone:
    if text in SHORT_ZONES:
        return zone_named(SHORT_ZONES[text])
    if text in "Zz":
        return UTC_ZONE
    digits = re.fullmatch(r"([+-])(\d{2}):?(\d{2})?(?::?\d{2})?", text)
    if digits is None:
        return zone_named(text)
    sign, hours, minutes = digits.groups()
    return offset_zone((1 if sign == "+" else -1) * (int(hours) * 60 + int(minutes or 0)) * MS_PER_MINUTE)


def _group(position: int) -> str:
    return f"f{position}"


def _regex(pattern: Pattern) -> str:
    """A regular expression for all of a text, with one named group per field."""
    pieces = ["^"]
    for position, token in enumerate(pattern.tokens):
        if not token.letter:
            pieces.append(f"(?i:{re.escape(token.text)})")
            continue
        follower = pattern.tokens[position + 1] if position + 1 < len(pattern.tokens) else None
        pieces.append(f"(?P<{_group(position)}>{_field_regex(token, follower is not None and follower.is_numeric)})")
    return "".join(pieces) + "$"


def _field_regex(token: Token, number_follows: bool) -> str:
    match token.letter:
        case "y" | "Y":
            if token.count == 2:
                return r"\d{2}" if number_follows else rf"[+-]?\d{{1,{MAX_YEAR_DIGITS}}}"
            return rf"[+-]?\d{{1,{token.count if number_follows else MAX_YEAR_DIGITS}}}"
        case "M" if token.count >= 3:
            return _any_case(MONTHS)
        case "E":
            return _any_case(WEEKDAYS)
        case "a":
            return "AM|PM|am|pm"
        case "S":
            return rf"\d{{0,{token.count}}}"
        case "z":
            return "|".join(sorted(SHORT_ZONES, key=len, reverse=True))
        case "Z":
            return r"[A-Za-z][A-Za-z0-9_+/-]*|" + _OFFSET if token.count >= 3 else _OFFSET
    return rf"\d{{1,{_MAX_DIGITS[token.letter]}}}"


def _any_case(names: tuple[str, ...]) -> str:
    forms = [form for name in names for form in (name, name[:3])]
    cased = {form for name in forms for form in (name, name.lower(), name.upper())}
    return "|".join(sorted(cased, key=lambda form: (-len(form), form)))


def _ensure_readable(pattern: Pattern) -> None:
    letters = [token.letter for token in pattern.tokens if token.letter]
    for token in pattern.tokens:
        if token.letter and (token.letter in "xweCG" or (token.letter == "z" and token.count >= 4)):
            raise Unsupported(
                f"Date format {pattern.text!r}: {token.letter * token.count!r} can be printed but not read"
            )
    if "E" in letters and not ("d" in letters and "M" in letters):
        raise Unsupported(f"Date format {pattern.text!r}: a weekday can be read only together with a month and day")
    repeated = {letter for letter in letters if letters.count(letter) > 1}
    if repeated:
        raise Unsupported(f"Date format {pattern.text!r}: {sorted(repeated)} more than once cannot be read")
