"""Plans that nobody will carry out: of kinds that are never left pending, found by who holds the table lock.

Their executor held that lock from the plan on, so it is dead.
"""

from __future__ import annotations

from dataclasses import replace

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.index import roll_back_indexes
from hoodie.metadata_writer import undo_update
from hoodie.services.rewrite.executor import clear_plan
from hoodie.services.rewrite.kinds import KINDS
from hoodie.services.rollback.rollback import roll_back
from hoodie.spec import State
from hoodie.state.handle import load_handle
from hoodie.state.table_state import TableState, state_of
from hoodie.timeline import instant_path


def drop_abandoned_plans(state: TableState, engine: Engine, config: Config) -> TableState:
    """The state after abandoned plans were taken off the timeline. The caller holds the table lock. Reads the requests
    of pending clusterings.

    One that had begun is rolled back, which leaves its plan; then the plan goes. The metadata table and an index may
    know of it even when it is only planned (an attempt that was given up), and would count what they know once the
    instant is gone.
    """
    dead = [instant for kind in KINDS for instant in kind.abandoned(state.plans)]
    if not dead:
        return state
    handle, timeline = state.handle, state.timeline
    for instant in dead:
        if instant.state is State.INFLIGHT:
            timeline = roll_back(handle, engine, timeline, instant, config)
            handle = load_handle(handle.storage, handle.env)  # it may have had to drop the metadata table
        else:
            clear_plan(handle, engine, state.plans, instant)
            roll_back_indexes(handle.storage, handle.config, config, instant.requested)
            handle = undo_update(handle, instant, None, engine)
        handle.storage.delete(instant_path(handle.profile, replace(instant, state=State.REQUESTED)))
    return state_of(handle)
