"""Taking a clustering off the timeline again. Its file groups may be changed then, and another plan may take them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import Invalid
from hoodie.locks import parse_lock_options
from hoodie.metadata_writer import undo_update
from hoodie.services.clustering.result import PlannedClustering, planned_of
from hoodie.services.rewrite.executor import roll_back_run
from hoodie.services.rewrite.plan_kind import PlanKind
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.spec import InstantTime, State
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.held import held_table
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import delete_instant_files
from hoodie.transaction import executor_lock

_LOCAL: Final = LocalEngine()


def unschedule_clustering(
    handle: TableHandle, config: Config, engine: Engine, kind: PlanKind, instant: InstantTime | None
) -> PlannedClustering:
    """The plan `instant` of `kind` that was taken off the timeline; what an executor that died has written goes first.
    The caller does not hold the table lock.

    Raises:
        Invalid: no such plan. Conflict: an executor works on it, or a writer holds the table.
    """
    if instant is None:
        raise Invalid("Which plan is to be taken off is not said", remedy="Give the instant of a pending clustering")
    with (
        held_table(handle.storage, "unschedule clustering", handle.env, parse_lock_options(config)) as held,
        executor_lock(held, instant) as locked,
    ):
        roll_back_failed_writes(locked, _LOCAL, timeline_of(locked), config)
        plans = PendingPlans(locked.storage, timeline_of(locked))
        now = kind.find(plans, instant)
        if now is None:
            raise Invalid(f"There is no pending clustering {instant}", remedy="Look at hoodie timeline")
        counted = planned_of(locked, now, "unscheduled")
        if now.state is State.INFLIGHT:
            roll_back_run(locked, engine, plans, now)
        after = undo_update(locked, now, None, engine)
        delete_instant_files(after.storage, after.profile, replace(now, state=State.REQUESTED))
    return counted
