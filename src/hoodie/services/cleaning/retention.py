"""How far back the states of a table stay readable: the earliest commit that a clean keeps.

1. It is the oldest of the last n completed writes, or the first one of the last hours; counting versions gives none.
2. It is never later than a write that is still pending, or that one does not see: the last completed one before that
   is kept instead, since the pending one may be reading it. What was written since stays, also where versions are
   counted (`first_unseen`).
3. A clean may be told to move on by so many commits only; then the earliest commit is that many after the last clean's.

Cleaning and archiving must agree on it, so the rule stands here. Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from hoodie.services.cleaning.options import CleanOptions
from hoodie.spec import (
    CLUSTERING,
    COMPACTION,
    COMPLETED_WRITE_ACTIONS,
    Instant,
    InstantTime,
    TimeZone,
    format_instant_time,
)
from hoodie.timeline import Timeline

_WRITES = COMPLETED_WRITE_ACTIONS | {CLUSTERING}


def earliest_retained(
    timeline: Timeline,
    options: CleanOptions,
    now: datetime,
    timezone: TimeZone,
    previous: InstantTime = "",
    *,
    sees_compactions: bool = True,
) -> Instant | None:
    """The earliest commit whose state of the table must stay; None when nothing may be cleaned by commits.

    `now` is what hours are counted from, `previous` the earliest commit of the last clean. Without `sees_compactions`
    pending compactions hold nothing back, which is how archiving counts.
    """
    completed = timeline.completed_writes()
    found = _candidate(timeline, completed, options, now, timezone, sees_compactions=sees_compactions)
    if found is None or not previous:
        return found
    left = [one for one in completed if previous <= one.requested < found.requested]
    return left[options.max_commits] if len(left) > options.max_commits else found


def first_unseen(
    timeline: Timeline, *, sees_compactions: bool = True, plans: Collection[InstantTime] = ()
) -> InstantTime | None:
    """When the oldest write was requested that the first pending one does not see: that one itself, or another that
    began before it and completed after it began. None while nothing is pending. `plans`: those whose groups are
    guarded one by one, and which are passed over.
    """
    actions = _WRITES | {COMPACTION} if sees_compactions else _WRITES
    writes = (one.requested for one in timeline.pending() if one.action in actions)
    pending = next((one for one in writes if one not in plans), None)
    if pending is None:
        return None
    late = (one.requested for one in timeline.completed_writes() if (one.completed or one.requested) > pending)
    return min((pending, *late))


def _candidate(
    timeline: Timeline,
    completed: tuple[Instant, ...],
    options: CleanOptions,
    now: datetime,
    timezone: TimeZone,
    *,
    sees_compactions: bool,
) -> Instant | None:
    if options.policy == "KEEP_LATEST_BY_HOURS":
        since = format_instant_time(now - timedelta(hours=options.hours), timezone)
        kept = next((one for one in completed if one.requested >= since), None)
    elif options.by_versions or len(completed) <= options.commits:
        return None
    else:
        kept = completed[len(completed) - options.commits]
    by_hours = options.policy == "KEEP_LATEST_BY_HOURS"  # where plans, whose groups are guarded, hold nothing in Hudi
    unseen = first_unseen(timeline, sees_compactions=sees_compactions and not by_hours)
    if kept is None or unseen is None or kept.requested <= unseen:
        return kept
    return max((one for one in completed if one.requested < unseen), default=None)
