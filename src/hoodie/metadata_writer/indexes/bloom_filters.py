"""Records of `bloom_filters`: the bloom filter of every base file, as the text its footer has.

1. Who has just written a file says its filter (`file_facts`); others are read from footers.
2. Files without a filter, log files among them, have no record: they may hold every key.
3. Removed files get deletes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hoodie.engine import LocalEngine, TaskId
from hoodie.metadata import BLOOM_FILTERS, FileOf, IndexDefinition, MetadataTable
from hoodie.metadata.bloom_filters import BLOOM
from hoodie.metadata.keys import bloom_filter_key
from hoodie.metadata.partitions import RecordType
from hoodie.metadata.records import KEY, TYPE
from hoodie.metadata.store import READING_THREADS
from hoodie.metadata_writer.data_files import FILES_PER_TASK, DataFile, committed_files, written_files
from hoodie.metadata_writer.file_facts import IndexNeeds
from hoodie.metadata_writer.index_check import CheckedTable, IndexCheck, SliceShown, Trouble, index_path, some
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.metadata_index import (
    IndexRequest,
    MetadataIndex,
    MetadataIndexKind,
    MetadataRecords,
    Records,
    RecordTask,
    group_file_ids,
)
from hoodie.metadata_writer.slice_rows import SliceRows
from hoodie.metadata_writer.update import TableUpdate
from hoodie.records import read_footer
from hoodie.records.bloom import SIMPLE
from hoodie.storage import Storage
from hoodie.view import BaseFile, FileSlice

ENABLE: Final = "hoodie.metadata.index.bloom.filter.enable"
_FILE_GROUPS: Final = "hoodie.metadata.index.bloom.filter.file.group.count"


@dataclass(frozen=True, slots=True)
class StoredFilter:
    """A bloom filter of a file: its key in the index, type, base64 text, and the instant it is of."""

    key: str
    kind: str
    text: str
    instant: str


@dataclass(frozen=True, slots=True, eq=False)
class FiltersTask:
    """Base files whose filters are wanted."""

    storage: Storage
    files: tuple[DataFile, ...]


class BloomFiltersIndex(MetadataIndex):
    """The bloom filters of base files."""

    partition = BLOOM_FILTERS

    def file_ids(self, context: IndexContext) -> tuple[str, ...]:
        """As many groups as the options say; 4 by default."""
        return group_file_ids("bloom-filters-", context.options.config.integer(_FILE_GROUPS))

    def initial(self, context: IndexContext) -> Iterator[Records]:
        """Filters of all base files of completed writes."""
        files = [file for file in committed_files(context) if isinstance(file.file, BaseFile)]
        for at in range(0, len(files), FILES_PER_TASK):
            task = FiltersTask(context.handle.storage, tuple(files[at : at + FILES_PER_TASK]))
            yield RecordTask(bloom_filter_records, task)

    def updated(self, context: IndexContext, update: TableUpdate) -> Iterator[Records]:
        """Filters of written base files; deletes for removed ones."""
        files = [file for file in written_files(update) if isinstance(file.file, BaseFile)]
        known = {file for file in files if _is_told(update, file)}
        tasks = [FiltersTask(context.handle.storage, (file,)) for file in files if file not in known]
        read = iter(LocalEngine(READING_THREADS).run(_filters_of, tasks, "bloom filters"))
        found = [_told_filters(update, file) if file in known else next(read) for file in files]
        gone = [
            bloom_filter_key(partition, name.rpartition("/")[2])
            for partition, names in update.deleted.items()
            for name in names
            if not name.rpartition("/")[2].startswith(".")
        ]
        rows = [stored for filters in found for stored in filters]
        if rows or gone:
            yield MetadataRecords(BLOOM_FILTERS, filter_rows(rows), pa.array(gone, pa.string()))

    def check(self, table: CheckedTable) -> IndexCheck:
        """Compares filters with the keys of base files."""
        return BloomFiltersCheck(table.metadata, table.keys)


def bloom_filter_records(task: FiltersTask) -> MetadataRecords:
    """The records of the files of a task."""
    return MetadataRecords(BLOOM_FILTERS, filter_rows(list(_filters(task))))


def filter_rows(filters: Sequence[StoredFilter]) -> pa.Table:
    """The records of filters, in their order."""
    columns = {
        "type": pa.array([stored.kind for stored in filters], pa.string()),
        "timestamp": pa.array([stored.instant for stored in filters], pa.string()),
        "bloomFilter": pa.array([stored.text.encode("ascii") for stored in filters], pa.binary()),
        "isDeleted": pa.repeat(False, len(filters)),
    }
    return pa.table(
        {
            KEY: pa.array([stored.key for stored in filters], pa.string()),
            TYPE: pa.repeat(pa.scalar(int(RecordType.BLOOM_FILTER), pa.int32()), len(filters)),
            BLOOM: pa.StructArray.from_arrays(list(columns.values()), names=list(columns)),
        }
    )


def _is_told(update: TableUpdate, file: DataFile) -> bool:
    """Whether the writer of the file says which filter it has."""
    facts = update.facts.get(file.file.path)
    return facts is not None and facts.needs.filters


def _told_filters(update: TableUpdate, file: DataFile) -> list[StoredFilter]:
    bloom = update.facts[file.file.path].bloom
    return [] if bloom is None else [StoredFilter(_key(file), *bloom, file.file.name.instant)]


def _key(file: DataFile) -> str:
    return bloom_filter_key(file.partition, file.name)


def _filters_of(_: TaskId, task: FiltersTask) -> list[StoredFilter]:
    return list(_filters(task))


def _filters(task: FiltersTask) -> Iterator[StoredFilter]:
    for file in task.files:
        if file.name.endswith(".hfile"):
            continue
        footer = read_footer(task.storage, file.file.path)
        if footer.bloom_text is not None:
            yield StoredFilter(_key(file), footer.bloom_type or SIMPLE, footer.bloom_text, file.file.name.instant)


class BloomFiltersCheck(IndexCheck):
    """A filter must hold every key of its file. Files without a filter may hold anything. `rows` reads keys."""

    def __init__(self, table: MetadataTable, rows: SliceRows) -> None:
        self._table = table
        self._rows = rows

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        """No columns but the key, where the rows are those of the base file."""
        return None if part.logs or part.base is None else ()

    def compare(self, shown: SliceShown) -> Iterator[Trouble]:
        """Keys of the base file that its filter does not hold."""
        base, part = shown.part.base, shown.part
        if base is None:
            return
        file = FileOf(part.partition, base.path.rpartition("/")[2])
        filters = self._table.bloom_filters([file])
        if file not in filters:
            return
        keys = shown.keys if not part.logs else self._rows.keys(FileSlice(*part.group_id, part.base_instant, base, ()))
        lost = keys.filter(pa.array(~filters[file].contains(keys)))
        if len(lost):
            yield index_path(BLOOM_FILTERS), f"has a filter of {base.path} without {some(lost)} of its keys"


def bloom_filters_index() -> IndexDefinition:
    """An index of the bloom filters of base files."""
    return IndexDefinition(BLOOM_FILTERS, BLOOM_FILTERS)


class BloomFiltersKind(MetadataIndexKind):
    """Bloom filters of base files. They have no definition."""

    name = BLOOM_FILTERS
    option = ENABLE
    is_defined = False

    def open(self, partition: str, context: IndexContext) -> BloomFiltersIndex:
        """The filters of any table."""
        del partition, context
        return BloomFiltersIndex()

    def described(self, request: IndexRequest) -> IndexDefinition | None:
        """The index of that name."""
        return bloom_filters_index() if request.name == BLOOM_FILTERS else None

    def file_needs(self, context: IndexContext, update: TableUpdate) -> IndexNeeds:
        """The filters of base files."""
        del context, update
        return IndexNeeds(filters=True)


KIND: Final = BloomFiltersKind()
