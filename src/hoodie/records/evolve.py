"""How a table's schema changes when rows of another schema are written to it.

The rules are Hudi's (measured on 1.2.0's `deduceWriterSchema`), made stricter where Hudi would lose or mistype data:

1. Columns keep the table's order; new ones come after them, at every level of nesting, and are nullable.
2. A type changes only to one that holds every value of the other (`promoted`): the table's type if the incoming one
   fits into it, else the incoming one if the table's fits into that. Numbers become text, and longs doubles, only where
   the rules say so: otherwise rows keep the table's type, and a value that it cannot hold fails when it is cast.
3. A column is nullable if either side says so.
4. A column missing from the rows is an error, unless an option asks for nulls (or for dropping it).
5. What is impossible raises `Invalid` naming the column, both types, and the remedy. Nothing is guessed.

Departures from Hudi, all on the safe side: with `hoodie.datasource.write.reconcile.schema` Hudi takes the rows'
schema as it is when it also brings new columns, and narrows long to int; here the option only fills missing columns.
A new required column becomes nullable instead of an error. Comments of the table survive rows without comments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.records.schema import (
    COMMENT_KEY,
    comment_of,
    ensure_distinct_names,
    is_list,
    is_nested,
    list_type,
    map_type,
    storable,
    without_meta,
)


@dataclass(frozen=True, slots=True)
class EvolutionRules:
    """Which changes a write may make to the schema. All default to Hudi's defaults.

    `fill_missing`: columns the rows lack are written as null (`hoodie.write.set.null.for.missing.columns` or
    `hoodie.datasource.write.reconcile.schema`). `drop_missing`: they leave the table's schema
    (`hoodie.datasource.write.schema.allow.auto.evolution.column.drop`); `fill_missing` wins over it. `any_promotion`:
    numbers become text, and whole numbers floating ones that may not hold them all (`hoodie.write.schema.promotions`).
    """

    fill_missing: bool = False
    drop_missing: bool = False
    any_promotion: bool = False


@dataclass(frozen=True, slots=True)
class Evolution:
    """The schema of table and rows after the write, without meta columns; cast rows to it with `align`.

    `changes` says in words what differs from the table before, in column order; empty for none and for a new table.
    """

    schema: pa.Schema
    changes: tuple[str, ...]


def reconcile(table: pa.Schema | None, incoming: pa.Schema, rules: EvolutionRules | None = None) -> Evolution:
    """The schema after rows of schema `incoming` are written to a table of schema `table` (None: it has no schema yet).

    Meta columns on either side are left out. A column of Arrow's null type takes the table's type.

    Raises:
        Invalid: a column is missing, cannot change as wanted, has a type Hudi cannot hold, or a name that occurs twice.
    """
    if table is None:
        return Evolution(storable(without_meta(incoming)), ())
    known = without_meta(table)
    given = storable(_typed(without_meta(incoming), known))
    notes: list[str] = []
    merged = _merged_fields(list(known), list(given), rules or EvolutionRules(), "", notes)
    schema = pa.schema(merged)
    ensure_distinct_names(schema)
    return Evolution(schema, tuple(notes))


def promoted(table: pa.DataType, incoming: pa.DataType, rules: EvolutionRules) -> pa.DataType | None:
    """The flat type that holds the values of both, as far as Hudi changes types; None when there is none."""
    if table.equals(incoming) or _fits(incoming, table):
        return table
    if _grows(table, incoming) and (rules.any_promotion or is_exact(table, incoming)):
        return incoming
    # Whole numbers that came as floating ones: the table's type, if none has a fraction.
    return table if pa.types.is_integer(table) and pa.types.is_floating(incoming) else None


def is_exact(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Whether `wide`, a type of numbers, has every value of `narrow` as the same number."""
    types = pa.types
    if types.is_decimal(narrow):
        return _is_wider_decimal(narrow, wide)
    return (narrow, wide) in _EXACT


_NUMBERS: Final = (pa.int32(), pa.int64(), pa.float32(), pa.float64())
_EXACT: Final = (
    (pa.int32(), pa.int64()),
    (pa.int32(), pa.float64()),
    (pa.float32(), pa.float64()),
)


def _fits(incoming: pa.DataType, table: pa.DataType) -> bool:
    """Whether values of `incoming` may be stored as `table`. Values that do not fit (text that is no date) fail when
    cast.
    """
    types = pa.types
    if incoming in _NUMBERS:
        return _is_later_number(incoming, table) or types.is_decimal(table) or types.is_string(table)
    if types.is_decimal(incoming):
        return _is_wider_decimal(incoming, table) or types.is_string(table)
    if types.is_string(incoming):
        return bool(types.is_date(table) or types.is_decimal(table) or types.is_binary(table))
    if types.is_timestamp(incoming) and types.is_timestamp(table):
        # A table of another writer may hold millis: rows are stored as such if they lose nothing.
        return (incoming.tz is None) == (table.tz is None)
    return bool(types.is_string(table) and (types.is_date(incoming) or types.is_binary(incoming)))


