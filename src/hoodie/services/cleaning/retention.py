"""How far back the states of a table stay readable: the earliest commit that a clean keeps.

1. It is the oldest of the last n completed writes, or the first one of the last hours; counting versions gives none.
2. It is never later than a write that is still pending: the last completed one before that is kept instead, since the
   pending one may be reading it.
3. A clean may be told to move on by so many commits only; then the earliest commit is that many after the last clean's.

Cleaning and archiving must agree on it, so the rule stands here. Pure.
"""

from __future__ import annotations

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
        return next((one for one in completed if one.requested >= since), None)
    if options.by_versions or len(completed) <= options.commits:
        return None
    kept = completed[len(completed) - options.commits]
    actions = _WRITES | {COMPACTION} if sees_compactions else _WRITES
    pending = next((one for one in timeline.pending() if one.action in actions), None)
    if pending is None or kept.requested <= pending.requested:
        return kept
    return max((one for one in completed if one.requested < pending.requested), default=None)
