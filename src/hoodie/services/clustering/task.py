"""Write the rows of one group of slices to new file groups. This is what runs on a worker.

1. The marker exists before the file does, as for every data file.
2. Slices stream through the reader's merge, two at a time where none has a log, and are taken in turn. Rows keep
   commit time, sequence number and key; only the file name changes.
3. Files of one group get the same number of rows, but for the last. Where rows need no order and files fit together,
   row groups are copied (`stitch`), and files get whole ones.
4. Memory: the log of one slice up to its limit; the rows of the group up to a quarter of it, where they are sorted or
   split (`sorted_rows`); one row group; a few batches between the threads that read, sort and write.

No row becomes a Python object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

import pyarrow as pa

from hoodie.ahead import all_made_ahead, done_ahead, made_ahead
from hoodie.engine import TaskId
from hoodie.metadata_writer.file_facts import base_file_facts
from hoodie.records import FILE_NAME_FIELD, BaseFileWriter, BaseFooter, read_footer, with_meta
from hoodie.records.parquet_layout import ParquetLayout
from hoodie.records.row_group_copy import RowGroupCopy
from hoodie.services.clustering.row_order import ExecutionStrategy
from hoodie.services.clustering.row_pieces import RowPieces
from hoodie.services.clustering.sorted_rows import SortedRows
from hoodie.services.clustering.stitch import load_stitchable, split_evenly, stitched
from hoodie.services.rewrite.file_rows import with_file_name
from hoodie.services.rewrite.target import RewriteTarget
from hoodie.slices import SliceRead
from hoodie.write.new_base_file import NewBaseFile
from hoodie.write.written_file import WrittenFile

_SORTED_SHARE: Final = 4

_READING_THREADS: Final = 2
"""Slices that are read at the same time, where none has a log: its rows are held."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterTask:
    """Slices of one partition, the order of their rows (None: as they come), and the file ids they go to.
    `copy_from_bytes`: row groups as large as this are copied where that is possible.
    """

    target: RewriteTarget
    partition: str
    parts: tuple[SliceRead, ...]
    order: ExecutionStrategy | None
    file_ids: tuple[str, ...]
    copy_from_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class ClusteredGroup:
    """The new files of a group, and why its rows were decoded; None where row groups were copied."""

    files: tuple[WrittenFile, ...]
    why_decoded: str | None


def cluster_slices(task_id: TaskId, task: ClusterTask) -> ClusteredGroup:
    """The new base files, in the order of their rows. Without rows there is none.

    Raises:
        Corrupt: a file of a slice is damaged. Missing: one is gone.
        Unavailable: storage refused, or there is no room for what does not fit in memory.
        Unsupported: a sort column's values have no order.
    """
    target = task.target
    parts = tuple(zip(task.parts, done_ahead(partial(_footer, target), task.parts, _READING_THREADS), strict=True))
    schema = with_meta(target.schema, operation=any(target.has_operation(part, footer) for part, footer in parts))
    found = "rows are sorted" if task.order else load_stitchable(target.storage, parts, schema, task.copy_from_bytes)
    if isinstance(found, str):
        return ClusteredGroup(_decoded(task_id, task, parts, schema), found)
    runs = zip(split_evenly(found, len(task.file_ids)), task.file_ids, strict=False)
    return ClusteredGroup(tuple(_stitched(task_id, task, one, run, schema) for run, one in runs), None)


def _footer(target: RewriteTarget, part: SliceRead) -> BaseFooter | None:
    return None if part.base is None else read_footer(target.storage, part.base.path)


def _decoded(
    task_id: TaskId, task: ClusterTask, parts: Sequence[tuple[SliceRead, BaseFooter | None]], schema: pa.Schema
) -> tuple[WrittenFile, ...]:
    kept = _columns_to_keep(task, schema)
    reads = [partial(_merged, task, part, footer, kept) for part, footer in parts]
    threads = 1 if any(part.logs for part in task.parts) else _READING_THREADS
    if task.order is None and len(task.file_ids) == 1:
        with closing(all_made_ahead(reads, threads)) as read:
            found = _written(task_id, task, task.file_ids[0], schema, chain.from_iterable(read))
        return () if found is None else (found,)
    merge = task.target.merge
    with SortedRows(kept, task.order, merge.memory_bytes // _SORTED_SHARE, merge.spill_dir) as held:
        with closing(all_made_ahead(reads, threads)) as read:
            for batch in chain.from_iterable(read):
                held.add(batch)
        per_file = -(-held.count // len(task.file_ids))
        with ThreadPoolExecutor(1, "hoodie-keys") as aside, made_ahead(held.batches) as in_order:
            pieces = RowPieces(in_order)
            written = (
                _written(task_id, task, one, schema, pieces.take(per_file), keys_aside=aside) for one in task.file_ids
            )
            return tuple(file for file in written if file is not None)


def _columns_to_keep(task: ClusterTask, schema: pa.Schema) -> pa.Schema:
    """The columns of `schema` without the file name, where the new files say their own."""
    looked_at = task.order.columns if task.order is not None else ()
    if not task.target.populate_meta_fields or FILE_NAME_FIELD in looked_at:
        return schema
    return pa.schema([field for field in schema if field.name != FILE_NAME_FIELD])


def _merged(
    task: ClusterTask, part: SliceRead, footer: BaseFooter | None, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice in the columns of `schema`; meta columns that it does not have are empty."""
    with task.target.slices(part, footer).opened(part) as merge:
        for piece in merge.pieces():
            rows, names = piece.rows, piece.rows.schema.names
            columns = [
                rows.column(field.name) if field.name in names else pa.nulls(rows.num_rows, field.type)
                for field in schema
            ]
            if rows.num_rows:
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _written(
    task_id: TaskId,
    task: ClusterTask,
    file_id: str,
    schema: pa.Schema,
    rows: Iterator[pa.RecordBatch],
    *,
    keys_aside: Executor | None = None,
) -> WrittenFile | None:
    """The base file with these rows; None when there are none."""
    first = next(rows, None)
    if first is None:
        return None
    target = task.target
    file = NewBaseFile(target, task.partition, file_id, target.token(task_id))
    with file.open(schema, keys_aside=keys_aside) as writer:
        for batch in chain((first,), rows):
            writer.write(with_file_name(batch, schema, file.name if target.populate_meta_fields else None))
    return _closed(target, file, writer)


def _stitched(
    task_id: TaskId, task: ClusterTask, file_id: str, layouts: Sequence[ParquetLayout], schema: pa.Schema
) -> WrittenFile:
    """The base file with all row groups of these files."""
    file = NewBaseFile(task.target, task.partition, file_id, task.target.token(task_id))
    return _closed(task.target, file, stitched(task.target, file, layouts, schema))


def _closed(target: RewriteTarget, file: NewBaseFile, writer: BaseFileWriter | RowGroupCopy) -> WrittenFile:
    stat = file.stat(writer.close())
    return WrittenFile(stat, base_file_facts(target.needs, writer.footer()) if target.needs else None)
