"""One look at a table: its handle, and the state files of its timeline as one listing showed them.

An operation loads it once and passes it on; who decides something under the lock of the table looks again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hoodie.env import Env
from hoodie.spec import Instant, State
from hoodie.state.handle import TableHandle, load_handle
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Listable, Storage
from hoodie.timeline import Timeline, furthest, list_instants


@dataclass(frozen=True, slots=True)
class TableState:
    """`timeline` has the furthest state of every instant; `without_request` are completed ones whose requested file is
    gone, which an archiver that died leaves. `plans` are read when they are first asked for. `metadata`: the timeline
    of the metadata table, where the same operation knows that, too.
    """

    handle: TableHandle
    timeline: Timeline
    plans: PendingPlans
    without_request: tuple[Instant, ...]
    metadata: Timeline | None = None

    def of(self, storage: Storage) -> TableState:
        """The same state, of the same table in another storage: without the fences of a lock that is given back."""
        return replace(self, handle=replace(self.handle, storage=storage))


def load_state(storage: Storage, env: Env) -> TableState:
    """The state of the table in `storage` as it is now: two calls. Raises as `load_handle`."""
    return state_of(load_handle(storage, env))


def state_of(handle: TableHandle, listed: Listable | None = None) -> TableState:
    """The state of an opened table as it is now: one listing. `listed`: its own folder, where somebody has looked."""
    return state_from(handle, list_instants(listed or handle.storage, handle.profile, handle.config.timezone))


def state_from(handle: TableHandle, found: Iterable[Instant]) -> TableState:
    """The state of an opened table whose timeline has these state files."""
    found = tuple(found)
    timeline = Timeline(handle.profile, furthest(found))
    requested = {one.logical for one in found if one.state is State.REQUESTED}
    without_request = tuple(one for one in timeline.completed() if one.logical not in requested)
    return TableState(handle, timeline, PendingPlans(handle.storage, timeline), without_request)
