"""Records of `record_index`: in which file group each key lies.

1. Initially every key of every slice is read, logs merged in. Slices are read by tasks, some of them together, so that
   what is held at once is bounded.
2. A rewritten base file is compared with the slice before it: keys that are new are put, keys that are gone are
   deleted. Where its statistics tell of neither nothing is read. Nor is it for compactions of both kinds: they change
   no key, though the deletes they write again count as deletes.
3. Of a log file the keys are read. With inserts all of its rows are put: what an update puts is what is there already.
   Whose writer cannot tell inserts from updates (a bucket index) may have some.
   Deleted keys are deleted, unless the log says by which value they are ordered, or has to do with keys that were
   deleted before: then the merged slice decides.
4. All keys of replaced file groups are deleted, if no other group got them: a key that is put and deleted by one action
   is put. Whoever writes the records sees to that.
5. An index that is cut by partitions has file groups for each of them.
6. Keys of bootstrap skeletons are in the skeletons. Their sources are read where log files are merged with them: the
   values by which rows are ordered stand there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.logs import BlockKind, read_block_rows, read_blocks, read_deletes
from hoodie.metadata import RECORD_INDEX, IndexDefinition
from hoodie.metadata.partitions import data_partition_groups
from hoodie.metadata_writer.index_state import kept_definition
from hoodie.metadata_writer.key_work import (
    DRIVER_ROWS,
    GLOBAL_INDEX,
    PARTITIONED_INDEX,
    bounded_slices,
    changes_keys,
    group_count,
)
from hoodie.metadata_writer.layout import group_file_ids
from hoodie.metadata_writer.locations import instant_millis, location_rows
from hoodie.metadata_writer.metadata_index import NO_KEYS, IndexContext, MetadataRecords, Records, RecordTask
from hoodie.metadata_writer.skeletons import skeleton_sources
from hoodie.metadata_writer.slice_rows import SliceRows, slice_rows
from hoodie.metadata_writer.slices_after import log_file_of, slice_after, slices_before, stats_by_group
from hoodie.metadata_writer.table_columns import columns_after, columns_before
from hoodie.metadata_writer.update import TableUpdate
from hoodie.records import KEY_FIELD
from hoodie.spec import AvroGeneration, TimeZone, WriteStat
from hoodie.storage import Storage
from hoodie.view import FileSlice, GroupId, LogFile, View

GLOBAL_ENABLE: Final = "hoodie.metadata.global.record.level.index.enable"
PARTITIONED_ENABLE: Final = "hoodie.metadata.record.level.index.enable"


@dataclass(frozen=True, slots=True)
class IndexForm:
    """How records are written: the Avro generation, the zone of instants, whether the index is cut by partitions."""

    avro_generation: AvroGeneration
    timezone: TimeZone
    is_partitioned: bool

    def puts(self, keys: pa.Array, group_id: GroupId, instant: str) -> pa.Table:
        """Records that say keys are in a group since an instant."""
        partition, file_id = group_id
        return location_rows(keys, partition, file_id, instant_millis(instant, self.timezone), self.avro_generation)

    def records(self, rows: pa.Table, partition: str, deletes: pa.Array = NO_KEYS) -> MetadataRecords:
        """The records, said to be of their partition where that matters."""
        return MetadataRecords(RECORD_INDEX, rows, deletes, partition if self.is_partitioned else "")


@dataclass(frozen=True, slots=True, eq=False)
class SlicesTask:
    """Slices of one partition whose keys are to be indexed."""

    rows: SliceRows
    form: IndexForm
    slices: tuple[FileSlice, ...]


@dataclass(frozen=True, slots=True, eq=False)
class GroupTask:
    """What an action did to one file group: its slices before and after (None: it has none), and the log files it
    wrote. `is_exact`: what becomes of the keys in them is asked of the merged slice.
    """

    rows: SliceRows
    form: IndexForm
    group_id: GroupId
    instant: str
    before: FileSlice | None
    after: FileSlice | None
    logs: tuple[LogFile, ...] = ()
    puts_rows: bool = True
    is_exact: bool = False


class RecordLevelIndex:
    """The source of `record_index`."""

    partition = RECORD_INDEX

    def file_ids(self, context: IndexContext) -> tuple[str, ...]:
        """Groups for the number of keys there are, with room for growth; of a partitioned index for each partition."""
        slices = context.view().slices_at()
        if not is_partitioned(context):
            return group_file_ids(RECORD_INDEX, group_count(context, slices, GLOBAL_INDEX))
        by_partition: dict[str, list[FileSlice]] = {name: [] for name in context.view().partitions}
        for part in slices:
            by_partition[part.partition].append(part)
        return tuple(
            file_id
            for name, own in by_partition.items()
            for file_id in group_file_ids(RECORD_INDEX, group_count(context, own, PARTITIONED_INDEX), name)
        )

    def initial(self, context: IndexContext) -> Iterator[Records]:
        """Where every key is now."""
        schema = columns_before(context)
        if schema is None:
            return
        rows, form = slice_rows(context, schema), _form(context)
        for some in bounded_slices(context.view().slices_at()):
            sources = skeleton_sources(context.handle, ((part.partition, part.base) for part in some if part.logs))
            yield RecordTask(records_of_slices, SlicesTask(rows.having(sources), form, some))

    def updated(self, context: IndexContext, update: TableUpdate) -> Iterator[Records]:
        """Where keys came, and which are gone."""
        schema = columns_after(context, update)
        if schema is None or not changes_keys(update):
            return
        tasks = list(changes(context, update, slice_rows(context, schema, (), update.instant)))
        is_small = sum(stat.num_writes for stat in update.stats) <= DRIVER_ROWS
        for task in tasks:
            if is_small:
                records = records_of_group(task)
                if len(records):
                    yield records
            else:
                yield RecordTask(records_of_group, task)

    def new_file_ids(self, context: IndexContext, update: TableUpdate) -> tuple[str, ...]:
        """Groups to make before an update: those of partitions that a partitioned index has not met."""
        table = context.metadata_table()
        if not is_partitioned(context) or table is None or not table.has(RECORD_INDEX):
            return ()
        known = data_partition_groups(group.file_id for group in table.store.groups(RECORD_INDEX))
        partitions = sorted({stat.partition_path for stat in update.stats if stat.path is not None})
        count = context.options.config.integer(PARTITIONED_INDEX[0])
        unknown = (name for name in partitions if name not in known)
        return tuple(file_id for name in unknown for file_id in group_file_ids(RECORD_INDEX, count, name))


def is_partitioned(context: IndexContext) -> bool:
    """Whether the index is cut by partitions of the table: as it was made, else as the options ask."""
    definition = kept_definition(context, RECORD_INDEX)
    if definition is not None:
        return definition.is_partitioned
    config = context.options.config
    return config.flag(PARTITIONED_ENABLE) and not config.flag(GLOBAL_ENABLE)


def record_index_definition(*, partitioned: bool) -> IndexDefinition:
    """What is said about the index in the table's file of definitions."""
    options = {"isPartitioned": "true" if partitioned else "false"}
    return IndexDefinition(RECORD_INDEX, RECORD_INDEX, options=options)


