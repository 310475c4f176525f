"""The columns a read gives back: names, order, types, and where each value comes from.

1. Order and types are the table's own schema behind the five meta columns (none when the table has no meta columns).
   All columns are nullable: a file may be older than a column.
2. The values of partition columns come from the partition path, as in Hudi 1.2, so NULL and "" both read as NULL, and a
   file that a global index left in its old partition shows the old value.
3. Not from the path: columns inside a struct, timestamps (the path holds what a key generator made of them), and
   time-based key generators' columns. These are read from the file, and the latter as text: Hudi 1.2 types them as
   string.
4. Dropped partition columns stand at the end, as text.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.records import with_meta, without_meta
from hoodie.spec import TableConfig


@dataclass(frozen=True, slots=True)
class ResultSchema:
    """All columns of a result, and the ones among them whose values come from the partition path."""

    schema: pa.Schema
    path_columns: frozenset[str]


def result_schema(table_schema: pa.Schema, config: TableConfig) -> ResultSchema:
    """The columns of a full read of a table whose own schema is `table_schema` (with or without meta columns)."""
    as_text = _time_based_columns(config)
    fields = [
        pa.field(field.name, pa.string() if field.name in as_text else field.type, metadata=field.metadata)
        for field in without_meta(table_schema)
    ]
    known = {field.name for field in fields}
    if config.drop_partition_columns:
        fields += [
            pa.field(name, pa.string()) for name in config.partition_fields if name not in known and "." not in name
        ]
    schema = pa.schema(fields)
    dropped = frozenset(schema.names) - known
    from_path = frozenset(name for name in config.partition_fields if _is_in_path(name, schema, as_text)) | dropped
    return ResultSchema(with_meta(schema) if config.populate_meta_fields else schema, from_path)


def projected(schema: pa.Schema, columns: Collection[str] | None) -> pa.Schema:
    """`schema` reduced to `columns`, in their order. Names are found exactly first, then without case.

    Raises:
        Invalid: there is no such column, or a column is named twice.
    """
    if columns is None:
        return schema
    by_lower = {name.lower(): name for name in schema.names}
    names = [name if name in schema.names else by_lower.get(name.lower()) for name in columns]
    unknown = [asked for asked, name in zip(columns, names, strict=True) if name is None]
    if unknown:
        raise Invalid(
            f"No such column: {', '.join(unknown)}",
            remedy=f"Columns are: {', '.join(schema.names)}",
            columns=tuple(unknown),
        )
    if len(set(names)) < len(names):
        raise Invalid(f"A column is asked for twice: {', '.join(columns)}", remedy="Name each column once")
    return pa.schema([schema.field(name) for name in names])


def _time_based_columns(config: TableConfig) -> frozenset[str]:
    if config.keygen_type == "TIMESTAMP":
        return frozenset(config.partition_fields)
    pairs = zip(config.partition_fields, config.partition_field_types, strict=False)
    return frozenset(name for name, kind in pairs if (kind or "").upper() == "TIMESTAMP")


def _is_in_path(name: str, schema: pa.Schema, as_text: frozenset[str]) -> bool:
    at = schema.get_field_index(name)
    return at >= 0 and name not in as_text and not pa.types.is_timestamp(schema.field(at).type)
