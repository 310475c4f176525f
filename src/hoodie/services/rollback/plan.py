"""What a write left behind, as the plan of its rollback: files to delete, and log blocks to take back.

1. A write that did not complete announced its files by markers; the plan comes from them. Without a marker folder, with
   one that is damaged or names files of somebody else, and for completed writes, it comes from what the write says it
   wrote, and from the names of the files that are there.
2. A file that carries the write's own instant in its name is deleted. So are its log files in version 8 and later, and
   in version 6 those of slices that the write itself began.
3. In version 6 a log file carries the instant of its slice, so it says nothing about who wrote it. Log files of older
   slices stay: a *command block* behind them says that the write's blocks do not count (`log_blocks_to_delete`). There
   is none where there is no slice: it would make one, which hides all rows of its group from Hudi 0.15.
   So it is with log files that a table has from its time as version 6, whatever version it has now.
4. A compaction's slice is more than the compaction: delta commits that ran beside it wrote log files there. Its
   rollback takes base files only, except within a restore, which takes all of them back.

Pure but for `load_rollback_plan`, which gathers the facts. Nothing here deletes. Forms of paths and who reads what:
`docs/format/rollback.md`.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hoodie.engine import Engine, TaskId
from hoodie.errors import Corrupt
from hoodie.spec import (
    COMPACTION,
    DELTA_COMMIT,
    LOG_COMPACTION,
    NULL_COMMIT,
    CommitMetadata,
    CompactionPlan,
    Instant,
    InstantInfo,
    InstantTime,
    LogFileName,
    Marker,
    RollbackPlan,
    RollbackRequest,
    State,
    WriteStat,
    parse_data_file_name,
    parse_log_file_name,
)
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage
from hoodie.timeline import Timeline, load_commit_metadata, markers_of
from hoodie.view import GroupId, list_data_paths

log = logging.getLogger(__name__)

BY_MARKERS = "hoodie.rollback.using.markers"
COMPACT_OPERATION = "COMPACT"
_UNKNOWN_SIZE = 1

Slice = tuple[str, str, InstantTime]
"""A file slice: partition, file id and base instant."""


@dataclass(frozen=True, slots=True)
class PathForm:
    """How the table's writers spell absolute paths in plans: `of_file` for files, `of_log` for log files that stay."""

    storage: Storage
    log_scheme: str

    def of_file(self, path: str) -> str:
        return self.storage.absolute(path)

    def of_log(self, path: str) -> str:
        return self.log_scheme + self.storage.absolute(path)


@dataclass(frozen=True, slots=True)
class Undone:
    """The write a plan is about. `whole_slices`: within a restore. `is_compaction`: also a completed one."""

    instant: InstantTime
    is_compaction: bool
    whole_slices: bool


def load_rollback_plan(
    handle: TableHandle,
    timeline: Timeline,
    target: Instant,
    engine: Engine,
    *,
    by_markers: bool = True,
    whole_slices: bool = False,
) -> RollbackPlan:
    """The plan that takes back what `target` did to files. One that was only requested did nothing.

    Reads the markers, or the metadata of the write and the folders of the partitions it may have written to.
    """
    info = InstantInfo(target.requested, target.action)
    if target.state is State.REQUESTED:
        return RollbackPlan(info)
    blocks = handle.profile.capabilities.rollback_command_blocks
    form = path_form(handle)
    markers = _markers(handle.storage, target) if by_markers and not target.is_completed else None
    if markers is not None:
        is_compaction = target.action == COMPACTION
        named = appended_slices(target.requested, markers) if blocks and not is_compaction else frozenset()
        known = _known_slices(handle, timeline, named, engine) if named else frozenset()
        requests, strange = plan_from_markers(
            target.requested, markers, form, known, takes_back_blocks=blocks, is_compaction=is_compaction
        )
        if strange is None:
            return RollbackPlan(info, requests)
        log.warning("files of %s are looked for by name: a marker of it names %s", target.requested, strange)
    metadata = load_commit_metadata(handle.storage, handle.profile, target)
    is_compaction = target.action == COMPACTION or metadata.operation_type == COMPACT_OPERATION
    undone = Undone(target.requested, is_compaction, whole_slices)
    stats = _stats_of(metadata)
    if target.is_completed and stats and not (blocks and handle.config.is_merge_on_read):
        names = [path for stat in stats for path in (stat.path, *(stat.cdc_stats or ())) if path]
        return RollbackPlan(info, (*plan_deletions(undone, names, form), *plan_blocks(undone, stats, {}, form)))
    paths = (
        _list_paths(handle.storage, metadata.partition_to_write_stats, engine)
        if target.is_completed
        else list_data_paths(handle.storage)
    )
    requests = plan_deletions(undone, paths, form)
    if blocks and target.action in (DELTA_COMMIT, LOG_COMPACTION):
        plans = PendingPlans(handle.storage, timeline)
        if target.action == LOG_COMPACTION:
            stats = _planned_stats(plans.compaction(target), target)
        slices = newest_bases(paths, plans.compactions(), target.requested, timeline.is_committed)
        requests = (*requests, *plan_blocks(undone, stats, slices, form))
    return RollbackPlan(info, requests)


