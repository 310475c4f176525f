"""Which schema a write leaves behind: the table's, grown by what the input brings."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.records import EvolutionRules, reconcile, storable, without_meta
from hoodie.write.options import WriteOptions


_FILLING = ("hoodie.datasource.write.reconcile.schema", "hoodie.write.set.null.for.missing.columns")


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """`write_schema`: what incoming rows are cast to. `table_schema`: what the table has afterwards. Data columns only."""

    write_schema: pa.Schema
    table_schema: pa.Schema


def evolve_schema(
    options: WriteOptions, current: pa.Schema | None, incoming: pa.Schema | None, config: Config
) -> SchemaChange:
    """The schemas of a write whose rows come as `incoming` into a table of schema `current` (None: it has none yet).

    Incoming meta columns are dropped: rows read from a Hudi table can be written as they are.

    Raises:
        Invalid: the schemas do not go together; names the column, both types and a way out.
    """
    if incoming is None:
        if current is None:
            raise Invalid("The table has no schema yet", remedy="Write rows first")
        return SchemaChange(current, current)
    given = storable(without_meta(incoming))
    if options.operation == "delete":
        return SchemaChange(given, given if current is None else current)
    if current is None or options.operation == "insert_overwrite_table":
        return SchemaChange(given, given)
    fill = ("hoodie.datasource.write.reconcile.schema", "hoodie.write.set.null.for.missing.columns")
    rules = EvolutionRules(
        fill_missing=any(config.flag(key) for key in _FILLING),
        drop_missing=config.flag("hoodie.datasource.write.schema.allow.auto.evolution.column.drop"),
    )
    table_schema = reconcile(current, given, rules).schema
    return SchemaChange(table_schema, table_schema)
