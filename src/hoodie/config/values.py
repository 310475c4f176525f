"""Values of options: from what a caller passes to the one text kept for it, and back to Python values.

1. A value is text. Flags are `true` or `false`, lists are joined by commas, closed sets spelled as in the registry.
2. Empty text means "not given" for every type but text and list, where it is a value of its own.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable
from datetime import date
from numbers import Number

from hoodie.arguments import checked_text, kind_of
from hoodie.config.registry import ConfigKey
from hoodie.config.secret import shown
from hoodie.errors import Invalid

_PLAIN = (str, Number, os.PathLike, date)
_LONG = 2**63

_CONDITIONS: tuple[tuple[str, Callable[[float, float], bool]], ...] = (
    (">=", operator.ge),
    ("<=", operator.le),
    (">", operator.gt),
    ("<", operator.lt),
)


def option_text(name: str, value: object) -> str:
    """`value` of option `name` as Spark would print it: booleans in lower case, sequences joined by commas.

    Raises:
        Invalid: it is no text, flag, number, time, path, nor a list of such, or has half a character.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(option_text(name, part) for part in value)
    if isinstance(value, _PLAIN) or (type(value).__module__ == "numpy" and not hasattr(value, "__len__")):
        return checked_text(f"Option {name}", str(value))
    raise Invalid(
        f"Option {name} cannot be {kind_of(value)}",
        remedy="Give a text, a number, True or False, or a list of these",
        key=name,
    )


def parse_value(name: str, entry: ConfigKey, value: object) -> str | None:
    """The text kept for `value` of option `name`, described by the canonical `entry`; None when it says nothing.

    Raises:
        Invalid: the value is not of the key's type; names key, value and what is accepted.
    """
    text = option_text(name, value)
    if entry.type == "text":
        return text
    if entry.type == "list":
        return ",".join(split_list(text))
    text = text.strip()
    if not text:
        return None
    match entry.type:
        case "flag":
            return _parse_flag(name, text)
        case "integer" | "number":
            return _parse_number(name, entry, text)
        case _:
            return _parse_choice(name, entry, text)


def split_list(text: str) -> tuple[str, ...]:
    """The parts of a comma list, trimmed, empty parts left out."""
    return tuple(part for part in (raw.strip() for raw in text.split(",")) if part)


def takes(entry: ConfigKey, text: str) -> bool:
    """Whether `text` is a value of the key, as one that a table stores is to be."""
    try:
        return parse_value(entry.key, entry, text) is not None
    except Invalid:
        return False


def asks_for_later(entry: ConfigKey, text: str) -> bool:
    """Whether this value wants something `hoodie` does not do yet."""
    parts = split_list(text) if entry.type == "list" else (text,)
    return any(part and part not in entry.values and ("*" in entry.later or part in entry.later) for part in parts)


def accepted(entry: ConfigKey) -> str:
    """What may be given now, in words."""
    if entry.type == "flag" and not entry.later:
        return "true or false"
    if entry.values and entry.type in ("integer", "number") and entry.values[0][0] in "<>":
        kind = "a whole number" if entry.type == "integer" else "a number"
        return f"{kind} {' and '.join(entry.values)}"
    if entry.values:
        return ", ".join(entry.values)
    words = {"integer": "a whole number", "number": "a number", "list": "names separated by commas"}
    return words.get(entry.type, "text")


def _parse_flag(name: str, text: str) -> str:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise _wrong(name, text, "true or false")
    return lowered


def _parse_number(name: str, entry: ConfigKey, text: str) -> str:
    try:
        number = int(text) if entry.type == "integer" else float(text)
    except ValueError:
        raise _wrong(name, text, accepted(entry)) from None
    if not math.isfinite(number) or (entry.type == "integer" and not -_LONG <= number < _LONG):
        raise _wrong(name, text, accepted(entry))
    for condition in entry.values:
        for sign, holds in _CONDITIONS:
            if condition.startswith(sign):
                if not holds(number, float(condition.removeprefix(sign))):
                    raise _wrong(name, text, accepted(entry))
                break
    return str(number) if entry.type == "integer" else text


def _parse_choice(name: str, entry: ConfigKey, text: str) -> str:
    """Closed sets ignore case and are respelled; class names must match exactly."""
    if entry.type == "class":
        return text
    known = {value.lower(): value for value in (*entry.values, *entry.later)}
    known.update({word.lower(): value for word, value in entry.synonyms.items()})
    found = known.get(text.lower())
    if found is None and known and "*" not in known:
        raise _wrong(name, text, "one of " + ", ".join(entry.values or entry.later))
    return found or text


def _wrong(name: str, text: str, expected: str) -> Invalid:
    return Invalid(
        f"Option {name} cannot be {shown(name, text)!r}", remedy=f"Give {expected}", key=name, value=shown(name, text)
    )
