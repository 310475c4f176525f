"""Arrow schemas as Hudi tables hold them: meta columns in front, and only types Hudi can store.

1. A *storable* schema has one spelling per stored type: strings and lists with 32-bit offsets, list children named
   `element`, map children `key` and `value`, timestamps in micros (`UTC` or no zone), decimals of 128 bits. Two
   storable schemas that store the same are `equals`.
2. The five meta columns come first, are nullable strings, and are never part of a table's own schema.
3. Field metadata is dropped except the column comment (`COMMENT_KEY`), which Hudi keeps as Avro `doc`.

This module does not know Avro, Parquet or how schemas change over time (`avro.py`, `base_file_writer.py`, `evolve.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import Invalid

COMMIT_TIME_FIELD: Final = "_hoodie_commit_time"
SEQNO_FIELD: Final = "_hoodie_commit_seqno"
KEY_FIELD: Final = "_hoodie_record_key"
PARTITION_PATH_FIELD: Final = "_hoodie_partition_path"
FILE_NAME_FIELD: Final = "_hoodie_file_name"
OPERATION_FIELD: Final = "_hoodie_operation"

META_FIELDS: Final[tuple[str, ...]] = (COMMIT_TIME_FIELD, SEQNO_FIELD, KEY_FIELD, PARTITION_PATH_FIELD, FILE_NAME_FIELD)
"""The meta columns in the order they have in files."""

COMMENT_KEY: Final = b"comment"
"""Field metadata key under which a column comment travels (Spark's own name for it)."""

CONSTANT_FIELDS: Final = frozenset((COMMIT_TIME_FIELD, PARTITION_PATH_FIELD, FILE_NAME_FIELD))
"""Meta columns of few values in a file, of one in a new file."""
META_SCHEMA: Final = pa.schema([pa.field(name, pa.string()) for name in META_FIELDS])

_MAX_DECIMAL_DIGITS: Final = 38


def with_meta(schema: pa.Schema, *, operation: bool = False) -> pa.Schema:
    """`schema` with the five meta columns in front (`operation`: and `_hoodie_operation` as sixth); never twice."""
    extra = [pa.field(OPERATION_FIELD, pa.string())] if operation else []
    return pa.schema([*META_SCHEMA, *extra, *without_meta(schema)])


def without_meta(schema: pa.Schema) -> pa.Schema:
    """`schema` without meta columns. `_hoodie_is_deleted` is a data column and stays."""
    return pa.schema([field for field in schema if not is_meta(field.name)])


def is_meta(name: str) -> bool:
    """Whether a column of this name belongs to Hudi rather than to the user."""
    return name in META_FIELDS or name == OPERATION_FIELD


def storable(schema: pa.Schema) -> pa.Schema:
    """`schema` as its rows come back from a Hudi table; `align` casts rows to it.

    int8, int16 and small unsigned become int32, uint32 int64, half floats float, large and view types the plain ones,
    dictionaries and extension types what they stand for, timestamps micros, zones UTC.

    Raises:
        Invalid: a column has a type Hudi cannot hold, or two columns share a name (compared without case).
    """
    ensure_distinct_names(schema)
    return pa.schema([_storable_field(field, field.name) for field in schema])


def ensure_distinct_names(schema: pa.Schema) -> None:
    """Spark compares column names without case, so a table must not have names that differ in case only.

    Raises:
        Invalid: it has.
    """
    counts = Counter(name.lower() for name in schema.names)
    twice = sorted(name for name in schema.names if counts[name.lower()] > 1)
    if twice:
        raise Invalid(
            f"Column names occur more than once (case is not significant): {', '.join(twice)}",
            remedy="Rename the columns so that each name is unique",
            columns=tuple(twice),
        )


def comment_of(field: pa.Field) -> str | None:
    """The column comment, None without one."""
    raw = (field.metadata or {}).get(COMMENT_KEY)
    return None if raw is None else raw.decode()


def list_type(element: pa.Field) -> pa.DataType:
    """List of `element` in the storable spelling."""
    return pa.list_(element.with_name("element"))


def map_type(value: pa.Field) -> pa.DataType:
    """Map from string to `value` in the storable spelling."""
    return pa.map_(pa.field("key", pa.string(), nullable=False), value.with_name("value"))


def is_list(data_type: pa.DataType) -> bool:
    """Whether values are lists, in any of Arrow's layouts."""
    types = pa.types
    return bool(
        types.is_list(data_type)
        or types.is_large_list(data_type)
        or types.is_fixed_size_list(data_type)
        or types.is_list_view(data_type)
        or types.is_large_list_view(data_type)
    )


def is_text(data_type: pa.DataType) -> bool:
    """Whether the type is a text, in any of Arrow's layouts."""
    types = pa.types
    return bool(types.is_string(data_type) or types.is_large_string(data_type) or types.is_string_view(data_type))


def is_nested(data_type: pa.DataType) -> bool:
    """Whether the type has children."""
    return is_list(data_type) or pa.types.is_map(data_type) or pa.types.is_struct(data_type)


def _storable_field(field: pa.Field, path: str) -> pa.Field:
    comment = comment_of(field)
    metadata = None if comment is None else {COMMENT_KEY: comment.encode()}
    return pa.field(field.name, _storable_type(field.type, path), nullable=field.nullable, metadata=metadata)


def _storable_type(given: pa.DataType, path: str) -> pa.DataType:
    types = pa.types
    if isinstance(given, pa.BaseExtensionType):
        return _storable_type(given.storage_type, path)
    if types.is_dictionary(given) or types.is_run_end_encoded(given):
        return _storable_type(given.value_type, path)
    if types.is_struct(given):
        if given.num_fields == 0:
            raise _unstorable(path, given, "Give the struct at least one field or drop the column")
        return pa.struct([_storable_field(child, f"{path}.{child.name}") for child in given])
    if types.is_map(given):
        key = _storable_type(given.key_type, f"{path}.key")
        if not types.is_string(key):
            raise _unstorable(path, given, "Hudi's maps have string keys: cast the keys to string")
        return map_type(_storable_field(given.item_field, f"{path}.value"))
    if is_list(given):
        return list_type(_storable_field(given.value_field, f"{path}.element"))
    return _storable_leaf(given, path)


def _storable_leaf(given: pa.DataType, path: str) -> pa.DataType:
    for is_kind, stored in _LEAVES:
        if is_kind(given):
            return stored
    if pa.types.is_timestamp(given):
        return pa.timestamp("us", tz=None if given.tz is None else "UTC")
    if pa.types.is_decimal(given):
        if given.precision > _MAX_DECIMAL_DIGITS or given.scale < 0:
            raise _unstorable(
                path,
                given,
                f"Decimals have at most {_MAX_DECIMAL_DIGITS} digits and no negative scale: cast the column",
            )
        return pa.decimal128(given.precision, given.scale)
    if pa.types.is_null(given):
        raise _unstorable(path, given, "The column has no type of its own: cast it to the type it should have")
    raise _unstorable(path, given, "Cast the column to a type Hudi has (long, double, decimal, timestamp, string ...)")


def _unstorable(path: str, given: pa.DataType, remedy: str) -> Invalid:
    return Invalid(
        f"Column `{path}` has the type {given}, which a Hudi table cannot hold",
        remedy=remedy,
        column=path,
        type=str(given),
    )


def _one_of(*kinds: Callable[[Any], Any]) -> Callable[[Any], bool]:
    return lambda given: any(kind(given) for kind in kinds)


_LEAVES: Final[tuple[tuple[Callable[[Any], bool], pa.DataType], ...]] = (
    (_one_of(pa.types.is_boolean), pa.bool_()),
    (
        _one_of(pa.types.is_int32, pa.types.is_int16, pa.types.is_int8, pa.types.is_uint16, pa.types.is_uint8),
        pa.int32(),
    ),
    (_one_of(pa.types.is_int64, pa.types.is_uint32), pa.int64()),
    (_one_of(pa.types.is_float32, pa.types.is_float16), pa.float32()),
    (_one_of(pa.types.is_float64), pa.float64()),
    (_one_of(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view), pa.string()),
    (
        _one_of(pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary),
        pa.binary(),
    ),
    (_one_of(pa.types.is_date32, pa.types.is_date64), pa.date32()),
)