def changes(context: IndexContext, update: TableUpdate, rows: SliceRows) -> Iterator[GroupTask]:
    """What there is to find out about the groups an action wrote or replaced; nothing where no key came or went."""
    written = stats_by_group(update)
    replaced = [(partition, file_id) for partition, ids in update.replaced.items() for file_id in ids]
    partitions = {partition for partition, _ in (*written, *replaced)}
    if not partitions:
        return
    view, form = context.view(partitions), _form(context)
    before = slices_before(view, [*written, *replaced])
    rows = rows.having(skeleton_sources(context.handle, ((part.partition, part.base) for part in before.values())))
    for group_id, stats in written.items():
        task = _group_task(view, update, rows, form, group_id, stats, before.get(group_id))
        if task is not None:
            yield task
    for group_id in replaced:
        if group_id in before and group_id not in written:
            yield GroupTask(rows, form, group_id, update.instant, before[group_id], None)


def records_of_slices(task: SlicesTask) -> MetadataRecords:
    """Records of all keys of some slices of one partition."""
    parts = [
        task.form.puts(task.rows.keys(part), part.group_id, part.base.name.instant if part.base else part.base_instant)
        for part in task.slices
    ]
    return task.form.records(pa.concat_tables(parts), task.slices[0].partition)


def records_of_group(task: GroupTask) -> MetadataRecords:
    """Records of the keys that came to a group, and the keys that left it."""
    came, left = _logged_changes(task) if task.logs else _rewritten_changes(task)
    return task.form.records(task.form.puts(came, task.group_id, task.instant), task.group_id[0], left)


