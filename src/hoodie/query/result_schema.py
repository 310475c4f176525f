"""The columns a read gives back: names, order and types.

1. Order and types are the table's own schema behind the five meta columns (none when the table has no meta columns).
   All columns are nullable: a file may be older than a column.
2. Partition columns are as in Hudi 1.2's snapshot reads, in every query: see `hoodie.records.partition_columns`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.records import partition_columns, with_meta, without_meta
from hoodie.spec import TableConfig


@dataclass(frozen=True, slots=True)
class ResultSchema:
    """All columns of a result, and those whose values come from the partition path where it can give them."""

    schema: pa.Schema
    path_columns: frozenset[str]


def result_schema(table_schema: pa.Schema, config: TableConfig) -> ResultSchema:
    """The columns of a full read of a table whose own schema is `table_schema` (with or without meta columns)."""
    columns = partition_columns(without_meta(table_schema), config)
    schema = pa.schema([field.with_nullable(True) for field in columns.schema])
    known = frozenset(name for name in columns.from_path if schema.get_field_index(name) >= 0)
    return ResultSchema(with_meta(schema) if config.populate_meta_fields else schema, known)


def projected(schema: pa.Schema, columns: Collection[str] | None) -> pa.Schema:
    """`schema` reduced to `columns`, in their order. Names are found exactly first, then without case.

    Raises:
        Invalid: there is no such column, or a column is named twice.
    """
    if columns is None:
        return schema
    by_lower = {name.lower(): name for name in schema.names}
    names = [name if name in schema.names else by_lower.get(name.lower()) for name in columns]
    unknown = [column for column, name in zip(columns, names, strict=True) if name is None]
    if unknown:
        raise Invalid(
            f"No such column: {', '.join(unknown)}",
            remedy=f"Columns are: {', '.join(schema.names)}",
            columns=tuple(unknown),
        )
    if len(set(names)) < len(names):
        raise Invalid(f"A column is asked for twice: {', '.join(columns)}", remedy="Name each column once")
    return pa.schema([schema.field(name) for name in names])
