"""Values of rows as JSON and as text: the last step before a terminal or a pipe, never on a data path.

What a table holds may come from strangers: characters that move a terminal's cursor, change its title or colours, or
turn the order of what is read around, are shown as escapes (`visible_text`) and stand as such in JSON.
"""

from __future__ import annotations

import base64
import json
import math
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

_STEERING: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters but tab and line feed, and those that steer the direction of text."""


def plain_value(value: Any) -> Any:
    """`value` as JSON can hold it: times in ISO form, decimals as text, bytes in base64, maps as objects."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta() | Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case dict():
            return {str(name): plain_value(part) for name, part in value.items()}
        case list() | tuple():
            return [plain_value(part) for part in value]
        case _:
            return str(value)


def plain_text(value: Any) -> str:
    """`value` in one line of text."""
    plain = plain_value(value)
    if isinstance(plain, str):
        return visible_text(plain.replace("\n", "⏎"))
    return visible_text(json.dumps(plain, ensure_ascii=False))


def visible_text(text: str) -> str:
    """`text` with each character that steers a terminal as an escape in Python's form: `\\x1b`."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def json_text(value: Any, indent: int | None = None) -> str:
    """`value` as JSON in which nothing steers a terminal."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def json_line(row: dict[str, Any]) -> str:
    """One row as one line of JSON."""
    return json_text(plain_value(row))
