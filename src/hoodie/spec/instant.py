"""One action on a table at one time: the noun the timeline is made of.

1. `action` is the word in the file name of the state the instant is in: a pending compaction is `compaction`, the
   same compaction completed is `commit`. `comparable_action` says which of them are one logical instant.
2. `requested` and `completed` are instant times: text that orders by plain string comparison.
3. Instants order by requested time, then action, then state.

It does not know how an instant is spelled as a file name (see `instant_names`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

InstantTime = str

COMMIT = "commit"
DELTA_COMMIT = "deltacommit"
REPLACE_COMMIT = "replacecommit"
CLUSTERING = "clustering"
COMPACTION = "compaction"
LOG_COMPACTION = "logcompaction"
CLEAN = "clean"
ROLLBACK = "rollback"
RESTORE = "restore"
SAVEPOINT = "savepoint"
INDEXING = "indexing"

COMPLETED_WRITE_ACTIONS = frozenset({COMMIT, DELTA_COMMIT, REPLACE_COMMIT})
"""Actions whose completed instants put data into the table."""

WRITE_ACTIONS = COMPLETED_WRITE_ACTIONS | {COMPACTION, LOG_COMPACTION, CLUSTERING}
"""The same and the names some of them have while they are pending."""

_COMPLETES_AS = {COMPACTION: COMMIT, LOG_COMPACTION: DELTA_COMMIT, CLUSTERING: REPLACE_COMMIT}


class State(IntEnum):
    """How far an instant has come."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


@dataclass(frozen=True, slots=True)
class Instant:
    """An action with its times. `completed` is None while pending.

    `legacy_name` marks a completed instant of a version 8+ table whose file name carries no completion time: Hudi
    takes the file's modification time for it, and its content is JSON.
    """

    requested: InstantTime
    action: str
    state: State
    completed: InstantTime | None = None
    legacy_name: bool = False

    @property
    def is_completed(self) -> bool:
        return self.state is State.COMPLETED

    @property
    def comparable_action(self) -> str:
        """The action of the logical instant, the same in all its states."""
        return comparable_action(self.action)

    @property
    def logical(self) -> tuple[InstantTime, str]:
        """What the states of one logical instant share."""
        return self.requested, _COMPLETES_AS.get(self.action, self.action)  # a timeline asks it thousands of times

    def order(self) -> tuple[InstantTime, str, int]:
        """By what instants are sorted, for those who sort many."""
        return self.requested, self.action, int(self.state)

    def __lt__(self, other: Instant) -> bool:
        return self.order() < other.order()

    def __le__(self, other: Instant) -> bool:
        return self.order() <= other.order()

    def __gt__(self, other: Instant) -> bool:
        return self.order() > other.order()

    def __ge__(self, other: Instant) -> bool:
        return self.order() >= other.order()


def comparable_action(action: str) -> str:
    """The action a (maybe pending) action has once it is completed."""
    return _COMPLETES_AS.get(action, action)
