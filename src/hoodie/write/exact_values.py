"""The refusal of values that the table's type would make others of.

1. Nanoseconds that are no whole micros: a table has micros. Cutting them would change keys, and let two versions of a
   row look equally late. Nanos by themselves are common (pandas makes them of everything) and pass.
2. Whole numbers that a floating column cannot hold.
3. Fractions, of floating numbers or texts, with more places than a decimal column has: rounding them would make one
   key of two. A floating number is what its shortest text says, so that 0.1 is one tenth.

Values within structs, lists and maps count as well; what lies beneath a null does not. That types go together at all,
and values no type but their own can hold (text that is no number), is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.records.schema import is_list, is_text

_DIGITS: Final = 76

_Check = Callable[[Any, Any, str], None]


def ensure_exact_values(batch: pa.RecordBatch, schema: pa.Schema) -> None:
    """Raises Invalid when a value of `batch`, whose rows can be aligned to `schema`, would be another one in there."""
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        if at >= 0 and _may_lose(batch.schema.field(at).type, field.type):
            for values, to, path in _leaves(batch.column(at), field.type, field.name):
                check = _check_of(values.type, to)
                if check is not None:
                    check(values, to, path)


def _check_of(given: pa.DataType, to: pa.DataType) -> _Check | None:
    """What ensures that values of one flat type stay what they are in the other; None where they always do."""
    types = pa.types
    if types.is_timestamp(given) and given.unit == "ns":
        return _ensure_whole_micros
    if types.is_integer(given) and types.is_floating(to):
        return _ensure_held
    if types.is_decimal(to) and (types.is_floating(given) or is_text(given)):
        return _ensure_places
    return None


def _ensure_whole_micros(values: pa.Array, to: pa.DataType, path: str) -> None:
    try:
        values.cast(pa.timestamp("us", tz=values.type.tz))
    except pa.ArrowInvalid as error:
        raise Invalid(
            f"Column `{path}` has timestamps with nanoseconds, and a Hudi table holds microseconds",
            remedy='Round them before writing, in pandas with `.dt.floor("us")`, '
            "in Arrow with `pc.floor_temporal(column, unit='microsecond')`, or write them as a long",
            column=path,
            type=str(values.type),
            wanted=str(to),
        ) from error


def _ensure_held(values: pa.Array, to: pa.DataType, path: str) -> None:
    try:
        values.cast(to)
    except pa.ArrowInvalid as error:
        raise Invalid(
            f"Column `{path}` is {to} in the table, which cannot hold all whole numbers of the rows",
            remedy="Cast the column before writing, if rounded numbers will do",
            column=path,
        ) from error


def _ensure_places(values: pa.Array, to: pa.DataType, path: str) -> None:
    try:
        values.cast(pa.string()).cast(pa.decimal256(_DIGITS, to.scale))
    except pa.ArrowInvalid as error:
        raise Invalid(
            f"Column `{path}` is {to} in the table, and has numbers with more than {to.scale} decimal places in the "
            "rows",
            remedy=f"Round the column to {to.scale} places before writing",
            column=path,
            type=str(values.type),
            wanted=str(to),
        ) from error


def _leaves(values: Any, to: pa.DataType, path: str) -> Iterator[tuple[Any, pa.DataType, str]]:
    """The flat arrays in `values` whose values may be lost, each with the type it is to have and its path."""
    given, types = values.type, pa.types
    if not _may_lose(given, to):
        return
    if isinstance(given, pa.BaseExtensionType):
        yield from _leaves(values.storage, to, path)
    elif types.is_dictionary(given):
        held = values.dictionary
        if is_text(held.type):  # Arrow cannot take views of text
            held = held.cast(pa.large_string())
        yield from _leaves(held.take(values.indices), to, path)
    elif types.is_run_end_encoded(given):
        yield from _leaves(pc.run_end_decode(values), to, path)
    elif types.is_struct(given):
        for child, part in zip(given, values.flatten(), strict=True):
            at = to.get_field_index(child.name)
            if at >= 0:
                yield from _leaves(part, to.field(at).type, f"{path}.{child.name}")
    elif types.is_map(given):
        first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
        yield from _leaves(values.items.slice(first, last - first), to.item_type, f"{path}.value")
    elif is_list(given):
        yield from _leaves(values.flatten(), to.value_type, f"{path}.element")
    else:
        yield values, to, path


def _may_lose(given: pa.DataType, to: pa.DataType) -> bool:
    """Whether some value of a type could be another one in the type it is to have."""
    types = pa.types
    if isinstance(given, pa.BaseExtensionType):
        return _may_lose(given.storage_type, to)
    if types.is_dictionary(given) or types.is_run_end_encoded(given):
        return _may_lose(given.value_type, to)
    if types.is_struct(given):
        return any(
            _may_lose(child.type, to.field(child.name).type) for child in given if to.get_field_index(child.name) >= 0
        )
    if types.is_map(given):
        return _may_lose(given.item_type, to.item_type)
    if is_list(given):
        return _may_lose(given.value_type, to.value_type)
    return _check_of(given, to) is not None
