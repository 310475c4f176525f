"""Taking a clustering off the timeline again. Its file groups may be changed then, and another plan may take them."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import Conflict, Invalid
from hoodie.locks import parse_lock_options
from hoodie.metadata_writer import is_recorded, undo_update
from hoodie.services.clustering.result import PlannedClustering, planned_of
from hoodie.services.resizing.plan import pending_resizes
from hoodie.services.rewrite.executor import clear_plan
from hoodie.services.rewrite.plan_kind import PlanKind
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.spec import CLUSTERING, Instant, InstantTime, State
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.held import held_table
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import delete_instant_files
from hoodie.transaction import Locking, executor_lock
from hoodie.transaction.heartbeat import end_heartbeat

log = logging.getLogger(__name__)

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
    with held_table(handle.storage, "unschedule clustering", handle.env, parse_lock_options(config)) as held:
        roll_back_failed_writes(held, _LOCAL, timeline_of(held), config)
        now = kind.find(PendingPlans(held.storage, timeline_of(held)), instant)
        if now is None:
            raise Invalid(f"There is no pending clustering {instant}", remedy="Look at hoodie timeline")
        counted = planned_of(held, now, "unscheduled")
        take_plan_off(held, engine, now)
    return counted


def take_plan_off(handle: TableHandle, engine: Engine, instant: Instant) -> bool:
    """Takes a pending clustering off the timeline, with what an executor that died has written of it; returns whether
    the metadata table knew of it, and knows no more. The caller holds the table lock.

    Raises:
        Conflict: an executor works on it.
    """
    with executor_lock(handle, instant.requested) as locked:
        plans = PendingPlans(locked.storage, timeline_of(locked))
        now = next((one for one in plans.instants(CLUSTERING) if one.requested == instant.requested), None)
        if now is None:
            return False
        clear_plan(locked, engine, plans, now)
        knew = is_recorded(locked, now)
        after = undo_update(locked, now, None, engine)
        delete_instant_files(after.storage, after.profile, replace(now, state=State.REQUESTED))
        end_heartbeat(locked.storage, now.requested)
    return knew


def give_up_plans(handle: TableHandle, locking: Locking, engine: Engine, plans: Collection[InstantTime]) -> None:
    """Takes pending clusterings off the timeline for a write that wants their file groups. The lock of `locking` is
    taken for it, where the write does not hold it.

    Raises:
        Conflict: an executor works on one, one resizes buckets, or the metadata table is another now; those taken off
            stay so, and the write may be repeated.
    """
    with locking.to_commit(handle) as (locked, _):
        pending = PendingPlans(locked.storage, timeline_of(locked))
        resizes = {one.requested for one in pending_resizes(pending)}
        knew = False
        for one in pending.instants(CLUSTERING):
            if one.requested not in plans:
                continue
            if one.requested in resizes:
                raise Conflict(
                    f"The pending clustering {one.requested} resizes buckets",
                    remedy="Carry it out (hoodie resize), then write again",
                    instant=one.requested,
                )
            log.warning("the pending clustering %s is taken off for a write to its file groups", one.requested)
            knew = take_plan_off(locked, engine, one) or knew
    if knew:
        raise Conflict(
            "A clustering that had been begun was taken off for this write, and the metadata table changed with it",
            remedy="Nothing was written; write again",
        )
