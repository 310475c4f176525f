"""Undo a write that did not finish: take its files away, then its instants, and record both.

1. A rollback is itself an action: its plan is stored first, so a rollback that dies is run again from the same plan.
2. The plan comes from the markers of the failed write. Only when there is no marker folder at all are the partitions
   listed for files named after the instant.
3. Files go before the instant's own files, the inflight file before the requested one, and the completed rollback is
   written last: whoever dies in between leaves a pending rollback that finds less to do.
4. Deleting what is already gone is success.
5. A writer that fails and lives takes its own write back (`take_back`): nobody has seen it, so nothing is recorded.

It undoes pending writes of tables without log files; completed instants are the subject of restore.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hoodie.engine import Engine, TaskId
from hoodie.errors import HudiError, Unsupported
from hoodie.handle import TableHandle, timeline_of
from hoodie.spec import (
    Instant,
    InstantInfo,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
    State,
    encode_rollback_metadata,
    encode_rollback_plan,
    is_partition_metafile,
    keys,
    marker_dir,
    parse_base_file_name,
    parse_partition_metafile,
    parse_requested_replace,
    parse_rollback_plan,
)
from hoodie.storage import Storage
from hoodie.timeline import (
    Timeline,
    complete,
    create_requested,
    delete_instant_files,
    instant_path,
    load_markers,
    load_requested,
    new_instant_time,
    to_inflight,
)
from hoodie.view import list_partitions

log = logging.getLogger(__name__)

_WRITES = frozenset({"commit", "deltacommit", "replacecommit"})
_LEFTOVERS = (".spool", keys.OVERWRITE_SUFFIX)


def heal(handle: TableHandle, engine: Engine, timeline: Timeline | None = None) -> Timeline:
    """The timeline after all failed writes were rolled back, newest first (failed-writes policy EAGER).

    Pending compactions and clusterings are plans, not failures, and stay. The caller holds the table's writer
    exclusion, and may pass the timeline it has loaded under it.
    """
    timeline = timeline or timeline_of(handle)
    interrupted = [one for one in timeline.pending() if one.action == "rollback"]
    for rollback in interrupted:
        _resume(handle, engine, rollback)
    if interrupted:
        timeline = timeline_of(handle)
    failed = [one for one in timeline.pending() if one.action in _WRITES and not _is_clustering(handle, one)]
    for instant in sorted(failed, key=lambda one: one.requested, reverse=True):
        timeline = roll_back(handle, engine, timeline, instant)
    _sweep(handle.storage, timeline)
    return timeline


def take_back(handle: TableHandle, engine: Engine, requested: str) -> None:
    """Remove all traces of this process's own pending write `requested`: files, instants, markers.

    The caller still holds the writer exclusion. A completed or vanished instant is left alone. When this fails
    half-way, what is left is a pending write that the next `heal` rolls back.
    """
    instant = timeline_of(handle).find(requested)
    if instant is not None and not instant.is_completed:
        files = _files_of(handle, instant)
        engine.run(_delete, [_Delete(handle.storage, path) for path in files], "take back")
        for partition in sorted({path.rpartition("/")[0] for path in files}):
            _forget_partition(handle.storage, partition, requested)
        delete_instant_files(handle.storage, handle.profile, instant)
        handle.storage.delete_dir(marker_dir(requested))


def roll_back(handle: TableHandle, engine: Engine, timeline: Timeline, failed: Instant) -> Timeline:
    """The timeline after the pending write `failed` was undone."""
    plan = plan_rollback(failed, _files_of(handle, failed), handle.storage)
    requested = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
    rollback = create_requested(handle.storage, handle.profile, requested, "rollback", encode_rollback_plan(plan))
    log.info("rolling back %s %s as %s", failed.action, failed.requested, requested)
    _run(handle, engine, to_inflight(handle.storage, handle.profile, rollback), plan)
    return timeline_of(handle)


def plan_rollback(failed: Instant, paths: Sequence[str], storage: Storage) -> RollbackPlan:
    """The plan that deletes `paths` (relative base-file paths written by `failed`), one request for each.

    An instant that never got past REQUESTED has nothing to delete.

    Raises:
        Unsupported: a path is not a base file (log files of merge-on-read tables).
    """
    requests = []
    for path in sorted(paths):
        partition, _, file_name = path.rpartition("/")
        name = parse_base_file_name(file_name)
        if name is None:
            raise Unsupported(
                f"Rolling back {failed.requested} needs the log file {path} undone",
                remedy="Let Apache Hudi roll this write back; hoodie does not write merge-on-read tables yet",
                path=path,
            )
        requests.append(RollbackRequest(partition, name.file_id, failed.requested, (storage.absolute(path),)))
    kept = () if failed.state is State.REQUESTED else tuple(requests)
    return RollbackPlan(InstantInfo(failed.requested, failed.action), kept)


def _files_of(handle: TableHandle, failed: Instant) -> list[str]:
    markers = load_markers(handle.storage, failed.requested)
    if markers is not None:
        return [marker.data_path for marker in markers]
    found = []
    for partition in list_partitions(handle.storage):
        for file in handle.storage.list_dir(partition).files:
            name = parse_base_file_name(file.path.rpartition("/")[2])
            if name is not None and name.instant == failed.requested:
                found.append(file.path)
    return found


def _is_clustering(handle: TableHandle, instant: Instant) -> bool:
    """A pending replacecommit that is a clustering plan: only version 6 names both alike."""
    if instant.action != "replacecommit":
        return False
    data = load_requested(handle.storage, handle.profile, instant)
    return parse_requested_replace(data, instant_path(handle.profile, instant)).is_clustering


def _forget_partition(storage: Storage, partition: str, requested: str) -> None:
    """Remove the metafile that made an otherwise empty folder a partition for the write `requested`."""
    files = storage.list_dir(partition).files
    if len(files) != 1 or not is_partition_metafile(files[0].path.rpartition("/")[2]):
        return
    path = files[0].path
    if parse_partition_metafile(storage.read(path), path).commit_time == requested:
        storage.delete(path)


def _sweep(storage: Storage, timeline: Timeline) -> None:
    """Remove what writers that died left in the folder for temporary files: all but the markers of pending writes,
    and of those that may have begun since `timeline` was loaded.
    """
    found = storage.list_dir(keys.TEMP_DIR)
    pending = {one.requested for one in timeline.pending()}
    newest = timeline.last_time() or ""
    try:
        for folder in found.dirs:
            name = folder.rpartition("/")[2]
            if name.endswith(_LEFTOVERS) or (name.isdigit() and name <= newest and name not in pending):
                storage.delete_dir(folder)
        for file in found.files:
            if file.path.endswith(_LEFTOVERS):
                storage.delete(file.path)
    except HudiError as error:
        log.warning("could not remove left-over temporary files: %s", error)


def _resume(handle: TableHandle, engine: Engine, rollback: Instant) -> None:
    data = load_requested(handle.storage, handle.profile, rollback)
    if not data:
        # The request itself was not written: nothing was decided, the failed write is still pending and comes next.
        delete_instant_files(handle.storage, handle.profile, rollback)
        return
    plan = parse_rollback_plan(data, handle.profile.instant_names.file_name(rollback))
    if any(request.log_blocks_to_delete for request in plan.requests):
        raise Unsupported(
            f"Rollback {rollback.requested} has to undo log files of a merge-on-read table",
            remedy="Let Apache Hudi finish it; hoodie does not write merge-on-read tables yet",
            instant=rollback.requested,
        )
    if rollback.state is State.REQUESTED:
        rollback = to_inflight(handle.storage, handle.profile, rollback)
    _run(handle, engine, rollback, plan)


@dataclass(frozen=True, slots=True)
class _Delete:
    storage: Storage
    path: str


def _delete(_: TaskId, task: _Delete) -> None:
    task.storage.delete(task.path)


def _run(handle: TableHandle, engine: Engine, rollback: Instant, plan: RollbackPlan) -> None:
    clock = handle.env.monotonic()
    target = plan.instant_to_rollback
    doomed = [_relative(request, path, target) for request in plan.requests for path in request.files_to_delete]
    engine.run(_delete, [_Delete(handle.storage, path) for path in doomed], "rollback")
    failed = Instant(target.commit_time, target.action, State.INFLIGHT)
    delete_instant_files(handle.storage, handle.profile, failed)
    metadata = RollbackMetadata(
        start_time=rollback.requested,
        time_taken_ms=int((handle.env.monotonic() - clock) * 1000),
        total_files_deleted=len(doomed),
        commits=(target.commit_time,),
        partitions=_per_partition(plan.requests),
        instants=(target,),
    )
    complete(
        handle.storage,
        handle.profile,
        rollback,
        encode_rollback_metadata(metadata),
        handle.env,
        handle.config.timezone,
    )
    handle.storage.delete_dir(marker_dir(target.commit_time))


def _per_partition(requests: Iterable[RollbackRequest]) -> dict[str, RollbackPartition]:
    deleted: dict[str, list[str]] = defaultdict(list)
    for request in requests:
        deleted[request.partition_path].extend(request.files_to_delete)
    return {name: RollbackPartition(name, tuple(paths), ()) for name, paths in deleted.items()}


def _relative(request: RollbackRequest, path: str, target: InstantInfo) -> str:
    """A plan's absolute path below the table: the request's partition and the file's name.

    Other writers spell the base path differently (scheme, host, slashes), so only the end is looked at. What a plan may
    delete is base files of the instant it is about, and nothing else.
    """
    file_name = path.rpartition("/")[2]
    relative = f"{request.partition_path}/{file_name}" if request.partition_path else file_name
    name = parse_base_file_name(file_name)
    if name is None or name.instant != target.commit_time or not path.endswith(f"/{relative}"):
        raise Unsupported(
            f"The plan to roll back {target.commit_time} names {path}, which is no base file of that instant",
            remedy="Let Apache Hudi finish this rollback; nothing was deleted",
            path=path,
        )
    return relative
