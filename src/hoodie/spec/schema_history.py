"""The history of a table's columns in which every column has a number: content of `.hoodie/.schema/*.schemacommit`.

1. Schema-on-read (SQL `ALTER TABLE` with `hoodie.schema.on.read.enable`) never rewrites files. It writes down each
   version of the schema; a column keeps its id through renames, and a name that is used anew gets a new id.
2. A version's number is the instant that made it, as an integer; the first version has number 0. A file was written
   under the newest version that is not newer than the file's instant, compared as integers as Hudi does.
3. Versions are ordered newest first. Ids are unique within a version, whatever the depth.
4. Encoding a parsed history gives the bytes Hudi wrote.

It does not know Arrow types (see `records.schema_mapping`), nor which history counts (see `state.table_schema`).
Grammar and a worked example: `docs/format/schema-history.md`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hoodie.errors import Corrupt
from hoodie.spec.instant import InstantTime
from hoodie.spec.json_text import parse_json

MAX_DEPTH = 128
"""Levels of nesting that are read. Spark and Hudi give up earlier."""

_REMEDY = "Restore the file from a copy"


@dataclass(frozen=True, slots=True)
class IdField:
    """A column, struct member, array element, map key or map value. The last three have no name of their own."""

    id: int
    name: str
    optional: bool
    kind: IdKind
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class IdRecord:
    """A struct."""

    fields: tuple[IdField, ...]


@dataclass(frozen=True, slots=True)
class IdArray:
    """A list of `element`."""

    element: IdField


@dataclass(frozen=True, slots=True)
class IdMap:
    """A map from `key` to `value`; keys are never null."""

    key: IdField
    value: IdField


IdKind: TypeAlias = str | IdRecord | IdArray | IdMap
"""A type: nested, or a leaf in Hudi's words (`int`, `long`, `decimal(10, 2)`, `timestamp` ...)."""


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The columns at one time, meta columns included. `number` is the instant that made them so, 0 for the first."""

    number: int
    max_column_id: int
    fields: tuple[IdField, ...]
    _by_id: dict[int, IdField] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {one.id: one for _, one in named_fields(self.fields)})

    def find(self, id: int) -> IdField | None:
        """The field with an id, at any depth."""
        return self._by_id.get(id)


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """All versions of a schema, newest first; at least one."""

    versions: tuple[SchemaVersion, ...]

    @property
    def newest(self) -> SchemaVersion:
        return self.versions[0]

    def at(self, instant: InstantTime) -> SchemaVersion:
        """The version in force when `instant` wrote; the oldest one for whatever is older than all."""
        number = int(instant) if instant.isascii() and instant.isdigit() else self.newest.number
        return next((one for one in self.versions if one.number <= number), self.versions[-1])

    @property
    def names_are_stable(self) -> bool:
        """Whether every id always had one name and every name one id: then files may be read by name."""
        ids: dict[int, str] = {}
        names: dict[str, int] = {}
        return all(
            ids.setdefault(one.id, name) == name and names.setdefault(name, one.id) == one.id
            for version in self.versions
            for name, one in named_fields(version.fields)
        )


def named_fields(fields: tuple[IdField, ...], prefix: str = "") -> Iterator[tuple[str, IdField]]:
    """Every field at every depth with its full name: `a`, `a.b`, `list.element`, `map.value.c`; parents first."""
    for one in fields:
        name = f"{prefix}{one.name}"
        yield name, one
        yield from named_fields(children(one.kind), f"{name}.")


def children(kind: IdKind) -> tuple[IdField, ...]:
    """The fields directly inside a type; none inside a leaf."""
    match kind:
        case IdRecord(fields):
            return fields
        case IdArray(element):
            return (element,)
        case IdMap(key, value):
            return key, value
        case _:
            return ()


def parse_schema_history(data: bytes, path: str) -> SchemaHistory:
    """The history in the bytes of a completed schema commit.

    Raises:
        Corrupt: not such JSON, no version in it, an id that occurs twice in one, or nested too deep.
    """
    values = _json(data, path)
    versions = values.get("schemas") if isinstance(values, dict) else None
    if not isinstance(versions, list) or not versions:
        raise _wrong(path, "it has no versions")
    parsed = (_version(one, path) for one in versions)
    return SchemaHistory(tuple(sorted(parsed, key=lambda one: one.number, reverse=True)))


def parse_schema_version(text: str, path: str) -> SchemaVersion:
    """One version from its JSON text: `latest_schema` in the extra metadata of the commit `path`. Raises as above."""
    return _version(_json(text.encode(), path), path)


def encode_schema_history(history: SchemaHistory) -> bytes:
    """The bytes of a completed schema commit: compact JSON, newest version first."""
    versions = [_version_values(one) for one in history.versions]
    return json.dumps({"schemas": versions}, separators=(",", ":"), ensure_ascii=False).encode()


def encode_schema_version(version: SchemaVersion) -> str:
    """The text of `latest_schema`."""
    return json.dumps(_version_values(version), separators=(",", ":"), ensure_ascii=False)


def _json(data: bytes, path: str) -> Any:
    try:
        return parse_json(data)
    except ValueError as error:
        raise _wrong(path, f"it is not JSON: {error}") from error


def _version(values: Any, path: str) -> SchemaVersion:
    if not isinstance(values, dict):
        raise _wrong(path, "a version is no object")
    fields = _fields(values.get("fields"), path, 0)
    ids = [one.id for _, one in named_fields(fields)]
    if len(set(ids)) < len(ids):
        raise _wrong(path, "an id occurs twice in one version")
    # Hudi takes a version without these as the first one, and counts ids itself.
    known = {"version_id": 0, "max_column_id": max(ids, default=-1)} | values
    return SchemaVersion(_number(known, "version_id", path), _number(known, "max_column_id", path), fields)


def _fields(values: Any, path: str, depth: int) -> tuple[IdField, ...]:
    if not isinstance(values, list):
        raise _wrong(path, "a record has no fields")
    if depth > MAX_DEPTH:
        raise _wrong(path, f"it is nested deeper than {MAX_DEPTH} levels")
    return tuple(_field(one, path, depth) for one in values)


def _field(values: Any, path: str, depth: int) -> IdField:
    if not isinstance(values, dict) or not isinstance(values.get("name"), str):
        raise _wrong(path, "a field has no name")
    doc = values.get("doc")
    if doc is not None and not isinstance(doc, str):
        raise _wrong(path, f"the comment of {values['name']} is no text")
    kind = _kind(values.get("type"), path, depth)
    return IdField(_number(values, "id", path), values["name"], bool(values.get("optional")), kind, doc)


def _kind(values: Any, path: str, depth: int) -> IdKind:
    if isinstance(values, str):
        return values
    if depth > MAX_DEPTH:
        raise _wrong(path, f"it is nested deeper than {MAX_DEPTH} levels")
    match values.get("type") if isinstance(values, dict) else None:
        case "record":
            return IdRecord(_fields(values.get("fields"), path, depth + 1))
        case "array":
            return IdArray(_part(values, "element", path, depth))
        case "map":
            key = IdField(_number(values, "key_id", path), "key", False, _kind(values.get("key"), path, depth + 1))
            return IdMap(key, _part(values, "value", path, depth))
        case _:
            raise _wrong(path, f"{str(values)[:80]!r} is no type")


def _part(values: Mapping[str, Any], name: str, path: str, depth: int) -> IdField:
    kind = _kind(values.get(name), path, depth + 1)
    return IdField(_number(values, f"{name}_id", path), name, bool(values.get(f"{name}_optional")), kind)


def _number(values: Mapping[str, Any], name: str, path: str) -> int:
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(path, f"{name} is no number")
    return value


def _version_values(version: SchemaVersion) -> dict[str, Any]:
    return {
        "max_column_id": version.max_column_id,
        "version_id": version.number,
        "type": "record",
        "fields": [_field_values(one) for one in version.fields],
    }


def _field_values(one: IdField) -> dict[str, Any]:
    values = {"id": one.id, "name": one.name, "optional": one.optional, "type": _kind_values(one.kind)}
    return values if one.doc is None else values | {"doc": one.doc}


def _kind_values(kind: IdKind) -> Any:
    match kind:
        case IdRecord(fields):
            return {"type": "record", "fields": [_field_values(one) for one in fields]}
        case IdArray(element):
            return {
                "type": "array",
                "element_id": element.id,
                "element": _kind_values(element.kind),
                "element_optional": element.optional,
            }
        case IdMap(key, value):
            return {
                "type": "map",
                "key_id": key.id,
                "key": _kind_values(key.kind),
                "value_id": value.id,
                "value": _kind_values(value.kind),
                "value_optional": value.optional,
            }
        case leaf:
            return leaf


def _wrong(path: str, what: str) -> Corrupt:
    return Corrupt(f"{path} is not a schema history: {what}", remedy=_REMEDY, path=path)
