"""Which files belong together and which of them count: two rules, one per naming of log files.

A file counts when the instant that wrote it is committed. Files of failed or running writes lie in the same folders
under names of their own instants; nothing else keeps them out of a table.

1. Base files count when the instant in their name is committed. Of two with the same file id and instant (a retried
   task) the non-empty one wins, then the greater name.
2. A pending compaction at C reserves the slice C of its groups: log files written after it was planned go there. A base
   file at C is unfinished and does not count.
3. *Base instant* rule (versions before 8): a log file's name carries the base instant of its slice. What a log file
   *contains* may still be uncommitted: its reader decides block by block. A table that was downgraded from version 8 or
   later keeps log files whose names follow rule 4.
4. *Completion* rule (8 and later): a log file's name carries its own delta commit d. It counts when d is committed and
   belongs to the newest slice whose base instant is not after the completion of d. So a delta commit that was requested
   before a compaction and completed after it lands in the new slice.
5. Uncommitted files are left out *before* slices are built, so that no committed log file can get attached to a slice
   nobody sees.

Pure: takes names and facts, reads nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from hoodie.spec import NAMED_BY_SLICE, NAMED_BY_WRITE, InstantTime, LogNaming
from hoodie.view.file_slice import BaseFile, FileGroup, FileSlice, GroupId, LogFile
from hoodie.view.listing import PartitionFiles


class Commits(Protocol):
    """What slicing asks the timeline."""

    def is_committed(self, requested: InstantTime) -> bool:
        """Whether the write requested then is completed, in the active timeline or before its start."""
        ...

    def completion_of(self, requested: InstantTime) -> InstantTime | None:
        """When it completed; None when that is not known (not completed, or before the start)."""
        ...


PendingCompactions = Mapping[GroupId, InstantTime]
PlacingRule = Callable[[InstantTime, Collection[InstantTime], Commits], InstantTime | None]
"""From the instant in a log file's name and the base instants of its group to that of its slice; None: it has none."""
SlicingRule = Callable[[PartitionFiles, Commits, PendingCompactions], tuple[FileGroup, ...]]


def _sliced(
    place: PlacingRule, files: PartitionFiles, commits: Commits, compactions: PendingCompactions
) -> tuple[FileGroup, ...]:
    """File groups of a partition by a rule, ordered by file id; groups without a committed slice are absent."""
    if not files.logs and not compactions:
        return _groups_of_bases(files, commits)
    slots = _slots(files, commits, compactions)
    for log in sorted(files.logs, key=_log_order):
        group = slots[log.name.file_id]
        base_instant = place(log.name.instant, group, commits)
        if base_instant is not None:
            group[base_instant].logs.append(log)
    return _groups(files.partition, slots, commits, compactions)


def _by_base_instant(instant: InstantTime, group: Collection[InstantTime], commits: Commits) -> InstantTime | None:
    """The base instant rule: a log file names its slice."""
    if instant not in group and commits.is_committed(instant) and any(base < instant for base in group):
        # Nobody writes a slice without a base file over one that has it: the name is one of version 8 and later.
        return _base_at(group, commits.completion_of(instant) or instant, instant)
    return instant


def _by_completion(written: InstantTime, group: Collection[InstantTime], commits: Commits) -> InstantTime | None:
    """The completion rule: a log file names its write, which goes to the slice that was there when it completed."""
    if not commits.is_committed(written):
        return None
    time = placed_at(written, commits.completion_of(written), next(iter(group), written))
    return _base_at(group, time, written)


SLICING_RULES: Mapping[LogNaming, SlicingRule] = {
    NAMED_BY_SLICE: partial(_sliced, _by_base_instant),
    NAMED_BY_WRITE: partial(_sliced, _by_completion),
}
"""Rules by how log files are named (`FormatProfile.log_naming`)."""


def placed_at(requested: InstantTime, completed: InstantTime | None, base_instant: InstantTime) -> InstantTime:
    """The time by which log files of a delta commit are placed among slices with such base instants.

    Instants of another length (initialising commits) have no comparable completion time; neither have archived ones
    whose completion nobody looked up. Both count as completed when they were requested.
    """
    return completed if completed and len(completed) == len(base_instant) else requested


@dataclass(slots=True)
class _Slot:
    base: BaseFile | None = None
    logs: list[LogFile] = field(default_factory=list)


_Slots = dict[str, defaultdict[InstantTime, _Slot]]


def _base_at(group: Iterable[InstantTime], completed: InstantTime, written: InstantTime) -> InstantTime:
    """The newest slice of a group that began before a delta commit completed; where there is none, its own."""
    return max((base for base in group if base <= completed), default=written)


def _slots(files: PartitionFiles, commits: Commits, compactions: PendingCompactions) -> _Slots:
    """Per file id, what each base instant has before log files are placed."""
    slots: _Slots = defaultdict(lambda: defaultdict(_Slot))
    for base in sorted(files.bases, key=_preference):
        pending = compactions.get((files.partition, base.name.file_id))
        if base.name.instant != pending and commits.is_committed(base.name.instant):
            slots[base.name.file_id][base.name.instant].base = base
    for partition, file_id in compactions:
        if partition == files.partition:
            slots[file_id][compactions[partition, file_id]].base = None
    return slots


def _log_order(log: LogFile) -> tuple[str, int, str, str]:
    return log.name.order


def _preference(base: BaseFile) -> tuple[bool, str]:
    return base.size_bytes > 0, base.path


def _groups_of_bases(files: PartitionFiles, commits: Commits) -> tuple[FileGroup, ...]:
    """The groups where there is nothing but base files: both rules give the same, in a fraction of the time."""
    found: dict[str, dict[InstantTime, BaseFile]] = {}
    committed: dict[InstantTime, bool] = {}
    for base in files.bases:
        instant = base.name.instant
        if instant not in committed:
            committed[instant] = commits.is_committed(instant)
        if committed[instant]:
            versions = found.setdefault(base.name.file_id, {})
            versions[instant] = max(versions[instant], base, key=_preference) if instant in versions else base
    return tuple(
        FileGroup(files.partition, file_id, _base_slices(files.partition, file_id, found[file_id]))
        for file_id in sorted(found)
    )


def _base_slices(partition: str, file_id: str, versions: Mapping[InstantTime, BaseFile]) -> tuple[FileSlice, ...]:
    """One slice of each version, newest first."""
    if len(versions) == 1:  # most groups of large tables
        ((instant, base),) = versions.items()
        return (FileSlice(partition, file_id, instant, base),)
    return tuple(FileSlice(partition, file_id, at, versions[at]) for at in sorted(versions, reverse=True))


def _groups(partition: str, slots: _Slots, commits: Commits, compactions: PendingCompactions) -> tuple[FileGroup, ...]:
    groups = (
        FileGroup(partition, file_id, _visible(partition, file_id, slots[file_id], commits, pending), pending)
        for file_id in sorted(slots)
        for pending in (compactions.get((partition, file_id)),)
    )
    return tuple(group for group in groups if any(not part.is_empty for part in group.slices))


def _visible(
    partition: str,
    file_id: str,
    slots: Mapping[InstantTime, _Slot],
    commits: Commits,
    pending: InstantTime | None,
) -> tuple[FileSlice, ...]:
    instants: Iterable[InstantTime] = sorted(slots, reverse=True)
    return tuple(
        FileSlice(partition, file_id, instant, slots[instant].base, tuple(slots[instant].logs))
        for instant in instants
        if instant == pending or commits.is_committed(instant)
    )
