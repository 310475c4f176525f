r"""Java properties text: what `hoodie.properties` and partition metafiles are written in.

1. Text is ISO-8859-1 with `\uXXXX` for everything else; parsing accepts all of Java's grammar (`=`, `:` or white space
   between key and value, `#` and `!` comments, continued lines).
2. `parse_properties_text(encode_properties_text(p)) == p` for every mapping of text to text.
3. Keys are written sorted. Java writes them in hash order and reads any.

It does not know which keys exist. Grammar and examples: `docs/format/properties.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from hoodie.errors import Corrupt

MAX_BYTES = 4 << 20
"""Size of a file that is read. Real ones have a few thousand bytes."""

_ESCAPES = {
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\f": "\\f",
    "\\": "\\\\",
    "=": "\\=",
    ":": "\\:",
    "#": "\\#",
    "!": "\\!",
}
_UNESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WHITE = " \t\f"
_KEY = re.compile(r"(?:[^\\=: \t\f]+|\\.?)*", re.DOTALL)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def encode_properties_text(properties: Mapping[str, str], comments: Sequence[str] = ()) -> bytes:
    """The bytes of a properties file: comment lines, then one sorted line per key."""
    lines = [f"#{comment}" for comment in comments]
    lines += [f"{_escape(key, is_key=True)}={_escape(properties[key])}" for key in sorted(properties)]
    return "".join(line + "\n" for line in lines).encode("latin-1")


def parse_properties_text(data: bytes, path: str) -> dict[str, str]:
    """All keys with their values, in file order; the last of several equal keys wins.

    Raises:
        Corrupt: a unicode escape is cut off or not hexadecimal, the file contains NUL bytes, or it is larger than
            `MAX_BYTES`.
    """
    if len(data) > MAX_BYTES:
        raise Corrupt(f"{path} has more than {MAX_BYTES} bytes", remedy="Restore the file from a copy", path=path)
    if b"\0" in data:
        raise Corrupt(
            f"{path} contains NUL bytes", remedy="Restore the file from a copy", path=path, offset=data.index(b"\0")
        )
    found: dict[str, str] = {}
    for line in _logical_lines(data.decode("latin-1")):
        key, value = _split(line)
        found[_unescape(key, path)] = _unescape(value, path)
    return found


def java_date(moment: datetime) -> str:
    """A moment as `java.util.Date` prints it, in UTC and in English: `Sat Nov 21 05:39:02 UTC 2026`."""
    utc = moment.astimezone(UTC)
    return f"{_DAYS[utc.weekday()]} {_MONTHS[utc.month - 1]} {utc.day:02d} {utc:%H:%M:%S} UTC {utc.year:04d}"


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blanks, with continued lines joined."""
    pending: list[str] = []
    for raw in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = raw.lstrip(_WHITE)
        if not pending and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending.append(line[:-1])
            continue
        whole = "".join([*pending, line])
        pending = []
        if whole:
            yield whole
    if any(pending):
        yield "".join(pending)


def _split(line: str) -> tuple[str, str]:
    """Key and value of a logical line, both still escaped."""
    end = _KEY.match(line).end()  # type: ignore[union-attr] # it matches what is empty
    key, rest = line[:end], line[end:].lstrip(_WHITE)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_WHITE)
    return key, rest


def _unescape(text: str, path: str) -> str:
    if "\\" not in text:
        return text
    units: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char != "\\" or position + 1 == len(text):
            units.append(char if char != "\\" else "")
            position += 1
        elif text[position + 1] == "u":
            units.append(_unicode_unit(text[position + 2 : position + 6], path))
            position += 6
        else:
            units.append(_UNESCAPES.get(text[position + 1], text[position + 1]))
            position += 2
    # Characters beyond the basic plane stand as two escapes, a surrogate pair; joining them makes one character again.
    return "".join(units).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unicode_unit(digits: str, path: str) -> str:
    try:
        if len(digits) != 4 or not digits.isalnum():
            raise ValueError
        return chr(int(digits, 16))
    except ValueError:
        raise Corrupt(
            f"{path} has a broken unicode escape '\\u{digits}'", remedy="Restore the file from a copy", path=path
        ) from None


def _escape(text: str, *, is_key: bool = False) -> str:
    return "".join(
        "\\ " if char == " " and (is_key or position == 0) else _ESCAPES.get(char) or _plain(char)
        for position, char in enumerate(text)
    )


def _plain(char: str) -> str:
    if " " <= char <= "~":
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))
