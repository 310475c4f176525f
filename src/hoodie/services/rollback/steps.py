"""Carrying out the plan of a rollback: files deleted, command blocks appended, the write's instant taken away.

1. Every step may be done again: a file that is gone counts as deleted, and a command block that an earlier attempt of
   the same rollback appended is found and used.
2. A completed write is unpublished first, before any file goes: it becomes pending again, so that readers leave it out.
3. A plan may delete what carries the instant it is about, and nothing else, whoever wrote the plan.
4. A command block is a log file of its own behind the last one of its slice: `<version + 1>_1-0-1`. It is created, not
   appended, so it is there whole or not at all.
5. The write's own instant goes last: inflight file, then requested file. The plan of a compaction or clustering stays,
   to be tried again.

It does not decide what to undo (`undo_plan`) and leaves no instants of its own (`rollback`, `restore`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from hoodie.config import Config
from hoodie.engine import Engine, TaskId
from hoodie.errors import Conflict, HudiError, Unsupported
from hoodie.index import roll_back_indexes
from hoodie.services.rollback.plan import path_form
from hoodie.spec import (
    CLUSTERING,
    COMPACTION,
    LOG_COMPACTION,
    ROLLBACK_COMMAND,
    BlockKind,
    HeaderKey,
    Instant,
    InstantInfo,
    InstantTime,
    LogFileName,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
    State,
    comparable_action,
    encode_block,
    parse_data_file_name,
    parse_log_file_name,
    path_in,
)
from hoodie.spec.file_names import UNKNOWN_WRITE_TOKEN
from hoodie.state.handle import TableHandle
from hoodie.storage import FileInfo, Storage
from hoodie.storage.fence import ensure_held
from hoodie.timeline import instant_path, list_instants
from hoodie.transaction.deletion import delete_files
from hoodie.transaction.taken_back import load_commands

PLANNED_ACTIONS = frozenset({COMPACTION, LOG_COMPACTION, CLUSTERING})
"""Actions that are plans while pending: a rollback takes back what was done of them, and keeps the plan."""


@dataclass(frozen=True, slots=True)
class RolledBackFiles:
    """What was done to files: by partition in the words of rollback metadata. `logs` are all log files of the slices in
    which log blocks were taken back, as paths from the table's root with their sizes in bytes; `command_logs` those of
    them that say so; `deleted_paths` files that were deleted, as such paths.
    """

    partitions: Mapping[str, RollbackPartition]
    command_logs: tuple[str, ...]
    logs: Mapping[str, int]
    deleted_paths: tuple[str, ...]

    @property
    def deleted(self) -> int:
        """Number of files deleted."""
        return sum(len(one.success_delete_files) for one in self.partitions.values())


def ensure_own_files(plan: RollbackPlan) -> tuple[str, ...]:
    """Paths of the files a plan deletes, from the table's root.

    Raises:
        Unsupported: one of them, or a log file it takes back, is none of the write's.
    """
    target = plan.instant_to_rollback.commit_time
    for request in plan.requests:
        if request.log_blocks_to_delete and not _names_slice(request):
            raise _foreign(target, f"{request.partition_path}/{request.file_id}")
    return tuple(_own_file(request, path, target) for request in plan.requests for path in request.files_to_delete)


def roll_back_files(
    handle: TableHandle, engine: Engine, plan: RollbackPlan, command_instant: InstantTime, config: Config
) -> RolledBackFiles:
    """What the plan did to files. `command_instant` is the instant that command blocks say they come from; `config` may
    name an index that has to hear of it.

    Raises:
        Unsupported: the plan names files that are not the write's; nothing was changed.
    """
    doomed = ensure_own_files(plan)
    ensure_held(handle.storage)
    delete_files(handle.storage, engine, doomed, "rollback")
    slices = sorted(
        {
            (request.partition_path, request.file_id or "", request.latest_base_instant or "")
            for request in plan.requests
            if request.log_blocks_to_delete
        }
    )
    target = plan.instant_to_rollback.commit_time
    roll_back_indexes(handle.storage, handle.config, config, target)
    tasks = [_Command(handle.storage, *group, target, command_instant) for group in slices]
    written = engine.run(_append_command, tasks, "rollback")
    form = path_form(handle)
    by_partition: dict[str, dict[str, int]] = defaultdict(dict)
    for task, (path, logs) in zip(tasks, written, strict=True):
        by_partition[task.partition][form.of_log(path)] = logs[path]
    all_logs = {path: size_bytes for _, logs in written for path, size_bytes in logs.items()}
    commands = tuple(path for path, _ in written)
    return RolledBackFiles(_per_partition(plan.requests, by_partition), commands, all_logs, doomed)


def unpublish(handle: TableHandle, target: InstantInfo) -> bool:
    """Whether the write was completed; then it is pending now.

    The pending files are there before the completed one goes, so the write is never without an instant.
    """
    states = _states(handle, target)
    completed = [one for one in states if one.is_completed]
    if not completed:
        return False
    pending = {one.state: one for one in states if not one.is_completed}
    action = next(iter(pending.values())).action if pending else target.action
    for state in (State.REQUESTED, State.INFLIGHT):
        if state not in pending:
            with suppress(Conflict):
                one = Instant(target.commit_time, action, state)
                handle.storage.create(instant_path(handle.profile, one), b"")
    for one in completed:
        handle.storage.delete(instant_path(handle.profile, one))
    return True


def delete_states(handle: TableHandle, target: InstantInfo, *, keep_plan: bool) -> None:
    """Remove the files of a write's instant, latest state first. `keep_plan`: the requested one stays.

    A writer that was stalled may complete the write until its inflight file is gone, so there is another look then: one
    that comes later sees that it is gone, and takes its completed file away itself.
    """
    ensure_held(handle.storage)
    states = sorted(_states(handle, target), key=lambda one: one.state, reverse=True)
    for one in states:
        if one.state is not State.REQUESTED:
            handle.storage.delete(instant_path(handle.profile, one))
    for one in _states(handle, target):
        if one.is_completed:
            handle.storage.delete(instant_path(handle.profile, one))
    for one in states:
        if one.state is State.REQUESTED and not keep_plan:
            handle.storage.delete(instant_path(handle.profile, one))


def _states(handle: TableHandle, target: InstantInfo) -> list[Instant]:
    """All files of the timeline that stand for the write, in path order."""
    logical = (target.commit_time, comparable_action(target.action))
    found = list_instants(handle.storage, handle.profile, handle.config.timezone)
    return [one for one in found if one.logical == logical]


@dataclass(frozen=True, slots=True)
class _Command:
    storage: Storage
    partition: str
    file_id: str
    base_instant: InstantTime
    target: InstantTime
    instant: InstantTime


def _append_command(_task: TaskId, task: _Command) -> tuple[str, dict[str, int]]:
    """Path of the log file with the command block, which may be there from an earlier attempt; and the sizes of all log
    files of the slice.
    """
    logs = _logs_of_slice(task)
    sizes = {file.path: file.size_bytes for _, file in logs}
    header = {
        HeaderKey.INSTANT_TIME: task.instant,
        HeaderKey.TARGET_INSTANT_TIME: task.target,
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
    }
    for _, file in logs:
        if _says(task.storage, file, header):
            return file.path, sizes
    data = encode_block(BlockKind.COMMAND, header, b"")
    version = max((name.version for name, _ in logs), default=0)
    while True:
        version += 1
        file_name = LogFileName(task.file_id, task.base_instant, version, UNKNOWN_WRITE_TOKEN).text
        path = path_in(task.partition, file_name)
        with suppress(Conflict):
            task.storage.create(path, data)
            return path, {**sizes, path: len(data)}


def _logs_of_slice(task: _Command) -> list[tuple[LogFileName, FileInfo]]:
    found = []
    for file in task.storage.list_dir(task.partition).files:
        name = parse_log_file_name(file.path.rpartition("/")[2])
        if name is not None and (name.file_id, name.instant) == (task.file_id, task.base_instant) and not name.is_cdc:
            found.append((name, file))
    return found


def _says(storage: Storage, file: FileInfo, header: Mapping[HeaderKey, str]) -> bool:
    """Whether a small log file is exactly the command of this rollback."""
    try:
        return dict(header) in load_commands(storage, file)
    except HudiError:
        return False


def _per_partition(
    requests: Iterable[RollbackRequest], commands: Mapping[str, Mapping[str, int]]
) -> dict[str, RollbackPartition]:
    done: dict[str, RollbackPartition] = {}
    for request in requests:
        name = request.partition_path
        known = done.get(name, RollbackPartition(name, rollback_log_files=commands.get(name, {})))
        named = {path: size for path, size in (request.log_blocks_to_delete or {}).items() if _is_log(path)}
        done[name] = replace(
            known,
            success_delete_files=(*known.success_delete_files, *request.files_to_delete),
            log_files_from_failed_commit={**(known.log_files_from_failed_commit or {}), **named},
        )
    return done


def _is_log(path: str) -> bool:
    return parse_log_file_name(path.rpartition("/")[2]) is not None


def _names_slice(request: RollbackRequest) -> bool:
    """Whether a request says in which slice to append; the file id and the instant become part of a file's name."""
    name = LogFileName(request.file_id or "", request.latest_base_instant or "", 1, UNKNOWN_WRITE_TOKEN)
    return parse_log_file_name(name.text) == name and name.instant.isdigit()


def _own_file(request: RollbackRequest, path: str, target: InstantTime) -> str:
    """A plan's absolute path below the table: the request's partition and the file's name.

    Other writers spell the base path differently (scheme, host, slashes), so only the end is looked at.
    """
    file_name = path.rpartition("/")[2]
    relative = path_in(request.partition_path, file_name)
    name = parse_data_file_name(file_name)
    if name is None or name.instant != target or not path.endswith(f"/{relative}"):
        raise _foreign(target, path)
    return relative


def _foreign(target: InstantTime, path: str) -> Unsupported:
    return Unsupported(
        f"The plan to roll back {target} names {path}, which is no file of that instant",
        remedy="Let Apache Hudi finish this rollback; nothing was deleted",
        path=path,
    )
