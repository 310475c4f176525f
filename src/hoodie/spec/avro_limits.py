"""What an Avro schema must not say if decoding by it shall take time and memory in proportion to the bytes.

1. A value that takes no bytes (null, an empty record, `fixed` of size 0) can stand any number of times in nothing: as
   an item of an array, or in a type that uses the one before twice, and so on. Only a branch of a union may be one: its
   number is a byte.
2. A type inside itself lets the bytes decide how deep decoding goes. The decoder is native code and has no limit of its
   own: it would end the process.
3. Depth is counted through named types, too: each may use the one before.

Nobody stores such things in a table's metadata. They are refused before anything is decoded. It does not decode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

MAX_DEPTH: Final = 64
"""Levels of types in each other. Hudi's own schemas have a dozen."""

_PRIMITIVES: Final = frozenset({"boolean", "int", "long", "float", "double", "string", "bytes"})


@dataclass(frozen=True, slots=True)
class _Extent:
    takes_bytes: bool
    depth: int = 1


def ensure_values_take_bytes(schema: Any) -> None:
    """Checks that every value of a schema, every field and every item of its arrays takes at least one byte, and no
    value can be nested deeper than `MAX_DEPTH`.

    Raises:
        ValueError: not so; or the schema is none (as also KeyError, TypeError, AttributeError and RecursionError).
    """
    _ensure_some(_extent(schema, {}))


def _extent(schema: Any, named: dict[str, _Extent | None]) -> _Extent:
    """How large values of a type are at least. `named` has the answers for named types met so far, None for those that
    are being looked at.
    """
    if isinstance(schema, list):
        return _Extent(True, _one_above(*(_extent(branch, named) for branch in schema)))
    if isinstance(schema, str):
        return _named_extent(schema, named)
    match schema["type"]:
        case "record" | "error":
            name = _new_name(schema, named)
            fields = [_ensure_some(_extent(field["type"], named)) for field in schema["fields"]]
            found = _Extent(bool(fields), _one_above(*fields))
        case "fixed" | "enum" as kind:
            name = _new_name(schema, named)
            found = _Extent(kind == "enum" or int(schema["size"]) > 0)
        case "array":
            return _Extent(True, _one_above(_ensure_some(_extent(schema["items"], named))))
        case "map":
            return _Extent(True, _one_above(_extent(schema["values"], named)))
        case kind:
            return _extent(kind, named)
    named[name] = found
    return found


def _named_extent(name: str, named: dict[str, _Extent | None]) -> _Extent:
    if name == "null" or name in _PRIMITIVES:
        return _Extent(name != "null")
    found = named[_last_part(name)]
    if found is None:
        raise ValueError(f"the type {name} contains itself")
    return found


def _new_name(schema: Any, named: dict[str, _Extent | None]) -> str:
    """The name of a type without its namespace. Two of one name would have to be told apart: nobody needs them."""
    name = _last_part(schema["name"])
    if name in named:
        raise ValueError(f"there are two types named {name}")
    named[name] = None
    return name


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def _ensure_some(found: _Extent) -> _Extent:
    if not found.takes_bytes:
        raise ValueError("the schema describes values that take no bytes")
    return found


def _one_above(*inner: _Extent) -> int:
    depth = 1 + max((one.depth for one in inner), default=0)
    if depth > MAX_DEPTH:
        raise ValueError(f"values are nested deeper than {MAX_DEPTH} levels")
    return depth
