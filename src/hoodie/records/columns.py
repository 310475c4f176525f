"""Columns of a batch by the names Hudi's options use: `a`, or `a.b` for a field inside a struct.

1. Names are exact (case matters), as in Hudi's key generators.
2. A struct that is NULL makes everything inside it NULL.
3. Dictionary columns come back decoded: nobody below this line sees how a column was packed.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid


def column(batch: pa.RecordBatch, name: str, role: str = "column") -> pa.Array:
    """The values of `name` in `batch`, one per row. `role` says in errors what the column is used for.

    Raises:
        Invalid: there is no such column, or `name` goes into something that is not a struct.
    """
    head, *path = name.split(".")
    _ensure_known(batch.schema.names, head, name, role)
    values = batch.column(batch.schema.get_field_index(head))
    for step in path:
        if not pa.types.is_struct(values.type):
            raise Invalid(
                f"{role} {name!r} looks for {step!r} inside a {values.type}, which has no fields",
                remedy="Name a field of a struct, or the column alone",
                column=name,
            )
        _ensure_known([values.type.field(i).name for i in range(values.type.num_fields)], step, name, role)
        values = pc.struct_field(values, step)
    return decoded(values)


def has_column(schema: pa.Schema, name: str) -> bool:
    """Whether `name` (maybe dotted) exists in `schema`."""
    return type_at(schema, name) is not None


def type_at(schema: pa.Schema, name: str) -> pa.DataType | None:
    """The type of the column `name` (maybe dotted); None when there is none."""
    head, *path = name.split(".")
    if schema.get_field_index(head) < 0:
        return None
    kind = schema.field(head).type
    for step in path:
        if not pa.types.is_struct(kind) or kind.get_field_index(step) < 0:
            return None
        kind = kind.field(step).type
    return kind


def decoded(values: pa.Array) -> pa.Array:
    """`values` without dictionary packing."""
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _ensure_known(known: list[str], wanted: str, name: str, role: str) -> None:
    count = known.count(wanted)
    if count == 1:
        return
    if count > 1:
        raise Invalid(f"{role} {name!r} is ambiguous: {count} columns are called {wanted!r}", column=name)
    other_case = [other for other in known if other.lower() == wanted.lower()]
    remedy = f"Did you mean {other_case[0]!r}? Names are case-sensitive" if other_case else f"Columns are {known}"
    raise Invalid(f"{role} {name!r} is not in the input", remedy=remedy, column=name)
