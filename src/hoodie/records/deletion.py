"""Which rows are deletes.

1. The boolean column `_hoodie_is_deleted` says so (NULL means false). It is a data column that users add to an upsert,
   and is stored like any other.
2. A table, or a write, may name another column and the text in it that marks a delete (`hoodie.payload.delete.*`).
3. A change log may store what happened to a row in `_hoodie_operation`: `D` and `-U` (the row as it was before an
   update) are deletes. Only who merges stored rows asks this column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.records.schema import OPERATION_FIELD
from hoodie.spec import keys

IS_DELETED = "_hoodie_is_deleted"
_DELETING_OPERATIONS = pa.array(["D", "-U"])


@dataclass(frozen=True, slots=True)
class DeleteMarker:
    """Rows whose `field`, as text, equals `marker` are deletes."""

    field: str
    marker: str


def delete_marker(properties: Mapping[str, str]) -> DeleteMarker | None:
    """The marker that `hoodie.payload.delete.field` and `.marker` describe, None without them.

    Raises:
        Invalid: only one of the two is there.
    """
    field, marker = properties.get(keys.DELETE_FIELD), properties.get(keys.DELETE_MARKER)
    if (field is None) != (marker is None):
        raise Invalid(f"Only one of {keys.DELETE_FIELD} and {keys.DELETE_MARKER} is set", remedy="Set both or neither")
    return None if field is None or marker is None else DeleteMarker(field, marker)


def ensure_boolean(schema: pa.Schema) -> None:
    """Checks that `_hoodie_is_deleted` is missing from `schema` or has booleans.

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


def is_deleted(rows: pa.Table, marker: DeleteMarker | None = None) -> npt.NDArray[np.bool_]:
    """Per row, whether it is a delete by its `_hoodie_is_deleted` or by `marker`."""
    deleted = np.zeros(rows.num_rows, dtype=np.bool_)
    if not rows.num_rows:
        return deleted
    if IS_DELETED in rows.schema.names:
        deleted |= _true(rows.column(IS_DELETED))
    if marker is not None and marker.field in rows.schema.names:
        deleted |= _true(pc.equal(rows.column(marker.field).cast(pa.string()), marker.marker))
    return deleted


def is_deleting_operation(rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Per row, whether its `_hoodie_operation` says that it is a delete."""
    if OPERATION_FIELD not in rows.schema.names or not rows.num_rows:
        return np.zeros(rows.num_rows, dtype=np.bool_)
    return _true(pc.is_in(rows.column(OPERATION_FIELD), value_set=_DELETING_OPERATIONS))


def without_deleted(rows: pa.Table, marker: DeleteMarker | None = None) -> pa.Table:
    """`rows` without the deletes."""
    deleted = is_deleted(rows, marker)
    return rows.filter(pa.array(~deleted)) if deleted.any() else rows


def _true(values: Any) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = values.cast(pa.bool_()).fill_null(False).to_numpy()
    return mask
