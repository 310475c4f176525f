"""Timeline servers of this process, by the address they listen at: who is in the same process asks without HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from hoodie.fileview import FileSystemView
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline


class ViewSource(Protocol):
    """Who keeps views of tables in this process."""

    def open_view(
        self,
        handle: TableHandle,
        timeline: Timeline,
        plans: PendingPlans | None,
        own: Callable[[], FileSystemView] | None,
    ) -> FileSystemView:
        """The view of a table at `timeline`, which the caller has just seen. `own` opens the one of who asks, for what
        this one cannot answer; without it that is an error.
        """
        ...


_sources: dict[str, ViewSource] = {}
_lock = threading.Lock()


def listens_here(address: str, source: ViewSource | None) -> None:
    """Says who answers at an address (`host:port`); None: nobody any more."""
    with _lock:
        if source is None:
            _sources.pop(address, None)
        else:
            _sources[address] = source


def source_at(address: str) -> ViewSource | None:
    """Who answers there in this process, if anybody does."""
    return _sources.get(address)
