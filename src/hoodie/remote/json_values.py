"""JSON of a timeline server, read with care: what is not what it should be is an answer nobody can use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from hoodie.errors import Unavailable

Json = Any
"""A value as `json` has it."""

_SHOWN = 80

Value = TypeVar("Value", str, int, dict[str, Any], list[Any])


def member(record: Json, name: str, kind: type[Value]) -> Value:
    """The member `name` of an object, which must be there and of that kind.

    Raises:
        Unavailable: it is not.
    """
    value = optional(record, name, kind)
    if value is None:
        raise not_understood(f"{name} is missing")
    return value


def optional(record: Json, name: str, kind: type[Value]) -> Value | None:
    """The member `name` of an object; None where it is absent or null.

    Raises:
        Unavailable: it is of another kind, or this is no object.
    """
    if not isinstance(record, Mapping):
        raise not_understood(f"{short(record)} is no object")
    value = record.get(name)
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise not_understood(f"{name} is {short(value)}")
    return value


def elements(value: Json) -> Iterator[Json]:
    """The elements of an array.

    Raises:
        Unavailable: it is none.
    """
    if not isinstance(value, list):
        raise not_understood(f"{short(value)} is no array")
    yield from value


def not_understood(what: str) -> Unavailable:
    """The error for an answer that says something impossible."""
    return Unavailable(
        f"The timeline server gave an answer that cannot be used: {what}",
        remedy="See that host and port are those of a timeline server, and which version it is",
    )


def short(value: Json) -> str:
    """A value of an answer as messages show it: of long ones the beginning."""
    text = repr(value[:_SHOWN]) if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
