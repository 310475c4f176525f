"""Take a table back to what it was at a commit: undo everything that came after it, newest first.

1. The plan (which instants, in which order) is stored first; from then on no other action may begin, and whoever
   restores next goes on with this plan.
2. Each instant is taken back as by a rollback, but by what its metadata and the folders say, and without an instant of
   its own on the timeline. Before anything of it goes, its plan is stored in the folder for temporary files; when it is
   done, what was done is stored beside. So a restore that dies goes on in the middle of an instant, and says in the end
   what all attempts did together.
3. "After" a commit goes by completion times, where the timeline has them: a write that was requested earlier and
   completed later was not in the table then. A compaction on a merge-on-read table counts from its request: its slices
   hold the log files of delta commits that came meanwhile. Version 6 goes by requested times, as Hudi 0.15 does.
4. Rollbacks after the commit leave the timeline: what they took back is gone twice.
5. Commits under a savepoint are not undone, and nothing is restored that a clean may have removed.

The caller holds the table lock. Bytes and order: `docs/format/savepoint-restore.md`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.errors import Invalid, Missing
from hoodie.metadata_writer import restore_metadata
from hoodie.notebook import Displayed
from hoodie.services.preview import PreviewStep, ServicePreview
from hoodie.services.rollback.checks import ensure_log_names, ensure_not_saved, ensure_older_files
from hoodie.services.rollback.plan import load_rollback_plan
from hoodie.services.rollback.preview import rollback_steps
from hoodie.services.rollback.rollback import finish_interrupted, forget_traces, rollback_metadata
from hoodie.services.rollback.savepoint import ensure_not_cleaned, load_archived_writes, saved_instants
from hoodie.services.rollback.steps import delete_states, ensure_own_files, roll_back_files, unpublish
from hoodie.services.service import Argument, Service
from hoodie.spec import (
    CLUSTERING,
    COMMIT,
    COMPACTION,
    REQUEST_CLOCK,
    RESTORE,
    ROLLBACK,
    CommitClock,
    Instant,
    InstantInfo,
    InstantTime,
    RollbackMetadata,
    RollbackPlan,
    State,
    encode_rollback_metadata,
    encode_rollback_plan,
    marker_dir,
    parse_rollback_metadata,
    parse_rollback_plan,
)
from hoodie.spec.restore_plan import (
    RestoreMetadata,
    RestorePlan,
    encode_restore_metadata,
    encode_restore_plan,
    parse_restore_plan,
)
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import (
    Timeline,
    complete,
    create_requested,
    delete_instant_files,
    ensure_newest,
    instant_path,
    load_requested,
    new_instant_time,
    to_inflight,
)

log = logging.getLogger(__name__)

_BY_REQUEST = (COMMIT, COMPACTION)


@dataclass(frozen=True, slots=True)
class RestoreResult(Displayed):
    """What a finished restore did. `instant` is its own, `to` the commit the table is at now, `undone` the writes that
    were taken back, in that order.
    """

    instant: InstantTime
    to: InstantTime
    undone: tuple[InstantTime, ...]
    files_deleted: int
    duration_ms: int


def restore(handle: TableHandle, config: Config, engine: Engine, to: InstantTime) -> RestoreResult:
    """What taking the table back to the commit `to` did. A restore to it that died is finished.

    Raises:
        Invalid: no such commit, a later one has a savepoint, its files may have been cleaned, writes after it are
            archived, a restore to another commit is pending, or a downgrade died that had begun to name log files anew.
    """
    clock = handle.env.monotonic()
    timeline = timeline_of(handle)
    pending = _pending_restore(handle, timeline, to, tidies=True)
    if pending is None:
        ensure_log_names(handle)
        timeline = finish_interrupted(handle, engine, timeline, config)
        plan = plan_restore(handle, timeline, ensure_can_restore(handle, timeline, to))
        requested = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
        instant = create_requested(handle.storage, handle.profile, requested, RESTORE, encode_restore_plan(plan))
        ensure_newest(handle.storage, handle.profile, instant, timeline.instants, handle.config.timezone)
    else:
        instant, plan = pending
    log.info("restoring to %s as %s: %d instants to undo", to, instant.requested, len(plan.instants))
    if instant.state is State.REQUESTED:
        instant = to_inflight(handle.storage, handle.profile, instant)
    done = [_undo(handle, config, engine, instant, target) for target in plan.instants]
    _forget_rollbacks(handle, to)
    if handle.config.has_metadata_table:
        handle = restore_metadata(handle, to, instant.requested, engine)
    metadata = RestoreMetadata(
        start_time=instant.requested,
        time_taken_ms=int((handle.env.monotonic() - clock) * 1000),
        rollbacks={target.commit_time: (one,) for target, one in zip(plan.instants, done, strict=True)},
        instants=plan.instants,
    )
    payload = encode_restore_metadata(metadata)
    complete(handle.storage, handle.profile, instant, payload, handle.env, handle.config.timezone)
    forget_traces(handle.storage, *(target.commit_time for target in plan.instants), instant.requested)
    return RestoreResult(
        instant.requested,
        to,
        tuple(target.commit_time for target in plan.instants),
        sum(one.total_files_deleted for one in done),
        metadata.time_taken_ms,
    )


def preview_restore(handle: TableHandle, config: Config, engine: Engine, to: InstantTime) -> ServicePreview:
    """What `restore` would do. Raises as that. Log blocks of several writes in one slice are one step each."""
    del config
    timeline = timeline_of(handle)
    pending = _pending_restore(handle, timeline, to, tidies=False)
    plan = pending[1] if pending else plan_restore(handle, timeline, ensure_can_restore(handle, timeline, to))
    steps: list[PreviewStep] = []
    seen: set[str] = set()
    for info in plan.instants:
        target = timeline.find(info.commit_time, info.action)
        if target is not None:
            undo = load_rollback_plan(handle, timeline, target, engine, by_markers=False, whole_slices=True)
            fresh = [
                step for step in rollback_steps(handle.storage, undo) if not step.paths or not seen & set(step.paths)
            ]
            seen.update(path for step in fresh for path in step.paths)
            steps.extend(fresh)
    notes = tuple(f"the {info.action} {info.commit_time} will be gone from the timeline" for info in plan.instants)
    if to not in saved_instants(timeline):
        notes = (*notes, f"{to} has no savepoint: a clean may remove its files while nobody looks")
    return ServicePreview("restore", tuple(steps), notes)


def ensure_can_restore(handle: TableHandle, timeline: Timeline, to: InstantTime) -> Instant:
    """The completed commit `to`, when the table can go back to it.

    Raises:
        Invalid: see `restore`.
    """
    commit = next((one for one in timeline.completed_writes() if one.requested == to), None)
    if commit is None:
        raise Invalid(
            f"{to} is no completed commit of the active timeline",
            remedy="`hoodie timeline` lists what a table can be restored to",
            instant=to,
        )
    if to not in saved_instants(timeline):
        ensure_not_cleaned(handle, timeline, commit)
    behind = _archived_after(handle, commit)
    if behind:
        raise Invalid(
            f"{len(behind)} writes after {to} are archived, such as {behind[0]}: nothing tells which files they made",
            remedy="Read the table as of that commit (as.of.instant), and write these rows over it "
            "(insert_overwrite_table) or to another table. With hoodie.archive.beyond.savepoint=false, which is the "
            "default, whatever came after a savepoint stays on the timeline",
            instant=to,
        )
    undone = _after(handle, timeline, commit)
    ensure_not_saved(timeline, undone)
    ensure_older_files(handle, undone, lambda instant: instant <= to)
    return commit


def _archived_after(handle: TableHandle, to: Instant) -> tuple[InstantTime, ...]:
    """Archived writes that a restore to the commit would have to undo. Reads what the history has since then."""
    clock, merge_on_read = handle.profile.clock, handle.config.is_merge_on_read
    completed = (one for one in load_archived_writes(handle, to.requested) if one.is_completed)
    return tuple(one.requested for one in completed if is_after(one, to, clock, merge_on_read=merge_on_read))


def plan_restore(handle: TableHandle, timeline: Timeline, to: Instant) -> RestorePlan:
    """The instants to undo: pending clusterings first, then all writes after `to`, the newest first. Reads the plans of
    pending replacecommits.
    """
    found = _after(handle, timeline, to)
    pending = [one for one in found if not one.is_completed and one.requested > to.requested]
    planned = PendingPlans(handle.storage, timeline).instants(CLUSTERING)
    clusterings = [one for one in pending if one in planned]
    clusterings.sort(key=lambda one: one.requested, reverse=True)
    others = [one for one in found if one not in clusterings]
    return RestorePlan(tuple(InstantInfo(one.requested, one.action) for one in (*clusterings, *others)), to.requested)


def is_after(one: Instant, to: Instant, clock: CommitClock, *, merge_on_read: bool) -> bool:
    """Whether a write has to be undone to get back to the completed commit `to`. On the clock of completions a pending
    one is after everything.
    """
    by_request = merge_on_read and (one.action in _BY_REQUEST or to.action in _BY_REQUEST)
    return (REQUEST_CLOCK if by_request else clock).is_after(one, to)


def _after(handle: TableHandle, timeline: Timeline, to: Instant) -> Sequence[Instant]:
    """Writes after `to`: pending ones first, then by completion (version 6: by request), newest first."""
    clock, merge_on_read = handle.profile.clock, handle.config.is_merge_on_read
    others = (one for one in timeline.writes() if one.logical != to.logical)
    found = (one for one in others if is_after(one, to, clock, merge_on_read=merge_on_read))
    return sorted(found, key=clock.order, reverse=True)


def _pending_restore(
    handle: TableHandle, timeline: Timeline, to: InstantTime, *, tidies: bool
) -> tuple[Instant, RestorePlan] | None:
    """The restore to go on with, and its plan. `tidies`: those of which nothing will come are taken away."""
    for one in timeline.pending():
        if one.action != RESTORE:
            continue
        path = instant_path(handle.profile, one)
        data = load_requested(handle.storage, handle.profile, one)
        is_late = one.state is State.REQUESTED and one.requested < _last_restore(timeline)
        if not data or is_late:  # nothing was decided, or by a process that slept while others restored
            if tidies:
                delete_instant_files(handle.storage, handle.profile, one)
            continue
        plan = parse_restore_plan(data, path)
        if plan.to is not None and plan.to != to:
            raise Invalid(
                f"The restore {one.requested} to {plan.to} was begun and is not finished",
                remedy=f"Restore to {plan.to} first",
                instant=one.requested,
                to=plan.to,
            )
        return one, plan
    return None


def _last_restore(timeline: Timeline) -> InstantTime:
    return max((one.requested for one in timeline.completed() if one.action == RESTORE), default="")


def _undo(
    handle: TableHandle, config: Config, engine: Engine, restoring: Instant, target: InstantInfo
) -> RollbackMetadata:
    """What taking back one instant did, by this attempt or an earlier one."""
    folder = marker_dir(restoring.requested)
    done_path = f"{folder}/{target.commit_time}.{target.action}.done"
    try:
        return parse_rollback_metadata(handle.storage.read(done_path), done_path)
    except Missing:
        pass
    clock = handle.env.monotonic()
    plan = _undo_plan(handle, engine, f"{folder}/{target.commit_time}.{target.action}.plan", target)
    unpublish(handle, target)
    files = roll_back_files(handle, engine, plan, restoring.requested, config)
    delete_states(handle, target, keep_plan=False)
    metadata = rollback_metadata(restoring.requested, target, files, handle.env.monotonic() - clock)
    handle.storage.put(done_path, encode_rollback_metadata(metadata))
    return metadata


def _undo_plan(handle: TableHandle, engine: Engine, path: str, target: InstantInfo) -> RollbackPlan:
    try:
        plan = parse_rollback_plan(handle.storage.read(path), path)
    except Missing:
        timeline = timeline_of(handle)
        instant = timeline.find(target.commit_time, target.action)
        if instant is None:  # another writer finished this part, or took it back
            return RollbackPlan(target)
        plan = load_rollback_plan(handle, timeline, instant, engine, by_markers=False, whole_slices=True)
        ensure_own_files(plan)
        handle.storage.put(path, encode_rollback_plan(plan))
    return plan


def _forget_rollbacks(handle: TableHandle, to: InstantTime) -> None:
    for one in timeline_of(handle).instants:
        if one.action == ROLLBACK and one.requested > to:
            delete_instant_files(handle.storage, handle.profile, one)


SERVICE: Final = Service(
    name="restore",
    nothing="nothing to restore",
    run=restore,
    preview=preview_restore,
    arguments=(Argument("to", "the requested time of the commit to go back to", metavar="INSTANT", is_required=True),),
)
