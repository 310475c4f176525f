"""Which keys an action brought to the file groups of a table, and which left them.

1. A rewritten base file is compared with the slice before it: keys that are new came, keys that are gone left. Where
   its statistics tell of neither nothing is read. Nor is it for compactions of both kinds: they change no key, though
   the deletes they write again count as deletes.
2. Of a log file the keys are read. With inserts all of its rows came: what an update puts is what is there already.
   Whose writer cannot tell inserts from updates (a bucket index) may have some.
   Deleted keys left, unless the log says by which value they are ordered, or has to do with keys that were deleted
   before: then the merged slice decides.
3. All keys of replaced file groups left. A key that moved is among those that came and those that left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.logs import BlockKind, read_block_rows, read_blocks, read_deletes
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.metadata_index import NO_KEYS
from hoodie.metadata_writer.skeletons import skeleton_sources
from hoodie.metadata_writer.slice_rows import SliceRows
from hoodie.metadata_writer.slices_after import log_file_of, slice_after, slices_before, stats_by_group
from hoodie.metadata_writer.update import TableUpdate
from hoodie.records import KEY_FIELD
from hoodie.spec import WriteStat
from hoodie.storage import Storage
from hoodie.view import FileSlice, GroupId, LogFile, View


@dataclass(frozen=True, slots=True, eq=False)
class GroupChange:
    """What an action did to one file group: its slices before and after (None: it has none), and the log files it
    wrote. `is_exact`: what becomes of the keys in them is asked of the merged slice.
    """

    rows: SliceRows
    group_id: GroupId
    instant: str
    before: FileSlice | None
    after: FileSlice | None
    logs: tuple[LogFile, ...] = ()
    puts_rows: bool = True
    is_exact: bool = False


def group_changes(context: IndexContext, update: TableUpdate, rows: SliceRows) -> Iterator[GroupChange]:
    """What there is to find out about the groups an action wrote or replaced; nothing where no key came or went."""
    written = stats_by_group(update)
    replaced = [(partition, file_id) for partition, ids in update.replaced.items() for file_id in ids]
    partitions = {partition for partition, _ in (*written, *replaced)}
    if not partitions:
        return
    view = context.view(partitions)
    before = slices_before(view, [*written, *replaced])
    rows = rows.having(skeleton_sources(context.handle, ((part.partition, part.base) for part in before.values())))
    for group_id, stats in written.items():
        change = _group_change(view, update, rows, group_id, stats, before.get(group_id))
        if change is not None:
            yield change
    for group_id in replaced:
        if group_id in before and group_id not in written:
            yield GroupChange(rows, group_id, update.instant, before[group_id], None)


def came_and_left(change: GroupChange) -> tuple[pa.Array, pa.Array]:
    """The keys that came to the group, and those that left it."""
    return _logged(change) if change.logs else _rewritten(change)


def _group_change(  # noqa: PLR0917
    view: View,
    update: TableUpdate,
    rows: SliceRows,
    group_id: GroupId,
    stats: tuple[WriteStat, ...],
    before: FileSlice | None,
) -> GroupChange | None:
    inserts, deletes = sum(stat.num_inserts for stat in stats), sum(stat.num_deletes for stat in stats)
    may_insert = inserts > 0 or (not update.knows_inserts and any(stat.num_update_writes for stat in stats))
    after = slice_after(view, update, group_id, stats, before)
    if not all(stat.is_log for stat in stats):
        if before is not None and not inserts and not deletes:
            return None
        return GroupChange(rows, group_id, update.instant, before, after)
    logs = tuple(log_file_of(stat) for stat in stats)
    revives = before is not None and any(_has_deletes(rows.storage, log) for log in before.logs)
    if not may_insert and not deletes and not revives:
        return None
    paths = {log.path for log in logs}
    is_exact = revives or (deletes > 0 and any(_has_ordered_deletes(rows.storage, log) for log in logs))
    written = tuple(log for log in after.logs if log.path in paths)
    return GroupChange(
        rows, group_id, update.instant, before, after, written, puts_rows=may_insert or revives, is_exact=is_exact
    )


def _rewritten(change: GroupChange) -> tuple[pa.Array, pa.Array]:
    """Keys that a group has now and had not, and the other way round."""
    before, after = change.rows.keys(change.before), change.rows.keys(change.after)
    if not len(before) or not len(after):
        return after, before
    came = after.filter(pc.invert(pc.is_in(after, value_set=before)))
    left = before.filter(pc.invert(pc.is_in(before, value_set=after)))
    return came, left


def _logged(change: GroupChange) -> tuple[pa.Array, pa.Array]:
    """Keys of rows in the log files of an action, and keys they delete."""
    rows, deletes = _log_keys(change.rows.storage, change.logs)
    if change.is_exact:
        there = change.rows.keys(change.after)
        rows = rows.filter(pc.is_in(rows, value_set=there))
        deletes = deletes.filter(pc.invert(pc.is_in(deletes, value_set=there)))
    else:
        deletes = deletes.filter(pc.invert(pc.is_in(deletes, value_set=rows)))
    return rows if change.puts_rows else NO_KEYS, deletes


def _log_keys(storage: Storage, logs: Sequence[LogFile]) -> tuple[pa.Array, pa.Array]:
    """Distinct keys of rows, and of deletes, in log files."""
    rows: list[pa.Array] = []
    deletes: list[pa.Array] = []
    for log in logs:
        for block in read_blocks(storage, log.path, log.size_bytes):
            if block.kind is BlockKind.DELETE:
                deletes.append(read_deletes(storage, block).keys)
            elif block.kind.is_data:
                rows.append(read_block_rows(storage, block, columns=[KEY_FIELD]).column(KEY_FIELD).combine_chunks())
    return _distinct(rows), _distinct(deletes)


def _distinct(arrays: Sequence[pa.Array]) -> pa.Array:
    return pa.concat_arrays([array.cast(pa.string()) for array in arrays]).unique() if arrays else NO_KEYS


def _has_deletes(storage: Storage, log: LogFile) -> bool:
    return any(block.kind is BlockKind.DELETE for block in read_blocks(storage, log.path, log.size_bytes))


def _has_ordered_deletes(storage: Storage, log: LogFile) -> bool:
    """Whether a delete in the file has a value it is ordered by."""
    blocks = (block for block in read_blocks(storage, log.path, log.size_bytes) if block.kind is BlockKind.DELETE)
    return any(not bool(np.all(read_deletes(storage, block).is_default)) for block in blocks)
