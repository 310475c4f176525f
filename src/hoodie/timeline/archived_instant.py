"""An instant that left the active timeline, and where what it said is kept.

1. One value stands for a whole logical instant: it is completed, since nothing else is archived for good.
2. What the instant did is not part of the value: it may be large, and most questions are about times. `place` says
   where to find it.

It does not read anything: see `history`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hoodie.spec import Instant, InstantTime


@dataclass(frozen=True, slots=True)
class LogPlace:
    """An entry of an archive in log format: bytes of a file, and the Avro schema they were written with."""

    path: str
    start: int
    size_bytes: int
    schema: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class RowPlace:
    """A row of a parquet file."""

    path: str
    row: int


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """A completed instant of the archived history. `instant.completed` is None where an old release did not keep it."""

    instant: Instant
    place: LogPlace | RowPlace = field(compare=False)

    @property
    def requested(self) -> InstantTime:
        return self.instant.requested

    @property
    def completed(self) -> InstantTime:
        """When it completed, or was requested where nobody knows."""
        return self.instant.completed or self.instant.requested

    @property
    def action(self) -> str:
        """The action it has completed: `commit` for a compaction, `replacecommit` for a clustering."""
        return self.instant.action

    def was_at_work(self, after: InstantTime, until: InstantTime | None) -> bool:
        """Whether some of the time between request and completion lies in (after, until]."""
        return after < self.completed and (until is None or self.requested <= until)
