"""A file-system view that is kept from one look at a table to the next: what it knows, as one value.

1. It holds the settled files of the partitions that somebody asked for, in a store (`stores`). File groups are made of
   them when they are asked for, by the rules of reading.
2. `load_into` adds partitions: from the metadata table where there is one, else by listing each folder once. Files of
   writes that are not committed yet are left out: their commits add them.
3. `synced` makes it the view at a later timeline from the metadata of new instants: no data folder is listed. It equals
   the view that is loaded anew then, and leaves out partitions whose files it cannot tell: they are loaded when they
   are asked for again.
4. Values do not change: who answers from one need not wait for who makes the next. Only the newest is loaded into or
   synced, but for one that was put `aside`.
5. What a store of an earlier service has is a view at the timeline it was left at (`resumed_view`).
6. While a downgrade gives log files other names, or died doing so, a view is true for the moment only (`is_lasting`).

Storage is read, never written.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from hoodie.fileview import open_file_view
from hoodie.server.answers import Groups
from hoodie.server.file_changes import Changes, as_unclear, load_changes
from hoodie.server.pending_edits import PendingEdits, instants_of_logs, written_by
from hoodie.server.stores.memory import MemoryStore
from hoodie.server.stores.packed import PackedFiles, pack_partition
from hoodie.server.stores.store import Edit, ViewStore
from hoodie.server.sync_plan import Rebuild, Sync, plan_sync
from hoodie.server.view_parts import Beside, beside_of, parts_of
from hoodie.spec import DELTA_COMMIT, LOG_COMPACTION, REPLACE_COMMIT, InstantTime
from hoodie.state.handle import TableHandle, storage_of, timeline_of
from hoodie.state.log_renames import may_be_named_back, renamed_at
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage
from hoodie.timeline import PLAN_ACTIONS, Timeline
from hoodie.view import (
    FileGroup,
    GroupId,
    PartitionFiles,
    Replaced,
    collecting_later,
    named_files,
    view_of,
    with_archived_completions,
)

log = logging.getLogger(__name__)

_WRITE_LOGS = frozenset({DELTA_COMMIT, LOG_COMPACTION})
_MANY = 1000
_Compactions = Mapping[str, Mapping[GroupId, InstantTime]]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class KeptView:
    """What is known of the table of `handle` at `timeline`. `by_commit`: groups that each completed replacecommit of
    the timeline replaces, `replaced`: the same by group; `compactions`: pending ones by partition and group, as the
    plans said when the timeline was seen; `store`: files of the partitions that are loaded; `paths`: all
    partitions, once somebody asked for all; `unsettled`: loaded while somebody may have been writing log files whose
    names do not say who; `is_lasting`: log files keep their names; `many_archived`: of more archived writes those are
    forgotten that no log file needs.
    """

    handle: TableHandle
    timeline: Timeline
    plans: PendingPlans
    by_commit: Mapping[InstantTime, tuple[GroupId, ...]]
    replaced: Replaced
    compactions: _Compactions
    store: ViewStore
    paths: frozenset[str] | None = None
    unsettled: frozenset[str] = frozenset()
    is_lasting: bool = True
    many_archived: int = _MANY

    def loaded(self) -> tuple[str, ...]:
        """Paths of the partitions that are loaded, sorted."""
        return self.store.partitions()

    def has(self, partition: str) -> bool:
        """Whether a partition is loaded."""
        return self.store.has(partition)

    def groups(self, partition: str | None, file_id: str = "") -> Groups:
        """File groups of a partition, or of all that are loaded; with `file_id` only the one that has it."""
        names = self.loaded() if partition is None else (partition,)
        with collecting_later():
            groups = tuple(group for name in names for group in self._groups_in(name, file_id))
        return Groups(groups, self.replaced)

    def files(self, partition: str) -> PackedFiles | None:
        """Settled files of a partition, packed; None where it is not loaded."""
        return self.store.files(partition)

    def partition_files(self, partition: str) -> PartitionFiles:
        """Settled files of a partition by kind; none where it is not loaded."""
        packed = self.store.files(partition)
        return PartitionFiles(partition, (), ()) if packed is None else named_files(partition, packed.items())

    def _groups_in(self, partition: str, file_id: str) -> Iterable[FileGroup]:
        """Change-data files are in their slices, as Hudi has them: who cleans by them would leave those otherwise."""
        if file_id:
            files = named_files(partition, self.store.of_group(partition, file_id))
        else:
            packed = self.store.files(partition)
            if packed is None:
                return ()
            files = named_files(partition, packed.items())
        with_changes = replace(files, logs=(*files.logs, *files.changes))
        found = view_of(self.timeline, (with_changes,), {}, self.compactions.get(partition, {})).groups
        return (group for group in found if group.file_id == file_id) if file_id else found


def open_view(handle: TableHandle, store: ViewStore | None = None, seen: Timeline | None = None) -> KeptView:
    """The view of a table at its timeline as it is now, or at `seen`, with no partition loaded: `store`, which is
    emptied, or one in memory, has its files. Lists the timeline once, in the first case, and reads the replacecommits
    in it and what is planned.

    Raises:
        Corrupt: one of them is damaged. StoreFailed: the store cannot be written.
    """
    timeline = timeline_of(handle) if seen is None else seen
    return _unloaded(handle, timeline, MemoryStore() if store is None else store)


def resumed_view(handle: TableHandle, store: ViewStore) -> KeptView | None:
    """The view that an earlier service left in `store`, at the timeline as it is now; None where there is none of a
    table of this version. Costs what `synced` does.

    Raises:
        As `synced`.
    """
    beside = beside_of(store.parts(), handle.config, handle.profile) if store.outlives else None
    if beside is None:
        return None
    if not handle.profile.log_naming.finds_slice_by_completion and _has_plans(beside.timeline):
        return None  # a plan may have got file groups since, whose log files are not kept
    timeline = timeline_of(handle)
    plans = PendingPlans(handle.storage, beside.timeline)
    # What was planned then may be gone, and is not asked for.
    view = _view(handle, beside, plans, {}, store)
    if timeline == beside.timeline:
        return _planned(view, handle, timeline, plans.compactions())
    return _caught_up(view, handle, timeline)


def aside(view: KeptView) -> KeptView:
    """The view without what is loaded, on its own: what is loaded into it is kept nowhere."""
    return replace(view, store=MemoryStore())


def by_storage(view: KeptView, storage: Storage) -> KeptView:
    """The view, which goes on by way of another storage that leads to the same table."""
    handle = replace(view.handle, storage=storage_of(storage, view.handle.config))
    return replace(view, handle=handle, plans=PendingPlans(handle.storage, view.plans.timeline))


def load_into(view: KeptView, partitions: Collection[str] | None) -> KeptView:
    """The view with the given partitions (None: all of them) loaded, too; those that are stay as they are.
    Names that are no partitions, as far as can be told from their having no files, are left out.

    Raises:
        Corrupt: the metadata table, or what is read of the history, is damaged. StoreFailed: the store fails.
    """
    if partitions is None and view.paths is not None:
        partitions = view.paths
    asked = None if partitions is None else [name for name in sorted(set(partitions)) if not view.has(name)]
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
        del settled
        paths = view.paths if asked is not None else frozenset(one.partition for one in files)
        if asked is not None:
            # Whoever asks may name what is no partition: that is not kept, or all would be told of it.
            real = {one.partition for one in found.files if _has_files(one)} | (paths or frozenset())
            files = [one for one in files if one.partition in real]
        loaded = {one.partition: pack_partition(one) for one in files if not view.has(one.partition)}
    now = replace(
        view,
        timeline=timeline,
        paths=paths,
        unsettled=view.unsettled.union(loaded) if is_unsettled or _may_be_written(view) else view.unsettled,
    )
    return _stored(now, view, Edit(loaded=loaded)) if loaded or paths != view.paths else now


def synced(view: KeptView, handle: TableHandle, seen: Timeline | None = None) -> KeptView:
    """The view at the timeline as it is now, or at `seen`, as somebody has just seen it. Lists the timeline once, in
    the first case, and reads each new instant once. A timeline that lacks what the view knows means a view without
    partitions: nobody can tell what was there.

    Raises:
        Corrupt: metadata of a new instant is damaged. StoreFailed: the store fails.
        Missing: one is gone meanwhile; ask again.
    """
    timeline = timeline_of(handle) if seen is None else seen
    if timeline != view.timeline or _names_changed(view, handle):
        return _caught_up(view, handle, timeline)
    if timeline.plan_files != view.timeline.plan_files and _has_plans(timeline):
        return _replanned(view, handle, timeline)
    return view if handle.config.raw == view.handle.config.raw else replace(view, handle=handle)


def _has_plans(timeline: Timeline) -> bool:
    return any(one.action in PLAN_ACTIONS for one in timeline.pending())


def lasting(view: KeptView) -> KeptView | None:
    """The view, where it may be kept until the next look."""
    return view if view.is_lasting else None


def _names_changed(view: KeptView, handle: TableHandle) -> bool:
    return not view.is_lasting or renamed_at(handle.config) != renamed_at(view.handle.config)


def _caught_up(view: KeptView, handle: TableHandle, timeline: Timeline) -> KeptView:
    plan: Sync | Rebuild
    if not handle.config.has_version(view.handle.config.table_version):
        plan = Rebuild("the table has another version now")
    elif _names_changed(view, handle):
        plan = Rebuild("log files got other names")
    else:
        plan = plan_sync(view.timeline, timeline)
    if isinstance(plan, Rebuild):
        log.info("the view of %s is loaded anew: %s", handle.storage.uri, plan.reason)
        return _unloaded(handle, timeline, view.store)
    with collecting_later():
        changes = load_changes(handle.storage, handle.profile, plan.finished)
        if not plan.vanished <= {time for one in changes for time in one.undone}:
            return _unloaded(handle, timeline, view.store)
        return _applied(view, handle, timeline, changes, plan.redone)


def _replanned(view: KeptView, handle: TableHandle, timeline: Timeline) -> KeptView:
    """The view at the same timeline, once its plans are read again: others may stand at their instants."""
    compactions = PendingPlans(handle.storage, timeline).compactions()
    if not _shows_more(view, handle, compactions):
        return _planned(view, handle, timeline, compactions)
    log.info("the view of %s is loaded anew: a plan has more file groups than before", handle.storage.uri)
    return _unloaded(handle, timeline, view.store)


def _planned(
    view: KeptView, handle: TableHandle, seen: Timeline, compactions: Mapping[GroupId, InstantTime]
) -> KeptView:
    """The view with what was read of plans just now, at the same instants."""
    return replace(
        view,
        handle=handle,
        timeline=replace(view.timeline, plan_files=seen.plan_files),
        plans=PendingPlans(handle.storage, seen),
        compactions=_by_partition(compactions),
    )


def _shows_more(view: KeptView, handle: TableHandle, compactions: Mapping[GroupId, InstantTime]) -> bool:
    """Whether a plan that was known shows log files that were no part of a slice without it, and so are not kept."""
    if handle.profile.log_naming.finds_slice_by_completion:
        return False
    known = {one.requested for one in view.timeline.pending()}
    return any(at in known and view.compactions.get(group[0], {}).get(group) != at for group, at in compactions.items())


def _has_files(files: PartitionFiles) -> bool:
    return bool(files.bases or files.logs or files.changes)


def _may_be_written(view: KeptView) -> bool:
    """Whether log files that are listed now may be those of a write that is running and may leave some of them."""
    if view.handle.profile.log_naming.has_one_write_per_file:
        return False
    return any(one.action in _WRITE_LOGS for one in timeline_of(view.handle).pending())


def _applied(
    view: KeptView, handle: TableHandle, new: Timeline, changes: Iterable[Changes], redone: Collection[InstantTime]
) -> KeptView:
    """The view at a new timeline after changes, in their order; those of `redone` instants are not their first."""
    edits = PendingEdits(view.store, view.paths, view.unsettled | written_by(view.store, redone))
    by_commit = {at: groups for at, groups in view.by_commit.items() if at not in redone}
    for found in changes:
        change = as_unclear(found) if found.requested in redone else found
        if change.replaced:
            by_commit[change.requested] = change.replaced
        edits.take(change)
    live = {one.requested for one in new.completed_writes() if one.action == REPLACE_COMMIT}
    archived = {**view.timeline.archived, **_completions(view.timeline, new)}
    many = view.many_archived
    if len(archived) > many:
        needed = instants_of_logs(view.store)
        archived = {at: completed for at, completed in archived.items() if at in needed}
        many = max(_MANY, 2 * len(archived))
    touched = edits.touched_groups(new) if handle.config.is_merge_on_read else ()  # else no slice has log files
    timeline = with_archived_completions(handle.storage, new.with_archived(archived), touched)
    beside = Beside(
        handle.config.table_version,
        timeline,
        {at: groups for at, groups in by_commit.items() if at in live},
        edits.paths,
        frozenset(),
    )
    plans = PendingPlans(handle.storage, new)
    compactions = plans.compactions()
    if view.compactions and _shows_more(view, handle, compactions):
        return _unloaded(handle, new, view.store)
    now = replace(_view(handle, beside, plans, _by_partition(compactions), view.store), many_archived=many)
    return _stored(now, view, edits.edit())


def _settled(files: PartitionFiles, settled: Collection[str], timeline: Timeline) -> PartitionFiles:
    """Only those files whose paths are given, and change-data files of committed writes."""
    return replace(
        files,
        bases=tuple(file for file in files.bases if file.path in settled),
        logs=tuple(file for file in files.logs if file.path in settled),
        changes=tuple(file for file in files.changes if timeline.is_committed(file.name.instant)),
    )


def _completions(old: Timeline, new: Timeline) -> dict[InstantTime, InstantTime]:
    """Writes that were in the timeline and are archived now, with their completion times."""
    return {
        one.requested: one.completed
        for one in old.completed_writes()
        if one.completed is not None and new.is_before_start(one.requested)
    }


def _unloaded(handle: TableHandle, timeline: Timeline, store: ViewStore) -> KeptView:
    """The view without partitions. While names of log files may change it is on its own: nothing of it is kept."""
    is_lasting = not may_be_named_back(handle)
    instants = [one for one in timeline.completed_writes() if one.action == REPLACE_COMMIT]
    changes = load_changes(handle.storage, handle.profile, instants)
    by_commit = {one.requested: one.replaced for one in changes}
    beside = Beside(handle.config.table_version, timeline, by_commit, None, frozenset())
    plans = PendingPlans(handle.storage, timeline)
    now = replace(
        _view(handle, beside, plans, _by_partition(plans.compactions()), store if is_lasting else MemoryStore()),
        is_lasting=is_lasting,
    )
    return _stored(now, None, Edit(is_emptied=True))


def _view(
    handle: TableHandle, beside: Beside, plans: PendingPlans, compactions: _Compactions, store: ViewStore
) -> KeptView:
    replaced: dict[GroupId, InstantTime] = {}
    for requested in sorted(beside.by_commit):
        for group in beside.by_commit[requested]:
            replaced.setdefault(group, requested)  # the earliest counts
    return KeptView(
        handle,
        beside.timeline,
        plans,
        beside.by_commit,
        replaced,
        compactions,
        store,
        beside.paths,
        beside.unsettled,
    )


def _stored(now: KeptView, before: KeptView | None, edit: Edit) -> KeptView:
    """`now` with what an edit makes of its store; one that outlives the service is told with it what else is known."""
    if now.store.outlives:
        edit = replace(edit, parts=parts_of(_beside(now), None if before is None else _beside(before)))
    return replace(now, store=now.store.changed(edit))


def _beside(view: KeptView) -> Beside:
    handle = view.handle
    return Beside(
        handle.config.table_version,
        view.timeline,
        view.by_commit,
        view.paths,
        view.unsettled,
        renamed_at(handle.config),
    )


def _by_partition(compactions: Mapping[GroupId, InstantTime]) -> _Compactions:
    found: dict[str, dict[GroupId, InstantTime]] = defaultdict(dict)
    for group, instant in compactions.items():
        found[group[0]][group] = instant
    return found
