"""How much of the table those who index keys look at, in which pieces, and into how many file groups it goes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hoodie.engine import TaskId
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.update import TableUpdate
from hoodie.records import read_footer
from hoodie.storage import Storage
from hoodie.view import FileSlice

GLOBAL_INDEX: Final = (
    "hoodie.metadata.global.record.level.index.min.filegroup.count",
    "hoodie.metadata.global.record.level.index.max.filegroup.count",
)
PARTITIONED_INDEX: Final = (
    "hoodie.metadata.record.level.index.min.filegroup.count",
    "hoodie.metadata.record.level.index.max.filegroup.count",
)
"""Options for the least and the greatest number of file groups."""

RECORD_BYTES: Final = 48
"""Bytes a record is taken to need when the number of file groups is chosen, as in Hudi."""

ROWLESS_ACTIONS: Final = frozenset({"clean", "rollback", "restore", "indexing", "savepoint"})
"""Actions that do not change what rows there are."""

DRIVER_ROWS: Final = 200_000
"""Rows of an update up to which their records are made by the caller's thread."""

_GROWTH: Final = "hoodie.metadata.record.index.growth.factor"
_MAX_BYTES: Final = "hoodie.metadata.record.index.max.filegroup.size"
_MIN_ROW_BYTES: Final = 8
_TASK_BYTES: Final = 64 * 1024 * 1024


def changes_keys(update: TableUpdate) -> bool:
    """Whether keys may come, go or move by an action."""
    return update.action not in ROWLESS_ACTIONS and not update.keeps_rows


def bounded_slices(slices: Sequence[FileSlice]) -> Iterator[tuple[FileSlice, ...]]:
    """Slices of one partition that are not too large together."""
    by_partition: dict[str, list[FileSlice]] = defaultdict(list)
    for part in slices:
        by_partition[part.partition].append(part)
    for of_partition in by_partition.values():
        held: list[FileSlice] = []
        held_bytes = 0
        for part in of_partition:
            if held and held_bytes + part.size_bytes > _TASK_BYTES:
                yield tuple(held)
                held, held_bytes = [], 0
            held.append(part)
            held_bytes += part.size_bytes
        if held:
            yield tuple(held)


def group_count(context: IndexContext, slices: Sequence[FileSlice], bounds: tuple[str, str]) -> int:
    """The number of groups for the keys of slices, as Hudi estimates it."""
    config = context.options.config
    least, most = (config.integer(key) for key in bounds)
    per_group = config.integer(_MAX_BYTES) // RECORD_BYTES
    growth = config.number(_GROWTH)
    if least == most or growth * sum(part.size_bytes for part in slices) / _MIN_ROW_BYTES < (least + 1) * per_group:
        return least
    tasks = [_CountTask(context.handle.storage, part) for part in slices]
    rows = sum(context.engine.run(_count_rows, tasks, "count rows"))
    return max(least, min(most, math.ceil(rows * growth) // per_group))


@dataclass(frozen=True, slots=True)
class _CountTask:
    storage: Storage
    part: FileSlice


def _count_rows(_: TaskId, task: _CountTask) -> int:
    """Rows of a slice's base file: what its logs add matters little."""
    base = task.part.base
    return read_footer(task.storage, base.path).rows if base is not None and not base.path.endswith(".hfile") else 0
