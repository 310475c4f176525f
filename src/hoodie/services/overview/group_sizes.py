"""The file groups of one partition, with what lies in each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hoodie.spec import InstantTime
from hoodie.view import FileGroup, View


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """What lies in one file group: the slice that is read, and versions that only time travel reads. `written` is the
    newest instant of a file of it, `compaction` the pending one that is about it.
    """

    file_id: str
    base_instant: InstantTime
    base_bytes: int
    log_files: int
    log_bytes: int
    old_versions: int
    old_bytes: int
    written: InstantTime
    compaction: InstantTime | None


def group_sizes(view: View, partition: str) -> Iterator[GroupSizes]:
    """The live file groups of a partition that is loaded, in the order of their ids."""
    read = {one.file_id: one for one in view.slices_at(partitions=(partition,))}
    groups: dict[str, FileGroup] = {one.file_id: one for one in view.groups if one.partition == partition}
    for file_id, one in read.items():
        group, mine = groups[file_id], set(one.paths)
        files = [file for part in group.slices for file in (*((part.base,) if part.base else ()), *part.logs)]
        old = [file for file in files if file.path not in mine]
        yield GroupSizes(
            file_id=file_id,
            base_instant=one.base_instant,
            base_bytes=one.base.size_bytes if one.base else 0,
            log_files=len(one.logs),
            log_bytes=sum(log.size_bytes for log in one.logs),
            old_versions=sum(not mine & set(part.paths) for part in group.slices if not part.is_empty),
            old_bytes=sum(file.size_bytes for file in old),
            written=max((one.base_instant, *(file.name.instant for file in files))),
            compaction=group.pending_compaction,
        )
