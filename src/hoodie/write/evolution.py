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
    if current is None or (options.replaces == "table" and options.operation != "insert_overwrite_table"):
        return SchemaChange(storable(given), storable(given))
    rules = EvolutionRules(
        fill_missing=any(config.flag(key) for key in _FILLING),
        drop_missing=config.flag("hoodie.datasource.write.schema.allow.auto.evolution.column.drop"),
    )
    table_schema = reconcile(current, given, rules).schema
    return SchemaChange(table_schema, table_schema)


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
