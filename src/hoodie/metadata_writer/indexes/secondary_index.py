"""Records of secondary indexes: which rows have a value in some column, by value and record key in one text.

1. A row's entry says nothing but its key, so what an action changed in a file group is the difference of two sets: the
   entries of its slice before and after.
2. Values are their Java text, dates and times the numbers they are stored as. NULL has an entry, too.
3. Values of bootstrap skeletons are read from their sources.
4. Groups whose statistics tell of no change are not read; neither are those of compactions. Replaced groups lose all
   their entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Unsupported
from hoodie.metadata import IndexDefinition
from hoodie.metadata.encode_records import encoded_alike
from hoodie.metadata.keys import secondary_keys
from hoodie.metadata.partitions import RecordType
from hoodie.metadata.records import KEY, TYPE
from hoodie.metadata_writer.file_ranges import values_at
from hoodie.metadata_writer.key_work import (
    DRIVER_ROWS,
    GLOBAL_INDEX,
    bounded_slices,
    changes_keys,
    group_count,
)
from hoodie.metadata_writer.layout import group_file_ids
from hoodie.metadata_writer.metadata_index import NO_KEYS, IndexContext, MetadataRecords, Records, RecordTask
from hoodie.metadata_writer.skeletons import Sources, skeleton_sources
from hoodie.metadata_writer.slice_rows import SliceRows, slice_rows
from hoodie.metadata_writer.slices_after import slice_after, slices_before, stats_by_group
from hoodie.metadata_writer.table_columns import columns_after, columns_before
from hoodie.metadata_writer.update import TableUpdate
from hoodie.records import KEY_FIELD
from hoodie.records.columns import type_at
from hoodie.records.java_text import java_text
from hoodie.spec import AvroGeneration
from hoodie.view import FileSlice, GroupId

SECONDARY: Final = "SecondaryIndexMetadata"


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
class SecondaryIndex:
    """The source of the secondary index that `definition` is about."""

    definition: IndexDefinition

    @property
    def partition(self) -> str:
        """The name of the index's partition."""
        return self.definition.name

    def file_ids(self, context: IndexContext) -> tuple[str, ...]:
        """As many groups as a record index of the same rows has."""
        count = group_count(context, context.view().slices_at(), GLOBAL_INDEX)
        return group_file_ids(self.partition, count)

    def initial(self, context: IndexContext) -> Iterator[Records]:
        """Entries of all rows."""
        schema = columns_before(context)
        if schema is None:
            return
        entries = self._entries(context, schema)
        for some in bounded_slices(context.view().slices_at()):
            sources = skeleton_sources(context.handle, ((part.partition, part.base) for part in some))
            yield RecordTask(records_of_slices, SlicesTask(entries.having(sources), some))

    def updated(self, context: IndexContext, update: TableUpdate) -> Iterator[Records]:
        """Entries that came, and those that are gone."""
        schema = columns_after(context, update)
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
