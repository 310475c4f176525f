"""Members of decoded JSON objects and Avro records, of the types a reader counts on.

1. What is absent or null is None; what has another type is damage, told with the file and the member.
2. Numbers are 64 bits wide, as they are for every other reader of these files.
3. A path in it stays below the table: no absolute ones, no `.` and `..`, no NUL.

It does not know which members there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hoodie.errors import Corrupt

_NO_NAMES = frozenset({"", ".", ".."})
_REMEDY = "Restore the file from a copy, or roll the instant back"


def typed(values: Mapping[str, Any], name: str, kind: type, path: str) -> Any:
    """The member `name` of what the file `path` says; None when it is absent.

    Raises:
        Corrupt: it is of another type than `kind`.
    """
    value = values.get(name)
    if value is None:
        return None
    if isinstance(value, kind) and (kind is not int or _is_long(value)):
        return value
    raise wrong(name, value, path)


def text_of(values: Mapping[str, Any], name: str, path: str) -> str:
    """A text that must be there. Raises as `typed`."""
    value = values.get(name)
    if isinstance(value, str):
        return value
    raise wrong(name, value, path)


def texts_of(values: Mapping[str, Any], name: str, path: str) -> tuple[str, ...]:
    """A list of texts; empty when absent. Raises as `typed`."""
    found = typed(values, name, list, path) or ()
    if not all(isinstance(one, str) for one in found):
        raise wrong(name, found, path)
    return tuple(found)


def numbers_of(values: Mapping[str, Any], name: str, path: str) -> dict[str, int] | None:
    """Numbers by text; None when absent. Raises as `typed`."""
    found: dict[str, int] | None = typed(values, name, dict, path)
    if found is not None and not all(isinstance(one, str) and _is_long(found[one]) for one in found):
        raise wrong(name, found, path)
    return found


def numbers_by_text(values: Mapping[str, Any], name: str, path: str) -> dict[str, float] | None:
    """Floating-point numbers by text; None when absent. Raises as `typed`."""
    found: dict[str, float] | None = typed(values, name, dict, path)
    if found is None:
        return None
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in found.values()):
        raise wrong(name, found, path)
    return {text: float(value) for text, value in found.items()}


def texts_by_text(values: Mapping[str, Any], name: str, path: str) -> dict[str, str] | None:
    """Texts by text; None when absent. Raises as `typed`."""
    found: dict[str, str] | None = typed(values, name, dict, path)
    if found is not None and not all(isinstance(value, str) for value in found.values()):
        raise wrong(name, found, path)
    return found


def records_of(values: Mapping[str, Any], name: str, path: str) -> list[dict[str, Any]]:
    """A list of records; empty when absent. Raises as `typed`."""
    found: list[dict[str, Any]] = typed(values, name, list, path) or []
    if not all(isinstance(one, dict) for one in found):
        raise wrong(name, found, path)
    return found


def record_of(value: object, name: str, path: str) -> dict[str, Any]:
    """A record, one of those under `name`. Raises as `typed`."""
    if not isinstance(value, dict):
        raise wrong(name, value, path)
    return value


def dict_of(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What Avro and JSON encoders take for a mapping that may be absent."""
    return None if values is None else dict(values)


def folder_of(values: Mapping[str, Any], name: str, path: str) -> str:
    """A partition path; the table's root, `""`, when absent. Raises as `typed`, and when it leaves the table."""
    found: str = typed(values, name, str, path) or ""
    return inside_table(found, name, path) if found else found


def inside_table(said: str, name: str, path: str) -> str:
    """The path `said`, which the file `path` gives as its `name`.

    Raises:
        Corrupt: it is no plain path below the table.
    """
    if is_plain_path(said):
        return said
    raise Corrupt(
        f"{path}: {name} is {said[:200]!r}, which is no path below the table", remedy=_REMEDY, path=path, said=said
    )


def is_plain_path(said: str) -> bool:
    """Whether a path is relative, names one file or folder below where it begins, and has no spelling but this."""
    return "\0" not in said and _NO_NAMES.isdisjoint(said.split("/"))


def wrong(name: str, value: object, path: str) -> Corrupt:
    """The error for a member that is not what it should be."""
    return Corrupt(f"{path}: {name} has the unexpected value {str(value)[:80]!r}", remedy=_REMEDY, path=path)


def _is_long(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
