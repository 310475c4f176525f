"""Whether a clustering is due: enough writes since the last one.

As in Hudi, one that is pending counts as the last, and compactions count as writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from hoodie.spec import REPLACE_COMMIT, Instant, InstantTime
from hoodie.timeline import Timeline


def clustering_due(
    timeline: Timeline, pending: Collection[InstantTime], is_last: Callable[[Instant], bool], wanted: int
) -> bool:
    """Whether `wanted` completed writes were requested after the last clustering, pending or not; where there is none,
    whether there are so many. `is_last` tells a completed replacecommit, and is asked about the newest ones only.
    """
    planned, found = max(pending, default=""), 0
    for one in reversed(timeline.completed_writes()):
        if one.requested < planned or (one.action == REPLACE_COMMIT and is_last(one)):
            break
        found += 1
        if found >= wanted:
            return True
    return found >= wanted
