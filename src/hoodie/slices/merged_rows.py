"""Rows of a slice that has log files: its base file merged with the blocks that count.

1. Log files are read first, in slice order; what counts of them is held as one version per key, in memory up to a limit
   and in files beyond it. Then the base file streams through.
2. Base rows and log rows are read with the same columns: those asked for, and those the merge looks at. Log rows come
   in the schema of their block and are aligned by name, or by column id where names changed.
3. When no block counts, the base file is read as if it were alone.
4. Which conditions may be decided on base rows before they are merged: those on the key, since all versions of a row
   have the same one; all others only where the outcome for a key in the log does not depend on its base row.
5. An incremental query merges what its commits wrote: base rows of other commits do not take part, as in Hudi. Only
   where log rows have some of the columns they need the whole slice to be rows at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from hoodie.filters.row_filter import Conjunct, both, matching
from hoodie.logs import (
    BlockKind,
    LogBlock,
    blocks_to_merge,
    cut_off,
    ensure_sound,
    read_block_rows,
    read_blocks,
    read_deletes,
)
from hoodie.merge import Changes, LogEntry, LogMap, LogRows, Piece, collect_log, merge_changes, merge_pieces, merge_rows
from hoodie.records import KEY_FIELD, ColumnIds, align
from hoodie.slices.base_rows import iter_base
from hoodie.slices.merge_plan import MergePlan
from hoodie.slices.slice_read import SliceRead
from hoodie.storage import Storage
from hoodie.view import LogFile


@dataclass(frozen=True, slots=True, eq=False)
class EarlyConditions:
    """What rows must meet, as far as it can be decided on the columns of `schema`: `on_keys` looks at nothing that two
    versions of a row could differ in; `on_times` are the commit times of an incremental query; `on_rows` is everything.
    """

    on_keys: Conjunct | None = None
    on_times: Conjunct | None = None
    on_rows: Conjunct | None = None


@dataclass(slots=True)
class LogCounts:
    """What was seen in the log files of a slice. `blocks` are those that count, `rows` their rows without deletes."""

    blocks: int = 0
    corrupt_blocks: int = 0
    rollback_blocks: int = 0
    rows: int = 0
    instants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class OpenSlice:
    """A slice with its log in memory (or spilled): who writes its rows anew wants to know how they came about."""

    slices: MergedSlices
    part: SliceRead
    log: LogMap
    counts: LogCounts

    def pieces(self, *, with_changes: bool = False) -> Iterator[Piece]:
        """The merged rows, base rows first, in the columns of the slices' schema."""
        names = self.slices.schema.names
        yield from merge_pieces(lambda: self.slices.base_rows(self.part), self.log, names, with_changes=with_changes)


