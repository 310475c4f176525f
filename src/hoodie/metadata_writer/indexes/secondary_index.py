"""Records of secondary indexes: which rows have a value in some column, by value and record key in one text.

1. A row's entry says nothing but its key, so what an action changed in a file group is the difference of two sets: the
   entries of its slice before and after.
2. Values are their Java text, dates and times the numbers they are stored as. NULL has an entry, too.
3. Values of bootstrap skeletons are read from their sources.
4. Groups whose statistics tell of no change are not read; neither are those of compactions. Replaced groups lose all
   their entries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config import Config
from hoodie.errors import Invalid, Unsupported
from hoodie.metadata import RECORD_INDEX, IndexDefinition, MetadataTable, group_of_keys
from hoodie.metadata.encode_records import encoded_alike
from hoodie.metadata.keys import secondary_keys
from hoodie.metadata.merge import merge_newest
from hoodie.metadata.partitions import SECONDARY_PREFIX, RecordType
from hoodie.metadata.records import KEY, TYPE, Wanted
from hoodie.metadata_writer.file_ranges import values_at
from hoodie.metadata_writer.index_check import CheckedTable, IndexCheck, SliceShown, Trouble, index_path, some
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.indexes.record_index import GLOBAL_ENABLE, is_partitioned
from hoodie.metadata_writer.key_work import (
    DRIVER_ROWS,
    GLOBAL_INDEX,
    bounded_slices,
    changes_keys,
    group_count,
)
from hoodie.metadata_writer.metadata_index import (
    NO_KEYS,
    IndexRequest,
    MetadataIndex,
    MetadataIndexKind,
    MetadataRecords,
    Records,
    RecordTask,
    group_file_ids,
    prefixed,
)
from hoodie.metadata_writer.skeletons import Sources, skeleton_sources
from hoodie.metadata_writer.slice_rows import SliceRows, slice_rows
from hoodie.metadata_writer.slices_after import slice_after, slices_before, stats_by_group
from hoodie.metadata_writer.update import TableUpdate
from hoodie.records import KEY_FIELD
from hoodie.records.columns import type_at
from hoodie.records.java_text import java_text
from hoodie.spec import AvroGeneration
from hoodie.view import FileSlice, GroupId

SECONDARY: Final = "SecondaryIndexMetadata"
ENABLE: Final = "hoodie.metadata.index.secondary.enable"
COLUMN: Final = "hoodie.metadata.index.secondary.column"
NAME: Final = "hoodie.index.name"
_VALUE: Final = r"^(?P<value>(?:[^\\$]|\\(?s:.))*\$)"


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Finds the entries of slices: of the index `partition`, on the column (a path with dots)."""

    rows: SliceRows
    partition: str
    column: str
    avro_generation: AvroGeneration

    def having(self, sources: Sources) -> Entries:
        """The same for slices whose skeletons have these sources."""
        return replace(self, rows=self.rows.having(sources))

    def of(self, part: FileSlice | None) -> pa.Array:
        """The keys of the index for the rows of a slice."""
        found = self.rows.of(part)
        if not found.num_rows:
            return NO_KEYS
        texts = value_texts(values_at(found, self.column).combine_chunks())
        return secondary_keys(texts, found.column(KEY_FIELD).combine_chunks())

    def records(self, puts: pa.Array, deletes: pa.Array = NO_KEYS) -> MetadataRecords:
        """Records of entries."""
        record = pa.table(
            {
                KEY: pa.array([""], pa.string()),
                TYPE: pa.array([int(RecordType.SECONDARY_INDEX)], pa.int32()),
                SECONDARY: pa.StructArray.from_arrays([pa.array([False])], names=["isDeleted"]),
            }
        )
        return MetadataRecords(self.partition, encoded_alike(puts, record, self.avro_generation), deletes)


