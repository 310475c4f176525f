"""Joda patterns: the language of the timestamp key generator's formats, and printing by it.

1. A run of one letter is a field, anything else is literal; `'...'` quotes letters, `''` is a quote.
2. Letters: y Y x (year, year of era, week year), C, G, M, d, D, w, e, E, a, h H k K, m, s, S, z, Z. Text is English.
3. Printing costs one Python step per distinct result, not per row: times are first cut down to what the pattern shows.

`hoodie.records.joda_parse` reads text by the same patterns. Tables of examples: docs/format/partition-paths.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie.errors import Invalid, Unsupported
from hoodie.records.civil import MS_PER_DAY, MS_PER_HOUR, MS_PER_MINUTE, MS_PER_SECOND, Civil, Ints, civil
from hoodie.records.joda_zones import Zone

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SMALLEST_MS = -(2**63)
LETTERS = frozenset("yYxCGMdDweEahHkKmsSzZ")
NUMERIC = frozenset("yYxCdDweFhHkKmsS")
# What a field needs to know of the time; coarser fields need a day.
_RESOLUTION_MS = {
    "S": 1,
    "s": MS_PER_SECOND,
    "m": MS_PER_MINUTE,
    **dict.fromkeys("hHkK", MS_PER_HOUR),
    "a": MS_PER_HOUR,
}


@dataclass(frozen=True, slots=True)
class Token:
    """A field (`letter`, run length `count`) or, with an empty letter, literal `text`."""

    letter: str
    count: int = 0
    text: str = ""

    @property
    def is_numeric(self) -> bool:
        """Whether digits stand for it, so that it must not run into a number before it."""
        return self.letter in NUMERIC or (self.letter == "M" and self.count < 3)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern."""

    text: str
    tokens: tuple[Token, ...]

    @property
    def shows_zone(self) -> bool:
        return any(token.letter in "zZ" for token in self.tokens if token.letter)

    @property
    def resolution_ms(self) -> int:
        """Times that differ by less may print alike: the finest unit the pattern shows, one day at most."""
        return min((_RESOLUTION_MS.get(token.letter, MS_PER_DAY) for token in self.tokens), default=MS_PER_DAY)


def parse_pattern(text: str) -> Pattern:
    """The fields and literals of a Joda pattern.

    Raises:
        Invalid: it is empty or has a letter Joda does not know.
    """
    if not text:
        raise Invalid("A date format is empty", remedy="Give a pattern such as yyyy-MM-dd")
    tokens: list[Token] = []
    place = 0
    while place < len(text):
        if _is_letter(text[place]):
            end = place
            while end < len(text) and text[end] == text[place]:
                end += 1
            if text[place] not in LETTERS:
                raise Invalid(
                    f"The date format {text!r} has the letter {text[place]!r}, which means nothing in it",
                    remedy="Put text between single quotes",
                )
            tokens.append(Token(text[place], end - place))
            place = end
        else:
            literal, place = _literal(text, place)
            tokens.append(Token("", 0, literal))
    return Pattern(text, tuple(tokens))


