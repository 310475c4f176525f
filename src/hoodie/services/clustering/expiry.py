"""Pending clusterings whose planner and executor are dead: which there are, and taking them off.

1. With `hoodie.clustering.enable.expirations` who schedules a plan gives a sign of life, and who carries it out goes on
   to give them. A plan older than `hoodie.clustering.expiration.threshold.mins` without one has expired.
2. Who plans the next clustering, and a clean, takes expired plans off: their file groups may be changed and planned
   again then, and what their executor left goes. A plan whose executor holds its lock never expires.
3. Without the option a plan stays until somebody carries it out or takes it off, and nobody gives signs of life.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.errors import Conflict, Invalid
from hoodie.notebook import Displayed
from hoodie.services.clustering.admin import take_plan_off
from hoodie.services.resizing.plan import pending_resizes
from hoodie.spec import CLUSTERING, Instant, InstantTime, parse_instant_time
from hoodie.spec.base_file_plan import BASE_FILE_PLAN
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.transaction.heartbeat import beat_once, beating, heartbeat_rule, is_expired

log = logging.getLogger(__name__)

ENABLE: Final = "hoodie.clustering.enable.expirations"
_MINUTES: Final = "hoodie.clustering.expiration.threshold.mins"


@dataclass(frozen=True, slots=True)
class PendingClustering:
    """A pending clustering: what it is (`clustering`, `base files`, `buckets`), how far it is, its groups and the file
    groups in them, how old it is (None: its time is no date), and whether anybody gives signs of life for it.
    """

    instant: InstantTime
    kind: str
    state: str
    groups: int
    slices: int
    age_seconds: int | None
    is_alive: bool


@dataclass(frozen=True, slots=True)
class PendingClusterings(Displayed):
    """All pending clusterings, oldest first."""

    plans: tuple[PendingClustering, ...]


@dataclass(frozen=True, slots=True)
class ExpiredClusterings(Displayed):
    """The plans that had expired, and were taken off."""

    instants: tuple[InstantTime, ...]


def list_pending(handle: TableHandle, config: Config) -> PendingClusterings:
    """All pending clusterings. Reads their plans, and looks for their signs of life."""
    plans = PendingPlans(handle.storage, timeline_of(handle))
    resizes = {one.requested for one in pending_resizes(plans)}
    rule = heartbeat_rule(config)
    found = []
    for one in plans.instants(CLUSTERING):
        plan = plans.clustering(one).clustering_plan
        is_of_base_files = plan is not None and BASE_FILE_PLAN in (plan.extra_metadata or {})
        kind = "buckets" if one.requested in resizes else "base files" if is_of_base_files else "clustering"
        is_alive = not is_expired(handle.storage, one.requested, rule, handle.env)
        groups = () if plan is None else plan.groups
        slices = sum(len(group.slices) for group in groups)
        age = _age_seconds(handle, one)
        found.append(
            PendingClustering(
                one.requested,
                kind,
                one.state.name.lower(),
                len(groups),
                slices,
                None if age is None else int(age),
                is_alive,
            )
        )
    return PendingClusterings(tuple(found))


def drop_expired_plans(handle: TableHandle, config: Config, engine: Engine) -> tuple[InstantTime, ...]:
    """The expired plans that were taken off the timeline; none where options do not ask for it. The caller holds the
    table lock.
    """
    if not config.flag(ENABLE):
        return ()
    plans, rule = PendingPlans(handle.storage, timeline_of(handle)), heartbeat_rule(config)
    resizes = {one.requested for one in pending_resizes(plans)}
    gone = []
    for one in plans.instants(CLUSTERING):
        age = _age_seconds(handle, one)
        is_old = age is not None and age > 60 * config.integer(_MINUTES)
        if one.requested in resizes or not is_old or not is_expired(handle.storage, one.requested, rule, handle.env):
            continue
        try:
            take_plan_off(handle, engine, one)
        except Conflict as error:  # its executor lives
            log.info("the pending clustering %s stays: %s", one.requested, error.cause)
        else:
            log.warning("the pending clustering %s has expired and was taken off", one.requested)
            gone.append(one.requested)
    return tuple(gone)


def note_scheduled(handle: TableHandle, requested: InstantTime, config: Config) -> None:
    """Gives the first sign of life of a plan, where options ask for signs."""
    if config.flag(ENABLE):
        beat_once(handle, requested, "plan of a clustering")


@contextmanager
def giving_signs(handle: TableHandle, requested: InstantTime, config: Config) -> Iterator[None]:
    """Signs of life are given for the plan while the block runs, where options ask for them."""
    if not config.flag(ENABLE):
        yield
        return
    with beating(handle, requested, config, "clustering"):
        yield


def _age_seconds(handle: TableHandle, instant: Instant) -> float | None:
    try:
        begun = parse_instant_time(instant.requested, handle.config.timezone)
    except Invalid:
        return None
    return (handle.env.now() - begun).total_seconds()
