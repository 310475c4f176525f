"""What the indexes of a metadata table say otherwise than the rows of the table do.

1. Every live slice is read once, with the columns that the checks of all indexes want of it, some slices at a time. An
   index that is not ready yet, or that nobody here can maintain, is not looked at.
2. An index that cannot be read is a trouble of its own; the others go on.

Cost: the key column of the table, columns of secondary and expression indexes; of slices with log files all columns
with statistics. Nothing for a table without indexes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie.config import Config
from hoodie.engine import Engine, TaskId
from hoodie.errors import HudiError
from hoodie.metadata import FILES
from hoodie.metadata_writer.index_check import CheckedTable, IndexCheck, SliceShown, Trouble, index_path
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.indexes.registry import index_of
from hoodie.metadata_writer.options import MetadataOptions
from hoodie.metadata_writer.skeletons import skeleton_sources
from hoodie.metadata_writer.slice_rows import SliceRows, slice_rows
from hoodie.state.handle import TableHandle
from hoodie.timeline import Timeline
from hoodie.view import FileSlice

SLICES_AT_ONCE = 16


def index_troubles(
    handle: TableHandle, timeline: Timeline, slices: Sequence[FileSlice], engine: Engine
) -> Iterator[Trouble]:
    """What is wrong with the contents of the indexes. `slices` are the live ones as they lie on storage at `timeline`.

    Of a table whose rows do not carry their keys nothing is compared.
    """
    if set(handle.config.metadata_partitions) <= {FILES} or not handle.config.populate_meta_fields:
        return
    try:
        table = _checked_table(IndexContext(handle, timeline, engine, MetadataOptions(config=Config()), {}), slices)
        checks = {} if table is None else dict(_checks(table))
    except HudiError as error:
        yield str(error.facts.get("path") or index_path("")), error.cause
        return
    if table is None:
        return
    for at in range(0, len(slices), SLICES_AT_ONCE):
        tasks = [_task(table, part, checks) for part in slices[at : at + SLICES_AT_ONCE]]
        try:
            shown = engine.run(_show, tasks, "compare indexes")
        except HudiError as error:
            yield str(error.facts.get("path") or handle.config.name), error.cause
            return
        for file_slice in shown:
            for name in tuple(checks):
                yield from _guarded(checks, name, file_slice)
    for name in tuple(checks):
        yield from _guarded(checks, name, None)


def _checked_table(context: IndexContext, slices: Sequence[FileSlice]) -> CheckedTable | None:
    metadata, schema = context.metadata_table(), context.columns_before()
    if metadata is None or schema is None:
        return None
    context = replace(context, definitions=metadata.definitions)
    sources = skeleton_sources(context.handle, ((part.partition, part.base) for part in slices))
    return CheckedTable(metadata, context, schema, slices, slice_rows(context, schema).having(sources))


def _checks(table: CheckedTable) -> Iterator[tuple[str, IndexCheck]]:
    """The checks of all indexes that are ready, by the names of their partitions."""
    for name in table.metadata.partitions:
        index = index_of(name, table.context)
        check = None if index is None else index.check(table)
        if check is not None:
            yield name, check


def _guarded(checks: dict[str, IndexCheck], name: str, shown: SliceShown | None) -> Iterator[Trouble]:
    """What one check finds. One whose index cannot be read is given up."""
    try:
        yield from checks[name].finish() if shown is None else checks[name].compare(shown)
    except HudiError as error:
        del checks[name]
        yield str(error.facts.get("path") or index_path(name)), error.cause


@dataclass(frozen=True, slots=True, eq=False)
class _ShowTask:
    """A slice to show; no `rows`: nobody looks at its rows."""

    part: FileSlice
    rows: SliceRows | None


def _task(table: CheckedTable, part: FileSlice, checks: dict[str, IndexCheck]) -> _ShowTask:
    wanted = [columns for check in checks.values() if (columns := check.columns(part)) is not None]
    if not wanted:
        return _ShowTask(part, None)
    names = tuple(dict.fromkeys(column for columns in wanted for column in columns))
    rows = slice_rows(table.context, table.schema, names)
    return _ShowTask(part, rows.having(skeleton_sources(table.context.handle, [(part.partition, part.base)])))


def _show(_: TaskId, task: _ShowTask) -> SliceShown:
    return SliceShown(task.part, pa.table({}) if task.rows is None else task.rows.of(task.part))