def _grows(table: pa.DataType, incoming: pa.DataType) -> bool:
    """Whether the table's type may become `incoming`: every reader can turn the stored values into it."""
    if table in _NUMBERS:
        return _is_later_number(table, incoming) or pa.types.is_string(incoming)
    return bool(pa.types.is_decimal(table)) and _is_wider_decimal(table, incoming)


def _is_later_number(narrow: pa.DataType, wide: pa.DataType) -> bool:
    return wide in _NUMBERS and _NUMBERS.index(narrow) < _NUMBERS.index(wide)


def _is_wider_decimal(narrow: pa.DataType, wide: pa.DataType) -> bool:
    if not pa.types.is_decimal(wide):
        return False
    return bool(wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale)


def _typed(incoming: pa.Schema, table: pa.Schema) -> pa.Schema:
    """`incoming` with the table's type for columns that have none of their own."""
    fields = []
    for field in incoming:
        at = table.get_field_index(field.name)
        fields.append(field.with_type(table.field(at).type) if pa.types.is_null(field.type) and at >= 0 else field)
    return pa.schema(fields)


def _merged_fields(
    table: list[pa.Field], incoming: list[pa.Field], rules: EvolutionRules, path: str, notes: list[str]
) -> list[pa.Field]:
    given = {field.name: field for field in incoming}
    known = {field.name for field in table}
    merged = []
    for field in table:
        other = given.get(field.name)
        if other is not None:
            merged.append(_merged_field(field, other, rules, f"{path}{field.name}", notes))
        elif rules.fill_missing:
            merged.append(_relaxed(field, f"{path}{field.name}", notes))
        elif rules.drop_missing:
            notes.append(f"dropped {path}{field.name}")
        else:
            raise _missing(f"{path}{field.name}", field, list(given))
    for field in incoming:
        if field.name not in known:
            notes.append(f"added {path}{field.name} {field.type}")
            merged.append(field.with_nullable(True))
    return merged


def _merged_field(field: pa.Field, other: pa.Field, rules: EvolutionRules, path: str, notes: list[str]) -> pa.Field:
    data_type = _merged_type(field.type, other.type, rules, path, notes)
    comment = comment_of(other) or comment_of(field)
    metadata = None if comment is None else {COMMENT_KEY: comment.encode()}
    out = pa.field(field.name, data_type, nullable=field.nullable, metadata=metadata)
    return _relaxed(out, path, notes) if other.nullable else out


def _merged_type(table: pa.DataType, incoming: pa.DataType, rules: EvolutionRules, path: str, notes: list[str]) -> Any:
    types = pa.types
    if types.is_struct(table) and types.is_struct(incoming):
        return pa.struct(_merged_fields(list(table), list(incoming), rules, f"{path}.", notes))
    if types.is_map(table) and types.is_map(incoming):
        value = _merged_field(table.item_field, incoming.item_field.with_name("value"), rules, f"{path}.value", notes)
        return map_type(value)
    if is_list(table) and is_list(incoming):
        element = incoming.value_field.with_name("element")
        return list_type(_merged_field(table.value_field, element, rules, f"{path}.element", notes))
    merged = None if is_nested(table) or is_nested(incoming) else promoted(table, incoming, rules)
    if merged is None:
        raise Invalid(
            f"Column `{path}` is {table} in the table, but {incoming} in the rows, which is not a promotion",
            remedy=f"Cast the column to {table}, or write it under another name{_option(table, incoming)}",
            column=path,
            table_type=str(table),
            incoming_type=str(incoming),
        )
    if not merged.equals(table):
        notes.append(f"promoted {path} {table} to {merged}")
    return merged


def _option(table: pa.DataType, incoming: pa.DataType) -> str:
    """The option under which the types would go together, for a remedy."""
    return "; hoodie.write.schema.promotions=all allows it" if _grows(table, incoming) else ""


def _relaxed(field: pa.Field, path: str, notes: list[str]) -> pa.Field:
    if not field.nullable:
        notes.append(f"made {path} nullable")
    return field.with_nullable(True)


def _missing(path: str, field: pa.Field, given: list[str]) -> Invalid:
    alike = [name for name in given if name.lower() == field.name.lower()]
    hint = f" (the rows have `{alike[0]}`: case matters)" if alike else ""
    return Invalid(
        f"Column `{path}` ({field.type}) of the table is missing from the rows{hint}",
        remedy="Add the column, or set hoodie.write.set.null.for.missing.columns=true to write nulls",
        column=path,
        table_type=str(field.type),
    )
