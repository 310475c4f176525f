"""What the kinds of metadata indexes may look at: a table and its metadata table as they are before an action.

Everything is loaded when it is asked for, and once. One context serves one action.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from hoodie.engine import Engine
from hoodie.errors import Unsupported
from hoodie.fileview import FileSystemView, file_view_of
from hoodie.metadata import IndexDefinition, MetadataTable, open_metadata_table
from hoodie.metadata_writer.known import KnownMetadata
from hoodie.metadata_writer.options import MetadataOptions
from hoodie.metadata_writer.update import TableUpdate
from hoodie.records import without_meta
from hoodie.state.handle import TableHandle
from hoodie.state.table_schema import load_newest_schema
from hoodie.timeline import Timeline
from hoodie.view import View

_COLUMNS: Final = "columns before"


@dataclass(frozen=True, slots=True, eq=False)
class IndexContext:
    """`timeline` is the table's, from before the action that is recorded (which may be pending on it). `definitions`
    are those of the table's indexes by the names of their partitions. `schema`: the table's data columns after the
    action, where known. `rebuilt` are the partitions that are made anew: their definitions say what they were and shall
    be again. `known`: the metadata table and the table's files before the action, where they were loaded already.
    `memo`: what one index found out and another may use, by names of their own.
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

    def definition_of(self, partition: str) -> IndexDefinition | None:
        """The definition of an index that is ready, being built or made anew; a dropped index has none."""
        config = self.handle.config
        is_kept = partition in (*config.metadata_partitions, *config.metadata_partitions_inflight, *self.rebuilt)
        return self.definitions.get(partition) if is_kept else None

    def columns_before(self) -> pa.Schema | None:
        """The table's data columns before the action, read once from the newest commit that says them, and only where
        nobody knows them. None where nobody ever said them, and where they go by ids, not names.
        """
        if self.known is not None and self.known.columns is not None:
            return self.known.columns
        if _COLUMNS not in self.memo:
            try:
                found = load_newest_schema(self.handle.storage, self.handle.config, self.timeline)
            except Unsupported:
                found = None
            self.memo[_COLUMNS] = found
        columns: pa.Schema | None = self.memo[_COLUMNS]
        return columns

    def columns_after(self, update: TableUpdate) -> pa.Schema | None:
        """The table's data columns after the action."""
        return without_meta(update.schema) if update.schema is not None else self.columns_before()

    def remember_columns(self, before: pa.Schema) -> None:
        """Tells the table's data columns before the action, which somebody has read already."""
        self.memo[_COLUMNS] = before

    def with_handle(self, handle: TableHandle) -> IndexContext:
        """The context for another state of the table's properties; what was loaded of its files is forgotten."""
        return replace(self, handle=handle, known=None, _views=[], _tables={})

    def at(self, timeline: Timeline, handle: TableHandle | None = None) -> IndexContext:
        """The context for another timeline (and handle); nothing that was loaded counts any more."""
        return replace(self, handle=handle or self.handle, timeline=timeline, memo={}, _views=[], _tables={})
