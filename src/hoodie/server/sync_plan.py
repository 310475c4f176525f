"""What has to be read to know a table again: two looks at its timeline, compared. Pure.

1. New is what is completed now and was not before, however late: by instant, not by time.
2. What is gone was archived, or was rolled back. An instant that came and went between two looks is not missed: the
   newest of each kind leaves last, so one that is gone means that others may have come and gone with it.
3. Whatever cannot be told from the two looks means a rebuild, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hoodie.spec import (
    CLEAN,
    COMPLETED_WRITE_ACTIONS,
    INDEXING,
    ROLLBACK,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
    InstantTime,
)
from hoodie.timeline import Timeline

_WITHOUT_FILES = frozenset({SAVEPOINT, INDEXING})
_UNDERSTOOD = COMPLETED_WRITE_ACTIONS | {CLEAN, ROLLBACK} | _WITHOUT_FILES
_WRITES = "writes"


@dataclass(frozen=True, slots=True)
class Sync:
    """Instants to read, in the order they were completed, and writes that must be among those that were rolled back."""

    finished: tuple[Instant, ...]
    vanished: frozenset[InstantTime]


@dataclass(frozen=True, slots=True)
class Rebuild:
    """That no file that is known counts any more, and why."""

    reason: str


def plan_sync(old: Timeline, new: Timeline) -> Sync | Rebuild:
    """What turns the files known at `old` into those of `new`, a later timeline of the same table version."""
    before = {one.logical: one for one in old.instants}
    now = {one.logical for one in new.instants}
    finished = [one for one in new.completed() if not _was_completed(before.get(one.logical))]
    strange = next((one for one in finished if one.action not in _UNDERSTOOD), None)
    if strange is not None:
        return Rebuild(f"a {strange.action} was completed")
    gone = [one for one in old.instants if one.logical not in now and one.action not in _WITHOUT_FILES]
    archived = [one for one in gone if _is_archived(one, new)]
    if any(not one.is_completed and one.action in WRITE_ACTIONS for one in archived):
        return Rebuild("a write that was running is archived")
    kinds = {_kind(one) for one in (*archived, *finished)}
    if archived and any(_may_have_missed(kind, old, now) for kind in kinds):
        return Rebuild("instants may have been archived before anybody saw them")
    vanished = {one.requested for one in gone if one.is_completed and one.action in WRITE_ACTIONS} - {
        one.requested for one in archived
    }
    return Sync(tuple(sorted(finished, key=_completion)), frozenset(vanished))


def _was_completed(known: Instant | None) -> bool:
    return known is not None and known.is_completed


def _is_archived(instant: Instant, new: Timeline) -> bool:
    """Writes are archived from the start of the timeline; whatever else is gone can only have been archived."""
    if instant.action in WRITE_ACTIONS:
        return new.is_before_start(instant.requested)
    return instant.is_completed


def _may_have_missed(kind: str, old: Timeline, now: Iterable[tuple[InstantTime, str]]) -> bool:
    """Whether instants of a kind may have come and gone: unless the newest that was seen is still there."""
    newest = max((one for one in old.completed() if _kind(one) == kind), default=None)
    return newest is None or newest.logical not in now


def _kind(instant: Instant) -> str:
    """Instants that are archived in the order of their times."""
    return _WRITES if instant.action in WRITE_ACTIONS else instant.action


def _completion(instant: Instant) -> tuple[InstantTime, InstantTime]:
    return instant.completed or instant.requested, instant.requested
