"""What others have done under a lock that an action believes to hold: a sign that it was lost.

1. Whoever completes a write, or stores a plan, has the table lock, from the look that it rests on to a look behind its
   last file. Under a lock that holds nothing comes in between that another holder of it makes.
2. Where something has, one of the two gives way. The store's clock tells who came first: a file that is older than the
   own one was made by somebody who did not know of it. Who made a younger one has seen it, or does so in the look
   behind his own, and gives way himself. What is of the same time counts as older.
3. What was planned rests on the look before its plan, whenever it is carried out. The build of an index catches up with
   what was completed before its end.

It takes nothing back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hoodie.errors import Missing
from hoodie.spec import (
    COMPACTION,
    COMPLETED_WRITE_ACTIONS,
    DELTA_COMMIT,
    INDEXING,
    LOG_COMPACTION,
    RESTORE,
    FormatProfile,
    Instant,
    InstantTime,
    State,
)
from hoodie.storage import Storage
from hoodie.timeline.load import instant_path, is_clustering
from hoodie.timeline.timeline import furthest

_COMPLETED: Final = COMPLETED_WRITE_ACTIONS | {RESTORE, INDEXING}


@dataclass(frozen=True, slots=True)
class Others:
    """What there was on a timeline, beside the instant of an action that took place after that look.

    `is_metadata`: of a metadata table, where delta commits are no sign: indexes are built beside writers.
    """

    storage: Storage
    profile: FormatProfile
    own: Instant
    before: frozenset[tuple[tuple[InstantTime, str], bool]]
    is_metadata: bool = False

    @classmethod
    def than(
        cls,
        storage: Storage,
        profile: FormatProfile,
        own: Instant,
        seen: Iterable[Instant],
        *,
        is_metadata: bool = False,
    ) -> Others:
        """Others than the action `own`, since the look that showed `seen`."""
        before = frozenset((one.logical, one.is_completed) for one in seen)
        return cls(storage, profile, own, before, is_metadata)

    def came_first(self, known: Iterable[Instant], made: Instant | None = None) -> str:
        """What others did that this action knows nothing of, and they nothing of it, in words; empty when they did not.
        `known`: all state files as they are now. `made`: the state of the own instant whose file they would have seen;
        None when there is none yet.

        Raises:
            Missing: the own file is gone.
        """
        states = tuple(known)
        new = [(other, path) for other in furthest(states) if (path := self._new_file(other, states)) is not None]
        if not new:
            return ""
        own_ms = None if made is None else self.storage.head(instant_path(self.profile, made)).modified_ms
        for other, path in new:
            if own_ms is None or self._is_older(path, own_ms):
                done = "completed" if other.is_completed else "planned"
                return f"others {done} the {other.action} {other.requested} meanwhile"
        return ""

    def _is_older(self, path: str, own_ms: int) -> bool:
        try:
            return self.storage.head(path).modified_ms <= own_ms
        except Missing:  # who made it has given way
            return False

    def _new_file(self, other: Instant, states: Iterable[Instant]) -> str | None:
        """The file by which another instant came to be a completed write, or a plan, since the look; None where it did
        not.
        """
        if other.logical == self.own.logical or (other.logical, other.is_completed) in self.before:
            return None
        if other.is_completed and (
            other.action not in _COMPLETED or (self.is_metadata and other.action == DELTA_COMMIT)
        ):
            return None
        for one in states:
            if one.logical == other.logical and one.state is State.REQUESTED and self._is_new_plan(one):
                return instant_path(self.profile, one)
        return instant_path(self.profile, other) if other.is_completed else None

    def _is_new_plan(self, requested: Instant) -> bool:
        if (requested.logical, False) in self.before:
            return False
        is_compaction = requested.action in (COMPACTION, LOG_COMPACTION)
        return is_compaction or is_clustering(self.storage, self.profile, requested)
