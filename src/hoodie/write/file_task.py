"""Write one base file: a new file group, or the next version of an existing one.

1. The marker exists before the data file does (rollback finds every file by its marker).
2. The old base file is streamed batch by batch: updated rows are replaced in place, deleted rows dropped, untouched
   rows carried over with their commit time and sequence number, new rows appended. No row becomes a Python object.
3. Memory is bounded by one row group of the old file, one of the new file and the incoming rows of this file group.
   Row groups without a touched row are copied as they are, where they are most of the file (`records.patched_file`);
   what is encoded between two of them is in memory as well.
4. A rewrite with neither new nor deleted keys inherits the old footer's bloom filter and key range.
5. In a table that logs changes a rewrite has a change file beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.ahead import all_made_ahead
from hoodie.engine import TaskId
from hoodie.index import Positions, StitchedRows
from hoodie.metadata_writer.file_facts import IndexNeeds, base_file_facts
from hoodie.records import (
    CONSTANT_FIELDS,
    FILE_NAME_FIELD,
    META_FIELDS,
    BaseFileWriter,
    BaseFooter,
    MergeRule,
    OpenInputs,
    iter_batches,
    newer_wins,
    opened_once,
    with_meta,
)
from hoodie.records.base_file import InputStorage
from hoodie.records.deletion import DeleteMarker, is_deleted, without_deleted
from hoodie.records.parquet_layout import ParquetLayout, load_layout
from hoodie.records.patched_file import PatchedFileWriter, patched_like
from hoodie.spec import LogFileName, WriteStat
from hoodie.view import BaseFile
from hoodie.write.change_log import SUFFIX, ChangeLog, ChangeLogging, aborted_on_failure
from hoodie.write.changed_rows import ChangedRows
from hoodie.write.combine import ordering_values, root_columns
from hoodie.write.incoming import KEY, RowsRef
from hoodie.write.new_base_file import FileTarget, NewBaseFile
from hoodie.write.written_file import WrittenFile

_WORTH: Final = 4
"""Columns of a row group are copied that are one in so many of its bytes, or more."""


@dataclass(frozen=True, slots=True)
class WriteTarget(FileTarget):
    """What all files of one write share.

    `schema` is the write schema (data columns); `dropped` names partition columns that are not stored in files.
    `blank` is what meta columns hold in a table that does not fill them: Hudi's row writer (bulk insert) leaves empty
    text, its other operations NULL. `needs`: what indexes need to know of its files.
    `copy_from_bytes`: row groups of so many bytes, or their unchanged columns, are copied where that is possible.
    """

    schema: pa.Schema
    dropped: tuple[str, ...]
    populate_meta_fields: bool
    blank: str | None
    delete_marker: DeleteMarker | None
    changes: ChangeLogging | None = None
    needs: IndexNeeds = field(default_factory=IndexNeeds)
    copy_from_bytes: int = 1 << 20

    @property
    def file_schema(self) -> pa.Schema:
        """Schema of the base files: five meta columns, then the stored data columns."""
        kept = [field for field in self.schema if field.name not in self.dropped]
        return with_meta(pa.schema(kept))


@dataclass(frozen=True, slots=True)
class FileTask:
    """One base file to write: the next version of `old`, or a new file group without one.

    `rows` are the incoming rows: first one for each entry of `update_rows`, then the inserts. `update_rows` are rows of
    the old base file, ascending; `drop_rows` are rows of it to remove whatever their content. `stitched` gives the rows
    of an old base file that is a bootstrap skeleton. `kept`: where the look-up may have left the old base file open.
    """

    target: WriteTarget
    partition: str
    file_id: str
    old: BaseFile | None
    rows: RowsRef
    update_rows: Positions
    drop_rows: Positions
    merge_rule: MergeRule
    ordering: tuple[str, ...]
    stitched: StitchedRows | None = None
    kept: OpenInputs | None = None


def write_file(task_id: TaskId, task: FileTask) -> WrittenFile:
    """The file written for `task`.

    Raises:
        Corrupt: the old base file cannot be read, or what it is a skeleton of.
        Unavailable: storage refused (disk full, permission).
    """
    target, old = task.target, task.old
    file = NewBaseFile(target, task.partition, task.file_id, task_id.token, old)
    incoming = task.rows.load()
    updates, inserts = incoming.slice(0, len(task.update_rows)), incoming.slice(len(task.update_rows))
    inserts = without_deleted(inserts, target.delete_marker)
    meta_columns = MetaColumnWriter(target, task_id, task.partition, file.name)
    with opened_once(target.storage, task.kept) as stored:
        footer = None if old is None else stored.footer(old.path)
        rows_go = _may_delete(task, updates)
        inherit = None if rows_go else footer
        patch = None if footer is None else _patch_of(task, stored, footer, inserts.num_rows, rows_go=rows_go)
        log = aborted_on_failure(_change_log(task, task_id))
        new = (
            file.open(target.file_schema, inherit)
            if patch is None
            else file.patched(target.file_schema, patch.like, inherit, named=target.populate_meta_fields)
        )
        with log as changes, new as writer:
            rewrite = _Rewrite(task, updates, meta_columns, changes)
            if old is not None:
                if isinstance(writer, PatchedFileWriter) and patch is not None:
                    rewrite.patch(stored, patch, writer)
                else:
                    for rows in rewrite.rows(stored, old.path, footer):
                        writer.write(rows, inherited=True)
            if inserts.num_rows:
                fresh = meta_columns.encoded_rows(inserts)
                writer.write(fresh)
                if changes is not None:
                    changes.inserted(fresh)
            cdc_stats = None if changes is None else changes.close(even_empty=True)
    stat = file.stat(writer.close())._replace(
        num_deletes=rewrite.deleted,
        num_update_writes=rewrite.updated,
        num_inserts=inserts.num_rows,
        cdc_stats=cdc_stats,
    )
    return written_base_file(target, stat, writer)


def written_base_file(target: WriteTarget, stat: WriteStat, writer: BaseFileWriter | PatchedFileWriter) -> WrittenFile:
    """The file of a writer that is closed, with what indexes need to know of it."""
    return WrittenFile(stat, base_file_facts(target.needs, writer.footer()) if target.needs else None)


@dataclass(frozen=True, slots=True)
class _Patch:
    """How the next version of a base file is made of this one: its row groups `untouched` stay as they are, and its
    footer is `like` another.
    """

    layout: ParquetLayout
    like: ParquetLayout
    untouched: frozenset[int]


def untouched_groups(task: FileTask, footer: BaseFooter, inserts: int) -> frozenset[int]:
    """Row groups of the old base file that can stay as they are: no row in them changes or goes, and new rows are not
    added to them. New rows join the last one while that is small, or each write would leave another small one.
    """
    ends = np.cumsum(np.array(footer.rows_per_group, dtype=np.int64))
    changed = np.concatenate([task.update_rows, task.drop_rows])
    touched = set(np.unique(np.searchsorted(ends, changed, side="right")).tolist())
    if inserts and footer.bytes_per_group and footer.bytes_per_group[-1] < task.target.options.row_group_bytes // 2:
        touched.add(len(ends) - 1)
    return frozenset(range(len(ends))) - touched


def _patch_of(
    task: FileTask, storage: InputStorage, footer: BaseFooter, inserts: int, *, rows_go: bool
) -> _Patch | None:
    """What of the old base file is copied, where that is worth it and possible: all its row groups or columns of them;
    where rows may go, its untouched row groups are at least half of it. Else None, mostly without a look at the file.
    """
    if task.stitched is not None or footer.native is None:
        return None
    untouched = untouched_groups(task, footer, inserts)
    stored = sum(footer.bytes_per_group)
    saved = sum(footer.bytes_per_group[at] for at in untouched) if rows_go else stored
    if not saved or saved < max(task.target.copy_from_bytes, stored // 2):
        return None
    layout = load_layout(storage, footer)
    like = None if layout is None else patched_like(layout, task.target.file_schema)
    return None if layout is None or like is None else _Patch(layout, like, untouched)


def _change_log(task: FileTask, task_id: TaskId) -> ChangeLog | None:
    """The change log of a rewrite in a table that has them."""
    target = task.target
    if target.changes is None or task.old is None:
        return None
    name = LogFileName(task.file_id, target.instant, 1, task_id.token, SUFFIX)
    schema = pa.schema([field for field in target.file_schema if field.name not in META_FIELDS])
    return ChangeLog(target.storage, target.markers, target.changes, target.table_name, schema, task.partition, name)


class MetaColumnWriter:
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
        return self._made(keyed, _repeated, self._target.file_schema)

    def encoded_rows(self, keyed: pa.Table) -> pa.Table:
        """The same with dictionaries for the meta columns of one value: a base file is written from these, and long
        names are not copied and looked up for each row. `keyed` needs no partition column.
        """
        if not self._target.populate_meta_fields:
            return self.rows(keyed)
        return self._made(keyed, _as_dictionary, _with_dictionaries(self._target.file_schema))

    def _made(self, keyed: pa.Table, constant: Callable[[str, int], pa.Array], schema: pa.Schema) -> pa.Table:
        count = keyed.num_rows
        if not self._target.populate_meta_fields:
            empty = pa.repeat(pa.scalar(self._target.blank, pa.string()), count)
            meta: list[pa.Array] = [empty] * len(META_FIELDS)
        else:
            numbers = pa.array(np.arange(self._next, self._next + count, dtype=np.int64)).cast(pa.string())
            self._next += count
            seqno = pc.binary_join_element_wise(self._prefix, numbers, "")
            meta = [
                constant(self._target.instant, count),
                seqno,
                keyed.column(KEY),
                constant(self._partition, count),
                constant(self._file_name, count),
            ]
        data = [keyed.column(name) for name in schema.names[len(META_FIELDS) :]]
        return pa.Table.from_arrays([*meta, *data], schema=schema)

    def file_names(self, count: int) -> pa.Array:
        return _repeated(self._file_name, count)


def _repeated(value: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.string()), count)


def _as_dictionary(value: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([value], pa.string()))


def _with_dictionaries(schema: pa.Schema) -> pa.Schema:
    """`schema` with dictionaries of text where meta columns have one value in a whole file."""
    kind = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([field.with_type(kind) if field.name in CONSTANT_FIELDS else field for field in schema])


@dataclass(slots=True)
class _Rewrite:
    """The rows of the old base file as the new one has them, and how many of them were updated and deleted."""

    task: FileTask
    updates: pa.Table
    meta_columns: MetaColumnWriter
    changes: ChangeLog | None
    updated: int = 0
    deleted: int = 0

    def patch(self, storage: InputStorage, patch: _Patch, writer: PatchedFileWriter) -> None:
        """Writes what is left of the old file: untouched row groups as they are, rows of the others."""
        layout, schema = patch.layout, self.task.target.file_schema
        footer = layout.footer
        starts = [0, *np.cumsum(footer.rows_per_group).tolist()]
        runs = [
            (is_untouched, tuple(run))
            for is_untouched, run in groupby(range(len(footer.rows_per_group)), patch.untouched.__contains__)
        ]
        reads = [
            partial(iter_batches, storage, footer.path, self._read, schema=schema, footer=footer, groups=(group,))
            for is_untouched, groups in runs
            if not is_untouched
            for group in groups
        ]
        with closing(all_made_ahead(reads, 2)) as read:
            stored = next(read, None)  # which begins while others are copied
            for is_untouched, groups in runs:
                if is_untouched:
                    writer.copy(storage, layout, groups)
                    continue
                for group in groups:
                    assert stored is not None
                    self._write_group(writer, storage, layout, group, self._changes(stored, starts[group]))
                    stored = next(read, None)

    def _write_group(
        self,
        writer: PatchedFileWriter,
        storage: InputStorage,
        layout: ParquetLayout,
        group: int,
        changes: Iterator[ChangedRows],
    ) -> None:
        """Writes what is left of a row group: of its columns only those that changed, where others are worth it, all
        its rows stay, and it is neither so small that it joins its neighbours, nor so large that it is split.
        """
        wanted = self.task.target.options.row_group_bytes
        held: list[ChangedRows] = []
        changed: list[str] = []
        size = 0
        for change in changes:
            held.append(change)
            size += change.stored.nbytes
            changed += change.changed_columns(changed)
            if len(change.gone) or size > 2 * wanted or not _saves(change.stored, changed):
                break
        else:
            if 2 * size >= wanted:
                columns = [name for name in self._read if name in changed]
                if columns:
                    writer.change(storage, layout, group, pa.concat_tables([change.rows(columns) for change in held]))
                else:
                    writer.copy(storage, layout, (group,))
                return
        for change in chain(held, changes):
            writer.write(self._rows(change), inherited=True)

    def rows(self, storage: InputStorage, old_path: str, footer: BaseFooter | None) -> Iterator[pa.Table]:
        """Batch by batch what is left of the old file, whose footer is known."""
        schema, stitched = self.task.target.file_schema, self.task.stitched
        own = iter_batches(storage, old_path, self._read, schema=schema, footer=footer)
        yield from map(self._rows, self._changes(own if stitched is None else stitched(schema), 0))

    @property
    def _read(self) -> list[str]:
        """The columns of stored rows that are read: not in which file they lie, which is another one now."""
        target = self.task.target
        return [name for name in target.file_schema.names if name != FILE_NAME_FIELD or not target.populate_meta_fields]

    def _rows(self, change: ChangedRows) -> pa.Table:
        """What is left of stored rows, in the file schema."""
        rows, schema = change.rows(self._read), self.task.target.file_schema
        if rows.num_columns < len(schema):
            place = schema.get_field_index(FILE_NAME_FIELD)
            rows = rows.add_column(place, schema.field(place), self.meta_columns.file_names(rows.num_rows))
        return rows

    def _changes(self, stored: Iterable[pa.RecordBatch], first: int) -> Iterator[ChangedRows]:
        """Batch by batch what becomes of stored rows, of which the first is the row `first` of the old file."""
        task = self.task
        for batch in stored:
            at, matching = _within(task.update_rows, first, batch.num_rows)
            drop, _ = _within(task.drop_rows, first, batch.num_rows)
            rows = self.updates.slice(matching.start, len(at))
            yield self._changed(pa.Table.from_batches([batch]), rows, at, drop)
            first += batch.num_rows

    def _changed(self, stored: pa.Table, rows: pa.Table, at: Positions, drop: Positions) -> ChangedRows:
        """`stored` without the rows to `drop`, and with the incoming `rows` where they win against those `at` them."""
        gone, fresh = drop, stored.slice(0, 0)
        if len(at):
            deleted = is_deleted(rows, self.task.target.delete_marker)
            wins = _wins(self.task, rows, stored, at, deleted)
            deleted &= wins
            replaced = wins & ~deleted
            gone = np.concatenate([drop, at[deleted]])
            self.updated += int(replaced.sum())
            if replaced.all():
                fresh = self.meta_columns.rows(rows)
            else:
                fresh = self.meta_columns.rows(rows.filter(pa.array(replaced)))
                at = at[replaced]
        self.deleted += len(gone)
        if self.changes is not None:
            self.changes.deleted(stored.take(pa.array(gone)))
            if len(at):
                self.changes.updated(stored.take(pa.array(at)), fresh)
        return ChangedRows(stored, at, fresh, gone)


def _wins(task: FileTask, rows: pa.Table, stored: pa.Table, at: Positions, deleted: Any) -> Any:
    """Per incoming row whether it beats the stored row `at` it."""
    if not (task.ordering and task.merge_rule.ordered_against_stored):
        return np.ones(len(at), dtype=bool)
    old = stored.select(root_columns(task.ordering)).take(pa.array(at))
    return newer_wins(ordering_values(rows, task.ordering), ordering_values(old, task.ordering), pa.array(deleted))


def _saves(stored: pa.Table, changed: Collection[str]) -> bool:
    """Whether a part of the rows that counts lies in columns that did not change."""
    alike = sum(stored.column(name).nbytes for name in stored.schema.names if name not in changed)
    return bool(_WORTH * alike >= stored.nbytes)


def _within(rows: Positions, first: int, size: int) -> tuple[Positions, slice]:
    """The entries of ascending `rows` in [first, first + size), made relative, and where they stand in `rows`."""
    low, high = np.searchsorted(rows, [first, first + size])
    return rows[low:high] - first, slice(int(low), int(high))


def _may_delete(task: FileTask, updates: pa.Table) -> bool:
    """Whether a key may leave the file: then the old key footer does not hold for the new file."""
    return len(task.drop_rows) > 0 or bool(is_deleted(updates, task.target.delete_marker).any())
