"""A file-system view that is kept from one look at a table to the next: what it knows, as one value.

1. It holds the partitions that somebody asked for, each with its settled files and the file groups made of them.
2. `load_into` adds partitions: from the metadata table where there is one, else by listing each folder once. Files of
   writes that are not committed yet are left out: their commits add them.
3. `synced` makes it the view at a later timeline from the metadata of new instants: no data folder is listed. It equals
   the view that is loaded anew then, and leaves out partitions whose files it cannot tell: they are loaded when they
   are asked for again.
4. Values do not change: who answers from one need not wait for who makes the next.

Storage is read, never written.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hoodie.fileview import open_file_view
from hoodie.server.answers import Groups
from hoodie.server.file_changes import Changes, changed_files, load_changes
from hoodie.server.sync_plan import Rebuild, plan_sync
from hoodie.spec import DELTA_COMMIT, LOG_COMPACTION, REPLACE_COMMIT, InstantTime
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline
from hoodie.view import (
    FileGroup,
    GroupId,
    PartitionFiles,
    collecting_later,
    view_of,
    with_archived_completions,
)

log = logging.getLogger(__name__)

_WRITE_LOGS = frozenset({DELTA_COMMIT, LOG_COMPACTION})


@dataclass(frozen=True, slots=True)
class KeptPartition:
    """Settled files of a partition, and the file groups they make."""

    files: PartitionFiles
    groups: tuple[FileGroup, ...]


@dataclass(frozen=True, slots=True, eq=False)
class KeptView:
    """What is known of the table of `handle` at `timeline`. `by_commit`: groups that each completed replacecommit of
    the timeline replaces; `paths`: all partitions, once somebody asked for all; `unsettled`: loaded while somebody may
    have been writing log files whose names do not say who.
    """

    handle: TableHandle
    timeline: Timeline
    plans: PendingPlans
    by_commit: Mapping[InstantTime, tuple[GroupId, ...]]
    partitions: Mapping[str, KeptPartition] = field(default_factory=dict)
    paths: frozenset[str] | None = None
    unsettled: frozenset[str] = frozenset()
    replaced: Mapping[GroupId, InstantTime] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        replaced: dict[GroupId, InstantTime] = {}
        for requested in sorted(self.by_commit):
            for group in self.by_commit[requested]:
                replaced.setdefault(group, requested)  # the earliest counts
        object.__setattr__(self, "replaced", replaced)

    def loaded(self) -> tuple[str, ...]:
        """Paths of the partitions that are loaded, sorted."""
        return tuple(sorted(self.partitions))

    def groups(self, partition: str | None) -> Groups:
        """File groups of a partition, or of all that are loaded."""
        names = self.loaded() if partition is None else (partition,) if partition in self.partitions else ()
        return Groups(tuple(group for name in names for group in self.partitions[name].groups), self.replaced)


def open_view(handle: TableHandle) -> KeptView:
    """The view of a table at its timeline as it is now, with no partition loaded. Lists the timeline once, and reads
    the replacecommits in it.

    Raises:
        Corrupt: one of them is damaged.
    """
    return _unloaded(handle, timeline_of(handle))


def load_into(view: KeptView, partitions: Collection[str] | None) -> KeptView:
    """The view with the given partitions (None: all of them) loaded, too; those that are stay as they are.
    Names that are no partitions, as far as can be told from their having no files, are left out.

    Raises:
        Corrupt: the metadata table, or what is read of the history, is damaged.
    """
    if partitions is None and view.paths is not None:
        partitions = view.paths
    asked = None if partitions is None else sorted(set(partitions) - set(view.partitions))
    if asked == []:
        return view
    handle = view.handle
    is_unsettled = _may_be_written(view)  # also afterwards: a writer may begin meanwhile
    source = open_file_view(handle.storage, handle.config, view.timeline, plans=view.plans)
    with collecting_later():
        found = source.load(asked)
        settled = {path for part in found.all_slices() for path in part.paths}
        timeline = view.timeline.with_archived(found.timeline.archived)
        files = [_settled(one, settled, found.timeline) for one in found.files]
        loaded = _grouped(files, timeline, view.plans)
    paths = view.paths if asked is not None else frozenset(loaded)
    if asked is not None:
        # Whoever asks may name what is no partition: that is not kept, or all would be told of it.
        real = {one.partition for one in found.files if _has_files(one)} | (paths or frozenset())
        loaded = {name: known for name, known in loaded.items() if name in real}
    return replace(
        view,
        timeline=timeline,
        partitions={**loaded, **view.partitions},
        paths=paths,
        unsettled=view.unsettled.union(loaded) if is_unsettled or _may_be_written(view) else view.unsettled,
    )


def synced(view: KeptView, handle: TableHandle) -> KeptView:
    """The view at the timeline as it is now. Lists the timeline once and reads each new instant once.

    Raises:
        Corrupt: metadata of a new instant is damaged.
        Missing: one is gone meanwhile; ask again.
    """
    new = timeline_of(handle)
    if new == view.timeline:
        return replace(view, handle=handle)
    is_same_version = handle.config.has_version(view.handle.config.table_version)
    plan = plan_sync(view.timeline, new) if is_same_version else Rebuild("the table has another version now")
    if isinstance(plan, Rebuild):
        log.info("the view of %s is loaded anew: %s", handle.storage.uri, plan.reason)
        return _unloaded(handle, new)
    changes = load_changes(handle.storage, handle.profile, plan.finished)
    if not plan.vanished <= {time for one in changes for time in one.undone}:
        return _unloaded(handle, new)
    return _applied(view, handle, new, changes)


def _has_files(files: PartitionFiles) -> bool:
    return bool(files.bases or files.logs or files.changes)


def _may_be_written(view: KeptView) -> bool:
    """Whether log files that are listed now may be those of a write that is running and may leave some of them."""
    if view.handle.profile.log_naming.has_one_write_per_file:
        return False
    return any(one.action in _WRITE_LOGS for one in timeline_of(view.handle).pending())


def _applied(view: KeptView, handle: TableHandle, new: Timeline, changes: Iterable[Changes]) -> KeptView:
    """The view at `new` after changes, in their order."""
    files: dict[str, PartitionFiles | None] = dict.fromkeys(view.unsettled)
    paths = set(view.paths or ())
    by_commit = dict(view.by_commit)
    for change in changes:
        if change.replaced:
            by_commit[change.requested] = change.replaced
        for name, one in change.partitions.items():
            (paths.discard if one.is_gone else paths.add)(name)
            before = files[name] if name in files else _files_of(view, name)
            files[name] = None if before is None or one.is_unclear or one.is_gone else changed_files(before, one)
    live = {one.requested for one in new.completed_writes() if one.action == REPLACE_COMMIT}
    plans = PendingPlans(handle.storage, new)
    timeline = new.with_archived({**view.timeline.archived, **_completions(view.timeline, new)})
    compactions = plans.compactions()
    before_compactions = view.plans.compactions()
    for partition, file_id in set(compactions) | set(before_compactions):
        group = partition, file_id
        if compactions.get(group) != before_compactions.get(group) and partition not in files:
            files[partition] = _files_of(view, partition)
    kept = {name: known for name, known in view.partitions.items() if name not in files}
    changed = tuple(found for found in files.values() if found is not None)
    timeline = with_archived_completions(handle.storage, timeline, changed)
    kept |= _grouped(changed, timeline, plans)
    return KeptView(
        handle,
        timeline,
        plans,
        {at: groups for at, groups in by_commit.items() if at in live},
        kept,
        None if view.paths is None else frozenset(paths),
    )


def _settled(files: PartitionFiles, settled: Collection[str], timeline: Timeline) -> PartitionFiles:
    """Only those files whose paths are given, and change-data files of committed writes."""
    return replace(
        files,
        bases=tuple(file for file in files.bases if file.path in settled),
        logs=tuple(file for file in files.logs if file.path in settled),
        changes=tuple(file for file in files.changes if timeline.is_committed(file.name.instant)),
    )


def _grouped(many: Sequence[PartitionFiles], timeline: Timeline, plans: PendingPlans) -> dict[str, KeptPartition]:
    """File groups of settled files, by partition. Change-data files are in their slices, as Hudi has them: who cleans
    by them would leave those files otherwise.
    """
    with_changes = tuple(replace(files, logs=(*files.logs, *files.changes)) for files in many)
    groups: dict[str, list[FileGroup]] = {files.partition: [] for files in many}
    for group in view_of(timeline, with_changes, {}, plans.compactions()).groups:
        groups[group.partition].append(group)
    return {files.partition: KeptPartition(files, tuple(groups[files.partition])) for files in many}


def _files_of(view: KeptView, partition: str) -> PartitionFiles | None:
    """Files of a partition where they are known: none, of one that did not exist when all were loaded."""
    known = view.partitions.get(partition)
    if known is not None:
        return known.files
    is_new = view.paths is not None and partition not in view.paths
    return PartitionFiles(partition, (), ()) if is_new else None


def _completions(old: Timeline, new: Timeline) -> dict[InstantTime, InstantTime]:
    """Writes that were in the timeline and are archived now, with their completion times."""
    return {
        one.requested: one.completed
        for one in old.completed_writes()
        if one.completed is not None and new.is_before_start(one.requested)
    }


def _unloaded(handle: TableHandle, timeline: Timeline) -> KeptView:
    instants = [one for one in timeline.completed_writes() if one.action == REPLACE_COMMIT]
    changes = load_changes(handle.storage, handle.profile, instants)
    return KeptView(
        handle,
        timeline,
        PendingPlans(handle.storage, timeline),
        {one.requested: one.replaced for one in changes},
    )
