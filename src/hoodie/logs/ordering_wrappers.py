"""Ordering values of deletes: wrappers named by type, to plain Arrow columns and back.

1. A value stands in the wrapper of its type; the values of several ordering fields stand in one array of wrappers, in
   the order of the fields.
2. No value, and the int 0, is the default: such a delete goes by time. A long 0 is a value. An array is never the
   default unless it is empty.
3. One column may mix the default with values, and values of several number types: they come in the widest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.logs.delete_schema import ARRAY_WRAPPER, INT_WRAPPER, ORDERING, WRAPPED, WRAPPED_LIST, wrapper_of

Mask = npt.NDArray[np.bool_]

MAX_FIELDS: Final = 64
"""Ordering fields of a table: values in one array of wrappers."""

_NO_INT: Final = pa.scalar(None, pa.int32())


class UnlikeValues(Exception):
    """Ordering values of one field have types that do not compare, or there are too many fields; says which."""


def unwrap(wrapped: pa.StructArray) -> tuple[tuple[pa.Array, ...], Mask]:
    """A column for each ordering field, null where the delete has no value for it; and which deletes go by time.

    Without any value there is no column.

    Raises:
        UnlikeValues: the values of a field do not compare.
    """
    *lone, array = wrapped.flatten()
    lists = array.flatten()[0]
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    width = int(lengths.max(initial=0))
    if width > MAX_FIELDS:
        raise UnlikeValues(f"{width} fields")
    first = _lone_values(lone)
    is_default = first.is_null().to_numpy(zero_copy_only=False) & (lengths == 0)
    if is_default.all():
        return (), is_default
    columns = [_element(lists, lengths, at) for at in range(width)] or [pa.nulls(len(wrapped))]
    columns[0] = join_values([first, columns[0]], len(wrapped))
    return tuple(columns), is_default


def wrap(columns: Sequence[pa.Array], is_default: Mask) -> pa.StructArray:
    """The values of deletes in their wrappers: the reverse of `unwrap`, with the int 0 for those that go by time.

    Raises:
        Invalid: a value has a type that has no wrapper, or does not fit it.
    """
    rows = len(is_default)
    if len(columns) > 1:
        return _struct(ORDERING, {INT_WRAPPER: _zeros(is_default), ARRAY_WRAPPER: _arrays(columns, is_default)}, rows)
    values = pa.nulls(rows) if not columns else pc.if_else(pa.array(is_default), None, columns[0])
    missing = values.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_null(values.type):
        return _struct(ORDERING, {INT_WRAPPER: _zeros(missing)}, rows)
    place, values = _fitted(values)
    if place == INT_WRAPPER:
        return _struct(ORDERING, {INT_WRAPPER: pc.fill_null(values, 0)}, rows)
    return _struct(ORDERING, {INT_WRAPPER: _zeros(missing), place: values}, rows)


def join_values(columns: Sequence[pa.Array], rows: int) -> pa.Array:
    """The one value that each row has in any of the columns, in the type that all of them compare in.

    Raises:
        UnlikeValues: they do not compare.
    """
    known = [column for column in columns if column.null_count < len(column)]
    if len(known) < 2:
        return known[0] if known else pa.nulls(rows)
    kind = _common({column.type for column in known})
    return pc.coalesce(*(column.cast(kind, safe=False) for column in known))


# From wrappers


def _lone_values(members: Sequence[pa.StructArray]) -> pa.Array:
    """Values that stand alone, null for the int 0."""
    values = _values(members)
    if INT_WRAPPER in values:
        numbers = values[INT_WRAPPER]
        values[INT_WRAPPER] = pc.if_else(pc.equal(numbers, 0), _NO_INT, numbers)
    return join_values(list(values.values()), len(members[0]))


def _element(lists: pa.ListArray, lengths: npt.NDArray[np.int64], at: int) -> pa.Array:
    """Value number `at` of each array, null where there is none."""
    places = np.cumsum(lengths) - lengths + at
    cells = lists.flatten().take(pa.array(places, mask=lengths <= at))
    return join_values(list(_values(cells.flatten()).values()), len(lists))


def _values(members: Sequence[pa.StructArray]) -> dict[int, pa.Array]:
    """What is in the wrappers that occur, by their place."""
    return {at: member.flatten()[0] for at, member in enumerate(members) if member.null_count < len(member)}


def _common(types: set[pa.DataType]) -> pa.DataType:
    if len(types) == 1:
        return next(iter(types))
    if all(pa.types.is_integer(kind) for kind in types):
        return pa.int64()
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in types):
        return pa.float64()
    raise UnlikeValues(", ".join(sorted(map(str, types))))


# To wrappers


def _arrays(columns: Sequence[pa.Array], is_default: Mask) -> pa.Array:
    """Arrays of wrappers, null for deletes that go by time."""
    rows, width = len(is_default), len(columns)
    cells = []
    for column in columns:
        place, values = (INT_WRAPPER, column.cast(pa.int32())) if pa.types.is_null(column.type) else _fitted(column)
        cells.append(_struct(WRAPPED, {place: values}, rows))
    places = np.flatnonzero(~is_default)
    by_row = (places[:, np.newaxis] + rows * np.arange(width)).ravel()
    ends = np.cumsum(np.where(is_default, 0, width))
    offsets = pa.array(np.append(0, ends).astype(np.int32), mask=np.append(is_default, False))
    return pa.ListArray.from_arrays(offsets, pa.concat_arrays(cells).take(pa.array(by_row)), type=WRAPPED_LIST)


def _fitted(values: pa.Array) -> tuple[int, pa.Array]:
    """Place of the wrapper of these values, and the values in its type."""
    place = wrapper_of(values.type)
    if place is None:
        raise Invalid(
            f"Ordering values of type {values.type} cannot be stored with deletes",
            remedy="Order by a number, text, date, timestamp, decimal or boolean column",
        )
    kind = ORDERING.field(place).type.field(0).type
    try:
        return place, values.cast(kind)
    except pa.ArrowInvalid as error:
        raise Invalid(f"An ordering value does not fit {kind}: {error}", remedy="Correct the values") from error


def _zeros(chosen: Mask) -> pa.Array:
    """0 in the chosen rows, null in the others."""
    return pa.array(np.zeros(len(chosen), dtype=np.int32), mask=~chosen)


def _struct(kind: pa.StructType, values: Mapping[int, pa.Array], rows: int) -> pa.StructArray:
    """Wrappers with these values by place; null where no place has one."""
    members = []
    is_empty = np.ones(rows, dtype=np.bool_)
    for at, field in enumerate(kind):
        if at in values:
            is_null = values[at].is_null()
            is_empty &= is_null.to_numpy(zero_copy_only=False)
            members.append(pa.StructArray.from_arrays([values[at]], fields=list(field.type), mask=is_null))
        else:
            members.append(pa.nulls(rows, field.type))
    return pa.StructArray.from_arrays(members, fields=list(kind), mask=pa.array(is_empty))
