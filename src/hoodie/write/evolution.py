"""Which schema a write leaves behind: the table's, grown by what the input brings."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.records import EvolutionRules, reconcile, storable, without_meta
from hoodie.records.columns import has_column
from hoodie.records.deletion import ensure_boolean
from hoodie.spec import TableConfig
from hoodie.write.options import WriteOptions

_FILLING = ("hoodie.datasource.write.reconcile.schema", "hoodie.write.set.null.for.missing.columns")


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """`write_schema`: what incoming rows are cast to. `table_schema`: what the table has afterwards, None when nobody
    knows (a delete in a table without schema). Data columns only.
    """

    write_schema: pa.Schema
    table_schema: pa.Schema | None


def evolve_schema(
    options: WriteOptions, table: TableConfig, current: pa.Schema | None, incoming: pa.Schema | None, config: Config
) -> SchemaChange:
    """The schemas of a write whose rows come as `incoming` into a table of schema `current` (None: it has none yet).

    Incoming meta columns are dropped: rows read from a Hudi table can be written as they are. Rows that take the place
    of the whole table bring their own schema.

    Raises:
        Invalid: a column the table's keys, partitions or ordering need is missing, or the schemas do not go together;
            names the column, both types and a way out.
    """
    if incoming is None:
        return SchemaChange(pa.schema([]) if current is None else current, current)
    given = without_meta(incoming)
    only_keys = options.operation in ("delete", "delete_partition")
    _ensure_needed(given, table, () if only_keys else options.ordering, keys=options.operation != "delete_partition")
    if only_keys:
        wanted = {name.partition(".")[0] for name in (*table.record_key_fields, *table.partition_fields)}
        return SchemaChange(storable(pa.schema([field for field in given if field.name in wanted])), current)
    ensure_boolean(given)
    if options.partial is not None:
        return SchemaChange(_partial_schema(options.partial, table, current, given), current)
    if current is None or (options.replaces == "table" and options.operation != "insert_overwrite_table"):
        return SchemaChange(storable(given), storable(given))
    rules = EvolutionRules(
        fill_missing=any(config.flag(key) for key in _FILLING),
        drop_missing=config.flag("hoodie.datasource.write.schema.allow.auto.evolution.column.drop"),
    )
    table_schema = reconcile(current, given, rules).schema
    return SchemaChange(table_schema, table_schema)


def _partial_schema(
    changed: tuple[str, ...], table: TableConfig, current: pa.Schema | None, given: pa.Schema
) -> pa.Schema:
    """The schema of rows that have their keys, their partitions and the `changed` columns, as the table has them."""
    if current is None:
        raise Invalid(f"Table {table.name} has no rows to update", remedy="Insert whole rows first")
    missing = [name for name in changed if name not in given.names]
    if missing:
        raise Invalid(f"The input has no column {missing[0]!r}, which is to be updated", column=missing[0])
    needed = {name.partition(".")[0] for name in (*table.record_key_fields, *table.partition_fields)}
    kept = pa.schema([field for field in given if field.name in needed or field.name in changed])
    known = pa.schema([field for field in current if field.name in kept.names])
    evolution = reconcile(known, kept)
    if evolution.changes:
        raise Invalid(
            f"An update of some columns cannot change the schema of table {table.name}: {evolution.changes[0]}",
            remedy="Upsert whole rows to change the schema",
            changes=evolution.changes,
        )
    return evolution.schema


def _ensure_needed(given: pa.Schema, table: TableConfig, ordering: tuple[str, ...], *, keys: bool) -> None:
    if not given.names:
        raise Invalid("The input has no columns", remedy="Pass rows with the table's columns")
    for role, names in (
        ("record key", table.record_key_fields if keys else ()),
        ("partition", table.partition_fields),
        ("ordering", ordering),
    ):
        for name in names:
            if not has_column(given, name):
                raise Invalid(
                    f"The input has no column {name!r}, the {role} column of table {table.name}",
                    remedy=f"Add it to the rows; their columns are {', '.join(given.names)}",
                    column=name,
                )
