"""Write one base file: a new file group, or the next version of an existing one.

1. The marker exists before the data file does (rollback finds every file by its marker).
2. The old base file is streamed batch by batch: updated rows are replaced in place, deleted rows dropped, untouched
   rows carried over with their commit time and sequence number, new rows appended. No row becomes a Python object.
3. Memory is bounded by one row group of the old file, one of the new file and the incoming rows of this file group.
4. A rewrite with neither new nor deleted keys inherits the old footer's bloom filter and key range.
5. In a table that logs changes a rewrite has a change file beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskId
from hoodie.env import Env
from hoodie.index import Positions
from hoodie.records import (
    BaseFileOptions,
    BaseFileWriter,
    BaseFooter,
    MergeRule,
    iter_batches,
    newer_wins,
    read_footer,
    with_meta,
)
from hoodie.records.deletion import DeleteMarker, is_deleted, without_deleted
from hoodie.spec import NULL_COMMIT, BaseFileName, LogFileName, MarkerKind, RuntimeStats, WriteStat, marker_path
from hoodie.storage import Storage
from hoodie.write.change_log import SUFFIX, ChangeLog, ChangeLogging
from hoodie.write.combine import ordering_values, root_columns
from hoodie.write.incoming import KEY, PARTITION, RowsRef

COMMIT_TIME = "_hoodie_commit_time"
SEQNO = "_hoodie_commit_seqno"
FILE_NAME = "_hoodie_file_name"
_META = (COMMIT_TIME, SEQNO, KEY, PARTITION, FILE_NAME)


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """What all files of one write share.

    `schema` is the write schema (data columns); `dropped` names partition columns that are not stored in files.
    `blank` is what meta columns hold in a table that does not fill them: Hudi's row writer (bulk insert) leaves empty
    text, its other operations NULL.
    """

    storage: Storage
    env: Env
    instant: str
    schema: pa.Schema
    dropped: tuple[str, ...]
    populate_meta_fields: bool
    blank: str | None
    table_name: str
    delete_marker: DeleteMarker | None
    options: BaseFileOptions
    changes: ChangeLogging | None = None

    @property
    def file_schema(self) -> pa.Schema:
        """Schema of the base files: five meta columns, then the stored data columns."""
        kept = [field for field in self.schema if field.name not in self.dropped]
        return with_meta(pa.schema(kept))


@dataclass(frozen=True, slots=True)
class FileTask:
    """One base file to write.

    `rows` are the incoming rows: first one for each entry of `update_rows`, then the inserts. `update_rows` are rows of
    the old base file, ascending; `drop_rows` are rows of it to remove whatever their content.
    """

    target: WriteTarget
    partition: str
    file_id: str
    old_path: str | None
    old_instant: str
    rows: RowsRef
    update_rows: Positions
    drop_rows: Positions
    merge_rule: MergeRule
    ordering: tuple[str, ...]


def write_file(task_id: TaskId, task: FileTask) -> WriteStat:
    """The write stat of the file written for `task`.

    Raises:
        Corrupt: the old base file cannot be read.
        Unavailable: storage refused (disk full, permission).
    """
    started = task.target.env.monotonic()
    name = BaseFileName(task.file_id, task_id.token, task.target.instant, "parquet")
    path = f"{task.partition}/{name.text}" if task.partition else name.text
    old = task.old_path
    kind = MarkerKind.CREATE if old is None else MarkerKind.MERGE
    task.target.storage.create(marker_path(task.target.instant, path, kind), b"")
    counts = _Counts()
    incoming = task.rows.load()
    updates, inserts = incoming.slice(0, len(task.update_rows)), incoming.slice(len(task.update_rows))
    inserts = without_deleted(inserts, task.target.delete_marker)
    footer = None if task.old_path is None else read_footer(task.target.storage, task.old_path)
    stamp = Stamp(task.target, task_id, task.partition, name.text)
    with _logged(task, task_id) as changes, _open_writer(task, path, footer, updates) as writer:
        if old is not None:
            for rows in _carried_over(task, old, updates, stamp, counts, changes):
                writer.write(rows, inherited=True)
        if inserts.num_rows:
            fresh = stamp.rows(inserts)
            writer.write(fresh)
            if changes is not None:
                changes.inserted(fresh)
        cdc_stats = None if changes is None else changes.close()
    written = writer.close()
    took = int((task.target.env.monotonic() - started) * 1000)
    return WriteStat(
        file_id=task.file_id,
        path=path,
        prev_commit=NULL_COMMIT if old is None else task.old_instant,
        prev_base_file=None if old is None else old.rsplit("/", 1)[-1],
        num_writes=written.rows,
        num_deletes=counts.deletes,
        num_update_writes=counts.updates,
        num_inserts=inserts.num_rows,
        total_write_bytes=written.size_bytes,
        file_size_bytes=written.size_bytes,
        partition_path=task.partition,
        cdc_stats=cdc_stats,
        runtime=RuntimeStats(total_create_time_ms=took) if old is None else RuntimeStats(total_upsert_time_ms=took),
    )


@contextmanager
def _logged(task: FileTask, task_id: TaskId) -> Iterator[ChangeLog | None]:
    """The change log of a rewrite in a table that has them."""
    target = task.target
    if target.changes is None or task.old_path is None:
        yield None
        return
    name = LogFileName(task.file_id, target.instant, 1, task_id.token, SUFFIX)
    schema = pa.schema([field for field in target.file_schema if field.name not in _META])
    changes = ChangeLog(target.storage, target.changes, target.table_name, schema, task.partition, name)
    try:
        yield changes
    except BaseException:
        changes.abort()
        raise


@dataclass(slots=True)
class _Counts:
    updates: int = 0
    deletes: int = 0


class Stamp:
    """Gives the rows of one base file their meta columns; the sequence number counts on from `first`.

    The partition path is the file's own: a global index may have sent a row to another partition than its columns say.
    """

    def __init__(self, target: WriteTarget, task_id: TaskId, partition: str, file_name: str, first: int = 0) -> None:
        self._target = target
        self._prefix = f"{target.instant}_{task_id.partition}_"
        self._partition = partition
        self._file_name = file_name
        self._next = first

    def rows(self, keyed: pa.Table) -> pa.Table:
        """`keyed` rows (key, partition, data) in the file schema, with fresh meta columns."""
        schema = self._target.file_schema
        count = keyed.num_rows
        if not self._target.populate_meta_fields:
            empty = pa.repeat(pa.scalar(self._target.blank, pa.string()), count)
            meta: list[pa.Array] = [empty] * len(_META)
        else:
            numbers = pa.array(np.arange(self._next, self._next + count, dtype=np.int64)).cast(pa.string())
            self._next += count
            seqno = pc.binary_join_element_wise(self._prefix, numbers, "")
            meta = [
                pa.repeat(pa.scalar(self._target.instant, pa.string()), count),
                seqno,
                keyed.column(KEY),
                pa.repeat(pa.scalar(self._partition, pa.string()), count),
                self.file_names(count),
            ]
        data = [keyed.column(name) for name in schema.names[len(_META) :]]
        return pa.Table.from_arrays([*meta, *data], schema=schema)

    def file_names(self, count: int) -> pa.Array:
        return pa.repeat(pa.scalar(self._file_name, pa.string()), count)


def _carried_over(  # noqa: PLR0917
    task: FileTask, old_path: str, updates: pa.Table, stamp: Stamp, counts: _Counts, changes: ChangeLog | None
) -> Iterator[pa.Table]:
    schema = task.target.file_schema
    first = 0
    for batch in iter_batches(task.target.storage, old_path, schema=schema):
        size = batch.num_rows
        stored = pa.Table.from_batches([batch])
        at, matching = _within(task.update_rows, first, size)
        drop, _ = _within(task.drop_rows, first, size)
        rows = updates.slice(matching.start, len(at))
        yield _merge_batch(task, stored, rows, at, drop, stamp, counts, changes)
        first += size


def _merge_batch(  # noqa: PLR0917
    task: FileTask,
    stored: pa.Table,
    rows: pa.Table,
    at: Positions,
    drop: Positions,
    stamp: Stamp,
    counts: _Counts,
    changes: ChangeLog | None,
) -> pa.Table:
    gone = drop
    if len(at):
        deleted = is_deleted(rows, task.target.delete_marker)
        wins = _wins(task, rows, stored, at, deleted)
        deleted &= wins
        replaced = wins & ~deleted
        gone = np.concatenate([drop, at[deleted]])
        counts.updates += int(replaced.sum())
        if replaced.all():
            fresh = stamp.rows(rows)
        else:
            fresh = stamp.rows(rows.filter(pa.array(replaced)))
            at = at[replaced]
    counts.deletes += len(gone)
    if changes is not None:
        changes.deleted(stored.take(pa.array(gone)))
        if len(at):
            changes.updated(stored.take(pa.array(at)), fresh)
    if task.target.populate_meta_fields:
        place = stored.schema.get_field_index(FILE_NAME)
        stored = stored.set_column(place, stored.schema.field(place), stamp.file_names(stored.num_rows))
    if len(at):
        stored = _replace(stored, at, fresh)
    if len(gone):
        keep = np.ones(stored.num_rows, dtype=bool)
        keep[gone] = False
        stored = stored.filter(pa.array(keep))
    return stored


def _wins(task: FileTask, rows: pa.Table, stored: pa.Table, at: Positions, deleted: Any) -> Any:
    """Per incoming row whether it beats the stored row `at` it."""
    if not (task.ordering and task.merge_rule.ordered_against_stored):
        return np.ones(len(at), dtype=bool)
    old = stored.select(root_columns(task.ordering)).take(pa.array(at))
    return newer_wins(ordering_values(rows, task.ordering), ordering_values(old, task.ordering), pa.array(deleted))


def _replace(stored: pa.Table, at: Positions, fresh: pa.Table) -> pa.Table:
    """`stored` with row `at[i]` replaced by row i of `fresh`."""
    indices = np.arange(stored.num_rows, dtype=np.int64)
    indices[at] = stored.num_rows + np.arange(len(at), dtype=np.int64)
    return pa.concat_tables([stored, fresh]).combine_chunks().take(pa.array(indices))


def _within(rows: Positions, first: int, size: int) -> tuple[Positions, slice]:
    """The entries of ascending `rows` in [first, first + size), made relative, and where they stand in `rows`."""
    low, high = np.searchsorted(rows, [first, first + size])
    return rows[low:high] - first, slice(int(low), int(high))


def _open_writer(task: FileTask, path: str, footer: BaseFooter | None, updates: pa.Table) -> BaseFileWriter:
    """A writer that inherits the old key footer when no key can have left the file."""
    target = task.target
    may_delete = len(task.drop_rows) > 0 or bool(is_deleted(updates, target.delete_marker).any())
    inherit = None if may_delete else footer
    return BaseFileWriter(
        target.storage, path, target.file_schema, target.options, table_name=target.table_name, inherit=inherit
    )
