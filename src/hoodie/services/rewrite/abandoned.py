"""Plans that nobody will carry out: of kinds that are never left pending, found by who holds the table lock.

Their executor held that lock from the plan on, so it is dead.
"""

from __future__ import annotations

from dataclasses import replace

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.metadata_writer import undo_update
from hoodie.services.rewrite.kinds import KINDS
from hoodie.services.rollback.rollback import roll_back
from hoodie.spec import State
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline, instant_path


def drop_abandoned_plans(handle: TableHandle, engine: Engine, timeline: Timeline, config: Config) -> Timeline:
    """Takes abandoned plans off the timeline, and returns it. The caller holds the table lock. Reads the requests of
    pending clusterings.

    One that had begun is rolled back, which leaves its plan; then the plan goes. The metadata table may know of it in
    either case, and would count what it knows once the instant is gone.
    """
    plans = PendingPlans(handle.storage, timeline)
    dead = [one for kind in KINDS for one in kind.abandoned(plans)]
    for instant in dead:
        if instant.state is State.INFLIGHT:
            timeline = roll_back(handle, engine, timeline, instant, config)
        undo_update(load_handle(handle.storage, handle.env), instant, None, engine)
        handle.storage.delete(instant_path(handle.profile, replace(instant, state=State.REQUESTED)))
    return timeline_of(handle) if dead else timeline
