"""What callers pass to public calls, checked before anything looks at it.

1. Each function returns the value in the form that the code below works with, or raises `Invalid` with the name of the
   argument and the type that came.
2. Of other values than texts and numbers the type is printed: what they show of themselves may be of any length.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from typing import Any, Final

from hoodie.errors import Invalid

MOST_HOURS: Final = 1_000_000.0
"""No time to look back is longer: the clock begins in the year 1."""


def kind_of(value: object) -> str:
    """A value as messages show it: texts and numbers themselves, of others the type."""
    if value is None or isinstance(value, str | int | float):
        return ascii(value) if isinstance(value, str) else repr(value)
    return f"a value of type {type(value).__name__}"


def checked_text(name: str, value: Any, remedy: str = "Pass a text") -> str:
    """`value`, which is a text that can be stored.

    Raises:
        Invalid: it is none, or has half of a surrogate pair.
    """
    if not isinstance(value, str):
        raise Invalid(f"{name} is a text, not {kind_of(value)}", remedy=remedy)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Invalid(f"{name} has half a character: {value!a}", remedy="Pass whole Unicode characters") from None
    return value


def checked_name(name: str, value: Any, remedy: str = "Pass a text") -> str:
    """The name or instant that `value` is: a text, or the digits of a whole number. Raises: Invalid: it is none."""
    is_whole = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return checked_text(name, str(value) if is_whole else value, remedy)


def checked_texts(name: str, value: Any) -> tuple[str, ...]:
    """One text or many, as a tuple. Raises: Invalid: they are none."""
    if isinstance(value, str):
        return (checked_text(name, value),)
    if isinstance(value, bytes | bytearray) or not isinstance(value, Iterable):
        raise Invalid(f"{name} are texts, not {kind_of(value)}", remedy="Pass a list of texts")
    return tuple(checked_text(f"Each of {name}", one, "Pass a list of texts") for one in value)


def checked_flag(name: str, value: Any) -> bool:
    """`value`, which is True or False. Raises: Invalid: it is neither."""
    if not isinstance(value, bool):
        raise Invalid(f"{name} is True or False, not {kind_of(value)}", remedy="Pass True or False")
    return value


def checked_mapping(name: str, value: Any, remedy: str) -> Mapping[str, Any]:
    """`value`, which is a mapping whose keys are texts. Raises: Invalid: it is none."""
    if not isinstance(value, Mapping):
        raise Invalid(f"{name} are a mapping of names to values, not {kind_of(value)}", remedy=remedy)
    for key in value:
        checked_text(f"Each name of {name}", key, remedy)
    return value


def checked_whole(name: str, value: Any, least: int | None = None, remedy: str = "Pass a whole number") -> int:
    """The whole number that `value` is, or a text of its digits.

    Raises:
        Invalid: it is none, or is less than `least`.
    """
    try:
        found = None if isinstance(value, bool) else int(value) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):
        found = None
    if found is None or (least is not None and found < least) or not -(2**63) <= found < 2**63:
        some = "a whole number" if least is None else f"a whole number of at least {least}"
        raise Invalid(f"{name} is {some}, not {kind_of(value)}", remedy=remedy)
    return found


def checked_number(
    name: str, value: Any, least: float = -math.inf, most: float = math.inf, remedy: str = "Pass a number"
) -> float:
    """The number that `value` is, or a text of it.

    Raises:
        Invalid: it is none, not finite, less than `least` or more than `most`.
    """
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found) or not least <= found <= most:
        limits = (("at least", least), ("at most", most))
        bounds = " and ".join(f"{word} {limit:,.0f}" for word, limit in limits if not math.isinf(limit))
        some = f"a number of {bounds}" if bounds else "a number"
        raise Invalid(f"{name} is {some}, not {kind_of(value)}", remedy=remedy)
    return found