def _markers(storage: Storage, target: Instant) -> tuple[Marker, ...] | None:
    """The markers of a write; None where there are none, or where not all of them can be read."""
    try:
        return markers_of(storage, target.requested).load()
    except Corrupt as error:
        log.warning("the files of %s are looked for by their names: %s", target.requested, error)
        return None


def _known_slices(handle: TableHandle, timeline: Timeline, named: Iterable[Slice], engine: Engine) -> frozenset[Slice]:
    """Slices in the partitions of those that are named: such as have files of a write that completed, or are reserved
    by a pending compaction.
    """
    found = {(*group, at) for group, at in PendingPlans(handle.storage, timeline).compactions().items()}
    for path in _list_paths(handle.storage, {partition for partition, _, _ in named}, engine):
        partition, file_name = _split(path)
        name = parse_data_file_name(file_name)
        if name is not None and timeline.is_committed(name.instant):
            found.add((partition, name.file_id, name.instant))
    return frozenset(found)


def path_form(handle: TableHandle) -> PathForm:
    """How paths are spelled in plans of this table."""
    keeps_scheme = handle.profile.capabilities.plan_paths_with_scheme and handle.storage.scheme == "file"
    return PathForm(handle.storage, "file:" if keeps_scheme else "")


def appended_slices(target: InstantTime, markers: Iterable[Marker]) -> frozenset[Slice]:
    """Slices that a write appended to, as its markers say: those of log files with another instant than its own."""
    found = set()
    for marker in markers:
        partition, file_name = _split(marker.data_path)
        name = parse_log_file_name(file_name)
        if name is not None and name.instant != target:
            found.add((partition, name.file_id, name.instant))
    return frozenset(found)


def plan_from_markers(
    target: InstantTime,
    markers: Sequence[Marker],
    form: PathForm,
    slices: Collection[Slice] = (),
    *,
    takes_back_blocks: bool,
    is_compaction: bool = False,
) -> tuple[tuple[RollbackRequest, ...], str | None]:
    """Requests for the files that markers announce, in path order; and the first one that names neither a file of the
    write's own nor a log file that it may have appended to, which is one of `slices` that are there: somebody else made
    it, and nobody knows what else was done to them. A compaction appends to none; those that carry its instant may be
    later writes'.
    """
    requests: list[RollbackRequest] = []
    blocks: dict[Slice, dict[str, int]] = defaultdict(dict)
    for marker in markers:
        partition, file_name = _split(marker.data_path)
        name = parse_data_file_name(file_name)
        if is_compaction and isinstance(name, LogFileName) and not name.is_cdc:
            return (), marker.data_path
        if name is not None and name.instant == target:
            is_old_log = isinstance(name, LogFileName) and takes_back_blocks
            group = ("", "") if is_old_log else (name.file_id, target)
            requests.append(RollbackRequest(partition, *group, (form.of_file(marker.data_path),)))
        elif isinstance(name, LogFileName) and takes_back_blocks and (partition, name.file_id, name.instant) in slices:
            blocks[partition, name.file_id, name.instant][file_name] = _UNKNOWN_SIZE
        else:
            return (), marker.data_path
    requests.extend(RollbackRequest(*group, (), names) for group, names in blocks.items())
    return tuple(requests), None


