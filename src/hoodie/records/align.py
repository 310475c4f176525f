"""Rows cast from the schema they have to the schema they should have: columns by name, missing ones null, types
promoted.

1. Columns are found by name at every level; the order is the target's. Columns the target does not have are left out.
2. Values change as Hudi changes them when it rewrites rows: a float becomes the double with the same shortest text
   (1.1f is 1.1), numbers and dates become Java's text, text becomes bytes of UTF-8.
3. Everything else is a change of layout (dictionary, large offsets, list children's names) and keeps the values.

Whether a change of type is *allowed* is for `evolve.py` to say; this module does what it can and refuses the
impossible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.records.java_text import java_text
from hoodie.records.schema import is_list

_TEXT_SCALE: Final = 38
_MAX_ITEMS: Final = 2**31 - 1

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def align(rows: Rows, to: pa.Schema) -> Rows:
    """The same rows in the schema `to` (metadata aside). No copy of columns that have the right type already.

    Raises:
        Invalid: a required column is missing or has nulls, or a value does not fit its new type.
    """
    if rows.schema.equals(to, check_metadata=False) and _same_names(rows.schema, to):
        return rows
    columns = []
    for field in to:
        at = rows.schema.get_field_index(field.name)
        if at < 0 and rows.schema.names.count(field.name) > 1:
            raise Invalid(
                f"Column `{field.name}` occurs more than once", remedy="Rename one of them", column=field.name
            )
        column = pa.nulls(rows.num_rows, field.type) if at < 0 else _aligned_column(rows.column(at), field, field.name)
        _ensure_no_nulls(column, field, field.name)
        columns.append(column)
    if isinstance(rows, pa.RecordBatch):
        return batch_of(columns, to, rows.num_rows)
    return _table(columns, to, rows.num_rows)


def _aligned_column(column: Any, field: pa.Field, path: str) -> Any:
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_aligned(chunk, field.type, path) for chunk in column.chunks], type=field.type)
    return _aligned(column, field.type, path)


def _aligned(values: pa.Array, to: pa.DataType, path: str) -> pa.Array:
    given = values.type
    types = pa.types
    if isinstance(given, pa.BaseExtensionType):
        return _aligned(values.storage, to, path)
    if types.is_dictionary(given):
        return _aligned(_taken(values.dictionary, values.indices, to, path), to, path)
    if types.is_run_end_encoded(given):
        return _aligned(pc.run_end_decode(values), to, path)
    if types.is_null(given):
        return pa.nulls(len(values), to)
    if types.is_struct(given) and types.is_struct(to):
        return _aligned_struct(values, to, path)
    if types.is_map(given) and types.is_map(to):
        return _aligned_map(values, to, path)
    if is_list(given) and is_list(to):
        return _aligned_list(values, to, path)
    return values if given.equals(to) else _aligned_leaf(values, to, path)


def _aligned_struct(values: pa.StructArray, to: pa.StructType, path: str) -> pa.Array:
    if values.type.equals(to) and _same_child_names(values.type, to):
        return values
    present = values.is_valid() if values.null_count else None
    children = []
    for field in to:
        at = values.type.get_field_index(field.name)
        child_path = f"{path}.{field.name}"
        child = pa.nulls(len(values), field.type) if at < 0 else _aligned(values.field(at), field.type, child_path)
        _ensure_no_nulls(child, field, child_path, present)
        children.append(child)
    mask = None if present is None else pc.invert(present)
    return pa.StructArray.from_arrays(children, fields=list(to), mask=mask)


def _aligned_list(values: Any, to: pa.ListType, path: str) -> pa.Array:
    given = values.type
    if given.equals(to) and _same_child_names(given, to):
        return values
    if pa.types.is_list_view(given) or pa.types.is_large_list_view(given):
        offsets, items = _view_items(values, to.value_type, f"{path}.element")
    else:
        if not pa.types.is_list(given):
            values = values.cast(pa.list_(given.value_field))
        offsets, first, last = _compact_offsets(values)
        items = _aligned(values.values.slice(first, last - first), to.value_type, f"{path}.element")
    _ensure_no_nulls(items, to.value_field, f"{path}.element")
    return pa.Array.from_buffers(to, len(values), [_validity(values), offsets], values.null_count, children=[items])


def _view_items(values: Any, to: pa.DataType, path: str) -> tuple[pa.Buffer, pa.Array]:
    """Offsets and items, one after the other, of views of lists. Arrow's own cast (26.0) loses items."""
    present = pc.is_valid(values).to_numpy(zero_copy_only=False)
    sizes = np.where(present, values.sizes.to_numpy(), 0).astype(np.int64)
    starts, ends = values.offsets.to_numpy().astype(np.int64), np.cumsum(sizes)
    places = np.repeat(starts - (ends - sizes), sizes) + np.arange(sizes.sum())
    if len(places) > _MAX_ITEMS:
        raise Invalid(
            f"Column `{path}`: the lists of one batch have {len(places):,} items", remedy="Write fewer rows at a time"
        )
    first, last = (int(places.min()), int(places.max()) + 1) if len(places) else (0, 0)
    items = _taken(values.values.slice(first, last - first), pa.array(places - first), to, path)
    return pa.py_buffer(np.concatenate([[0], ends]).astype(np.int32)), _aligned(items, to, path)


