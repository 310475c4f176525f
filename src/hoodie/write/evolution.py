"""Which schema a write leaves behind: the table's, grown by what the input brings.

1. Columns that name a row or its place (record key, partition) or order its versions keep the type they have: another
   type would spell the same key otherwise, or order the same values otherwise. Input is cast to it where no value
   changes. int may become long, which changes neither; an ordering column may become a wider number.
2. A promotion is said in one line of the log.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pyarrow as pa

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.records import EvolutionRules, is_exact, promoted, reconcile, storable, without_meta
from hoodie.records.columns import has_column, type_at
from hoodie.records.deletion import ensure_boolean
from hoodie.records.schema import ensure_distinct_names
from hoodie.spec import TableConfig
from hoodie.write.options import WriteOptions

log = logging.getLogger(__name__)

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
    whole = options.replaces == "table" and options.operation != "insert_overwrite_table"
    if current is not None and not whole:
        given = _with_kept_types(given, table, options.ordering, current)
    if only_keys:
        wanted = {name.partition(".")[0] for name in (*table.record_key_fields, *table.partition_fields)}
        return SchemaChange(storable(pa.schema([field for field in given if field.name in wanted])), current)
    ensure_boolean(given)
    if options.partial is not None:
        return SchemaChange(_partial_schema(options.partial, table, current, given), current)
    if current is None or whole:
        return SchemaChange(storable(given), storable(given))
    rules = EvolutionRules(
        fill_missing=any(config.flag(key) for key in _FILLING),
        drop_missing=config.flag("hoodie.datasource.write.schema.allow.auto.evolution.column.drop"),
        any_promotion=config.text("hoodie.write.schema.promotions") == "all",
    )
    evolution = reconcile(current, given, rules)
    promotions = [change for change in evolution.changes if change.startswith("promoted ")]
    if promotions:
        log.warning("table %s: %s", table.name, ", ".join(promotions))
    return SchemaChange(evolution.schema, evolution.schema)


def _with_kept_types(given: pa.Schema, table: TableConfig, ordering: tuple[str, ...], current: pa.Schema) -> pa.Schema:
    """`given` with the table's type for the columns whose type has to stay.

    Raises:
        Invalid: values of the given type cannot be those of the table's.
    """
    roles = {
        **dict.fromkeys(ordering, "ordering"),
        **dict.fromkeys(table.partition_fields, "partition"),
        **dict.fromkeys(table.record_key_fields, "record key"),
    }
    for name, role in roles.items():
        kept, found = type_at(current, name), type_at(given, name)
        if kept is None or found is None or pa.types.is_null(found):
            continue
        plain = storable(pa.schema([pa.field("", found)])).field(0).type
        if plain.equals(kept) or _may_widen(kept, plain, role):
            continue
        if not _is_castable(plain, kept, role):
            raise Invalid(
                f"Column `{name}`, the {role} column of table {table.name}, is {kept} in the table, but {plain} in the "
                f"rows: {_HARM[role]}",
                remedy=f"Cast the column to {kept} before writing",
                column=name,
                table_type=str(kept),
                incoming_type=str(plain),
            )
        at = given.get_field_index(name)
        if at >= 0:  # a field of a struct is cast to the table's type with the struct
            given = given.set(at, given.field(at).with_type(kept))
    return given


_HARM = {
    "record key": "the same key would be spelled in two ways",
    "partition": "rows of one partition would lie in two folders",
    "ordering": "versions of a row would be ordered otherwise",
}


def _may_widen(kept: pa.DataType, given: pa.DataType, role: str) -> bool:
    """Whether the column may take the type of the rows: no text of a key and no order of values changes by that."""
    if role == "ordering":
        return is_exact(kept, given)
    return bool(kept.equals(pa.int32()) and given.equals(pa.int64()))


def _is_castable(given: pa.DataType, kept: pa.DataType, role: str) -> bool:
    """Whether values of the rows can be values of the table: those that cannot fail when they are cast."""
    types = pa.types
    if types.is_integer(kept):
        return bool(types.is_integer(given) or types.is_floating(given))
    if types.is_string(kept):
        return bool(role != "ordering" and (types.is_integer(given) or types.is_date(given)))
    if types.is_floating(kept) and role != "ordering":
        return bool(types.is_integer(given))
    return bool(promoted(kept, given, EvolutionRules()) == kept)


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
    ensure_distinct_names(given)
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
