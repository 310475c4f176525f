"""The refusal of timestamps that a Hudi table cannot hold: it has micros, and rows may come with nanos.

Nanos by themselves are common (pandas makes them of everything), nanos that are no whole micros are not: cutting them
would change keys, and let two versions of a row look equally late.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.records.schema import is_list


def ensure_whole_micros(batch: pa.RecordBatch, schema: pa.Schema) -> None:
    """Raises Invalid when a timestamp of `batch` (nested ones too) in a column of `schema` is no whole micro."""
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        if at >= 0 and _has_nanos(batch.schema.field(at).type):
            for path, values in _nanos(batch.column(at), field.name):
                _ensure_whole(values, path)


def _ensure_whole(values: pa.Array, path: str) -> None:
    try:
        values.cast(pa.timestamp("us", tz=values.type.tz))
    except pa.ArrowInvalid as error:
        raise Invalid(
            f"Column `{path}` has timestamps with nanoseconds, and a Hudi table holds microseconds",
            remedy='Round them before writing, in pandas with `.dt.floor("us")`, '
            "in Arrow with `pc.floor_temporal(column, unit='microsecond')`, or write them as a long",
            column=path,
            type=str(values.type),
        ) from error


def _nanos(values: Any, path: str) -> Iterator[tuple[str, pa.Array]]:
    """The arrays of nanos in `values`, without what lies beneath a null, each with its path."""
    given, types = values.type, pa.types
    if not _has_nanos(given):
        return
    if isinstance(given, pa.BaseExtensionType):
        yield from _nanos(values.storage, path)
    elif types.is_dictionary(given):
        yield from _nanos(values.dictionary_decode(), path)
    elif types.is_run_end_encoded(given):
        yield from _nanos(pc.run_end_decode(values), path)
    elif types.is_struct(given):
        for child, part in zip(given, values.flatten(), strict=True):
            yield from _nanos(part, f"{path}.{child.name}")
    elif types.is_map(given):
        first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
        yield from _nanos(values.keys.slice(first, last - first), f"{path}.key")
        yield from _nanos(values.items.slice(first, last - first), f"{path}.value")
    elif is_list(given):
        yield from _nanos(values.flatten(), f"{path}.element")
    else:
        yield path, values


def _has_nanos(given: pa.DataType) -> bool:
    if isinstance(given, pa.BaseExtensionType):
        return _has_nanos(given.storage_type)
    if pa.types.is_dictionary(given) or pa.types.is_run_end_encoded(given):
        return _has_nanos(given.value_type)
    if given.num_fields:
        return any(_has_nanos(given.field(at).type) for at in range(given.num_fields))
    return bool(pa.types.is_timestamp(given) and given.unit == "ns")