def _taken(values: pa.Array, places: pa.Array, to: pa.DataType, path: str) -> pa.Array:
    """The values at these places; in the type `to` where Arrow cannot take them as they are: views of text are such."""
    try:
        return values.take(places)
    except pa.ArrowNotImplementedError:
        return _aligned(values, to, path).take(places)


def _aligned_map(values: pa.MapArray, to: pa.MapType, path: str) -> pa.Array:
    if values.type.equals(to) and _same_child_names(values.type, to):
        return values
    offsets, first, last = _compact_offsets(values)
    keys = _aligned(values.keys.slice(first, last - first), to.key_type, f"{path}.key")
    items = _aligned(values.items.slice(first, last - first), to.item_type, f"{path}.value")
    _ensure_no_nulls(items, to.item_field, f"{path}.value")
    entries = pa.StructArray.from_arrays([keys, items], fields=[to.key_field, to.item_field])
    return pa.Array.from_buffers(to, len(values), [_validity(values), offsets], values.null_count, children=[entries])


def _compact_offsets(values: Any) -> tuple[pa.Buffer, int, int]:
    """Offsets starting at 0, and the range of the child they speak of. A slice of a list keeps its whole child."""
    offsets = values.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    return pa.py_buffer(np.ascontiguousarray(offsets - offsets[0])), first, last


def _validity(values: pa.Array) -> pa.Buffer | None:
    return pc.is_valid(values).buffers()[1] if values.null_count else None


def widened(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Values without children in a wider type, as `align` makes them of those in rows: what is known of values from
    before, as the bounds of a file, then holds for what rows show.

    Raises:
        pa.ArrowInvalid, pa.ArrowNotImplementedError: they do not fit.
    """
    return _conversion(values.type, to)(values)


def _aligned_leaf(values: pa.Array, to: pa.DataType, path: str) -> pa.Array:
    convert = _conversion(values.type, to)
    try:
        return convert(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise Invalid(
            f"Column `{path}`: not every value of type {values.type} fits into {to} ({_first_line(error)})",
            remedy=f"Cast the column to {to} before writing, or correct the values",
            column=path,
            type=str(values.type),
            wanted=str(to),
        ) from error


def _conversion(given: pa.DataType, to: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    types = pa.types
    if types.is_float32(given) and types.is_float64(to):
        return lambda values: values.cast(pa.string()).cast(to)
    if types.is_string(to) and _is_text_of_java(given):
        return java_text
    if types.is_binary(given) and types.is_string(to):
        return lambda values: values.cast(to)
    if types.is_integer(given) and types.is_decimal(to):
        return lambda values: values.cast(pa.decimal128(19, 0)).cast(to)
    if types.is_floating(given) and types.is_decimal(to):
        return lambda values: _decimals(java_text(_without_dust(values, to.scale)), to)
    if types.is_string(given) and types.is_decimal(to):
        return lambda values: _decimals(values, to)
    if types.is_floating(to) or (types.is_timestamp(given) and given.unit == "ns"):
        return lambda values: values.cast(to, safe=False)
    return lambda values: values.cast(to)


def _decimals(text: pa.Array, to: pa.DataType) -> pa.Array:
    """Numbers in text as decimals, rounded half up to the scale, as Hudi rounds."""
    exact = text.cast(pa.decimal256(76, _TEXT_SCALE))
    return pc.round(exact, ndigits=to.scale, round_mode="half_towards_infinity").cast(to)


def _without_dust(values: pa.Array, scale: int) -> pa.Array:
    """Zero for what rounds to zero at `scale`: such numbers have more places than the decimals on the way."""
    return pc.if_else(pc.less(pc.abs(values), 10.0 ** -(scale + 1)), pa.scalar(0.0, values.type), values)


def _is_text_of_java(given: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(given)
        or types.is_floating(given)
        or types.is_decimal(given)
        or types.is_date(given)
        or types.is_boolean(given)
    )


def _ensure_no_nulls(values: Any, field: pa.Field, path: str, present: pa.Array | None = None) -> None:
    if field.nullable or values.null_count == 0:
        return
    if present is not None and not pc.any(pc.and_(pc.is_null(values), present)).as_py():
        return
    raise Invalid(
        f"Column `{path}` is required, but {values.null_count} rows have no value for it",
        remedy="Fill the missing values, or make the column nullable in the table",
        column=path,
        nulls=values.null_count,
    )


def batch_of(columns: list[pa.Array], schema: pa.Schema, count: int) -> pa.RecordBatch:
    """The columns as a batch of `count` rows, which it has without columns as well."""
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), count, [None]))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _table(columns: list[Any], schema: pa.Schema, count: int) -> pa.Table:
    if not columns:
        return pa.Table.from_batches([batch_of([], schema, count)])
    return pa.Table.from_arrays(columns, schema=schema)


def _same_names(given: pa.Schema, to: pa.Schema) -> bool:
    return all(_same_child_names(have.type, want.type) for have, want in zip(given, to, strict=True))


def _same_child_names(given: pa.DataType, to: pa.DataType) -> bool:
    """Whether nested names agree too: Arrow takes list and map types with differently named children for equal."""
    if given.num_fields != to.num_fields:
        return False
    pairs = [(given.field(at), to.field(at)) for at in range(given.num_fields)]
    return all(have.name == want.name and _same_child_names(have.type, want.type) for have, want in pairs)


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]
