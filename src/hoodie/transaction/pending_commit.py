"""A write that is about to complete: what conflict rules and participants look at."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.spec import Instant
from hoodie.state.handle import TableHandle
from hoodie.timeline import Timeline
from hoodie.transaction.outcome import Outcome


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """The inflight instant, what was written under it, and the timeline that was known when it was planned. `handle` is
    the table under its lock. `seen`: the timeline as it was loaded under that lock; None where the lock has been held
    since the write was planned.
    """

    handle: TableHandle
    inflight: Instant
    outcome: Outcome
    planned_on: Timeline
    seen: Timeline | None = None

    @property
    def timeline(self) -> Timeline:
        """The newest timeline that is known."""
        return self.planned_on if self.seen is None else self.seen
