"""What a clean has to know before it is planned: the last clean, what is protected, and the files it has to look at.

1. The last clean tells how far cleaning has come. Only partitions that were touched between the commit it kept and the
   one to be kept now can have anything new to remove; their commits say which. Everything is looked at when there was
   no clean, when what it kept is archived, when a savepoint was removed since, or when versions are counted.
2. Files come from the metadata table where it is kept, else from listing just these partitions.
3. The metadata of a commit is read once, whatever it is needed for.
4. A clean of chosen partitions leaves replaced groups of other partitions where they are. It must not tell archivers
   that these are gone, or their rows would be back: it goes no further than the first commit that replaced such groups,
   and goes on naming savepoints that were removed. Where versions are counted nothing can say so, and it is refused.
   That only some partitions were looked at stands in its metadata; the next clean looks at all it is about.

It reads and decides nothing about files (`plan`), and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from hoodie.config import Config
from hoodie.engine import LocalEngine, TaskId
from hoodie.errors import Invalid
from hoodie.fileview import FileSystemView, FolderView
from hoodie.remote import asked_server, open_asked_view
from hoodie.services.cleaning.options import CleanOptions
from hoodie.services.cleaning.plan import (
    FILTER_KEY,
    PlannedClean,
    Protected,
    first_read,
    plan_clean,
    touched_partitions,
    with_unknown_logs,
)
from hoodie.services.cleaning.retention import earliest_retained, first_unseen
from hoodie.services.rollback.savepoint import load_savepoints
from hoodie.spec import (
    CLEAN,
    REPLACE_COMMIT,
    CleanMetadata,
    CommitMetadata,
    Instant,
    InstantTime,
    parse_clean_metadata,
)
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline, instant_path, load_commit_metadata, load_instant
from hoodie.view import (
    GroupId,
    PartitionFiles,
    View,
    replaced_groups,
    view_of,
    with_archived_completions,
    with_archived_writes,
)

READING_THREADS = 16

_METADATA = "hoodie.metadata.enable"


@dataclass(frozen=True, slots=True)
class LastClean:
    """The newest completed clean. `chosen`: the filter, when it was about chosen partitions."""

    instant: Instant
    metadata: CleanMetadata

    @property
    def chosen(self) -> str:
        return self.metadata.extra_metadata.get(FILTER_KEY, "")


def last_clean_of(timeline: Timeline) -> Instant | None:
    """The newest completed clean of the active timeline."""
    return max((one for one in timeline.completed() if one.action == CLEAN), default=None)


def load_last_clean(handle: TableHandle, timeline: Timeline) -> LastClean | None:
    """The newest completed clean and what it did. One that is empty, as a crash of the machine leaves it, says nothing.

    Raises:
        Corrupt: its file is damaged.
    """
    instant = last_clean_of(timeline)
    data = load_instant(handle.storage, handle.profile, instant) if instant else b""
    if instant is None or not data:
        return None
    return LastClean(instant, parse_clean_metadata(data, instant_path(handle.profile, instant)))


def is_due(timeline: Timeline, last: LastClean | None, options: CleanOptions) -> bool:
    """Whether enough writes completed since the last clean for another one, or that one was about other partitions."""
    if last is not None and last.chosen not in ("", options.chosen):
        return True
    since = last.metadata.last_completed if last else ""
    return sum(one.requested > since for one in timeline.completed_writes()) >= options.trigger_commits


def draft_clean(
    handle: TableHandle, config: Config, options: CleanOptions, timeline: Timeline, last: LastClean | None
) -> PlannedClean:
    """What a clean would do now.

    Raises:
        Corrupt: metadata or a plan that has to be read is damaged.
        Invalid: a clean of chosen partitions counts versions, and file groups of other partitions were replaced.
    """
    previous = last.metadata.earliest if last else ""
    earliest = earliest_retained(timeline, options, handle.env.now(), handle.config.timezone, previous)
    plans = PendingPlans(handle.storage, timeline)
    protected = load_protected(handle, plans)
    reader = _Reader(handle, plans)
    if options.only is not None:
        earliest = _held_back(earliest, reader, options, last, protected)
    if earliest is None and not options.by_versions:
        return plan_clean(View(timeline, (), (), {}), None, options, protected)
    partitions: frozenset[str] | None = None
    if earliest is not None and _can_go_on(timeline, last, options, protected):
        window = [one for one in timeline.completed_writes() if previous <= one.requested < earliest.requested]
        found = (metadata for _, metadata in reader.commits(window))
        partitions = touched_partitions(found, is_merge_on_read=handle.config.is_merge_on_read)
    folders = FolderView(handle.storage, timeline, plans=plans)
    source: FileSystemView = folders
    if partitions != frozenset():
        use = not config.is_set(_METADATA) or config.flag(_METADATA)
        source = open_asked_view(asked_server(config), handle, timeline, use_metadata=use, plans=plans)
    files = source.files(partitions)
    if options.only is not None:
        files = tuple(one for one in files if options.takes(one.partition))
    plan = plan_clean(reader.view(files, are_settled=not source.lists_uncommitted), earliest, options, protected)
    if plan.partitions and not isinstance(source, FolderView):
        # Nobody else knows files of dead writers: whether a partition is empty, storage has to say.
        sure = plan_clean(reader.view(folders.files(plan.partitions)), earliest, options, protected)
        plan = replace(plan, partitions=sure.partitions)
    is_told = isinstance(source, FolderView) or handle.profile.log_naming.has_one_write_per_file
    if handle.config.is_merge_on_read and not is_told:
        folders_of_steps = folders.files(frozenset(step.partition for step in plan.steps))
        plan = replace(plan, steps=with_unknown_logs(plan.steps, folders_of_steps))
    if options.only is None:
        return plan
    return replace(plan, chosen=options.chosen, removed=tuple(sorted(_removed_savepoints(last, protected))))


def load_protected(handle: TableHandle, plans: PendingPlans) -> Protected:
    """What stays whatever its age. Reads savepoints and pending plans."""
    savepoints = load_savepoints(handle, plans.timeline)
    saved = frozenset(path for one in savepoints for path in one.paths)
    return Protected(saved, tuple(one.instant for one in savepoints), plans.read_from())


def paths_in_use(handle: TableHandle, timeline: Timeline, partitions: Iterable[str]) -> frozenset[str]:
    """Paths that no clean may remove from some partitions, by what is on storage now: files of newest slices, of slices
    that pending plans and pending writes read, and saved ones.
    """
    plans = PendingPlans(handle.storage, timeline)
    protected = load_protected(handle, plans)
    view = _Reader(handle, plans).view(FolderView(handle.storage, timeline).files(frozenset(partitions)))
    newest = {path for part in view.slices_at() for path in part.paths}
    unseen = first_unseen(timeline, plans=frozenset(protected.planned.values()))
    for group in view.groups:
        times = [time for time in (protected.planned.get(group.group_id), unseen) if time is not None]
        if times:
            read = first_read(group, min(times))
            newest.update(path for part in group.slices if part.base_instant >= read for path in part.paths)
    return protected.saved | newest


def _can_go_on(timeline: Timeline, last: LastClean | None, options: CleanOptions, protected: Protected) -> bool:
    """Whether what the last clean left tells where to look."""
    if last is None or not options.incremental or not last.metadata.earliest or last.chosen:
        return False
    return not _removed_savepoints(last, protected) and not timeline.is_before_start(last.metadata.earliest)


def _removed_savepoints(last: LastClean | None, protected: Protected) -> set[InstantTime]:
    """Savepoints that kept files from the last clean, and are no more."""
    return set(last.metadata.savepoints if last else ()).difference(protected.savepoints)


def _held_back(
    earliest: Instant | None, reader: _Reader, options: CleanOptions, last: LastClean | None, protected: Protected
) -> Instant | None:
    """The earliest commit a clean of chosen partitions keeps: not after the first one that replaced file groups of
    other partitions, if their files may still be there.

    Raises:
        Invalid: versions are counted, so that nothing would say that they are there.
    """
    since = (last.metadata.earliest or last.instant.requested) if last else ""
    if options.by_versions and _removed_savepoints(last, protected):
        since = ""
    elsewhere = reader.replacing_elsewhere(options, since)
    if elsewhere is None or (earliest is not None and earliest.requested <= elsewhere.requested):
        return earliest
    if options.by_versions:
        raise Invalid(
            f"{elsewhere.requested} replaced file groups of partitions that are not chosen; after a clean that counts "
            "versions archivers would take their files for removed",
            remedy="Clean all partitions, or choose them with hoodie.clean.policy=KEEP_LATEST_COMMITS",
            instant=elsewhere.requested,
        )
    return earliest and elsewhere


class _Reader:
    """Commit metadata of one timeline, each read once."""

    def __init__(self, handle: TableHandle, plans: PendingPlans) -> None:
        self._handle = handle
        self._plans = plans
        self._timeline = plans.timeline
        self._engine = LocalEngine(READING_THREADS)
        self._known: dict[InstantTime, CommitMetadata] = {}

    def commits(self, instants: Iterable[Instant]) -> list[tuple[InstantTime, CommitMetadata]]:
        """Requested time and metadata of completed writes."""
        wanted = list(instants)
        tasks = [_Commit(self._handle, one) for one in wanted if one.requested not in self._known]
        self._known.update(self._engine.run(_load_commit, tasks, "read commits"))
        return [(one.requested, self._known[one.requested]) for one in wanted]

    def replacing_elsewhere(self, options: CleanOptions, since: InstantTime) -> Instant | None:
        """The first completed write from a time on that replaced file groups of partitions which are not chosen."""
        replacing = [one for one in self._timeline.completed_writes() if one.action == REPLACE_COMMIT]
        later = [one for one in replacing if one.requested >= since]
        for one, (_, metadata) in zip(later, self.commits(later), strict=True):
            if not all(map(options.takes, (partition for partition, _ in metadata.replaced_file_groups()))):
                return one
        return None

    def view(self, files: tuple[PartitionFiles, ...], *, are_settled: bool = False) -> View:
        """The view of listed files; `are_settled` when only files of settled writes were listed."""
        storage, timeline = self._handle.storage, self._timeline
        replacing = [one for one in timeline.completed_writes() if one.action == REPLACE_COMMIT]
        replaced: Mapping[GroupId, InstantTime] = replaced_groups(self.commits(replacing))
        timeline = with_archived_completions(storage, timeline, files)
        if not are_settled:
            timeline = with_archived_writes(storage, timeline, files)
        return view_of(timeline, files, replaced, self._plans.compactions())


@dataclass(frozen=True, slots=True)
class _Commit:
    handle: TableHandle
    instant: Instant


def _load_commit(_: TaskId, task: _Commit) -> tuple[InstantTime, CommitMetadata]:
    metadata = load_commit_metadata(task.handle.storage, task.handle.profile, task.instant)
    return task.instant.requested, metadata
