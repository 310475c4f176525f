"""Values of rows as JSON and as text: the last step before a terminal or a pipe, never on a data path."""

from __future__ import annotations

import base64
import json
import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any


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
        return plain.replace("\n", "⏎")
    return json.dumps(plain, ensure_ascii=False)


def json_line(row: dict[str, Any]) -> str:
    """One row as one line of JSON."""
    return json.dumps(plain_value(row), ensure_ascii=False)


def count_text(number: int, noun: str) -> str:
    """How many there are of a thing."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
