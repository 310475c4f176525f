"""The two clocks that writes of a table are ordered by: when they were requested, or when they completed.

1. Version 6 goes by requests: a write that was requested early may complete late, behind one that was read already (a
   *hollow commit*). Versions 8 and later go by completion: what completed is never followed by something earlier.
2. Archived writes, and those whose names carry no completion time, count as completed when they were requested.

Pure. Which clock a version has is `FormatProfile.clock`; a caller may ask for the other one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hoodie.spec.instant import Instant, InstantTime


class CommitClock(Protocol):
    """The order of writes."""

    @property
    def has_hollow_commits(self) -> bool:
        """Whether a write may appear at a time that readers have passed already."""
        ...

    def of(self, instant: Instant) -> InstantTime:
        """The time of a write: what readers and plans compare."""
        ...

    def is_after(self, one: Instant, other: Instant) -> bool:
        """Whether `one`, pending or not, is after the completed instant `other`."""
        ...

    def order(self, instant: Instant) -> tuple[bool, InstantTime, InstantTime]:
        """Sort key, by which what has no time yet comes last."""
        ...


@dataclass(frozen=True, slots=True)
class RequestClock:
    """Writes are where they were requested."""

    has_hollow_commits: bool = True

    def of(self, instant: Instant) -> InstantTime:
        return instant.requested

    def is_after(self, one: Instant, other: Instant) -> bool:
        return one.requested > other.requested

    def order(self, instant: Instant) -> tuple[bool, InstantTime, InstantTime]:
        return False, "", instant.requested


@dataclass(frozen=True, slots=True)
class CompletionClock:
    """Writes are where they completed; a pending one is after everything."""

    has_hollow_commits: bool = False

    def of(self, instant: Instant) -> InstantTime:
        return instant.completed or instant.requested

    def is_after(self, one: Instant, other: Instant) -> bool:
        return one.completed is None or one.completed > self.of(other)

    def order(self, instant: Instant) -> tuple[bool, InstantTime, InstantTime]:
        return instant.completed is None, instant.completed or "", instant.requested


REQUEST_CLOCK = RequestClock()
COMPLETION_CLOCK = CompletionClock()
