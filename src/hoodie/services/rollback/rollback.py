"""Undo a write: take its files away, then its instants, and record both.

1. A rollback is itself an action: its plan is stored first, so a rollback that dies is run again from the same plan.
   A write that was pending and is completed once the plan is stored stays, and the plan goes: its writer lives.
2. Order: plan, that look, inflight, a completed write is unpublished, files are deleted and command blocks appended,
   the metadata table learns of it, the write's own instant goes, the rollback completes, the markers go. Whoever dies
   in between leaves a pending rollback that finds less to do.
3. Deleting what is already gone is success.

A writer that fails and lives aborts its own write (`leftovers`). What to undo is decided in `plan`, whether in
`checks`; it is done in `steps`; which writes count as failed says `failed_writes`. Bytes and order:
`docs/format/rollback.md`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.errors import Conflict
from hoodie.fileview.listed import not_in_metadata
from hoodie.metadata_writer import TableUpdate, record_update, remake_withdrawn, undo_update
from hoodie.notebook import Displayed
from hoodie.services.rollback.checks import (
    ensure_can_roll_back,
    ensure_no_restore,
)
from hoodie.services.rollback.plan import BY_MARKERS, load_rollback_plan
from hoodie.services.rollback.preview import preview_rollback
from hoodie.services.rollback.steps import (
    PLANNED_ACTIONS,
    RolledBackFiles,
    delete_states,
    ensure_own_files,
    roll_back_files,
    unpublish,
)
from hoodie.services.service import Argument, Service
from hoodie.spec import (
    ROLLBACK,
    SAVEPOINT,
    Instant,
    InstantInfo,
    InstantTime,
    RollbackMetadata,
    RollbackPlan,
    State,
    encode_rollback_metadata,
    encode_rollback_plan,
    keys,
    parse_log_file_name,
    parse_rollback_plan,
)
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage
from hoodie.timeline import (
    Timeline,
    complete,
    create_requested,
    delete_instant_files,
    instant_path,
    is_clustering,
    list_instants,
    load_instant,
    load_requested,
    markers_of,
    new_instant_time,
    to_inflight,
)
from hoodie.transaction import executor_lock
from hoodie.transaction.heartbeat import heartbeat_path
from hoodie.transaction.own_files import has_begun

log = logging.getLogger(__name__)

BACKUP = "hoodie.rollback.instant.backup.enabled"
BACKUP_DIR = "hoodie.rollback.instant.backup.dir"

_DEFAULTS = Config()


@dataclass(frozen=True, slots=True)
class RollbackResult(Displayed):
    """What a finished rollback did. `instant` is the rollback's own, `target` the write that was undone.

    `command_logs` counts log files that were appended to take log blocks back (version 6).
    """

    instant: InstantTime
    target: InstantTime
    action: str
    files_deleted: int
    command_logs: int
    duration_ms: int


def roll_back(
    handle: TableHandle, engine: Engine, timeline: Timeline, target: Instant, config: Config = _DEFAULTS
) -> Timeline:
    """The timeline after the write `target` was undone. Of a pending compaction, log compaction or clustering the plan
    stays, ready to be tried again.

    Nothing is checked here: see `roll_back_instant`.
    """
    _roll_back(handle, engine, timeline, target, config)
    return timeline_of(handle)


def roll_back_instant(handle: TableHandle, config: Config, engine: Engine, instant: InstantTime) -> RollbackResult:
    """What the rollback of the write `instant` did, which may be completed. Only the newest write can be undone.

    Raises:
        Invalid: no such write, it has a savepoint, or a later write or plan rests on it.
        Conflict: it is a plan that is being carried out. Unavailable: a restore is pending.
    """
    timeline = timeline_of(handle)
    ensure_no_restore(timeline)
    finished: dict[InstantTime, RollbackResult] = {}
    timeline = finish_interrupted(handle, engine, timeline, config, finished)
    if instant in finished and timeline.find(instant) is None:
        return finished[instant]
    plans = PendingPlans(handle.storage, timeline)
    target = ensure_can_roll_back(handle, plans, instant)
    if target.is_completed or not plans.is_plan(target):
        return _roll_back(handle, engine, timeline, target, config)
    with executor_lock(handle, instant) as held:
        return _roll_back(held, engine, timeline, target, config)


def _roll_back(
    handle: TableHandle, engine: Engine, timeline: Timeline, target: Instant, config: Config
) -> RollbackResult:
    plan = load_rollback_plan(handle, timeline, target, engine, by_markers=config.flag(BY_MARKERS))
    if config.flag(BACKUP):
        _back_up(handle, target, config.text(BACKUP_DIR))
    requested = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
    rollback = create_requested(handle.storage, handle.profile, requested, ROLLBACK, encode_rollback_plan(plan))
    if not target.is_completed and _is_completed(handle, target):
        delete_instant_files(handle.storage, handle.profile, rollback)
        raise _came_through(target)
    log.info("rolling back %s %s as %s", target.action, target.requested, requested)
    return _run(handle, config, engine, to_inflight(handle.storage, handle.profile, rollback), plan, is_first=True)


def finish_interrupted(
    handle: TableHandle,
    engine: Engine,
    timeline: Timeline,
    config: Config,
    finished: dict[InstantTime, RollbackResult] | None = None,
) -> Timeline:
    """The timeline without rollbacks that died (they are run again) and savepoints that died (they keep nothing)."""
    interrupted = [one for one in timeline.pending() if one.action in (ROLLBACK, SAVEPOINT)]
    for one in interrupted:
        if one.action == SAVEPOINT:
            delete_instant_files(handle.storage, handle.profile, one)
        elif (done := _resume(handle, config, engine, timeline, one)) is not None and finished is not None:
            finished[done.target] = done
    return timeline_of(handle) if interrupted else timeline


def _resume(
    handle: TableHandle, config: Config, engine: Engine, timeline: Timeline, rollback: Instant
) -> RollbackResult | None:
    data = load_requested(handle.storage, handle.profile, rollback)
    if not data:
        # The request itself was not written: nothing was decided, the failed write is still pending and comes next.
        delete_instant_files(handle.storage, handle.profile, rollback)
        return None
    plan = parse_rollback_plan(data, handle.profile.instant_names.file_name(rollback))
    ensure_own_files(plan)
    if rollback.state is State.REQUESTED:
        target = Instant(plan.instant_to_rollback.commit_time, plan.instant_to_rollback.action, State.INFLIGHT)
        if _is_completed(handle, target):
            # Its planner died before the look for a completion. Nothing is undone, the write may be acknowledged.
            delete_instant_files(handle.storage, handle.profile, rollback)
            if not any(one.logical == target.logical for one in timeline.completed()):
                raise _came_through(target)
            return None
        rollback = to_inflight(handle.storage, handle.profile, rollback)
    return _run(handle, config, engine, rollback, plan)


def _is_completed(handle: TableHandle, target: Instant) -> bool:
    """Whether the write is completed now. Asked when the plan to undo it is stored: a writer that completes it later
    sees that plan, and does not tell its caller that the write is in the table.
    """
    found = list_instants(handle.storage, handle.profile, handle.config.timezone)
    return any(one.logical == target.logical and one.is_completed for one in found)


def _came_through(target: Instant) -> Conflict:
    return Conflict(
        f"Another writer completed the {target.action} {target.requested} while it was about to be rolled back",
        remedy="It stays, and nothing else was changed; read the table again and repeat what you did",
        instant=target.requested,
    )


def _run(  # noqa: PLR0917
    handle: TableHandle,
    config: Config,
    engine: Engine,
    rollback: Instant,
    plan: RollbackPlan,
    is_first: bool = False,
) -> RollbackResult:
    """What carrying a plan out did. `is_first`: nobody has begun to; else a write that was completed may be pending."""
    clock = handle.env.monotonic()
    target = plan.instant_to_rollback
    pending = Instant(target.commit_time, target.action, State.INFLIGHT)
    was_completed = unpublish(handle, target)
    is_plan = not was_completed and is_clustering(handle.storage, handle.profile, pending)
    keep_plan = is_plan or target.action in PLANNED_ACTIONS
    files = roll_back_files(handle, engine, plan, rollback.requested, config)
    _tell_metadata(handle, engine, rollback, pending, files, was_completed=was_completed or not is_first)
    delete_states(handle, target, keep_plan=keep_plan)
    metadata = rollback_metadata(rollback.requested, target, files, handle.env.monotonic() - clock)
    payload = encode_rollback_metadata(metadata)
    complete(handle.storage, handle.profile, rollback, payload, handle.env, handle.config.timezone)
    forget_traces(handle.storage, target.commit_time, rollback.requested)
    remake_withdrawn(handle, engine)
    return RollbackResult(
        rollback.requested,
        target.commit_time,
        target.action,
        files.deleted,
        len(files.command_logs),
        metadata.time_taken_ms,
    )


def rollback_metadata(
    start: InstantTime, target: InstantInfo, files: RolledBackFiles, seconds: float
) -> RollbackMetadata:
    """What a rollback that began at `start` says it did."""
    return RollbackMetadata(
        start_time=start,
        time_taken_ms=int(seconds * 1000),
        total_files_deleted=files.deleted,
        commits=(target.commit_time,),
        partitions=files.partitions,
        instants=(target,),
    )


def forget_traces(storage: Storage, *instants: InstantTime) -> None:
    """Remove markers and heartbeats of writes that are no more."""
    for instant in instants:
        markers_of(storage, instant).drop()
        storage.delete(heartbeat_path(instant))


def _tell_metadata(
    handle: TableHandle,
    engine: Engine,
    rollback: Instant,
    target: Instant,
    files: RolledBackFiles,
    *,
    was_completed: bool,
) -> None:
    """The metadata table forgets the write; log files that stay, or hold command blocks, are in it afterwards.

    A fenced writer that is still awake takes its own log files away unless the metadata table lists them. So they are
    looked at again once they are listed: those that went before are recorded as gone.
    """
    if not handle.config.has_metadata_table:
        return
    handle = load_handle(handle.storage, handle.env)  # an earlier rollback may have had to drop the metadata table
    handle = undo_update(handle, target, rollback.requested, engine, was_completed=was_completed)
    logs, deleted = _settled_logs(handle, target, files), _listed_logs(handle, files)
    while logs or deleted:
        record_update(handle, TableUpdate(rollback.requested, ROLLBACK, sizes=logs, deleted=deleted), engine)
        left = _still_there(handle.storage, logs)
        if len(left) == len(logs):
            return
        logs = left


def _settled_logs(handle: TableHandle, target: Instant, files: RolledBackFiles) -> dict[str, int]:
    """The log files of the slices, without those that the metadata table does not list and another write has begun: one
    that is at work lists them when it completes, and those of one that died count for nobody.
    """
    others = set(files.logs).difference(files.command_logs)
    hidden = not_in_metadata(handle, others)
    strange = {path for path in hidden if not has_begun(handle.storage, target.requested, path)}
    return {path: size_bytes for path, size_bytes in files.logs.items() if path not in strange}


def _listed_logs(handle: TableHandle, files: RolledBackFiles) -> dict[str, tuple[str, ...]]:
    """Names of log files that went with their slice and are still listed, by partition: other writes have listed them
    that appended to it (version 6).
    """
    if handle.profile.log_naming.has_one_write_per_file:
        return {}
    logs = {path for path in files.deleted_paths if parse_log_file_name(path.rpartition("/")[2]) is not None}
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted(logs.difference(not_in_metadata(handle, logs))):
        partition, _, file_name = path.rpartition("/")
        found[partition] = (*found.get(partition, ()), file_name)
    return found


def _still_there(storage: Storage, sizes: Mapping[str, int]) -> dict[str, int]:
    """The files of `sizes` that exist. Lists their folders."""
    folders = {path.rpartition("/")[0] for path in sizes}
    there = {file.path for folder in folders for file in storage.list_dir(folder).files}
    return {path: size_bytes for path, size_bytes in sizes.items() if path in there}


def _back_up(handle: TableHandle, target: Instant, folder: str) -> None:
    for one in list_instants(handle.storage, handle.profile, handle.config.timezone):
        if one.logical == target.logical:
            path = instant_path(handle.profile, one)
            copy = f"{keys.HOODIE_DIR}/{folder}/{path.rpartition('/')[2]}"
            handle.storage.put(copy, load_instant(handle.storage, handle.profile, one))


SERVICE: Final = Service(
    name="rollback",
    nothing="nothing to roll back",
    run=roll_back_instant,
    preview=preview_rollback,
    arguments=(Argument("instant", "the requested time of the instant", is_required=True),),
)
