"""Leaf columns of a table as Parquet stores them: what lies in structs, lists and maps has a column of its own.

Lists have three levels (`list.element`), maps `key_value.key` and `key_value.value`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.records.schema import is_list


def leaves_of(column: pa.Field) -> list[tuple[str, pa.DataType]]:
    """Dotted paths and types of the leaf columns of a column, in their order."""
    found: list[tuple[str, pa.DataType]] = []
    _add_leaves(column.type, column.name, found)
    return found


def leaf_values(values: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """The values of each leaf column of a column, in order. What lies behind a map that is NULL may be there."""
    kind = values.type
    if pa.types.is_struct(kind):
        for place in range(kind.num_fields):
            yield from leaf_values(pc.struct_field(values, place))
    elif pa.types.is_map(kind):
        keys = [_entries(chunk, chunk.keys) for chunk in values.chunks]
        items = [_entries(chunk, chunk.items) for chunk in values.chunks]
        yield from leaf_values(pa.chunked_array(keys, kind.key_type))
        yield from leaf_values(pa.chunked_array(items, kind.item_type))
    elif is_list(kind):
        yield from leaf_values(pa.chunked_array([chunk.flatten() for chunk in values.chunks], kind.value_type))
    else:
        yield values


def _entries(maps: pa.MapArray, of_all: pa.Array) -> pa.Array:
    """Those of the keys or values of an array that belong to this part of it."""
    offsets = maps.offsets
    first = offsets[0].as_py()
    return of_all.slice(first, offsets[-1].as_py() - first)


def _add_leaves(data_type: pa.DataType, path: str, found: list[tuple[str, pa.DataType]]) -> None:
    if pa.types.is_struct(data_type):
        for child in data_type:
            _add_leaves(child.type, f"{path}.{child.name}", found)
    elif pa.types.is_map(data_type):
        found.append((f"{path}.key_value.key", data_type.key_type))
        _add_leaves(data_type.item_type, f"{path}.key_value.value", found)
    elif is_list(data_type):
        _add_leaves(data_type.value_type, f"{path}.list.element", found)
    else:
        found.append((path, data_type))
