"""File names of instants: `<requested>[_<completed>].<action>[.<state>]`, in the two forms of the format.

1. `parse` gives None for everything that is not an instant's file: checksum side files, half-written temporary files
   (`<name>.<uuid>`), folders of other things. It never raises.
2. `file_name(parse(name)) == name` for every name that parses.
3. A commit's inflight file is the one irregular name: `<requested>.inflight`, without the action.

It does not know folders, and not what is inside the files. Grammar and examples: `docs/format/timeline.md`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol

from hoodie.errors import Invalid
from hoodie.spec.instant import (
    CLEAN,
    CLUSTERING,
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    INDEXING,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    Instant,
    State,
    comparable_action,
)

_REQUESTED_ACTIONS_V1 = (
    COMMIT,
    DELTA_COMMIT,
    REPLACE_COMMIT,
    COMPACTION,
    LOG_COMPACTION,
    CLEAN,
    ROLLBACK,
    RESTORE,
    INDEXING,
)
_REQUESTED_ACTIONS_V2 = (*_REQUESTED_ACTIONS_V1, CLUSTERING)
_COMPLETED_ACTIONS = (COMMIT, DELTA_COMMIT, REPLACE_COMMIT, CLEAN, ROLLBACK, RESTORE, SAVEPOINT, INDEXING)
_NAME = re.compile(r"([0-9]+)(?:_([0-9]+))?(\.[a-z]+(?:\.[a-z]+)?)")


class InstantNames(Protocol):
    """Instant ↔ file name, in one layout version."""

    def file_name(self, instant: Instant) -> str:
        """The name of the file that records `instant` in its state."""
        ...

    def parse(self, name: str) -> Instant | None:
        """The instant a file name stands for; None for any other file."""
        ...


def _endings(requested_actions: tuple[str, ...]) -> dict[str, tuple[str, State]]:
    endings: dict[str, tuple[str, State]] = {}
    for action in requested_actions:
        endings[f".{action}.requested"] = (action, State.REQUESTED)
        endings[f".{action}.inflight"] = (action, State.INFLIGHT)
    del endings[f".{COMMIT}.inflight"]
    endings[".inflight"] = (COMMIT, State.INFLIGHT)
    endings[f".{SAVEPOINT}.inflight"] = (SAVEPOINT, State.INFLIGHT)  # savepoints are never requested
    for action in _COMPLETED_ACTIONS:
        endings[f".{action}"] = (action, State.COMPLETED)
    return endings


@dataclass(frozen=True, slots=True)
class LayoutOneNames:
    """Tables of version 6: no completion time in names, clustering is a `replacecommit` in all its states."""

    _endings: dict[str, tuple[str, State]] = field(
        default_factory=lambda: _endings(_REQUESTED_ACTIONS_V1), repr=False, compare=False
    )

    def file_name(self, instant: Instant) -> str:
        action = REPLACE_COMMIT if instant.action == CLUSTERING else instant.action
        if instant.state is State.COMPLETED:
            return f"{instant.requested}.{comparable_action(action)}"
        return _pending_name(instant.requested, action, instant.state)

    def parse(self, name: str) -> Instant | None:
        match = _NAME.fullmatch(name)
        if match is None or match[2] is not None:
            return None
        found = self._endings.get(match[3])
        return Instant(match[1], *found) if found else None


@dataclass(frozen=True, slots=True)
class LayoutTwoNames:
    """Tables of version 8 and later: completed names carry the completion time, clustering has a name of its own."""

    _endings: dict[str, tuple[str, State]] = field(
        default_factory=lambda: _endings(_REQUESTED_ACTIONS_V2), repr=False, compare=False
    )

    def file_name(self, instant: Instant) -> str:
        if instant.state is not State.COMPLETED:
            return _pending_name(instant.requested, instant.action, instant.state)
        action = comparable_action(instant.action)
        if instant.legacy_name:
            return f"{instant.requested}.{action}"
        if instant.completed is None:
            raise Invalid(f"Completed instant {instant.requested}.{action} has no completion time")
        return f"{instant.requested}_{instant.completed}.{action}"

    def parse(self, name: str) -> Instant | None:
        match = _NAME.fullmatch(name)
        found = self._endings.get(match[3]) if match else None
        if match is None or found is None:
            return None
        requested, completed, (action, state) = match[1], match[2], found
        if state is State.COMPLETED:
            return Instant(requested, action, state, completed, legacy_name=completed is None)
        return Instant(requested, action, state) if completed is None else None


def _pending_name(requested: str, action: str, state: State) -> str:
    if state is State.REQUESTED:
        return f"{requested}.{action}.requested"
    return f"{requested}.inflight" if action == COMMIT else f"{requested}.{action}.inflight"
