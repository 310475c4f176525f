"""Which incoming rows are deletes.

1. The boolean column `_hoodie_is_deleted` says so (NULL means false). It is a data column that users add to an upsert,
   and is stored like any other.
2. A table, or a write, may name another column and the text in it that marks a delete (`hoodie.payload.delete.*`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid

IS_DELETED = "_hoodie_is_deleted"


@dataclass(frozen=True, slots=True)
class DeleteMarker:
    """Rows whose `field`, as text, equals `marker` are deletes."""

    field: str
    marker: str


def ensure_boolean(schema: pa.Schema) -> None:
    """Nothing, when `_hoodie_is_deleted` is missing from `schema` or has booleans.

    Raises:
        Invalid: it has another type.
    """
    at = schema.get_field_index(IS_DELETED)
    if at >= 0 and not (pa.types.is_boolean(schema.field(at).type) or pa.types.is_null(schema.field(at).type)):
        raise Invalid(
            f"Column {IS_DELETED} has the type {schema.field(at).type}",
            remedy="Make it boolean: true marks a row that is to be deleted",
            column=IS_DELETED,
        )


def deletion_columns(schema: pa.Schema, marker: DeleteMarker | None) -> tuple[str, ...]:
    """The columns of `schema` that can mark a row as a delete."""
    named = (IS_DELETED,) if marker is None else (IS_DELETED, marker.field)
    return tuple(name for name in named if name in schema.names)


def is_deleted(rows: pa.Table, marker: DeleteMarker | None = None) -> Any:
    """Boolean numpy mask, one entry per row."""
    deleted = np.zeros(rows.num_rows, dtype=bool)
    if not rows.num_rows:
        return deleted
    if IS_DELETED in rows.schema.names:
        deleted |= rows.column(IS_DELETED).fill_null(False).to_numpy()
    if marker is not None and marker.field in rows.schema.names:
        marked = pc.equal(rows.column(marker.field).cast(pa.string()), marker.marker)
        deleted |= marked.fill_null(False).to_numpy()
    return deleted


def without_deleted(rows: pa.Table, marker: DeleteMarker | None = None) -> pa.Table:
    """`rows` without the deletes."""
    deleted = is_deleted(rows, marker)
    return rows.filter(pa.array(~deleted)) if deleted.any() else rows
