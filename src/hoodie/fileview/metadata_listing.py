"""The file-system view by the metadata table of a table: no folder is listed.

1. It lists files of settled writes, and in version 6 what dead writers left behind or in a log file as well, with its
   size: what was committed is asked of the commits there.
2. From version 8 on one write makes a log file and nobody appends to it, so the size that write said is the file's. One
   that is shorter, or gone, is found when it is read.
3. A metadata table that should be there and is damaged is an error: what it lists may be wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from hoodie.engine import Engine
from hoodie.fileview.log_sizes import committed_logs, with_stored_sizes
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage
from hoodie.timeline import Timeline
from hoodie.view import LogFile, PartitionChoice, PartitionFiles, View, load_view

if TYPE_CHECKING:
    from hoodie.metadata import MetadataTable


class MetadataView:
    """A `FileSystemView` of what `metadata`, the metadata table of the table in `storage`, lists."""

    lists_uncommitted = False

    def __init__(
        self,
        storage: Storage,
        timeline: Timeline,
        metadata: MetadataTable,
        engine: Engine | None = None,
        plans: PendingPlans | None = None,
    ) -> None:
        self.timeline = timeline
        self._plans = plans or PendingPlans(storage, timeline)
        self._storage = storage
        self._metadata = metadata
        self._engine = engine
        self._loaded: dict[frozenset[str] | None, View] = {}

    def partitions(self) -> tuple[str, ...]:
        return self._metadata.table_partitions()

    def files(self, partitions: Collection[str] | None = None) -> tuple[PartitionFiles, ...]:
        return self._metadata.files(partitions)

    def load(self, partitions: Collection[str] | None = None) -> View:
        asked = None if partitions is None else frozenset(partitions)
        if asked not in self._loaded:
            files = self.files(partitions)
            compactions = self._plans.compactions()
            view = load_view(self._storage, self.timeline, files, compactions, are_settled=True, engine=self._engine)
            self._loaded[asked] = view
        return self._loaded[asked]

    def load_chosen(self, choice: PartitionChoice) -> View:
        """Reads the list of partitions, then the files of those that are chosen."""
        return self.load(choice.of(self.partitions()))

    def committed_logs(self, logs: Collection[LogFile]) -> Mapping[str, LogFile]:
        """No call from version 8 on; else one for each file and one for each delta commit that may have written one."""
        if self.timeline.profile.log_naming.has_one_write_per_file:
            return {log.path: replace(log, committed_bytes=log.size_bytes) for log in logs}
        stored = with_stored_sizes(self._storage, logs, self._engine)
        return committed_logs(self._storage, self.timeline, stored.values(), self._engine)
