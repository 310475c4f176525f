"""What each question about the files of a table is answered with: pure, on file groups and what replaced them.

1. *Latest* leaves out groups that were replaced ever; *before or on* leaves out those replaced by then. All times are
   requested times.
2. Only committed slices are there, and the one that a pending compaction reserves: it has no base file, and log files
   written since the compaction was planned.
3. Log files are not cut at a time: who asks for a slice as of an earlier instant gets all its log files, as of Hudi.
4. Groups come ordered by partition and file id.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from hoodie.spec import InstantTime
from hoodie.view import BaseFile, FileGroup, FileSlice, Replaced

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Groups:
    """File groups of some partitions, and when which of all groups were replaced."""

    found: tuple[FileGroup, ...]
    replaced: Replaced

    def live(self) -> Iterator[FileGroup]:
        """Groups that were never replaced."""
        return (group for group in self.found if group.group_id not in self.replaced)

    def live_at(self, until: InstantTime) -> Iterator[FileGroup]:
        """Groups that were not replaced until then."""
        return (group for group in self.found if not self._is_replaced(group, lambda at: at <= until))

    def replaced_when(self, asked: Callable[[InstantTime], bool]) -> Iterator[FileGroup]:
        """Groups that were replaced at a time that is asked for."""
        return (group for group in self.found if self._is_replaced(group, asked))

    def _is_replaced(self, group: FileGroup, asked: Callable[[InstantTime], bool]) -> bool:
        at = self.replaced.get(group.group_id)
        return at is not None and asked(at)


def latest_base_files(groups: Groups) -> Iterator[BaseFile]:
    """The newest base file of each live group."""
    return _firsts(_bases(group) for group in groups.live())


def base_files_until(groups: Groups, until: InstantTime) -> Iterator[BaseFile]:
    """The newest base file of each group that was written until then."""
    return _firsts((base for base in _bases(group) if base.name.instant <= until) for group in groups.live_at(until))


def base_files_at(groups: Groups, instant: InstantTime) -> Iterator[BaseFile]:
    """The base file of each group that this very instant wrote."""
    return _firsts(
        (base for base in _bases(group) if base.name.instant == instant) for group in groups.live_at(instant)
    )


def base_files_in(groups: Groups, instants: Collection[InstantTime]) -> Iterator[BaseFile]:
    """The newest base file of each group that one of the instants wrote."""
    found = (group for group in groups.found if not _is_replaced_by_any(groups, group, instants))
    return _firsts((base for base in _bases(group) if base.name.instant in instants) for group in found)


def all_base_files(groups: Groups) -> Iterator[BaseFile]:
    """Every base file of each live group, newest first."""
    return (base for group in groups.live() for base in _bases(group))


def latest_slices(groups: Groups) -> Iterator[FileSlice]:
    """The newest slice of each live group: while a compaction is pending, the one it reserves."""
    return _firsts(group.slices for group in groups.live())


def newest_slices(groups: Groups) -> Iterator[FileSlice]:
    """The newest slice of each group, replaced or not."""
    return _firsts(group.slices for group in groups.found)


def latest_uncompacted_slices(groups: Groups) -> Iterator[FileSlice]:
    """The newest slice of each live group that no pending compaction reserves."""
    return _firsts((part for part in group.slices if not _is_reserved(group, part)) for group in groups.live())


def slices_until(groups: Groups, until: InstantTime, *, with_compactions: bool) -> Iterator[FileSlice]:
    """The newest slice of each group that began until then; groups with a pending compaction on demand."""
    found = (group for group in groups.live_at(until) if with_compactions or group.pending_compaction is None)
    return _firsts((part for part in group.slices if part.base_instant <= until) for group in found)


def merged_slices_until(groups: Groups, until: InstantTime) -> Iterator[FileSlice]:
    """The same, with the slice a pending compaction reserves and the one before it as one."""
    for group in groups.live_at(until):
        parts = [part for part in group.slices if part.base_instant <= until]
        if len(parts) > 1 and _is_reserved(group, parts[0]):
            yield parts[1]._replace(logs=parts[1].logs + parts[0].logs)
        else:
            yield from parts[:1]


def slices_in(groups: Groups, instants: Collection[InstantTime]) -> Iterator[FileSlice]:
    """The newest slice of each group that began at one of the instants."""
    found = (group for group in groups.found if not _is_replaced_by_any(groups, group, instants))
    return _firsts((part for part in group.slices if part.base_instant in instants) for group in found)


def all_slices(groups: Groups) -> Iterator[FileSlice]:
    """Every slice of each live group, newest first."""
    return (part for group in groups.live() for part in group.slices)


def _is_reserved(group: FileGroup, part: FileSlice) -> bool:
    return part.base_instant == group.pending_compaction


def _is_replaced_by_any(groups: Groups, group: FileGroup, instants: Collection[InstantTime]) -> bool:
    at = groups.replaced.get(group.group_id)
    return at is not None and any(at <= instant for instant in instants)


def _bases(group: FileGroup) -> Iterator[BaseFile]:
    return (part.base for part in group.slices if part.base is not None)


def _firsts(many: Iterable[Iterable[Found]]) -> Iterator[Found]:
    """The first of each, where there is one."""
    return (one for some in many for one in list(some)[:1])
