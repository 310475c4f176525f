"""Whether a compaction is due, by the timeline alone.

1. Delta commits are counted since the last completed compaction; without one, all of them. In tables of version 8 and
   later "since" goes by completion: what was requested before a compaction and completed after it is new to it.
2. With NUM_COMMITS_AFTER_LAST_REQUEST a pending compaction counts as one: writers that only plan make one plan for so
   many commits, and not one after each.
3. Time is counted from the last compaction, else from the first delta commit. A bootstrap has no time: its instant is
   none.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.services.compaction.options import CompactOptions
from hoodie.spec import (
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    FULL_BOOTSTRAP_INSTANT,
    METADATA_BOOTSTRAP_INSTANT,
    Instant,
    InstantTime,
    TimeZone,
    parse_instant_time,
)
from hoodie.timeline import Timeline

_BOOTSTRAPS = (METADATA_BOOTSTRAP_INSTANT, FULL_BOOTSTRAP_INSTANT)


@dataclass(frozen=True, slots=True)
class Due:
    """Whether a compaction is due, and why (not), in words."""

    is_due: bool
    reason: str


def compaction_due(timeline: Timeline, options: CompactOptions, now: InstantTime, timezone: TimeZone) -> Due:
    """Whether a compaction requested at `now` is due."""
    after_request = options.trigger == "NUM_COMMITS_AFTER_LAST_REQUEST"
    last = _last_compaction(timeline, pending_too=after_request)
    deltas = _delta_commits(timeline, last)
    if last is None and not deltas:
        return Due(False, "there is no delta commit")
    timed_deltas = [one.requested for one in deltas if one.requested not in _BOOTSTRAPS]
    start = last.requested if last is not None else min(timed_deltas, default=now)
    waited = (parse_instant_time(now, timezone) - parse_instant_time(start, timezone)).total_seconds()
    enough = len(deltas) >= options.max_delta_commits
    long_enough = waited >= options.max_delta_seconds
    counted = f"{len(deltas)} of {options.max_delta_commits} delta commits"
    timed = f"{int(waited)} of {options.max_delta_seconds} s"
    match options.trigger:
        case "TIME_ELAPSED":
            return Due(long_enough, timed)
        case "NUM_AND_TIME":
            return Due(enough and long_enough, f"{counted} and {timed}")
        case "NUM_OR_TIME":
            return Due(enough or long_enough, f"{counted} or {timed}")
        case _:
            return Due(enough, counted)


def _last_compaction(timeline: Timeline, *, pending_too: bool) -> Instant | None:
    """The newest compaction: on a merge-on-read table every completed `commit` is one."""
    pending = [one for one in timeline.pending() if one.action == COMPACTION] if pending_too else []
    done = [one for one in timeline.completed_writes() if one.action == COMMIT]
    return max(pending or done, default=None)


def _delta_commits(timeline: Timeline, last: Instant | None) -> list[Instant]:
    deltas = [one for one in timeline.completed_writes() if one.action == DELTA_COMMIT]
    if last is None:
        return deltas
    return [one for one in deltas if timeline.profile.clock.of(one) > last.requested]
