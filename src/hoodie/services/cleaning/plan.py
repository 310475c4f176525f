"""Which files a clean removes: a decision for each slice of each file group, from the view alone.

1. The newest slice of a group always stays, and so does whatever a pending compaction, log compaction or clustering
   reads: the slices from the one it begins with on.
2. By commits or hours: every slice from the earliest retained commit on stays, and the one before it, which is the
   state of the group at that commit. Groups that were replaced before that commit go as a whole.
3. By versions: the newest n slices stay, and what a pending write may be reading: the slice that counts where it began,
   and all since. Replaced groups go as a whole, at once. While a pending write may be reading a replaced group, or a
   pending plan is about one, nothing goes at all: archivers take what was replaced before such a clean for removed.
4. A slice with a file under a savepoint stays as a whole.
5. A slice goes with its log files, and with the change-data files that were written along with it.
6. A partition goes when nothing else than files of such replaced groups is left in it: no live group, no file of a
   write that nobody knows, nothing saved, and while no write is pending. The root of the table never goes.

Files of writes that are not committed are not looked at: they are for rollback. Pure; `clean` gathers the arguments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from hoodie.services.cleaning.options import CleanOptions
from hoodie.services.cleaning.retention import first_unseen
from hoodie.services.preview import PreviewStep
from hoodie.spec import (
    COMPLETED_WRITE_ACTIONS,
    SAVEPOINTS_KEY,
    CleanPlan,
    CommitMetadata,
    Instant,
    InstantTime,
    LogFileName,
    RetainedInstant,
    parse_data_file_name,
)
from hoodie.view import FileGroup, FileSlice, GroupId, LogFile, PartitionFiles, View

DELETE = "delete"
FILTER_KEY = "hoodie.clean.partition.filter"
"""Extra metadata of a clean that was about chosen partitions only: the filter. Hudi passes over it."""

_PLAIN_WRITES = ("INSERT", "UPSERT")


@dataclass(frozen=True, slots=True)
class Protected:
    """What stays whatever its age: paths of files under savepoints, and the groups that pending plans read, with the
    instant of the plan. `savepoints` are the saved commits.
    """

    saved: frozenset[str] = frozenset()
    savepoints: tuple[InstantTime, ...] = ()
    planned: Mapping[GroupId, InstantTime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedClean:
    """What a clean will do. `steps`: one for each slice that goes; `partitions`: those that go as a whole.

    `earliest` is the first commit whose state stays readable (None: nothing is promised), `last_completed` the newest
    write that was looked at. `chosen`: the filter, when only some partitions were looked at; then `removed` are
    savepoints that are no more, and whose files may still be in the others.
    """

    policy: str
    earliest: Instant | None
    last_completed: InstantTime
    savepoints: tuple[InstantTime, ...] = ()
    chosen: str = ""
    removed: tuple[InstantTime, ...] = ()
    steps: tuple[PreviewStep, ...] = ()
    partitions: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.steps and not self.partitions

    def stored(self, absolute: Callable[[str], str]) -> CleanPlan:
        """The plan as it is stored; `absolute` gives the full name of a path below the table."""
        files: dict[str, list[str]] = defaultdict(list)
        for step in self.steps:
            files[step.partition].extend(map(absolute, step.paths))
        noted = {SAVEPOINTS_KEY: ",".join(sorted({*self.savepoints, *self.removed})), FILTER_KEY: self.chosen}
        first = self.earliest
        retained = None if first is None else RetainedInstant(first.requested, first.action, first.state.name)
        return CleanPlan(
            policy=self.policy,
            earliest=retained,
            last_completed=self.last_completed,
            files={partition: tuple(names) for partition, names in files.items()},
            partitions=self.partitions,
            extra_metadata={name: text for name, text in noted.items() if text},
        )


def plan_clean(view: View, earliest: Instant | None, options: CleanOptions, protected: Protected) -> PlannedClean:
    """What to remove of the partitions in `view`. Nothing, when a policy that goes by commits has no `earliest`, or one
    by versions would leave replaced groups behind.
    """
    last = view.timeline.last_completed_write()
    plan = PlannedClean(options.policy, earliest, last.requested if last else "", protected.savepoints)
    if earliest is None and not options.by_versions:
        return plan
    unseen = first_unseen(view.timeline, plans=frozenset(protected.planned.values()))
    read = unseen is not None and any(at >= unseen for at in view.replaced.values())
    if earliest is None and (read or any(group in view.replaced for group in protected.planned)):
        return plan
    groups: dict[str, list[FileGroup]] = defaultdict(list)
    for group in view.groups:
        groups[group.partition].append(group)
    keep = _Keep(view, earliest, options, protected, unseen)
    steps: list[PreviewStep] = []
    dropped: list[str] = []
    for files in view.files:
        found = groups[files.partition]
        changes = _changes_by_group(files, view)
        for group in found:
            steps.extend(keep.steps(group, changes.get(group.file_id, ())))
        if _goes(files, found, keep):
            dropped.append(files.partition)
    return replace(plan, steps=tuple(steps), partitions=tuple(dropped))


def with_unknown_logs(steps: Iterable[PreviewStep], files: Iterable[PartitionFiles]) -> tuple[PreviewStep, ...]:
    """The steps, with log files of the slices that go which only the folders show: in version 6 one may have come after
    the rollback of its write, which nobody is told. Without the files before it, it would be a file group.
    """
    logs: dict[tuple[str, str, InstantTime], list[tuple[str, int]]] = defaultdict(list)
    for partition in files:
        for file in partition.everything:
            name = parse_data_file_name(file.path.rpartition("/")[2])
            if isinstance(name, LogFileName):
                logs[partition.partition, name.file_id, name.instant].append((file.path, file.size_bytes))
    found = []
    for step in steps:
        names = (parse_data_file_name(path.rpartition("/")[2]) for path in step.paths)
        slices = {(step.partition, name.file_id, name.instant) for name in names if name is not None}
        more = [(path, size) for key in sorted(slices) for path, size in logs[key] if path not in step.paths]
        paths, size = (*step.paths, *(path for path, _ in more)), step.size_bytes + sum(size for _, size in more)
        found.append(replace(step, paths=paths, size_bytes=size))
    return tuple(found)


def touched_partitions(commits: Iterable[CommitMetadata], *, is_merge_on_read: bool) -> frozenset[str]:
    """Partitions in which these commits may have left older slices behind, or replaced whole groups.

    Inserts into new groups of copy-on-write tables leave nothing behind.
    """
    found: set[str] = set()
    for commit in commits:
        found.update(commit.partition_to_replace_file_ids or ())
        only_updates = not is_merge_on_read and commit.operation_type in _PLAIN_WRITES
        for partition, stat in commit.write_stats():
            if not only_updates or not stat.begins_group:
                found.add(partition)
    return frozenset(found)


def first_read(group: FileGroup, at: InstantTime) -> InstantTime:
    """Base instant of the slice that counted before a time; that time, when there was none yet."""
    return next((part.base_instant for part in group.slices if part.base_instant < at), at)


@dataclass(frozen=True, slots=True)
class _Keep:
    """The rules of one clean. `unseen`: a pending write may be reading what was there before that write."""

    view: View
    earliest: Instant | None
    options: CleanOptions
    protected: Protected
    unseen: InstantTime | None = None

    def is_gone(self, group_id: GroupId) -> bool:
        """Whether the group was replaced, and long enough ago for its files to go."""
        at = self.view.replaced.get(group_id)
        return at is not None and (self.earliest is None or at < self.earliest.requested)

    def steps(self, group: FileGroup, changes: Iterable[LogFile]) -> Iterator[PreviewStep]:
        """What goes of a group; `changes` are its change-data files."""
        along: dict[InstantTime, list[LogFile]] = defaultdict(list)
        for change in changes:
            along[self._owner(group, change)].append(change)
        for part, reason in self._doomed(group):
            written_along = along[part.base_instant]
            paths = (*part.paths, *(change.path for change in written_along))
            if paths and self.protected.saved.isdisjoint(paths):
                size = part.size_bytes + sum(change.size_bytes for change in written_along)
                yield PreviewStep(DELETE, group.partition, group.file_id, paths, size, reason)

    def _doomed(self, group: FileGroup) -> Iterator[tuple[FileSlice, str]]:
        """The slices of a group that go by age, and why."""
        replaced_at = self.view.replaced.get(group.group_id)
        if replaced_at is not None:
            if self.is_gone(group.group_id):
                yield from ((part, f"group replaced by {replaced_at}") for part in group.slices)
            return
        needed = self._first_needed(group)
        free = tuple(part for part in group.slices if needed is None or part.base_instant < needed)
        if self.earliest is None:
            kept = self.options.versions if needed is None else self.options.versions - 1
            read = None if self.unseen is None else first_read(group, self.unseen)
            past = (part for part in free[kept:] if read is None or part.base_instant < read)
            yield from ((part, f"not one of the newest {self.options.versions}") for part in past)
            return
        since = self.earliest.requested
        state = first_read(group, since)
        for part in free:
            if part is not group.slices[0] and part.base_instant < since and part.base_instant != state:
                yield part, f"older than the state at {since}"

    def _first_needed(self, group: FileGroup) -> InstantTime | None:
        """Base instant of the slice that a pending plan begins with; None when there is no plan."""
        at = self.protected.planned.get(group.group_id)
        if at is None:
            return None
        return first_read(group, at)

    def _owner(self, group: FileGroup, change: LogFile) -> InstantTime:
        """Base instant of the slice that a change-data file was written along with: the newest one that began before
        its write completed (was requested, where files are named by their slice); the oldest, when that one is gone.
        """
        timeline, written = self.view.timeline, change.name.instant
        completed = written
        if timeline.profile.log_naming.finds_slice_by_completion:
            completed = max(written, timeline.completion_of(written) or written)
        return next((part.base_instant for part in group.slices if part.base_instant <= completed), _oldest(group))


def _oldest(group: FileGroup) -> InstantTime:
    return group.slices[-1].base_instant


def _changes_by_group(files: PartitionFiles, view: View) -> dict[str, list[LogFile]]:
    """Change-data files of committed writes, by file id."""
    found: dict[str, list[LogFile]] = defaultdict(list)
    for change in files.changes:
        if view.timeline.is_committed(change.name.instant):
            found[change.name.file_id].append(change)
    return found


def _goes(files: PartitionFiles, groups: Iterable[FileGroup], keep: _Keep) -> bool:
    """Whether a partition goes as a whole."""
    if not files.partition or any(one.action in COMPLETED_WRITE_ACTIONS for one in keep.view.timeline.pending()):
        return False
    there = (*files.everything, *files.changes)
    ids = {*(file.name.file_id for file in there), *(group.file_id for group in groups)}
    paths = (file.path for file in there)
    return all(keep.is_gone((files.partition, one)) for one in ids) and keep.protected.saved.isdisjoint(paths)
