"""The files of a table as nouns: base file, log file, file slice, file group.

1. A file group is all files with one file id in one partition; its slices are ordered newest first.
2. A slice is what one base instant made: at most one base file, and the log files written on top of it, oldest first.
3. `base_instant` is the base file's instant, or the first delta commit of a slice that has log files only.
4. Paths are relative to the table and include the partition.

All but log files, of which some fields do not count where they are compared, are named tuples: a table has a hundred
thousand of each, and a frozen data class takes three times as long to make.

These values do not know which of them a reader may see: `slicing` builds groups from the files that count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from hoodie.spec import BaseFileName, InstantTime, LogFileName

GroupId = tuple[str, str]
"""(partition, file id): what names a file group in a table."""


class BaseFile(NamedTuple):
    """One base file and what its name says."""

    path: str
    name: BaseFileName
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file and what its name says. At least `committed_bytes` of it are those of committed writes; 0 where
    nobody has asked.
    """

    path: str
    name: LogFileName
    size_bytes: int
    committed_bytes: int = field(default=0, compare=False)


class FileSlice(NamedTuple):
    """One version of a file group."""

    partition: str
    file_id: str
    base_instant: InstantTime
    base: BaseFile | None
    logs: tuple[LogFile, ...] = ()

    @property
    def group_id(self) -> GroupId:
        return self.partition, self.file_id

    @property
    def is_empty(self) -> bool:
        """True when nothing was written to it yet: what a pending compaction reserves."""
        return self.base is None and not self.logs

    @property
    def size_bytes(self) -> int:
        """Bytes of all its files."""
        return (self.base.size_bytes if self.base else 0) + sum(log.size_bytes for log in self.logs)

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of its files: the base file, then the log files."""
        return (*((self.base.path,) if self.base else ()), *(log.path for log in self.logs))


class FileGroup(NamedTuple):
    """All committed slices of one file id, newest first. `pending_compaction` is the instant of a compaction that is
    planned for the group and not completed; log files written since then sit in a slice of that base instant, which has
    no base file.
    """

    partition: str
    file_id: str
    slices: tuple[FileSlice, ...]
    pending_compaction: InstantTime | None = None

    @property
    def group_id(self) -> GroupId:
        return self.partition, self.file_id
