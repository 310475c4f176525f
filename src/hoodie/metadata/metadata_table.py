"""What the metadata table of a table knows: its files, statistics of their columns, where its keys are.

1. It is opened against one timeline and gives the answers of that moment.
2. Each answer is one read of the partition that has it; nothing is kept but the listing of its files.
3. A partition that is not ready is no error to ask about: `has` says so, and callers do without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.engine import Engine
from hoodie.errors import Invalid
from hoodie.metadata.all_records import all_records
from hoodie.metadata.bloom_filters import load_bloom_filters
from hoodie.metadata.column_stats import FileOf, column_stats, file_ranges, partition_ranges
from hoodie.metadata.index_definitions import IndexDefinition
from hoodie.metadata.listing import list_metadata_files, list_metadata_partitions
from hoodie.metadata.partitions import COLUMN_STATS
from hoodie.metadata.prune import Question, SliceT, slices_that_may_match
from hoodie.metadata.ranges import Ranges
from hoodie.metadata.record_index import locate
from hoodie.metadata.secondary_index import secondary_matches
from hoodie.metadata.store import MetadataState, MetadataStore, open_metadata_store
from hoodie.records import BloomFilter
from hoodie.spec import TableConfig
from hoodie.storage import Storage
from hoodie.timeline import Timeline
from hoodie.view import PartitionFiles


@dataclass(frozen=True, slots=True, eq=False)
class MetadataTable:
    """An opened metadata table."""

    store: MetadataStore

    @property
    def partitions(self) -> tuple[str, ...]:
        """Its partitions that are ready, sorted: `files`, `column_stats` ..."""
        return tuple(sorted(self.store.available))

    @property
    def definitions(self) -> Mapping[str, IndexDefinition]:
        """What is said about its indexes, by name; tables of version 6 say nothing."""
        return self.store.definitions

    def has(self, partition: str) -> bool:
        """Whether a partition is ready."""
        return partition in self.store.available

    def records(self, partition: str) -> pa.Table:
        """Every record of one of its partitions, merged, in Avro's columns. For looking at it.

        Raises:
            Invalid: the partition is not ready. Corrupt: it is damaged.
        """
        return all_records(self.store, partition)

    def files(self, partitions: Collection[str] | None = None) -> tuple[PartitionFiles, ...]:
        """Data files of the table's partitions, in the shape of `view.list_files`. Sizes of log files are those known
        to the last writer; see `with_log_sizes`.

        Raises:
            Corrupt: the partition `files` is damaged.
        """
        return list_metadata_files(self.store, partitions)

    def table_partitions(self) -> tuple[str, ...]:
        """Paths of the table's partitions, sorted. Reads one record of `files`.

        Raises:
            Corrupt: the partition `files` is damaged.
        """
        return list_metadata_partitions(self.store)

    def column_stats(self, column: str, index: str = COLUMN_STATS) -> pa.Table:
        """Statistics of a column (a path with dots) in all files as they are stored. `index`: those of an expression
        index.

        Raises:
            Invalid: there are none. Corrupt: they are damaged.
        """
        return column_stats(self.store, column, index)

    def ranges(self, column: str, files: Sequence[FileOf], data_type: pa.DataType) -> Ranges:
        """Value ranges of a column in files, in their order.

        Raises:
            Invalid: there are no column statistics. Corrupt: they are damaged.
        """
        return file_ranges(self.store, column, files, data_type)

    def partition_ranges(self, column: str, partitions: Sequence[str], data_type: pa.DataType) -> Ranges:
        """Value ranges of a column over partitions of the table, in their order.

        Raises:
            Invalid: there are no partition statistics. Corrupt: they are damaged.
        """
        return partition_ranges(self.store, {column: data_type}, partitions)[column]

    def bloom_filters(self, files: Iterable[FileOf]) -> dict[FileOf, BloomFilter]:
        """The bloom filters of those of the base files that have one.

        Raises:
            Invalid: there are none. Corrupt: they are damaged.
        """
        return load_bloom_filters(self.store, files)

    def locate(self, keys: pa.Array | Collection[str], partitions: Collection[str] | None = None) -> pa.Table:
        """Where keys are: columns record_key, partition, file_id, instant; keys that are not known have no row.

        Raises:
            Invalid: there is no record index. Corrupt: it is damaged.
        """
        return locate(self.store, keys, partitions)

    def secondary(self, index: str, values: Collection[str | None]) -> pa.Table:
        """Rows with one of the values by a secondary index (the name of its partition): columns value, record_key.

        Raises:
            Invalid: there is no such index. Corrupt: it is damaged.
        """
        if index not in self.definitions:
            raise Invalid(
                f"There is no index {index!r}", remedy=f"There are: {', '.join(sorted(self.definitions)) or 'none'}"
            )
        return secondary_matches(self.store, self.definitions[index], values)

    def may_match(self, slices: Sequence[SliceT], question: Question) -> list[SliceT]:
        """The slices that may hold a row which meets a condition, in their order.

        Raises:
            Corrupt: the metadata table is damaged.
        """
        return slices_that_may_match(self.store, slices, question)


def open_metadata_table(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    engine: Engine | None = None,
    state: MetadataState | None = None,
) -> MetadataTable | None:
    """The metadata table of a table as `timeline`, that of the table, sees it; None when it is not kept or not ready.
    `state`: how it is, where somebody knows that already.

    Raises:
        Corrupt: it should be there and is not, or is damaged in what is read here: properties, timeline, definitions.
    """
    store = open_metadata_store(storage, config, timeline, engine, state)
    return None if store is None else MetadataTable(store)
