"""Columns of base files that Spark's own scan cannot read as the type they have in the table, or not as we do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from hoodie.engine import LocalEngine, TaskId
from hoodie.records import read_footer
from hoodie.slices import SliceRead
from hoodie.spark.arrow_types import is_natively_readable
from hoodie.spec import InstantTime
from hoodie.storage import Storage

READING_THREADS = 16

DifferingTypes = tuple[tuple[str, pa.DataType], ...]
"""Names of columns and the types that files have them in."""


def load_differing_types(
    storage: Storage, files: Iterable[SliceRead], wanted: pa.Schema
) -> Mapping[InstantTime, DifferingTypes]:
    """The columns of `wanted` that files store in a type Spark cannot read as the wanted one, by instant.

    All files of one commit have the same schema: one footer of each commit is read, several at a time.

    Raises:
        Corrupt: a file is damaged. Missing: it is gone.
    """
    first: dict[InstantTime, str] = {}
    for file in files:
        first.setdefault(file.instant, file.path)
    tasks = [_FooterTask(storage, path, wanted) for path in first.values()]
    found = LocalEngine(READING_THREADS).run(_differing, tasks, "read footers")
    return dict(zip(first, found, strict=True))


def is_cast_as_ours(differing: DifferingTypes, wanted: pa.Schema) -> bool:
    """Whether Spark casts columns to the wanted types as `records.align` does: not a float to a double, which has the
    same text there and is the same binary number to Spark.
    """
    return not any(_becomes_double(stored, wanted.field(name).type) for name, stored in differing)


def _becomes_double(stored: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_struct(wanted) and pa.types.is_struct(stored):
        return any(
            _becomes_double(stored.field(child.name).type, child.type)
            for child in wanted
            if stored.get_field_index(child.name) >= 0
        )
    if pa.types.is_list(wanted) and pa.types.is_list(stored):
        return _becomes_double(stored.value_type, wanted.value_type)
    if pa.types.is_map(wanted) and pa.types.is_map(stored):
        return _becomes_double(stored.key_type, wanted.key_type) or _becomes_double(stored.item_type, wanted.item_type)
    return bool(pa.types.is_float32(stored) and pa.types.is_float64(wanted))


@dataclass(frozen=True, slots=True)
class _FooterTask:
    storage: Storage
    path: str
    wanted: pa.Schema


def _differing(_: TaskId, task: _FooterTask) -> DifferingTypes:
    schema = read_footer(task.storage, task.path).schema
    return tuple(
        (field.name, schema.field(field.name).type)
        for field in task.wanted
        if schema.get_field_index(field.name) >= 0
        and not is_natively_readable(schema.field(field.name).type, field.type)
    )