@dataclass(frozen=True, slots=True, eq=False)
class MergedSlices:
    """Reads slices with log files as rows of `schema` (which may have fewer columns than merging looks at)."""

    storage: Storage
    plan: MergePlan
    schema: pa.Schema
    ids: ColumnIds | None
    batch_rows: int

    def rows(self, part: SliceRead, early: EarlyConditions) -> Iterator[pa.RecordBatch]:
        """The merged rows of a slice, at least those that meet the conditions.

        Raises:
            Corrupt: a file is damaged. Missing: one is gone. Unsupported: a block of a later release.
        """
        blocks = self._blocks(part.logs)
        if not blocks:
            yield from self._read(part, self.schema, early.on_rows)
            return
        condition = both(early.on_keys, early.on_times)
        if any(block.is_partial for block in blocks):
            part, condition = part.whole or part, early.on_keys
            blocks = self._blocks(part.logs)
        with self._log(blocks, early.on_keys) as log:
            condition = early.on_rows if log.ignores_base else condition
            # Without columns the batches only count, and are counted by those of the merge.
            for batch in merge_rows(lambda: self._base(part, condition), log, self.schema.names or None):
                for at in range(0, batch.num_rows, self.batch_rows):
                    yield batch.slice(at, self.batch_rows).select(self.schema.names)

    @contextmanager
    def opened(self, part: SliceRead) -> Iterator[OpenSlice]:
        """The slice, for somebody who keeps accounts of the merge; its log is let go of at the end.

        Raises:
            Corrupt: a log file is damaged. Missing: one is gone.
        """
        counts = LogCounts()
        blocks = self._blocks(part.logs, counts)
        counts.blocks = len(blocks)
        counts.instants = tuple(dict.fromkeys(block.instant for block in blocks))
        with self._log(blocks, None, counts) as log:
            yield OpenSlice(self, part, log, counts)

    def base_rows(self, part: SliceRead) -> Iterator[pa.RecordBatch]:
        """The rows of the slice's base file in the columns of the merge."""
        return self._base(part, None)

    def changes(self, before: SliceRead | None, logs: Iterable[LogFile]) -> Iterator[Changes]:
        """What log files do to the rows of a slice, which may have log files itself."""
        with self._log(self._blocks(logs), None) as log:
            yield from merge_changes(lambda: self._merged(before), log)

    def _merged(self, part: SliceRead | None) -> Iterator[pa.RecordBatch]:
        """Rows of a slice in the columns of the merge."""
        if part is None:
            return
        blocks = self._blocks(part.logs)
        if not blocks:
            yield from self._base(part, None)
            return
        with self._log(blocks, None) as log:
            yield from merge_rows(lambda: self._base(part, None), log)

    def _blocks(self, logs: Iterable[LogFile], counts: LogCounts | None = None) -> tuple[LogBlock, ...]:
        found: list[LogBlock] = []
        for log in logs:
            found += _sound_blocks(self.storage, log)
        choice = self.plan.blocks
        if counts is not None:
            counts.corrupt_blocks = sum(block.kind is BlockKind.CORRUPT for block in found)
            counts.rollback_blocks = sum(block.kind is BlockKind.COMMAND for block in found)
        return blocks_to_merge(found, counts=choice.counts, until=choice.until)

    def _log(self, blocks: Iterable[LogBlock], condition: Conjunct | None, counts: LogCounts | None = None) -> LogMap:
        plan = self.plan
        entries: Iterator[LogEntry] = (self._entry(block, condition) for block in blocks)
        if counts is not None:
            entries = _counted(entries, counts)
        limit, folder = plan.memory_bytes, plan.spill_dir
        return collect_log(entries, plan.rules, self._columns(), limit_bytes=limit, spill_dir=folder)

    def _entry(self, block: LogBlock, condition: Conjunct | None) -> LogEntry:
        if block.kind is BlockKind.DELETE:
            return read_deletes(self.storage, block)
        wanted = self._stored()
        if condition is not None and self._holds_none(block, wanted, condition):
            return LogRows(self._columns().empty_table())
        mapping = None if self.ids is None else self.ids.mapping(block.instant, wanted)
        names = wanted.names if mapping is None else mapping.stored.names
        rows = read_block_rows(self.storage, block, columns=names)
        if mapping is not None:
            rows = mapping.mapped(rows, fill=not block.is_partial)
        known = pa.schema([field for field in wanted if field.name in rows.schema.names])
        rows = self._with_keys(align(rows, known))
        if block.is_partial:
            return LogRows(rows, frozenset(known.names))
        return LogRows(rows if condition is None else matching(rows, condition.expression))

    def _holds_none(self, block: LogBlock, wanted: pa.Schema, condition: Conjunct) -> bool:
        """Whether no row of a block meets a condition on its key. Decodes the key columns alone."""
        looked_at = pa.schema([field for field in wanted if field.name in condition.columns])
        if self.ids is not None or block.is_partial or 2 * len(looked_at) > len(wanted):
            return False
        rows = read_block_rows(self.storage, block, columns=looked_at.names)
        return not matching(align(rows, looked_at), condition.expression).num_rows

    def _base(self, part: SliceRead, condition: Conjunct | None) -> Iterator[pa.RecordBatch]:
        for batch in self._read(part, self._stored(), condition):
            if self.plan.keys.fields:
                columns = [*batch.columns, self.plan.keys.of_batch(batch)]
                yield pa.RecordBatch.from_arrays(columns, schema=self._columns())
            else:
                yield batch

    def _read(self, part: SliceRead, schema: pa.Schema, condition: Conjunct | None) -> Iterator[pa.RecordBatch]:
        rows = self.batch_rows
        return iter_base(self.storage, part, schema, self.ids, batch_rows=rows, condition=condition)

    def _with_keys(self, rows: pa.Table) -> pa.Table:
        """The rows with their keys, where they do not carry them."""
        if not self.plan.keys.fields:
            return rows
        return rows.append_column(KEY_FIELD, self.plan.keys.of(rows))

    def _stored(self) -> pa.Schema:
        """The columns to read: those asked for, then what the merge needs beside them."""
        extra = [field for field in self.plan.columns if self.schema.get_field_index(field.name) < 0]
        made = KEY_FIELD if self.plan.keys.fields else None
        return pa.schema([field.with_nullable(True) for field in (*self.schema, *extra) if field.name != made])

    def _columns(self) -> pa.Schema:
        """The columns of the merge: those read, and the key."""
        stored = self._stored()
        made = pa.schema([pa.field(KEY_FIELD, pa.string())]) if self.plan.keys.fields else pa.schema([])
        return pa.schema([*stored, *made])


def _counted(entries: Iterable[LogEntry], counts: LogCounts) -> Iterator[LogEntry]:
    for entry in entries:
        if isinstance(entry, LogRows):
            counts.rows += entry.rows.num_rows
        yield entry


def _sound_blocks(storage: Storage, log: LogFile) -> tuple[LogBlock, ...]:
    """The blocks of a log file that was committed as far as is known. A file with damage may be longer than the write
    that made it said; so it is looked at as it is, before it is held to have lost rows.

    Raises:
        Corrupt: it has.
    """
    blocks = read_blocks(storage, log.path, log.size_bytes)
    if log.committed_bytes and any(block.kind is BlockKind.CORRUPT for block in blocks):
        size = storage.head(log.path).size_bytes
        if size < log.committed_bytes:
            raise cut_off(log.path, size, log.committed_bytes)
        if size != log.size_bytes:
            blocks = read_blocks(storage, log.path, size)
    ensure_sound(blocks, log.committed_bytes)
    return blocks
