"""What a write knows of the metadata table before it records itself there: it has looked once, under the lock.

The metadata table has one writer, who holds the table lock from that look to the record: nobody changes it in between.
Whoever has not looked gives none, and the record loads what it needs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hoodie.metadata import IndexDefinition, MetadataState
from hoodie.spec import DELTA_COMMIT, Instant
from hoodie.state.handle import TableHandle
from hoodie.timeline import Timeline
from hoodie.view import PartitionFiles, View


@dataclass(frozen=True, slots=True, eq=False)
class KnownMetadata:
    """`metadata` is the metadata table and `timeline` its timeline, without anything unfinished; `definitions` those of
    the table's indexes, `columns` the table's data columns before the write (None: unknown). `view` has the files
    of `partitions` (None: of all) before the write, where they were listed; `listed` what lies in partitions of the
    metadata table, uncommitted files too.
    """

    metadata: TableHandle
    timeline: Timeline
    definitions: Mapping[str, IndexDefinition]
    columns: pa.Schema | None
    view: View | None = None
    partitions: frozenset[str] | None = frozenset()
    listed: Mapping[str, PartitionFiles] = field(default_factory=dict)

    @property
    def state(self) -> MetadataState:
        """What opening the metadata table for reading needs."""
        return MetadataState(self.metadata.storage, self.timeline, self.definitions, self.listed)

    def with_view(self, view: View, partitions: Collection[str] | None) -> KnownMetadata:
        """The same, with the files of some partitions (None: of all)."""
        return replace(self, view=view, partitions=None if partitions is None else frozenset(partitions))

    def timeline_after(self, done: Instant) -> Timeline:
        """The metadata table's timeline once the write `done`, which has recorded itself, is completed."""
        return self.timeline.with_instant(replace(done, action=DELTA_COMMIT))

    def view_of(self, partitions: Collection[str] | None) -> View | None:
        """The view, if it has all files of the partitions (None: of all there are)."""
        if self.partitions is None:
            return self.view
        return self.view if partitions is not None and self.partitions.issuperset(partitions) else None
