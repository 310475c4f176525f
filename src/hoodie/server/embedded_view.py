"""The file-system view of a writer whose timeline service runs in its own process: no HTTP, no JSON.

1. The service is told the timeline that the writer has just seen, and brings what it keeps to that one: nobody decides
   on another state than the one he began on.
2. Whatever goes wrong in the service is no failure of the write: the table itself is asked, with one warning for each
   table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from hoodie.errors import Unavailable
from hoodie.fileview import FileSystemView
from hoodie.fileview.log_sizes import committed_logs, with_stored_sizes
from hoodie.server.service import Service
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline
from hoodie.view import LogFile, PartitionChoice, PartitionFiles, Replaced, View, load_view, view_of

log = logging.getLogger(__name__)

WAIT_S = 30.0
"""How long a writer waits for a service that is busy with the table, before he asks the table itself."""

_Known = tuple[Timeline, tuple[PartitionFiles, ...], Replaced]


class EmbeddedSource:
    """A `ViewSource` by a service of this process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._warned: set[str] = set()

    def open_view(
        self,
        handle: TableHandle,
        timeline: Timeline,
        plans: PendingPlans | None,
        own: Callable[[], FileSystemView] | None,
    ) -> FileSystemView:
        """See `ViewSource`."""
        return EmbeddedView(self, handle, timeline, plans or PendingPlans(handle.storage, timeline), own)

    def known(self, handle: TableHandle, seen: Timeline, partitions: Collection[str] | None) -> _Known:
        """What the service knows of the table at `seen`.

        Raises:
            Unavailable: it knows nothing, for whatever reason.
        """
        try:
            return self._service.known_at(handle, seen, partitions, WAIT_S)
        except Exception as error:  # nothing in the service may be a failure of the write
            raise Unavailable(
                f"The timeline service of this process does not know {handle.storage.uri}: {error}",
                remedy="The table itself is asked instead; hoodie.embed.timeline.server=false does without it",
            ) from error

    def gave_up(self, handle: TableHandle, error: Unavailable) -> None:
        """One warning for each table."""
        level = logging.INFO if handle.storage.uri in self._warned else logging.WARNING
        self._warned.add(handle.storage.uri)
        log.log(level, "%s", error)


class EmbeddedView:
    """A `FileSystemView` of the table of `handle` at `timeline` by `source`, and by what `own` opens for what that does
    not know.
    """

    def __init__(
        self,
        source: EmbeddedSource,
        handle: TableHandle,
        timeline: Timeline,
        plans: PendingPlans,
        own: Callable[[], FileSystemView] | None,
    ) -> None:
        self.timeline = timeline
        self._source = source
        self._handle = handle
        self._plans = plans
        self._open_own = own
        self._own: FileSystemView | None = None

    @property
    def lists_uncommitted(self) -> bool:
        return self._own is not None and self._own.lists_uncommitted

    def partitions(self) -> tuple[str, ...]:
        return tuple(found.partition for found in self.files())

    def files(self, partitions: Collection[str] | None = None) -> tuple[PartitionFiles, ...]:
        """No call but one read for each new instant, and the listing of partitions that nobody asked for before."""
        known = self._known(partitions)
        return known[1] if isinstance(known, tuple) else known.files(partitions)

    def load(self, partitions: Collection[str] | None = None) -> View:
        """Costs what `files` does."""
        known = self._known(partitions)
        if not isinstance(known, tuple):
            return known.load(partitions)
        timeline, files, replaced = known
        compactions = self._plans.compactions()
        if not timeline.profile.log_naming.has_one_write_per_file:
            return load_view(self._handle.storage, timeline, files, compactions, are_settled=True)
        return view_of(timeline, files, replaced, compactions)

    def load_chosen(self, choice: PartitionChoice) -> View:
        return self.load(choice.of(self.partitions()))

    def committed_logs(self, logs: Collection[LogFile]) -> Mapping[str, LogFile]:
        if self._own is not None:
            return self._own.committed_logs(logs)
        if self.timeline.profile.log_naming.has_one_write_per_file:
            return {one.path: replace(one, committed_bytes=one.size_bytes) for one in logs}
        storage = self._handle.storage
        return committed_logs(storage, self.timeline, with_stored_sizes(storage, logs).values())

    def _known(self, partitions: Collection[str] | None) -> _Known | FileSystemView:
        if self._own is None:
            try:
                return self._source.known(self._handle, self.timeline, partitions)
            except Unavailable as error:
                if self._open_own is None:
                    raise
                self._source.gave_up(self._handle, error)
                self._own = self._open_own()
        return self._own