def plan_deletions(undone: Undone, paths: Iterable[str], form: PathForm) -> tuple[RollbackRequest, ...]:
    """Requests that delete those of `paths` that carry the write's instant, in the order given."""
    keeps_logs = undone.is_compaction and not undone.whole_slices
    requests = []
    for path in paths:
        partition, file_name = _split(path)
        name = parse_data_file_name(file_name)
        if name is None or name.instant != undone.instant or (keeps_logs and isinstance(name, LogFileName)):
            continue
        requests.append(RollbackRequest(partition, "", "", (form.of_file(path),)))
    return tuple(requests)


def plan_blocks(
    undone: Undone, stats: Iterable[WriteStat], slices: Mapping[GroupId, InstantTime], form: PathForm
) -> tuple[RollbackRequest, ...]:
    """Requests to take back log blocks in slices that are older than the write: where log files carry the instant of
    their slice.

    `stats` are what the write did, or (pending) was about to do: then they do not name files. `slices` is the newest
    base instant of each group as of the write.
    """
    blocks: dict[Slice, dict[str, int]] = defaultdict(dict)
    for stat in stats:
        if not stat.file_id or (stat.prev_commit or NULL_COMMIT) == NULL_COMMIT:
            continue
        partition, file_name = _split(stat.path or "")
        log = parse_log_file_name(file_name)
        if log is not None:
            base, named = log.instant, form.of_log(stat.path or "")
        elif stat.path:
            continue
        else:
            partition = stat.partition_path
            base, named = slices.get((partition, stat.file_id), undone.instant), form.of_log(partition)
        if base < undone.instant:
            blocks[partition, stat.file_id, base][named] = max(stat.total_write_bytes, _UNKNOWN_SIZE)
    return tuple(RollbackRequest(*group, (), names) for group, names in blocks.items())


def newest_bases(
    paths: Iterable[str],
    compactions: Mapping[GroupId, InstantTime],
    until: InstantTime,
    is_committed: Callable[[InstantTime], bool],
) -> dict[GroupId, InstantTime]:
    """The newest base instant of each file group up to a write: of its own files and of those of writes that completed,
    or reserved by a pending compaction.
    """
    newest = {group: instant for group, instant in compactions.items() if instant <= until}
    for path in paths:
        partition, file_name = _split(path)
        name = parse_data_file_name(file_name)
        if name is not None and (name.instant == until or (name.instant < until and is_committed(name.instant))):
            group = (partition, name.file_id)
            newest[group] = max(name.instant, newest.get(group, ""))
    return newest


def _split(path: str) -> tuple[str, str]:
    partition, _, file_name = path.rpartition("/")
    return partition, file_name


def _stats_of(metadata: CommitMetadata) -> list[WriteStat]:
    """All stats; those of a workload profile do not say their partition, the map does."""
    return [
        stat if stat.partition_path or not partition else stat._replace(partition_path=partition)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
    ]


def _planned_stats(plan: CompactionPlan, target: Instant) -> list[WriteStat]:
    """What a pending log compaction was about to write, by its plan."""
    return [
        WriteStat(file_id=one.file_id, prev_commit=one.base_instant or target.requested, partition_path=one.partition)
        for one in plan.operations
    ]


def _list_paths(storage: Storage, partitions: Iterable[str], engine: Engine) -> tuple[str, ...]:
    """Paths of all files in these partitions."""
    tasks = [_ListTask(storage, one) for one in sorted(partitions)]
    return tuple(path for found in engine.run(_list_names, tasks, "list for rollback") for path in found)


@dataclass(frozen=True, slots=True)
class _ListTask:
    storage: Storage
    partition: str


def _list_names(_: TaskId, task: _ListTask) -> list[str]:
    return [file.path for file in task.storage.list_dir(task.partition).files]
