"""Whether a condition can be true of columns of which no more is known than between which values theirs lie.

1. Spans may hold more than the values that can be: what is said to be impossible is so, what is said to be possible may
   not be.
2. A column without spans may have any value. What cannot be compared may be true.

Texts are compared by their characters' numbers, which is the order of their bytes in UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hoodie.records.condition import AllOf, AnyOf, Comparison, Condition

_LAST = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Span:
    """Values between two, both among them; NULL alone where these are None."""

    low: Any
    high: Any


Spans = tuple[Span, ...]
NULL: Final = Span(None, None)


def exactly(value: Any) -> Span:
    """One value, or NULL."""
    return Span(value, value)


def texts_below(folder: str) -> Span:
    """The texts that begin with a folder and a slash."""
    return Span(f"{folder}/", f"{folder}0")  # the sign after the slash


def may_hold(condition: Condition, known: Mapping[str, Spans]) -> bool:
    """Whether the condition can be true where columns have values of their spans."""
    match condition:
        case AllOf(parts):
            return all(may_hold(part, known) for part in parts)
        case AnyOf(parts):
            return any(may_hold(part, known) for part in parts)
        case Comparison(column, _, _, function):
            spans = known.get(column)
            return spans is None or function != "" or any(_may_be(condition, span) for span in spans)


def _may_be(test: Comparison, span: Span) -> bool:
    low, high = span.low, span.high
    if low is None:
        return test.operator == "is null"
    values = [value for value in test.values.to_pylist() if value is not None]
    try:
        match test.operator:
            case "=" | "in":
                return any(low <= value <= high for value in values)
            case "!=":
                return any(not low == value == high for value in values)
            case "<":
                return any(low < value for value in values)
            case "<=":
                return any(low <= value for value in values)
            case ">":
                return any(high > value for value in values)
            case ">=":
                return any(high >= value for value in values)
            case "starts with":
                return any(value <= high and low <= value + _LAST for value in values)
            case "is null":
                return False
            case "is not null":
                return True
    except TypeError:  # of another type than the column is read in
        return True
