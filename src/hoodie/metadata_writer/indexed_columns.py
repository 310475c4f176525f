"""Which columns get value ranges.

1. Meta columns that queries ask for are always indexed, where files have them. Then come the columns of the option,
   else the first ones of the schema whose values have an order.
2. A reader takes a column of the definition that has no record for a file for a column the file does not have. So the
   columns of an index change with the schema only, never with an option: another list makes another index.
3. Readers of Hudi 0.15 take every column for indexed where nobody told them otherwise. So tables of version 6 have all
   of them, among those some that newer releases leave out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from hoodie.config import Config
from hoodie.errors import Invalid, Unsupported
from hoodie.metadata import IndexDefinition
from hoodie.metadata_writer.column_range import can_have_range
from hoodie.metadata_writer.stats_rows import is_storable
from hoodie.records import COMMIT_TIME_FIELD, KEY_FIELD, META_FIELDS, PARTITION_PATH_FIELD, is_meta, with_meta
from hoodie.records.columns import type_at
from hoodie.spec import FormatProfile, TableConfig

COLUMN_LIST: Final = "hoodie.metadata.index.column.stats.column.list"
MAX_COLUMNS: Final = "hoodie.metadata.index.column.stats.max.columns.to.index"

_ALWAYS: Final = (COMMIT_TIME_FIELD, PARTITION_PATH_FIELD, KEY_FIELD)


def indexed_columns(schema: pa.Schema, table: TableConfig, profile: FormatProfile, config: Config) -> tuple[str, ...]:
    """The columns (paths with dots) a new index of a table with the data columns `schema` has."""
    named = config.list(COLUMN_LIST)
    every = profile.indexes.covers_every_column and not named
    columns = _storable(schema, named or schema.names, profile)
    if not named and not (every and not config.is_set(MAX_COLUMNS)):
        columns = columns[: config.integer(MAX_COLUMNS)]
    meta = (META_FIELDS if every else _ALWAYS) if table.populate_meta_fields else ()
    return (*meta, *columns)


def grown_columns(  # noqa: PLR0917
    definition: IndexDefinition | None,
    before: pa.Schema | None,
    after: pa.Schema,
    table: TableConfig,
    profile: FormatProfile,
    config: Config,
) -> tuple[str, ...]:
    """The columns the index has once the table's schema is `after`: those it had, and, where it had all there were,
    new ones.
    """
    if definition is None or not definition.source_fields:
        return indexed_columns(after, table, profile, config)
    had = definition.source_fields
    if before is None or not set(_storable(before, before.names, profile)) <= set(had):
        return had
    new = _storable(after, [name for name in after.names if name not in before.names], profile)
    room = max(0, config.integer(MAX_COLUMNS) - sum(not is_meta(name) for name in had))
    return (*had, *[name for name in new if name not in had][:room])


def ensure_columns(schema: pa.Schema, columns: Iterable[str]) -> None:
    """Checks that the columns (paths with dots) are there and their values have an order.

    Raises:
        Invalid: one is not there. Unsupported: one is a list, map or struct.
    """
    for column in columns:
        data_type = type_at(with_meta(schema), column)
        if data_type is None:
            raise Invalid(f"There is no column {column!r}", remedy=f"Columns are {', '.join(schema.names)}")
        if not can_have_range(data_type):
            raise Unsupported(
                f"The column {column!r} cannot be indexed: it is of type {data_type}",
                remedy="Choose a column of single values",
                column=column,
            )


def _storable(schema: pa.Schema, names: Iterable[str], profile: FormatProfile) -> tuple[str, ...]:
    """Those of the columns that are in the schema and whose values can be kept."""
    version = profile.indexes.version
    found = []
    for name in dict.fromkeys(names):
        data_type = type_at(schema, name)
        if data_type is None or is_meta(name) or not can_have_range(data_type):
            continue
        if is_storable(data_type, version, with_bytes=profile.indexes.covers_bytes):
            found.append(name)
    return tuple(found)
