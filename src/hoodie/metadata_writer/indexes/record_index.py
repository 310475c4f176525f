"""Records of `record_index`: in which file group each key lies.

1. Initially every key of every slice is read, logs merged in. Slices are read by tasks, some of them together, so that
   what is held at once is bounded.
2. An action puts the keys that came to a file group and deletes those that left one (`key_changes`). A key that is put
   and deleted by one action is put. Whoever writes the records sees to that.
3. An index that is cut by partitions has file groups for each of them.
4. Keys of bootstrap skeletons are in the skeletons. Their sources are read where log files are merged with them: the
   values by which rows are ordered stand there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config import Config
from hoodie.errors import Invalid, Unsupported
from hoodie.metadata import RECORD_INDEX, IndexDefinition, group_of_keys
from hoodie.metadata.merge import merge_newest
from hoodie.metadata.partitions import data_partition_groups, escaped_partition
from hoodie.metadata.record_index import LOCATION, locations
from hoodie.metadata.records import Wanted
from hoodie.metadata_writer.index_check import CheckedTable, IndexCheck, SliceShown, Trouble, index_path, some
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.key_changes import GroupChange, came_and_left, group_changes
from hoodie.metadata_writer.key_count import ensure_counted
from hoodie.metadata_writer.key_work import (
    DRIVER_ROWS,
    GLOBAL_INDEX,
    PARTITIONED_INDEX,
    bounded_slices,
    changes_keys,
    group_count,
)
from hoodie.metadata_writer.locations import instant_millis, location_rows
from hoodie.metadata_writer.metadata_handle import listed_file_ids, nested_storage
from hoodie.metadata_writer.metadata_index import (
    NO_KEYS,
    IndexRequest,
    MetadataIndex,
    MetadataIndexKind,
    MetadataRecords,
    Records,
    RecordTask,
    group_file_ids,
)
from hoodie.metadata_writer.skeletons import skeleton_sources
from hoodie.metadata_writer.slice_rows import SliceRows, slice_rows
from hoodie.metadata_writer.update import TableUpdate
from hoodie.spec import AvroGeneration, TimeZone, WriteStat
from hoodie.state.handle import TableHandle
from hoodie.view import FileSlice, GroupId

GLOBAL_ENABLE: Final = "hoodie.metadata.global.record.level.index.enable"
PARTITIONED_ENABLE: Final = "hoodie.metadata.record.level.index.enable"
_PREFIX: Final = "record-index-"
_PATH: Final = index_path(RECORD_INDEX)


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
    """A file group whose keys have changed."""

    form: IndexForm
    change: GroupChange


class RecordLevelIndex(MetadataIndex):
    """Where the keys of a table are."""

    partition = RECORD_INDEX

    def file_ids(self, context: IndexContext) -> tuple[str, ...]:
        """Groups for the number of keys there are, with room for growth; of a partitioned index for each partition."""
        slices = context.view().slices_at()
        if not is_partitioned(context):
            return group_file_ids(_PREFIX, group_count(context, slices, GLOBAL_INDEX))
        by_partition: dict[str, list[FileSlice]] = {name: [] for name in context.view().partitions}
        for part in slices:
            by_partition[part.partition].append(part)
        return tuple(
            file_id
            for name, of_partition in by_partition.items()
            for file_id in _partition_file_ids(name, group_count(context, of_partition, PARTITIONED_INDEX))
        )

    def initial(self, context: IndexContext) -> Iterator[Records]:
        """Where every key is now."""
        schema = context.columns_before()
        if schema is None:
            return
        rows, form = slice_rows(context, schema), _form(context)
        for slices in bounded_slices(context.view().slices_at()):
            sources = skeleton_sources(context.handle, ((part.partition, part.base) for part in slices if part.logs))
            yield RecordTask(records_of_slices, SlicesTask(rows.having(sources), form, slices))

    def updated(self, context: IndexContext, update: TableUpdate) -> Iterator[Records]:
        """Where keys came, and which are gone."""
        schema = context.columns_after(update)
        if schema is None or not changes_keys(update):
            return
        rows, form = slice_rows(context, schema, (), update.instant), _form(context)
        is_small = sum(stat.num_writes for stat in update.stats) <= DRIVER_ROWS
        for change in tuple(group_changes(context, update, rows)):
            task = GroupTask(form, change)
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
        return tuple(file_id for name in unknown for file_id in _partition_file_ids(name, count))

    def ensure_initialised(self, metadata: TableHandle, stats: Sequence[WriteStat], config: Config) -> None:
        """Checks that there are as many keys as rows."""
        ensure_counted(metadata, stats, config)

    def check(self, table: CheckedTable) -> IndexCheck:
        """Compares the index with the keys of file slices."""
        return RecordIndexCheck(table)


def is_partitioned(context: IndexContext) -> bool:
    """Whether the index is cut by partitions of the table: as it was made, else as the options ask."""
    definition = context.definition_of(RECORD_INDEX)
    if definition is not None:
        return definition.is_partitioned
    config = context.options.config
    return config.flag(PARTITIONED_ENABLE) and not config.flag(GLOBAL_ENABLE)


def records_of_slices(task: SlicesTask) -> MetadataRecords:
    """Records of all keys of some slices of one partition."""
    parts = [
        task.form.puts(task.rows.keys(part), part.group_id, part.base.name.instant if part.base else part.base_instant)
        for part in task.slices
    ]
    return task.form.records(pa.concat_tables(parts), task.slices[0].partition)


def records_of_group(task: GroupTask) -> MetadataRecords:
    """Records of the keys that came to a group, and the keys that left it."""
    came, left = came_and_left(task.change)
    puts = task.form.puts(came, task.change.group_id, task.change.instant)
    return task.form.records(puts, task.change.group_id[0], left)


def _form(context: IndexContext) -> IndexForm:
    handle = context.handle
    return IndexForm(handle.profile.avro_generation, handle.config.timezone, is_partitioned(context))


class RecordIndexCheck(IndexCheck):
    """Every key of a slice is found in its file group; one that is in several groups of a table, in any of them. The
    index says of no group more keys than it has: what is too much is found by counting.
    """

    def __init__(self, table: CheckedTable) -> None:
        self._table = table.metadata
        self._slices = {part.group_id: part for part in table.slices}
        self._rows = table.keys
        self._found: Counter[GroupId] = Counter()
        definition = table.metadata.definitions.get(RECORD_INDEX)
        self._is_partitioned = definition is not None and definition.is_partitioned

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        """No columns but the key."""
        del part
        return ()

    def compare(self, shown: SliceShown) -> Iterator[Trouble]:
        """Keys of the slice that the index does not know, or has elsewhere."""
        part, keys = shown.part, shown.keys.unique()
        known = self._table.locate(keys, [part.partition] if self._is_partitioned else None)
        is_here = pc.and_(pc.equal(known["partition"], part.partition), pc.equal(known["file_id"], part.file_id))
        here, elsewhere = known.filter(is_here), known.filter(pc.invert(is_here))
        self._found[part.group_id] = here.num_rows
        lost = keys.filter(pc.invert(pc.is_in(keys, value_set=known["record_key"].combine_chunks())))
        if len(lost):
            yield _PATH, f"does not know {some(lost)} of the keys of {_name(part.group_id)}: look-ups lose their rows"
        moved = self._wrong(elsewhere)
        if len(moved):
            yield _PATH, f"has {some(moved)} of the keys of {_name(part.group_id)} in other file groups"

    def finish(self) -> Iterator[Trouble]:
        """Keys that the index has in groups which do not hold them."""
        said: Counter[GroupId] = Counter()
        store = self._table.store
        for group in store.groups(RECORD_INDEX):
            for parts in store.read(RECORD_INDEX, {group.file_id: Wanted()}, (LOCATION,)):
                if parts:
                    found = locations(merge_newest(parts), store.config.timezone)
                    said.update(_counted(found))
        for group_id, count in sorted(said.items()):
            held = self._found[group_id]
            if count > held:
                yield _PATH, f"has {count - held:,} keys in {_name(group_id)} that are not there"

    def _wrong(self, elsewhere: pa.Table) -> pa.Array:
        """The keys that are not in the groups where they are said to be: others are there more than once."""
        wrong = [pa.array([], pa.string())]
        for group_id in _counted(elsewhere):
            said = pc.and_(pc.equal(elsewhere["partition"], group_id[0]), pc.equal(elsewhere["file_id"], group_id[1]))
            keys = elsewhere.filter(said)["record_key"].combine_chunks()
            there = self._rows.keys(self._slices.get(group_id))
            wrong.append(keys.filter(pc.invert(pc.is_in(keys, value_set=there))))
        return pa.concat_arrays(wrong)


def _counted(found: pa.Table) -> Counter[GroupId]:
    rows = found.group_by(["partition", "file_id"]).aggregate([([], "count_all")]).to_pylist()
    return Counter({(row["partition"], row["file_id"]): row["count_all"] for row in rows})


def _name(group_id: GroupId) -> str:
    partition, file_id = group_id
    return f"{partition}/{file_id}" if partition else file_id


def record_index(*, partitioned: bool = False) -> IndexDefinition:
    """An index of where each key is: keys are unique in the table, or (`partitioned`) in each of its partitions."""
    options = {"isPartitioned": "true" if partitioned else "false"}
    return IndexDefinition(RECORD_INDEX, RECORD_INDEX, options=options)


class RecordIndexKind(MetadataIndexKind):
    """The record index. The definition says whether it is cut by partitions."""

    name = RECORD_INDEX
    adds_groups = True

    def open(self, partition: str, context: IndexContext) -> RecordLevelIndex:
        """The index of any table."""
        del partition, context
        return RecordLevelIndex()

    def switch(self, context: IndexContext) -> str:
        """Whether there is one of that kind."""
        return PARTITIONED_ENABLE if is_partitioned(context) else GLOBAL_ENABLE

    def is_wanted(self, context: IndexContext) -> bool:
        """As either option says; by default there is none."""
        return context.options.config.flag(GLOBAL_ENABLE) or context.options.config.flag(PARTITIONED_ENABLE)

    def described(self, request: IndexRequest) -> IndexDefinition | None:
        """The index of that name."""
        return record_index(partitioned=request.partitioned) if request.name == RECORD_INDEX else None

    def ensure_possible(self, handle: TableHandle, definition: IndexDefinition | None) -> None:
        """Checks that rows carry their keys, and that the version has indexes that are cut by partitions."""
        if not handle.config.populate_meta_fields:
            raise Invalid(
                "A record index needs rows that carry their keys, and hoodie.populate.meta.fields=false",
                remedy=f"Set {GLOBAL_ENABLE}=false",
            )
        is_partitioned = definition is not None and definition.is_partitioned
        if is_partitioned and not handle.profile.indexes.has_partitioned_record_index:
            raise Unsupported(
                "Tables of version 6 have record indexes for the whole table only",
                remedy=f"Set {GLOBAL_ENABLE}=true instead of {PARTITIONED_ENABLE}, or upgrade the table",
            )

    def definition(self, context: IndexContext) -> IndexDefinition:
        """Whether it is cut by partitions."""
        return record_index(partitioned=is_partitioned(context))

    def stored(self, described: IndexDefinition, made: IndexDefinition | None, version: str) -> IndexDefinition:
        """What was described: it has no version."""
        del made, version
        return described

    def recovered(self, handle: TableHandle) -> IndexDefinition | None:
        """That it is cut by partitions, which the names of its file groups tell: made anew as a global one it would
        lead to second copies.
        """
        file_ids = listed_file_ids(nested_storage(handle), RECORD_INDEX)
        is_cut = bool(file_ids) and "" not in data_partition_groups(file_ids)
        return record_index(partitioned=True) if is_cut else None

    def groups_of(
        self, keys: pa.Array, file_ids: Sequence[str], definition: IndexDefinition | None, data_partition: str
    ) -> npt.NDArray[np.int64]:
        """By the hash of the key, in the groups of its partition where the index is cut by partitions."""
        if definition is None or not definition.is_partitioned:
            return group_of_keys(keys, len(file_ids))
        of_partition = data_partition_groups(file_ids).get(data_partition, [])
        if not of_partition:
            raise Invalid(f"The record index has no file groups for the partition {data_partition!r}")
        return group_of_keys(keys, len(of_partition)) + list(file_ids).index(of_partition[0])


def _partition_file_ids(data_partition: str, count: int) -> tuple[str, ...]:
    """File ids of groups for one partition of the table."""
    return group_file_ids(f"{_PREFIX}{escaped_partition(data_partition)}-", count)


KIND: Final = RecordIndexKind()
