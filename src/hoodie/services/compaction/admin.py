"""Taking compactions off the timeline again, and looking whether a plan still fits its table.

1. Unscheduling removes a plan, or one file group of it. Where log files find their slice by completion time (version 8
   and later) nothing else is to do: the files fall back to the slice before.
2. In version 6 log files written since the plan carry its instant in their names. Without the plan nobody would see
   them. Hudi once renamed them; their delta commits, its metadata table and incremental queries would go on naming
   files that are gone. So such a plan is not unscheduled: it is carried out.
3. Where that has happened all the same (Hudi's command line does it without a word), repairing puts the plan back for
   these groups, at its own instant: every file keeps its name and is seen again.

The caller holds the table lock for everything that changes something.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.errors import HudiError, Invalid
from hoodie.fileview import FolderView
from hoodie.logs import read_blocks
from hoodie.metadata_writer import undo_update
from hoodie.services.compaction.compact import COMPACTIONS, ensure_compactable
from hoodie.services.compaction.options import parse_compact_options
from hoodie.services.compaction.slices import ListedFiles, listed_files
from hoodie.services.compaction.strategy import TOTAL_LOG_BYTES, metrics_of
from hoodie.services.rewrite.executor import clear_plan
from hoodie.spec import (
    COMPACTION,
    BlockKind,
    CompactionOperation,
    CompactionPlan,
    Instant,
    InstantTime,
    State,
    encode_compaction_plan,
)
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage
from hoodie.timeline import Timeline, create_requested, delete_instant_files, instant_path
from hoodie.transaction import executor_lock
from hoodie.view import GroupId, LogFile, View


@dataclass(frozen=True, slots=True)
class UnscheduleResult:
    """What was taken off the timeline: file groups of the compaction `instant`; `plan_deleted` when none was left."""

    instant: InstantTime
    groups: tuple[GroupId, ...]
    plan_deleted: bool


@dataclass(frozen=True, slots=True)
class OperationCheck:
    """Whether one file group of a plan can be compacted; `problem` says why not, in words."""

    instant: InstantTime
    partition: str
    file_id: str
    problem: str | None = None

    @property
    def is_valid(self) -> bool:
        return self.problem is None


@dataclass(frozen=True, slots=True)
class RepairResult:
    """A plan that was put back, and for which file groups."""

    instant: InstantTime
    groups: tuple[GroupId, ...]


def unschedule_compaction(
    handle: TableHandle, engine: Engine, instant: InstantTime, group: GroupId | None = None
) -> UnscheduleResult:
    """What was taken off the pending compaction `instant`: one file group, or all of it. What an executor that died has
    written goes first.

    Raises:
        Invalid: no such plan or group; or (version 6) log files carry its instant in their names.
        Conflict: an executor works on it.
    """
    ensure_compactable(handle)
    plans = PendingPlans(handle.storage, timeline_of(handle))
    plan = plans.compaction(_pending(plans, instant))
    doomed = plan.group_ids if group is None else tuple(one for one in plan.group_ids if one == group)
    if not doomed:
        raise Invalid(f"The compaction {instant} has no file group {group}", remedy="Look at its plan", instant=instant)
    with executor_lock(handle, instant) as handle:  # noqa: PLR1704 -- nothing below works without the lock
        plans = PendingPlans(handle.storage, timeline_of(handle))
        now = _pending(plans, instant)
        plan = plans.compaction(now)  # another call may have taken a group off it
        _ensure_no_later_logs(handle, instant, doomed)
        clear_plan(handle, engine, plans, now)
        if handle.config.has_metadata_table:
            undo_update(handle, now, None, engine)
        kept = tuple(one for one in plan.operations if one.group_id not in doomed)
        if kept:
            path = instant_path(handle.profile, replace(now, state=State.REQUESTED))
            handle.storage.put(
                path, encode_compaction_plan(replace(plan, operations=kept), handle.profile.avro_generation)
            )
        else:
            delete_instant_files(handle.storage, handle.profile, replace(now, state=State.REQUESTED))
    return UnscheduleResult(instant, doomed, not kept)


def validate_compaction(handle: TableHandle, instant: InstantTime | None = None) -> tuple[OperationCheck, ...]:
    """Each file group of a pending compaction (None: of all) with what stands against compacting it. Writes nothing.

    A group is in order when all files of the plan are there with the sizes it was made for, are those of the slice
    before the plan, and no log file was left out of it that had been committed by then.

    Raises:
        Invalid: no such pending compaction.
    """
    ensure_compactable(handle)
    plans = PendingPlans(handle.storage, timeline_of(handle))
    chosen = plans.instants(COMPACTION) if instant is None else (_pending(plans, instant),)
    return tuple(check for one in chosen for check in _checks(handle, plans, one))


def repair_compaction(handle: TableHandle, config: Config) -> tuple[RepairResult, ...]:
    """The plans that were put back, because committed log files carry the instant of a compaction nobody knows any more
    (version 6). None in tables where that cannot happen. A plan that was put back is carried out by the next run.

    Raises:
        Corrupt: a log file is damaged.
    """
    ensure_compactable(handle)
    if handle.profile.log_naming.finds_slice_by_completion:
        return ()
    timeline = timeline_of(handle)
    view = FolderView(handle.storage, timeline).load()
    orphans = _orphans(handle, timeline, view)
    options = parse_compact_options(config, handle.config)
    repaired = []
    for instant in sorted(orphans):
        operations = []
        for part in replace(view, replaced={}).slices_at():
            if part.group_id in orphans[instant] and part.base_instant < instant:
                logs = tuple(log for log in part.logs if log.name.instant < instant)
                kept = part._replace(logs=logs)
                names = tuple(log.name.text for log in logs)
                base = None if part.base is None else part.base.name.text
                metrics = metrics_of(kept, options.max_file_bytes)
                operations.append(
                    CompactionOperation(part.partition, part.file_id, part.base_instant, names, base, metrics)
                )
        if operations:
            payload = encode_compaction_plan(CompactionPlan(tuple(operations)), handle.profile.avro_generation)
            create_requested(handle.storage, handle.profile, instant, COMPACTION, payload)
            repaired.append(RepairResult(instant, tuple(one.group_id for one in operations)))
    return tuple(repaired)


def _pending(plans: PendingPlans, instant: InstantTime) -> Instant:
    found = COMPACTIONS.find(plans, instant)
    assert found is not None  # an instant was named
    return found


def _ensure_no_later_logs(handle: TableHandle, instant: InstantTime, groups: tuple[GroupId, ...]) -> None:
    if handle.profile.log_naming.finds_slice_by_completion:
        return
    partitions = {partition for partition, _ in groups}
    view = FolderView(handle.storage, timeline_of(handle)).load(partitions)
    later = [
        log.path
        for found in view.files
        for log in found.logs
        if log.name.instant == instant and (found.partition, log.name.file_id) in groups
    ]
    if later:
        raise Invalid(
            f"{len(later)} log files were written on top of the compaction {instant}, for example {later[0]}: without "
            "it nobody would see them",
            remedy="Run the compaction instead",
            instant=instant,
            files=tuple(later),
        )


def _checks(handle: TableHandle, plans: PendingPlans, instant: Instant) -> Iterator[OperationCheck]:
    plan, timeline = plans.compaction(instant), plans.timeline
    partitions = {one.partition for one in plan.operations}
    view = FolderView(handle.storage, timeline, plans=plans).load(partitions)
    files = listed_files(view)
    slices = {group.group_id: group.slices for group in view.groups}
    for one in plan.operations:
        before = [part for part in slices.get(one.group_id, ()) if part.base_instant < instant.requested]
        logs = before[0].logs if before else ()
        problem = _problem(one, files) or _left_out(one, logs, timeline, instant.requested)
        yield OperationCheck(instant.requested, one.partition, one.file_id, problem)


def _problem(operation: CompactionOperation, files: ListedFiles) -> str | None:
    try:
        files.base_of(operation)
        logs = files.logs_of(operation)
    except HudiError as error:
        return f"{error.facts.get('path')} is gone"
    planned = operation.metrics.get(TOTAL_LOG_BYTES)
    found = sum(log.size_bytes for log in logs)
    if planned is not None and found < planned:
        return f"its log files have {found} bytes, they had {int(planned)} when it was planned"
    return None


def _left_out(
    operation: CompactionOperation, logs: tuple[LogFile, ...], timeline: Timeline, instant: InstantTime
) -> str | None:
    """A log file of the slice that was there before the plan and is not in it."""
    for log in logs:
        completed = timeline.completion_of(log.name.instant) or log.name.instant
        if log.name.text not in operation.log_files and completed < instant:
            return f"{log.path} was committed before and is not in the plan"
    return None


def _orphans(handle: TableHandle, timeline: Timeline, view: View) -> dict[InstantTime, set[GroupId]]:
    """Groups with log files that carry an instant which is neither committed nor planned, and hold committed blocks."""
    planned = {one.requested for one in timeline.pending()}
    found: defaultdict[InstantTime, set[GroupId]] = defaultdict(set)
    for files in view.files:
        for log in files.logs:
            instant = log.name.instant
            unknown = instant not in planned and not timeline.is_committed(instant)
            if unknown and _has_committed_blocks(handle.storage, log, timeline):
                found[instant].add((files.partition, log.name.file_id))
    return found


def _has_committed_blocks(storage: Storage, log: LogFile, timeline: Timeline) -> bool:
    blocks = read_blocks(storage, log.path, log.size_bytes)
    return any(
        timeline.is_committed(block.instant) for block in blocks if block.kind.is_data or block.kind is BlockKind.DELETE
    )
