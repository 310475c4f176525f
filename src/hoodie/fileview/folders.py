"""The file-system view of what lies in the folders of a table: also files of writers that died or still run.

Whoever repairs, validates or rolls back asks this one, whatever else knows the files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hoodie.engine import Engine
from hoodie.fileview.log_sizes import committed_logs
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage
from hoodie.timeline import Timeline
from hoodie.view import LogFile, PartitionChoice, PartitionFiles, View, list_files, load_view


class FolderView:
    """A `FileSystemView` that lists each folder once, down to the partitions. `engine`: who lists and reads commits
    (None: threads of this process). `plans`: the pending plans of the timeline, where somebody knows them already.
    """

    lists_uncommitted = True

    def __init__(
        self, storage: Storage, timeline: Timeline, engine: Engine | None = None, plans: PendingPlans | None = None
    ) -> None:
        self.timeline = timeline
        self._plans = plans or PendingPlans(storage, timeline)
        self._storage = storage
        self._engine = engine
        self._loaded: dict[frozenset[str] | PartitionChoice | None, View] = {}

    def partitions(self) -> tuple[str, ...]:
        return tuple(found.partition for found in self.files())

    def files(self, partitions: Collection[str] | None = None) -> tuple[PartitionFiles, ...]:
        return list_files(self._storage, partitions, engine=self._engine)

    def load(self, partitions: Collection[str] | None = None) -> View:
        asked = None if partitions is None else frozenset(partitions)
        if asked not in self._loaded:
            self._loaded[asked] = self._view(self.files(partitions))
        return self._loaded[asked]

    def load_chosen(self, choice: PartitionChoice) -> View:
        """Lists level by level, and below that only folders in which a chosen partition may lie."""
        if choice not in self._loaded:
            self._loaded[choice] = self._view(list_files(self._storage, engine=self._engine, choice=choice))
        return self._loaded[choice]

    def committed_logs(self, logs: Collection[LogFile]) -> Mapping[str, LogFile]:
        """One read for each delta commit that wrote one of them; see `log_sizes`."""
        return committed_logs(self._storage, self.timeline, logs, self._engine)

    def _view(self, files: tuple[PartitionFiles, ...]) -> View:
        return load_view(self._storage, self.timeline, files, self._plans.compactions(), engine=self._engine)
