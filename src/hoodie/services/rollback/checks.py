"""Whether a write may be undone: what rests on it, what keeps it, and what has to be finished first.

1. Only the newest write can be undone. What is planned for later matters where the plan may name the write's files.
2. A commit under a savepoint stays.
3. Nothing is undone whose earlier files a clean has removed: the rows would be gone.
4. Nothing completed is undone after a downgrade died that had begun to name log files anew: commits would not know
   what is theirs.
5. While a restore is pending no other action may begin: the table is half-way between two states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hoodie.errors import Invalid, Missing, Unavailable
from hoodie.services.rollback.savepoint import saved_instants
from hoodie.spec import (
    NULL_COMMIT,
    RESTORE,
    Instant,
    InstantTime,
    keys,
)
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.view import GroupId, list_files


def ensure_no_restore(timeline: Timeline) -> None:
    """Checks that no restore is pending.

    Raises:
        Unavailable: one is.
    """
    for one in timeline.pending():
        if one.action == RESTORE:
            raise Unavailable(
                f"The restore {one.requested} was begun and is not finished",
                remedy="Run the restore again: it goes on where it stopped. Until then nothing else may be done",
                instant=one.requested,
            )


def ensure_can_roll_back(handle: TableHandle, plans: PendingPlans, instant: InstantTime) -> Instant:
    """The write `instant`, when undoing it harms nothing else.

    Raises:
        Invalid: see `roll_back_instant`.
    """
    timeline = plans.timeline
    target = next((one for one in timeline.writes() if one.requested == instant), None)
    if target is None:
        raise Invalid(
            f"{instant} is no write of the active timeline",
            remedy="`hoodie timeline` lists what can be rolled back",
            instant=instant,
        )
    ensure_not_saved(timeline, (target,))
    if not target.is_completed and plans.is_plan(target):
        return target
    later = [one for one in timeline.writes() if one.requested > instant and _rests_on(plans, one, target)]
    if later:
        raise Invalid(
            f"The {later[-1].action} {later[-1].requested} came after {instant}",
            remedy="Roll back later writes first (unschedule later compactions), or restore the table to an instant",
            instant=instant,
            later=tuple(one.requested for one in later),
        )
    if target.is_completed:
        ensure_log_names(handle)
    ensure_older_files(handle, [target], lambda instant: instant < target.requested)
    return target


def ensure_log_names(handle: TableHandle) -> None:
    """Checks that log files have the names their commits know.

    Raises:
        Invalid: a downgrade died that had begun to give them other ones.
    """
    try:
        handle.storage.head(keys.LOG_RENAMES_FILE)
    except Missing:
        return
    raise Invalid(
        "A downgrade died after it had given log files other names: what commits wrote would not be found",
        remedy=f"Finish it (hoodie upgrade {handle.storage.uri} --to 6), or give it up (--to "
        f"{handle.config.table_version}); then try again",
    )


def ensure_older_files(handle: TableHandle, undone: Iterable[Instant], is_older: Callable[[InstantTime], bool]) -> None:
    """Checks that every file group that the completed writes `undone` rewrote or replaced has files of before: those
    for whose instant `is_older` holds. Reads the metadata of the writes and lists the partitions they touched.

    Raises:
        Invalid: the earlier files of a group were cleaned.
    """
    needed: set[GroupId] = set()
    created: set[GroupId] = set()
    for one in undone:
        if not one.is_completed:
            continue
        metadata = load_commit_metadata(handle.storage, handle.profile, one)
        needed |= metadata.replaced_file_groups()
        for partition, stat in metadata.write_stats():
            if stat.prev_commit in (None, NULL_COMMIT):
                created.add((partition, stat.file_id))
            elif not stat.is_log:
                needed.add((partition, stat.file_id))
    needed -= created
    listed = list_files(handle.storage, {partition for partition, _ in needed}) if needed else ()
    there = {
        (found.partition, file.name.file_id)
        for found in listed
        for file in found.everything
        if is_older(file.name.instant)
    }
    missing = sorted(needed - there)
    if missing:
        partition, file_id = missing[0]
        raise Invalid(
            f"{len(missing)} file groups have no files of before, for example {file_id} in partition {partition!r}: a "
            "clean removed them",
            remedy="What is there now cannot be taken back; let cleaning retain more, or keep commits by savepoints",
            groups=len(missing),
        )


def ensure_not_saved(timeline: Timeline, targets: Iterable[Instant]) -> None:
    """Checks that no savepoint keeps what is to be undone.

    Raises:
        Invalid: one does.
    """
    saved = saved_instants(timeline)
    for target in targets:
        if target.requested in saved:
            raise Invalid(
                f"The {target.action} {target.requested} has a savepoint",
                remedy="Delete the savepoint first",
                instant=target.requested,
            )


def _rests_on(plans: PendingPlans, later: Instant, target: Instant) -> bool:
    """Whether a later write must go before `target` can. A plan may name the files of a completed write."""
    return later.is_completed or target.is_completed or not plans.is_plan(later)
