"""What has to be read to know a table again: two looks at its timeline, compared. Pure.

1. New is what is completed now and was not before, however late: by instant, not by time.
2. What is gone was archived, or was rolled back.
3. An instant that came and went between two looks must not be missed.
   a. Writes are archived from the oldest on, but for those under a savepoint. While the first write that is under none
      was seen before, every one that was archived since then was older, and seen, too: completed, or pending, which
      is looked for.
   b. Cleans and rollbacks go with the writes around them, or, in version 6, by their number: the oldest, and never so
      many that less than two are left. While the newest one that was seen is there, none was missed; where none was
      seen and nothing was archived, a single one is the first.
4. A completed instant that is pending again is being rolled back or restored: which of its files are gone is unknown.
5. A write that was completed at another time than it is now was taken back and done anew between the two looks. What
   it wrote first is not told by what it wrote then: partitions with files of either are loaded anew. Where names of log
   files do not say who wrote them, and for a clean or rollback, nobody can tell these partitions.
6. A compaction that comes before what was seen without it was put back (version 6): log files of its slice, which
   nobody saw, are seen again, and no commit will tell of them.
7. Whatever cannot be told from the two looks means a rebuild, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.spec import (
    CLEAN,
    COMMIT,
    COMPLETED_WRITE_ACTIONS,
    DELTA_COMMIT,
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
_CLEANING = frozenset({CLEAN, ROLLBACK})


@dataclass(frozen=True, slots=True)
class Sync:
    """Instants to read, in the order they were completed, and writes that must be among those that were rolled back.
    `redone`: those of the first that were completed before, too.
    """

    finished: tuple[Instant, ...]
    vanished: frozenset[InstantTime]
    redone: frozenset[InstantTime] = frozenset()


@dataclass(frozen=True, slots=True)
class Rebuild:
    """That no file that is known counts any more, and why."""

    reason: str


def plan_sync(old: Timeline, new: Timeline) -> Sync | Rebuild:
    """What turns the files known at `old` into those of `new`, a later timeline of the same table version."""
    before = {one.logical: one for one in old.instants}
    now = {one.logical for one in new.instants}
    redone = [one for one in new.completed() if _is_redone(before.get(one.logical), one)]
    lost = next((one for one in redone if not _tells_its_files(one, new)), None)
    if lost is not None:
        return Rebuild(f"the {lost.action} {lost.requested} was taken back and done anew")
    finished = [*redone, *(one for one in new.completed() if not _was_completed(before.get(one.logical)))]
    strange = next((one for one in finished if one.action not in _UNDERSTOOD), None)
    if strange is not None:
        return Rebuild(f"a {strange.action} was completed")
    unpublished = next((one for one in new.pending() if _was_completed(before.get(one.logical))), None)
    if unpublished is not None:
        return Rebuild(f"the {unpublished.comparable_action} {unpublished.requested} is taken back")
    if _puts_back(old, new, before):
        return Rebuild("a compaction was put back under log files that carry its instant")
    start = _start(old, new)
    if start is not None and start.logical not in before:
        return Rebuild("writes may have been archived before anybody saw them")
    gone = [one for one in old.instants if one.logical not in now and one.action not in _WITHOUT_FILES]
    archived = [one for one in gone if _is_archived(one, new)]
    if any(not one.is_completed for one in archived):
        return Rebuild("what was running is archived")
    kinds = {one.action for one in (*archived, *finished)} & _CLEANING
    if any(_may_have_missed(kind, old, new, bool(archived)) for kind in kinds):
        return Rebuild("cleans or rollbacks may have been archived before anybody saw them")
    vanished = {one.requested for one in gone if one.is_completed and one.action in WRITE_ACTIONS} - {
        one.requested for one in archived
    }
    again = frozenset(one.requested for one in redone)
    return Sync(tuple(sorted(finished, key=_completion)), frozenset(vanished), again)


def _was_completed(known: Instant | None) -> bool:
    return known is not None and known.is_completed


def _is_redone(known: Instant | None, now: Instant) -> bool:
    """Whether an instant that was completed is so since another time. Savepoints and indexes say nothing of files."""
    if known is None or not known.is_completed or now.action in _WITHOUT_FILES:
        return False
    return known.completed != now.completed


def _tells_its_files(redone: Instant, new: Timeline) -> bool:
    """Whether the names of files say that this instant wrote them."""
    return redone.action in COMPLETED_WRITE_ACTIONS and new.profile.log_naming.has_one_write_per_file


def _puts_back(old: Timeline, new: Timeline, before: Mapping[tuple[InstantTime, str], Instant]) -> bool:
    """Whether a compaction came, pending or completed, before delta commits that were seen without it: where log files
    are named by slice, those they wrote on top of it were no part of one then.
    """
    if old.profile.log_naming.finds_slice_by_completion:
        return False
    last = max((one.requested for one in old.completed() if one.action == DELTA_COMMIT), default="")
    came = (one for one in new.instants if one.comparable_action == COMMIT and one.logical not in before)
    return any(one.requested < last or old.is_before_start(one.requested) for one in came)


def _start(old: Timeline, new: Timeline) -> Instant | None:
    """The first write of `new` that was never seen under a savepoint."""
    saved = {one.requested for one in (*old.instants, *new.instants) if one.action == SAVEPOINT}
    return next((one for one in new.writes() if one.requested not in saved), new.first_write_instant)


def _is_archived(instant: Instant, new: Timeline) -> bool:
    """Writes are archived from the start of the timeline; whatever else is gone can only have been archived."""
    return instant.action not in WRITE_ACTIONS or new.is_before_start(instant.requested)


def _may_have_missed(action: str, old: Timeline, new: Timeline, has_archived: bool) -> bool:
    """Whether cleans or rollbacks may have come and gone."""
    seen = [one for one in old.completed() if one.action == action]
    there = {one.logical for one in new.completed() if one.action == action}
    return max(seen).logical not in there if seen else has_archived or len(there) > 1


def _completion(instant: Instant) -> tuple[InstantTime, InstantTime]:
    return instant.completed or instant.requested, instant.requested
