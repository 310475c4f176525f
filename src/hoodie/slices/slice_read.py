"""What is read as one piece of work: a file slice, or the changes one commit made to one file.

1. Values only: they print well, travel to workers and know nothing but names, sizes and times.
2. A *plain* slice is one base file whose rows are all there is to it: any parquet reader may read it. Other slices have
   log files to merge, or a source file beside a bootstrap skeleton.
3. Which blocks of log files count is decided by `BlockChoice`, the same for all slices of a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from hoodie.slices.bootstrap import BootstrapSource
from hoodie.spec import InstantTime
from hoodie.view import BaseFile, LogFile


@dataclass(frozen=True, slots=True)
class SliceRead:
    """One file slice: at most one base file, log files oldest first, and the values of partition columns its path
    gives (column, Python value). `source` has the other half of a bootstrap skeleton. `whole` is the slice at the end
    of an incremental query's range, where this one has only the files of the range: what to read when their rows lack
    columns.
    """

    partition: str
    base: BaseFile | None
    logs: tuple[LogFile, ...] = ()
    partition_values: tuple[tuple[str, Any], ...] = ()
    source: BootstrapSource | None = None
    whole: SliceRead | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the base file alone has all rows."""
        return self.base is not None and not self.logs and self.source is None

    @property
    def path(self) -> str:
        """The base file of a plain slice; empty text where more than one file has to be read."""
        return self.base.path if self.base is not None and self.is_plain else ""

    @property
    def instant(self) -> InstantTime:
        """The instant of its base file, else that in the name of its oldest log file."""
        return self.base.name.instant if self.base is not None else self.logs[0].name.instant

    @property
    def file_id(self) -> str:
        """The file group it belongs to."""
        return self.base.name.file_id if self.base is not None else self.logs[0].name.file_id

    @property
    def size_bytes(self) -> int:
        """Bytes of all its files in the table."""
        return (self.base.size_bytes if self.base is not None else 0) + sum(log.size_bytes for log in self.logs)

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of its files: the base file, then log files."""
        return (*(() if self.base is None else (self.base.path,)), *(log.path for log in self.logs))


class ChangeKind(Enum):
    """Where the changes of one commit to one file are found.

    LOGGED: in change files. INSERTED: every row of the base file is new. DELETED, REPLACED: every row of the slice
    before is gone. MERGED: in the difference a log file makes.
    """

    LOGGED = "as is"
    INSERTED = "base file insert"
    DELETED = "base file delete"
    MERGED = "log file"
    REPLACED = "replace commit"


@dataclass(frozen=True, slots=True)
class ChangeRead:
    """The changes that the commit requested at `instant` made to one file. `changes` are change files (path, bytes);
    `before` and `after` are what the file's slice was, where images have to be taken from there.
    """

    kind: ChangeKind
    instant: InstantTime
    partition: str
    changes: tuple[tuple[str, int], ...] = ()
    before: SliceRead | None = None
    after: SliceRead | None = None
    partition_values: tuple[tuple[str, Any], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Never: rows of changes are no rows of a file."""
        return False

    @property
    def path(self) -> str:
        """Empty text: more than a base file is read."""
        return ""

    @property
    def size_bytes(self) -> int:
        """Bytes of all files that are read for it."""
        slices = sum(part.size_bytes for part in (self.before, self.after) if part is not None)
        return slices + sum(size for _, size in self.changes)


FileRead = SliceRead | ChangeRead
"""One piece of a plan."""


def slices_of(file: FileRead) -> tuple[SliceRead, ...]:
    """Every slice a piece of a plan may read."""
    if isinstance(file, ChangeRead):
        return tuple(part for part in (file.before, file.after) if part is not None)
    return (file,) if file.whole is None else (file, file.whole)


def logs_of(files: Iterable[FileRead]) -> dict[str, LogFile]:
    """The log files that pieces of a plan read, by path."""
    return {log.path: log for file in files for part in slices_of(file) for log in part.logs}


def with_log_files(file: FileRead, known: Mapping[str, LogFile]) -> FileRead:
    """The same piece with other facts about its log files, `known` by path."""
    if isinstance(file, ChangeRead):
        before, after = (None if part is None else _with_logs(part, known) for part in (file.before, file.after))
        return replace(file, before=before, after=after)
    return _with_logs(file, known)


def _with_logs(part: SliceRead, known: Mapping[str, LogFile]) -> SliceRead:
    logs = tuple(known.get(log.path, log) for log in part.logs)
    return replace(part, logs=logs, whole=None if part.whole is None else _with_logs(part.whole, known))


@dataclass(frozen=True, slots=True)
class BlockChoice:
    """Which blocks of log files count, by the instant that wrote them.

    `completed` has the completed writes of the active timeline, and of the history if that is known, and `start` where
    they begin, older ones being committed; None where file names already told committed blocks from others (version 8
    and later). `until` leaves out what was requested later.
    """

    completed: frozenset[InstantTime] | None = None
    start: InstantTime | None = None
    until: InstantTime | None = None

    def counts(self, instant: InstantTime) -> bool:
        """Whether the write requested then is committed."""
        if self.completed is None or instant in self.completed:
            return True
        return self.start is not None and instant < self.start
