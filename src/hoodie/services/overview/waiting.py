"""What is not finished: writes that run or died, plans that nobody has carried out.

1. A heartbeat says whether a write lives. Only writers under the policy LAZY have one; of others nobody can tell until
   they are older than any work should take.
2. What helps stands beside each. Nothing is changed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from hoodie.config import Config
from hoodie.errors import HudiError
from hoodie.services.health import STUCK_SECONDS
from hoodie.services.overview.instant_works import moment_of
from hoodie.services.remedies import Remedy, told
from hoodie.spec import COMPACTION, LOG_COMPACTION, Instant, InstantTime, keys
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline
from hoodie.transaction.heartbeat import heartbeat_rule
from hoodie.view import FileSlice, GroupId

Verdict = Literal["planned", "running", "unknown", "stuck", "dead"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pending instant. `silent_s`: seconds since its last heartbeat, None without one; `groups` and `size_bytes`: the
    file groups a plan is about, and the bytes of their files. `verdict`: `planned` is a plan that waits, `unknown` a
    write without a heartbeat, `dead` one whose heartbeat has stopped, `stuck` is older than work should take.
    `commands` are those in the remedy.
    """

    instant: Instant
    is_plan: bool
    began: datetime | None
    age_s: float | None
    silent_s: float | None
    groups: int
    size_bytes: int
    verdict: Verdict
    remedy: str
    commands: tuple[str, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether it goes on by itself no more, as far as anybody can tell."""
        return self.verdict in ("dead", "stuck")


def load_waiting(
    handle: TableHandle, config: Config, timeline: Timeline, slices: Iterable[FileSlice]
) -> tuple[Waiting, ...]:
    """What is pending on a timeline, oldest first. `slices`: those of the table, for the sizes of plans. Reads the
    plans that are pending, and lists the folder of heartbeats, if anything is.
    """
    pending = timeline.pending()
    if not pending:
        return ()
    plans = PendingPlans(handle.storage, timeline)
    groups = {one: _groups(plans, one) for one in pending}
    planned = {group for found in groups.values() for group in found or ()}
    sizes = {one.group_id: one.size_bytes for one in slices if one.group_id in planned}
    silent = _silent_s(handle)
    found = _Found(groups, sizes, silent, heartbeat_rule(config).limit_ms / 1000)
    return tuple(_waiting(handle, one, found) for one in pending)


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known of pending instants: groups of those that are plans, bytes of these, and seconds of silence."""

    groups: Mapping[Instant, tuple[GroupId, ...] | None]
    sizes: Mapping[GroupId, int]
    silent_s: Mapping[InstantTime, float]
    limit_s: float


def _waiting(handle: TableHandle, instant: Instant, found: _Found) -> Waiting:
    groups, silent_s = found.groups[instant], found.silent_s.get(instant.requested)
    began = moment_of(instant.requested, handle.config.timezone)
    age_s = None if began is None else (handle.env.now() - began).total_seconds()
    verdict = _verdict(groups is not None, age_s, silent_s, found.limit_s)
    remedy = _remedy(handle.storage.uri, instant, verdict)
    return Waiting(
        instant=instant,
        is_plan=groups is not None,
        began=began,
        age_s=age_s,
        silent_s=silent_s,
        groups=len(groups or ()),
        size_bytes=sum(found.sizes.get(group, 0) for group in groups or ()),
        verdict=verdict,
        remedy=remedy.text,
        commands=remedy.commands,
    )


def _verdict(is_plan: bool, age_s: float | None, silent_s: float | None, limit_s: float) -> Verdict:
    if silent_s is not None:
        return "dead" if silent_s > limit_s else "running"
    if age_s is not None and age_s >= STUCK_SECONDS:
        return "stuck"
    return "planned" if is_plan else "unknown"


def _remedy(uri: str, instant: Instant, verdict: Verdict) -> Remedy:
    template = ""
    if instant.action == COMPACTION:
        template = "`hoodie compact {place}`"
    elif instant.action == LOG_COMPACTION:
        template = "`hoodie compact-logs {place}`"
    elif verdict == "dead":
        template = "the next clean rolls it back, or: `hoodie rollback {place} {at}`"
    elif verdict == "stuck":
        template = "`hoodie rollback {place} {at}`"
    return told(template, place=shlex.quote(uri), at=shlex.quote(instant.requested))


def _groups(plans: PendingPlans, instant: Instant) -> tuple[GroupId, ...] | None:
    """The file groups of a plan; None for what is none, or cannot be read."""
    try:
        return plans.groups(instant) if plans.is_plan(instant) else None
    except HudiError:
        return ()


def _silent_s(handle: TableHandle) -> dict[InstantTime, float]:
    """Seconds since the last heartbeat of each write that has one."""
    now_ms = handle.env.now().timestamp() * 1000
    found = handle.storage.list_dir(keys.HEARTBEAT_DIR).files
    return {one.path.rpartition("/")[2]: max(0.0, (now_ms - one.modified_ms) / 1000) for one in found}
