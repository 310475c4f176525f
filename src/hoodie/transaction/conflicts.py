"""Whether what others did since a write was planned lets it complete: rules, one for each kind of write.

1. A rule looks, it changes nothing. It is asked under the table lock, after the files are written and before anybody is
   told of the write. What it lets through completes, unless the instant itself was taken away (`timeline.complete`).
2. A refusal is a `Conflict` that names both instants. The write is still pending then, and its files are there: who
   can mend it may write what the conflict touched anew, and commit again on the newer timeline.
3. Writers that honour the table lock for their whole work never meet here. The rules catch the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hoodie.errors import Conflict
from hoodie.spec import COMPACTION, LOG_COMPACTION
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.transaction.pending_commit import PendingCommit

_COMPACTIONS = frozenset({COMPACTION, LOG_COMPACTION})


class ConflictRule(Protocol):
    """Which moves of other writers a write bears. A frozen value, which any thread may ask."""

    def check(self, pending: PendingCommit) -> None:
        """Compares the table as it is now with the one the write was planned on.

        Raises:
            Conflict: another writer did what this write does not bear.
        """
        ...


@dataclass(frozen=True, slots=True)
class NobodyElse:
    """No other write may have begun or completed since this one was planned. Lists the timeline.

    Compactions and log compactions that were planned before are apart: what they work on, the write has left alone. One
    that was planned meanwhile does not matter either where log files find their slice by completion, to a write that
    has only written log files: they come after the compaction. In every other case the compaction would leave out what
    the write has done.
    """

    def check(self, pending: PendingCommit) -> None:
        """See `ConflictRule`."""
        known, inflight = pending.planned_on, pending.inflight
        before = {(one.logical, one.is_completed) for one in known.writes()}
        planned = {one.logical for one in known.pending() if one.action in _COMPACTIONS}
        only_logs = all(stat.is_log or stat.begins_group for stat in pending.outcome.stats)
        passes_plans = only_logs and known.profile.log_naming.finds_slice_by_completion
        now = timeline_of(pending.handle) if pending.seen is None else pending.seen
        for one in now.writes():
            bears = one.logical in planned or (passes_plans and one.action in _COMPACTIONS)
            if bears or one.logical == inflight.logical or (one.logical, one.is_completed) in before:
                continue
            raise Conflict(
                f"Another writer's {one.action} {one.requested} appeared while {inflight.requested} was being written",
                remedy="Nothing became visible; read the table again and repeat the write. Use one writer at a time",
                instant=inflight.requested,
                other=one.requested,
            )


@dataclass(frozen=True, slots=True)
class AlsoNew:
    """What `rule` says, and the table does not have the rows of the write already: `ensure_new` raises when it has, as
    it did when the write began. The rule of streams beside other writers.
    """

    rule: ConflictRule
    ensure_new: Callable[[TableHandle, Timeline], None]

    def check(self, pending: PendingCommit) -> None:
        """See `ConflictRule`. Raises what `ensure_new` raises, too."""
        self.ensure_new(pending.handle, pending.timeline)
        self.rule.check(pending)


@dataclass(frozen=True, slots=True)
class PlanSetAside:
    """Whatever others do is nothing to this write: it works on files that a plan on the timeline has set aside for it,
    which writers leave alone. The rule of compactions and log compactions.
    """

    def check(self, pending: PendingCommit) -> None:
        """See `ConflictRule`. Looks at nothing."""


@dataclass(frozen=True, slots=True)
class GroupsUnchanged(PlanSetAside):
    """Nobody has completed a write to a file group that is replaced since its slices were read. Writers leave groups
    of a plan alone; this catches those that do not ask. The rule of clusterings. Reads the commits that completed
    meanwhile. With `yields` nobody is changing such a group either, as far as inflight files say: they are read, too.
    """

    yields: bool = False

    def check(self, pending: PendingCommit) -> None:
        """See `ConflictRule`."""
        known = {one.logical for one in pending.planned_on.completed()}
        replaced = {(name, one) for name, ids in (pending.outcome.replaced or {}).items() for one in ids}
        handle = pending.handle
        now = timeline_of(handle) if pending.seen is None else pending.seen
        running = PendingPlans(handle.storage, now).incomplete_writes() if self.yields else ()
        for one in (*now.completed_writes(), *running):
            if one.logical in known:
                continue
            said = load_commit_metadata(handle.storage, handle.profile, one)
            touched = {(name, stat.file_id) for name, stat in said.write_stats()} | said.replaced_file_groups()
            if both := touched & replaced:
                partition, file_id = min(both)
                raise Conflict(
                    f"The {one.action} {one.requested} {'changed' if one.is_completed else 'is changing'} file group "
                    f"{file_id} of partition {partition!r}, which the clustering {pending.inflight.requested} replaces",
                    remedy="Nothing became visible; take the plan off (hoodie cluster --op unschedule) and plan anew"
                    + ("" if one.is_completed else ", or carry it out when that write has ended"),
                    instant=pending.inflight.requested,
                    other=one.requested,
                )


@dataclass(frozen=True, slots=True)
class StillPending:
    """Nobody has rolled the write back. The rule of an overwrite by another kind of table, which removes all that
    others may have done. Lists the timeline.
    """

    def check(self, pending: PendingCommit) -> None:
        """See `ConflictRule`."""
        now = timeline_of(pending.handle) if pending.seen is None else pending.seen
        if now.find(pending.inflight.requested) is None:
            raise Conflict(
                f"Another writer rolled {pending.inflight.requested} back while it was being written",
                remedy="The table is what it was; read it again and repeat the overwrite",
                instant=pending.inflight.requested,
            )