def _group_task(  # noqa: PLR0917
    view: View,
    update: TableUpdate,
    rows: SliceRows,
    form: IndexForm,
    group_id: GroupId,
    stats: tuple[WriteStat, ...],
    before: FileSlice | None,
) -> GroupTask | None:
    inserts, deletes = sum(stat.num_inserts for stat in stats), sum(stat.num_deletes for stat in stats)
    may_insert = inserts > 0 or (not update.knows_inserts and any(stat.num_update_writes for stat in stats))
    after = slice_after(view, update, group_id, stats, before)
    if not all(stat.is_log for stat in stats):
        if before is not None and not inserts and not deletes:
            return None
        return GroupTask(rows, form, group_id, update.instant, before, after)
    logs = tuple(log_file_of(stat) for stat in stats)
    revives = before is not None and any(_has_deletes(rows.storage, log) for log in before.logs)
    if not may_insert and not deletes and not revives:
        return None
    own = {log.path for log in logs}
    is_exact = revives or (deletes > 0 and any(_has_ordered_deletes(rows.storage, log) for log in logs))
    written = tuple(log for log in after.logs if log.path in own)
    return GroupTask(
        rows,
        form,
        group_id,
        update.instant,
        before,
        after,
        written,
        puts_rows=may_insert or revives,
        is_exact=is_exact,
    )


def _rewritten_changes(task: GroupTask) -> tuple[pa.Array, pa.Array]:
    """Keys that a group has now and had not, and the other way round."""
    before, after = task.rows.keys(task.before), task.rows.keys(task.after)
    if not len(before) or not len(after):
        return after, before
    came = after.filter(pc.invert(pc.is_in(after, value_set=before)))
    left = before.filter(pc.invert(pc.is_in(before, value_set=after)))
    return came, left


def _logged_changes(task: GroupTask) -> tuple[pa.Array, pa.Array]:
    """Keys of rows in the log files of an action, and keys they delete."""
    rows, deletes = _log_keys(task.rows.storage, task.logs)
    if task.is_exact:
        there = task.rows.keys(task.after)
        rows = rows.filter(pc.is_in(rows, value_set=there))
        deletes = deletes.filter(pc.invert(pc.is_in(deletes, value_set=there)))
    else:
        deletes = deletes.filter(pc.invert(pc.is_in(deletes, value_set=rows)))
    return rows if task.puts_rows else NO_KEYS, deletes


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
    return pa.concat_arrays([one.cast(pa.string()) for one in arrays]).unique() if arrays else NO_KEYS


def _has_deletes(storage: Storage, log: LogFile) -> bool:
    return any(block.kind is BlockKind.DELETE for block in read_blocks(storage, log.path, log.size_bytes))


def _has_ordered_deletes(storage: Storage, log: LogFile) -> bool:
    """Whether a delete in the file has a value it is ordered by."""
    blocks = (block for block in read_blocks(storage, log.path, log.size_bytes) if block.kind is BlockKind.DELETE)
    return any(not bool(np.all(read_deletes(storage, block).is_default)) for block in blocks)


def _form(context: IndexContext) -> IndexForm:
    handle = context.handle
    return IndexForm(handle.profile.avro_generation, handle.config.timezone, is_partitioned(context))
