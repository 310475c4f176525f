"""Where records of the metadata table come from: one source for each of its partitions.

1. A source turns the table's files (initially) or what an action did to them (for every update) into records. It does
   not write: which file group a record goes to, and in which file, is decided by who asks it.
2. Records are rows in the Avro columns of `metadata_record_schema`, `key` first; columns that are absent are
   null. `type` must be there. Keys are distinct within one `MetadataRecords` and across all of one update.
3. Few records are made at once, by the driver. Many are described as `RecordTask`s, which run where the engine says;
   their records never pass through the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from hoodie.engine import Engine
from hoodie.fileview import FileSystemView, file_view_of
from hoodie.metadata import IndexDefinition, MetadataTable, open_metadata_table
from hoodie.metadata_writer.known import KnownMetadata
from hoodie.metadata_writer.options import MetadataOptions
from hoodie.metadata_writer.update import TableUpdate
from hoodie.state.handle import TableHandle
from hoodie.timeline import Timeline
from hoodie.view import View

NO_KEYS = pa.array([], pa.string())


@dataclass(frozen=True, slots=True, eq=False)
class MetadataRecords:
    """What one partition of the metadata table gets in one delta commit, or a part of it.

    `rows`: records to put, `key` (string) first. `deletes`: keys (string) to delete. `data_partition`: the partition of
    the table that all of them are about, said for partitioned record indexes only, whose file groups it chooses.
    """

    partition: str
    rows: pa.Table
    deletes: pa.Array = field(default_factory=lambda: NO_KEYS)
    data_partition: str = ""

    def __len__(self) -> int:
        return int(self.rows.num_rows) + len(self.deletes)


@dataclass(frozen=True, slots=True, eq=False)
class RecordTask:
    """Records that are still to be made: `make(argument)`, a module-level function with a picklable value."""

    make: Callable[[Any], MetadataRecords]
    argument: Any


Records: TypeAlias = MetadataRecords | RecordTask


@dataclass(frozen=True, slots=True, eq=False)
class IndexContext:
    """What sources may look at.

    `timeline` is the table's, from before the action that is recorded (which may be pending on it). `definitions` are
    those of the table's indexes by the names of their partitions. `schema`: the table's data columns, where known.
    `rebuilt` are the partitions that are made anew: their definitions say what they were and shall be again. `known`:
    the metadata table and the table's files before the action, where they were loaded already. `memo`: what one source
    found out and another may use, by names of their own.
    """

    handle: TableHandle
    timeline: Timeline
    engine: Engine
    options: MetadataOptions
    definitions: Mapping[str, IndexDefinition]
    schema: pa.Schema | None = None
    rebuilt: frozenset[str] = frozenset()
    known: KnownMetadata | None = None
    memo: dict[str, Any] = field(default_factory=dict)
    _views: list[FileSystemView] = field(default_factory=list)
    _tables: dict[str, MetadataTable | None] = field(default_factory=dict)

    def view(self, partitions: Collection[str] | None = None) -> View:
        """The files of the given partitions (None: all) before the action. Lists them once: from the metadata table
        where there is one that says so, else from storage; not at all where they are known.
        """
        known = None if self.known is None else self.known.view_of(partitions)
        if known is not None:
            return known
        if not self._views:
            handle, table = self.handle, self.metadata_table()
            self._views.append(file_view_of(handle.storage, self.timeline, table, self.engine))
        return self._views[0].load(partitions)

    def metadata_table(self) -> MetadataTable | None:
        """The metadata table as it is before the action; None while there is none (initialisation)."""
        if "" not in self._tables:
            handle = self.handle
            state = None if self.known is None else self.known.state
            table = open_metadata_table(handle.storage, handle.config, self.timeline, self.engine, state)
            self._tables[""] = table
        return self._tables[""]


class MetadataIndex(Protocol):
    """The records of one partition of the metadata table."""

    @property
    def partition(self) -> str:
        """Name of the partition: `files`, `column_stats`, `secondary_index_x` ..."""
        ...

    def file_ids(self, context: IndexContext) -> tuple[str, ...]:
        """File ids of the groups to make when the partition is initialised; see `layout.group_file_ids`."""
        ...

    def initial(self, context: IndexContext) -> Iterable[Records]:
        """Records of everything the table holds now (committed files only: `context.view()`)."""
        ...

    def updated(self, context: IndexContext, update: TableUpdate) -> Iterable[Records]:
        """Records of what an action changed; nothing when it concerns the partition in no way."""
        ...
