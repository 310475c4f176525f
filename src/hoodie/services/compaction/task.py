"""Merge one file slice into its next base file. This is what runs on a worker.

1. The marker exists before the file does, as for every data file.
2. Base file and log files stream through the reader's merge, by the table's own rules: what a snapshot reads before the
   compaction is what the new base file holds. Rows keep commit time and sequence number; only the file name changes.
3. The key footer of the old base file is inherited. A filter that also knows some deleted keys is still a filter, so it
   is made anew only when the log deletes many.
4. Memory: the log's rows up to the limit (the rest spills to disk), one batch of the base file, one row group.
5. In a table that logs changes the new base file has a change file beside it, as Hudi writes it: what merging did to
   the rows of the base file, and the rows that are new in it.

No row becomes a Python object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskId
from hoodie.merge import Changes
from hoodie.metadata_writer.file_facts import base_file_facts
from hoodie.records import (
    OPERATION_FIELD,
    SEQNO_FIELD,
    BaseFooter,
    read_footer,
    with_meta,
)
from hoodie.services.rewrite.file_rows import with_file_name
from hoodie.services.rewrite.target import RewriteTarget
from hoodie.slices import OpenSlice, SliceRead
from hoodie.spec import LogFileName, RuntimeStats, WriteStat
from hoodie.write.change_log import SUFFIX, ChangeLog, aborted_on_failure
from hoodie.write.new_base_file import NewBaseFile
from hoodie.write.written_file import WrittenFile

_FEW_DELETES: Final = 8
"""A footer is inherited while the log deletes less than one of so many rows."""


@dataclass(frozen=True, slots=True, eq=False)
class CompactTask:
    """One slice to be merged."""

    target: RewriteTarget
    part: SliceRead


@dataclass(slots=True)
class _Counts:
    updates: int = 0
    deletes: int = 0
    inserts: int = 0


def compact_slice(task_id: TaskId, task: CompactTask) -> WrittenFile:
    """The base file that now has the rows of the slice.

    Raises:
        Corrupt: a file of the slice is damaged. Missing: one is gone.
        Unavailable: storage refused, or there is no room for what does not fit in memory.
    """
    target, part = task.target, task.part
    file = NewBaseFile(target, part.partition, part.file_id, target.token(task_id), part.base)
    footer = None if part.base is None else read_footer(target.storage, part.base.path)
    counts = _Counts()
    logged = _change_log(target, part, target.token(task_id))
    with target.slices(part, footer).opened(part) as merge, aborted_on_failure(logged) as changes:
        scan_ms = file.duration_ms
        schema = _file_schema(target, merge)
        file_name = file.name if target.populate_meta_fields else None
        with file.open(schema, footer if _keeps_most_keys(merge, footer) else None) as writer:
            for rows, of_base in _rows(merge, schema, file_name, counts, changes):
                writer.write(rows, inherited=of_base)
        cdc_stats = None if changes is None else changes.close()
        written = writer.close()
    stat = file.stat(written)._replace(
        num_deletes=counts.deletes,
        num_update_writes=counts.updates,
        num_inserts=counts.inserts,
        cdc_stats=cdc_stats,
        runtime=RuntimeStats(total_scan_time_ms=scan_ms, total_upsert_time_ms=file.duration_ms),
    )
    facts = base_file_facts(target.needs, writer.footer()) if target.needs else None
    return WrittenFile(with_log_facts(stat, merge), facts)


def with_log_facts(stat: WriteStat, merge: OpenSlice) -> WriteStat:
    """`stat` with what was read of the log of the slice."""
    part, read = merge.part, merge.counts
    return stat._replace(
        total_log_records=read.rows,
        total_log_files_compacted=len(part.logs),
        total_log_size_compacted=sum(log.size_bytes for log in part.logs),
        total_log_read_time_ms=0 if stat.runtime is None else stat.runtime.total_scan_time_ms,
        total_updated_records_compacted=stat.num_update_writes + stat.num_deletes + stat.num_inserts,
        total_log_blocks=read.blocks,
        total_corrupt_log_blocks=read.corrupt_blocks,
        total_rollback_blocks=read.rollback_blocks,
    )


def _file_schema(target: RewriteTarget, merge: OpenSlice) -> pa.Schema:
    """Meta columns, then data columns as the table has them: required ones stay required."""
    operation = OPERATION_FIELD in merge.slices.schema.names
    return with_meta(target.schema, operation=operation)


def _keeps_most_keys(merge: OpenSlice, footer: BaseFooter | None) -> bool:
    if footer is None or merge.log.is_spilled:
        return footer is not None
    deleted = sum(int(part.is_deleted.sum()) for part in merge.log.parts())
    return deleted * _FEW_DELETES < footer.rows


def _change_log(target: RewriteTarget, part: SliceRead, token: str) -> ChangeLog | None:
    if target.changes is None:
        return None
    name = LogFileName(part.file_id, target.instant, 1, token, SUFFIX)
    return ChangeLog(
        target.storage, target.markers, target.changes, target.table_name, target.schema, part.partition, name
    )


def _rows(
    merge: OpenSlice, schema: pa.Schema, file_name: str | None, counts: _Counts, log: ChangeLog | None
) -> Iterator[tuple[pa.Table, bool]]:
    """The rows of the new file, and whether their keys were in the old one. What became of them is logged."""
    for piece in merge.pieces(with_changes=log is not None):
        if log is not None:
            _log_changes(piece.changes, log)
        counts.updates += piece.updated
        counts.deletes += piece.deleted
        if not piece.of_base:
            counts.inserts += piece.rows.num_rows
        if piece.rows.num_rows:
            yield with_file_name(piece.rows, schema, file_name), piece.of_base


def _log_changes(changes: Iterable[Changes], log: ChangeLog) -> None:
    """Log what merging did. Rows that stayed what they were, sequence number and all, did not change."""
    for one in changes:
        before, after = (None if rows is None else pa.Table.from_batches([rows]) for rows in (one.before, one.after))
        if before is not None and after is not None:
            differs = pc.not_equal(before.column(SEQNO_FIELD), after.column(SEQNO_FIELD))
            log.updated(before.filter(differs), after.filter(differs))
        elif before is not None:
            log.deleted(before)
        elif after is not None:
            log.inserted(after)