@dataclass(frozen=True, slots=True, eq=False)
class SlicesTask:
    """Slices whose entries are wanted."""

    entries: Entries
    slices: tuple[FileSlice, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ChangeTask:
    """The slice of a file group before and after an action; None: it has none."""

    entries: Entries
    before: FileSlice | None
    after: FileSlice | None


@dataclass(frozen=True, slots=True)
class SecondaryIndex(MetadataIndex):
    """The secondary index that `definition` is about."""

    definition: IndexDefinition

    @property
    def partition(self) -> str:
        """The name of the index's partition."""
        return self.definition.name

    def file_ids(self, context: IndexContext) -> tuple[str, ...]:
        """As many groups as a record index of the same rows has."""
        count = group_count(context, context.view().slices_at(), GLOBAL_INDEX)
        return group_file_ids(self.partition.replace("_", "-") + "-", count)

    def initial(self, context: IndexContext) -> Iterator[Records]:
        """Entries of all rows."""
        schema = context.columns_before()
        if schema is None:
            return
        entries = self._entries(context, schema)
        for slices in bounded_slices(context.view().slices_at()):
            sources = skeleton_sources(context.handle, ((part.partition, part.base) for part in slices))
            yield RecordTask(records_of_slices, SlicesTask(entries.having(sources), slices))

    def updated(self, context: IndexContext, update: TableUpdate) -> Iterator[Records]:
        """Entries that came, and those that are gone."""
        schema = context.columns_after(update)
        if schema is None or not changes_keys(update):
            return
        entries = self._entries(context, schema, update.instant)
        is_small = sum(stat.num_writes for stat in update.stats) <= DRIVER_ROWS
        for before, after in changed_slices(context, update):
            known = () if before is None else ((before.partition, before.base),)
            task = ChangeTask(entries.having(skeleton_sources(context.handle, known)), before, after)
            if not is_small:
                yield RecordTask(records_of_change, task)
            elif len(records := records_of_change(task)):
                yield records

    def check(self, table: CheckedTable) -> IndexCheck:
        """Compares entries with rows."""
        return SecondaryIndexCheck(table.metadata, self.definition)

    def _entries(self, context: IndexContext, schema: pa.Schema, instant: str | None = None) -> Entries:
        column = self.definition.source_fields[0]
        ensure_indexable(schema, column)
        rows = slice_rows(context, schema, (column.partition(".")[0],), instant)
        return Entries(rows, self.partition, column, context.handle.profile.avro_generation)


def changed_slices(context: IndexContext, update: TableUpdate) -> Iterator[tuple[FileSlice | None, FileSlice | None]]:
    """The slices before and after of file groups whose rows an action changed."""
    written = stats_by_group(update)
    replaced = [(partition, file_id) for partition, ids in update.replaced.items() for file_id in ids]
    partitions = {partition for partition, _ in (*written, *replaced)}
    if not partitions:
        return
    view = context.view(partitions)
    before = slices_before(view, [*written, *replaced])
    for group_id, stats in written.items():
        touched = any(stat.num_inserts or stat.num_update_writes or stat.num_deletes for stat in stats)
        if touched or group_id not in before:
            yield before.get(group_id), slice_after(view, update, group_id, stats, before.get(group_id))
    gone: list[GroupId] = [group_id for group_id in replaced if group_id in before and group_id not in written]
    for group_id in gone:
        yield before[group_id], None


def records_of_slices(task: SlicesTask) -> MetadataRecords:
    """Records of all entries of some slices."""
    return task.entries.records(pa.concat_arrays([task.entries.of(part) for part in task.slices]))


def records_of_change(task: ChangeTask) -> MetadataRecords:
    """Records of entries that came and of those that went."""
    before, after = task.entries.of(task.before), task.entries.of(task.after)
    came = after.filter(pc.invert(pc.is_in(after, value_set=before)))
    left = before.filter(pc.invert(pc.is_in(before, value_set=after)))
    return task.entries.records(came, left)


def value_texts(values: pa.Array) -> pa.Array:
    """Values as keys of an index have them."""
    data_type = values.type
    if pa.types.is_date32(data_type) or pa.types.is_time32(data_type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(data_type) or pa.types.is_time64(data_type):
        values = values.cast(pa.int64())
    return java_text(values)


def ensure_indexable(schema: pa.Schema, column: str) -> None:
    """Checks that a secondary index can be kept on the column.

    Raises:
        Unsupported: it cannot, or there is no such column.
    """
    data_type = type_at(schema, column)
    types = pa.types
    if data_type is None:
        raise Unsupported(f"There is no column {column!r}", remedy=f"Columns are {', '.join(schema.names)}")
    if not (
        types.is_string(data_type)
        or types.is_integer(data_type)
        or types.is_date32(data_type)
        or types.is_timestamp(data_type)
        or types.is_time(data_type)
        or types.is_floating(data_type)
    ):
        raise Unsupported(
            f"A secondary index cannot be kept on {column!r}, which is of type {data_type}",
            remedy="Choose a column of text, numbers, dates or times",
            column=column,
        )


class SecondaryIndexCheck(IndexCheck):
    """Every row has an entry of its value and key. There are not more entries than rows: what is too much is found by
    counting.
    """

    def __init__(self, table: MetadataTable, definition: IndexDefinition) -> None:
        self._store = table.store
        self._definition = definition
        self._column = definition.source_fields[0]
        self._file_ids = [group.file_id for group in self._store.groups(definition.name)]
        self._rows = 0

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        """The column it is on."""
        del part
        return (self._column.partition(".")[0],)

    def compare(self, shown: SliceShown) -> Iterator[Trouble]:
        """Rows without entry."""
        if not shown.rows.num_rows:
            return
        texts = value_texts(values_at(shown.rows, self._column).combine_chunks())
        entries = secondary_keys(texts, shown.keys).unique()
        self._rows += len(entries)
        lost = entries.filter(pc.invert(pc.is_in(entries, value_set=self._known(entries))))
        if len(lost):
            part = shown.part
            where = f"{part.partition}/{part.file_id}".lstrip("/")
            yield self._path, f"lacks {some(lost)} entries for rows of {where}: scans by the index lose them"

    def finish(self) -> Iterator[Trouble]:
        """Entries without row."""
        there = sum(
            merge_newest(parts).num_rows
            for file_id in self._file_ids
            for parts in self._store.read(self._definition.name, {file_id: Wanted()}, ())
            if parts
        )
        if there > self._rows:
            yield self._path, f"has {there - self._rows:,} entries that no row has"

    @property
    def _path(self) -> str:
        return index_path(self._definition.name)

    def _known(self, entries: pa.Array) -> pa.Array:
        """Those of the entries that the index has."""
        at = KIND.groups_of(entries, self._file_ids, self._definition, "")
        wanted = {
            self._file_ids[place]: Wanted(keys=entries.filter(pa.array(at == place)))
            for place in np.unique(at).astype(int).tolist()
        }
        groups = self._store.read(self._definition.name, wanted, ())
        return pa.concat_arrays([NO_KEYS, *(merge_newest(parts)[KEY].combine_chunks() for parts in groups if parts)])


def secondary_index(name: str, column: str) -> IndexDefinition:
    """An index of which rows have a value in a column."""
    return IndexDefinition(prefixed(SECONDARY_PREFIX, name), "secondary_index", "identity", (column,))


class SecondaryIndexKind(MetadataIndexKind):
    """Secondary indexes. The definition says of which column; the rows of a value are found by the record index."""

    name = SECONDARY_PREFIX
    is_named = True
    needs = (RECORD_INDEX,)
    one_per_columns = True

    def open(self, partition: str, context: IndexContext) -> SecondaryIndex | None:
        """The index of that name, if it has one column."""
        definition = context.definitions.get(partition)
        return None if definition is None or len(definition.source_fields) != 1 else SecondaryIndex(definition)

    def requested(self, config: Config) -> IndexDefinition | None:
        """The index that options ask for; called like its column where they give it no name."""
        column = config.text(COLUMN)
        if not config.flag(ENABLE) or not column:
            return None
        return secondary_index(config.text(NAME) or column, column)

    def described(self, request: IndexRequest) -> IndexDefinition | None:
        """The index of one column that has no function."""
        return None if request.function is not None else secondary_index(request.name, request.columns[0])

    def ensure_needs(self, context: IndexContext, wanted: Collection[str]) -> None:
        """Checks that there will be a record index of the whole table."""
        if RECORD_INDEX not in wanted or is_partitioned(context):
            raise Invalid(
                f"{COLUMN} asks for a secondary index, which needs a record index of the whole table",
                remedy=f"Set {GLOBAL_ENABLE}=true, too",
                key=COLUMN,
            )

    def ensure_columns(self, schema: pa.Schema, definition: IndexDefinition) -> None:
        """Checks that there is such a column, of texts, numbers, dates or times."""
        ensure_indexable(schema, definition.source_fields[0])

    def groups_of(
        self, keys: pa.Array, file_ids: Sequence[str], definition: IndexDefinition | None, data_partition: str
    ) -> npt.NDArray[np.int64]:
        """By the hash of the key; in version V2 by that of its value with the `$`."""
        del data_partition
        if definition is not None and definition.version != "V1":
            keys = pc.struct_field(pc.extract_regex(keys, _VALUE), "value")
        return group_of_keys(keys, len(file_ids))


KIND: Final = SecondaryIndexKind()
