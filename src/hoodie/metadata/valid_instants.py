"""Which writes of the metadata table count for readers of the table.

A write goes to the metadata table first and to the timeline of the table last, so the metadata table may be ahead, by
a write that is still running or that died. What its log blocks say counts when the instant that wrote them is one of:

1. completed on the table's timeline;
2. completed on the metadata table's own timeline, not pending on the table's and not later than all the table's
   timeline knows: writes that were archived on one side, index builds, log compactions. What is later was written
   after the timeline was loaded: a reader that took it would look for rows where they are not yet, in its picture;
3. a rollback or restore of the metadata table (its command blocks);
4. an initialisation, whose instants start with fourteen zeros.

Pure. Base files need no such rule: a compaction of the metadata table takes in nothing that is not settled.
"""

from __future__ import annotations

from hoodie.spec import DELTA_COMMIT, INIT_INSTANT, RESTORE, ROLLBACK, Instant, InstantTime
from hoodie.spec.instant_time import INSTANT_DIGITS
from hoodie.timeline import Timeline


def valid_instants(table: Timeline, metadata: Timeline) -> frozenset[InstantTime]:
    """Requested times of the writes whose log blocks count."""
    pending = {instant.requested for instant in table.pending()}
    settled = {instant.requested for instant in table.completed()}
    own = {
        instant.requested
        for instant in metadata.completed()
        if (instant.requested not in pending and not is_later(instant.requested, table))
        or instant.action in (ROLLBACK, RESTORE)
        or instant.requested.startswith(INIT_INSTANT)
    }
    return frozenset(settled | own)


def unfinished_though_settled(table: Timeline, metadata: Timeline) -> Instant | None:
    """A pending delta commit of the metadata table whose write is completed on the table's timeline: its completed
    instant was lost, as every write completes there first.
    """
    settled = {instant.requested for instant in table.completed()}
    pending = (one for one in metadata.pending() if one.action == DELTA_COMMIT)
    return next((one for one in pending if one.requested in settled), None)


def is_later(instant: InstantTime, table: Timeline) -> bool:
    """Whether an instant of the metadata table (which may have digits behind those of a write) is later than all that
    the table's timeline knows.
    """
    return instant[:INSTANT_DIGITS] > (table.last_time() or "")