def printed(pattern: Pattern, millis: Ints, zone: Zone) -> tuple[Ints, list[str]]:
    """Texts of instants in `zone`: a code per instant, and the distinct texts the codes number."""
    offsets = zone.offsets_ms(millis)
    if not pattern.shows_zone:
        return _printed_local(pattern, millis + offsets, lambda _row, _token: "")
    keys = np.stack([(millis + offsets) // pattern.resolution_ms, offsets])
    _, first, codes = np.unique(keys, axis=1, return_index=True, return_inverse=True)

    def zone_text(row: int, token: Token) -> str:
        return _zone_text(token, zone, int(millis[first[row]]), int(offsets[first[row]]))

    texts = _texts(pattern, (millis + offsets)[first], zone_text)
    return codes.reshape(-1), texts


def print_one(pattern: Pattern, millis: int, zone: Zone) -> str:
    """The text of one instant."""
    return printed(pattern, np.array([millis], dtype=np.int64), zone)[1][0]


ZoneText = Callable[[int, Token], str]


def _printed_local(pattern: Pattern, local_ms: Ints, zone_text: ZoneText) -> tuple[Ints, list[str]]:
    cut = pa.array(local_ms // pattern.resolution_ms).dictionary_encode()
    # The first interval of all starts before the smallest int64: its own first value stands for it.
    numbers = np.maximum(cut.dictionary.to_numpy(), SMALLEST_MS // pattern.resolution_ms + 1)
    starts = np.where(numbers > cut.dictionary.to_numpy(), SMALLEST_MS, numbers * pattern.resolution_ms)
    return cut.indices.to_numpy().astype(np.int64), _texts(pattern, starts, zone_text)


def _texts(pattern: Pattern, local_ms: Ints, zone_text: ZoneText) -> list[str]:
    fields = civil(local_ms)
    columns = [_token_texts(token, fields, zone_text) for token in pattern.tokens]
    return ["".join(parts) for parts in zip(*columns, strict=True)]


def _token_texts(token: Token, fields: Civil, zone_text: ZoneText) -> list[str]:
    rows = len(fields.year)
    match token.letter:
        case "":
            return [token.text] * rows
        case "z" | "Z":
            return [zone_text(row, token) for row in range(rows)]
        case "M" if token.count >= 3:
            return [_name(MONTHS, int(month), token) for month in fields.month]
        case "E":
            return [_name(WEEKDAYS, int(day), token) for day in fields.weekday]
        case "a":
            return ["AM" if ms < 12 * MS_PER_HOUR else "PM" for ms in fields.ms_of_day]
        case "G":
            return ["AD" if year > 0 else "BC" for year in fields.year]
        case "S":
            return [f"{ms % 1000:03d}".ljust(token.count, "0")[: token.count] for ms in fields.ms_of_day.tolist()]
        case "y" | "Y" | "x" if token.count == 2:
            return [f"{abs(year) % 100:02d}" for year in _number(token.letter, fields).tolist()]
    return [_padded(number, token.count) for number in _number(token.letter, fields).tolist()]


def _number(letter: str, fields: Civil) -> Ints:
    hours = fields.ms_of_day // MS_PER_HOUR
    match letter:
        case "y":
            return fields.year
        case "Y":
            return _year_of_era(fields.year)
        case "C":
            return _year_of_era(fields.year) // 100
        case "x":
            return fields.week_year
        case "M":
            return fields.month
        case "d":
            return fields.day
        case "D":
            return fields.day_of_year
        case "w":
            return fields.week
        case "e":
            return fields.weekday
        case "H":
            return hours
        case "k":
            return np.where(hours == 0, 24, hours)
        case "K":
            return hours % 12
        case "h":
            return (hours + 11) % 12 + 1
        case "m":
            return fields.ms_of_day // MS_PER_MINUTE % 60
        case _:
            return fields.ms_of_day // MS_PER_SECOND % 60


def _year_of_era(year: Ints) -> Ints:
    return np.where(year > 0, year, 1 - year)


def _padded(number: int, width: int) -> str:
    return f"-{-number:0{width}d}" if number < 0 else f"{number:0{width}d}"


def _name(names: tuple[str, ...], number: int, token: Token) -> str:
    return names[number - 1] if token.count >= 4 else names[number - 1][:3]


def _zone_text(token: Token, zone: Zone, instant_ms: int, offset_ms: int) -> str:
    if token.letter == "z":
        if token.count < 4:
            return zone.short_name(instant_ms)
        if zone.id == "UTC":
            return "Coordinated Universal Time"
        raise Unsupported("Full time zone names (pattern zzzz) are not supported", remedy="Use ZZ or ZZZ")
    if token.count >= 3:
        return zone.id
    minutes = abs(offset_ms) // MS_PER_MINUTE
    colon = ":" if token.count == 2 else ""
    return f"{'-' if offset_ms < 0 else '+'}{minutes // 60:02d}{colon}{minutes % 60:02d}"


def _literal(text: str, place: int) -> tuple[str, int]:
    """Literal text from `place` up to the next field, and where that starts."""
    pieces: list[str] = []
    quoted = False
    while place < len(text):
        char = text[place]
        if char == "'":
            if text[place + 1 : place + 2] == "'":
                pieces.append("'")
                place += 2
                continue
            quoted = not quoted
        elif not quoted and _is_letter(char):
            break
        else:
            pieces.append(char)
        place += 1
    return "".join(pieces), place


def _is_letter(char: str) -> bool:
    return "a" <= char <= "z" or "A" <= char <= "Z"
