"""Columns of base files that Spark's own scan cannot read as the type they have in the table."""

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
