"""Where the log file of a write stands: its name's instant and version, and what its write stat says of the slice.

1. Base instant naming (versions before 8): the name carries the base instant of the slice, or the instant of the
   compaction that is pending for its group. The version is the next one after all log files of that instant, whether
   what they hold is committed or not.
2. Naming by writer (8 and later): the name carries the writing instant and the version starts at 1. Stats say nothing
   of the slice, which is only known when the write has completed.
3. A write that starts a file group in a log file is itself the base instant of the slice.

Pure. Grammar: `docs/format/file-names.md`; which slice a file then belongs to: `docs/format/file-slices.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hoodie.spec import NAMED_BY_SLICE, NAMED_BY_WRITE, InstantTime, LogFileName, LogNaming, WriteStat, path_in
from hoodie.view import FileSlice, GroupId, View

Compactions = Mapping[GroupId, InstantTime]
"""The pending compaction of each file group that has one."""


@dataclass(frozen=True, slots=True)
class LogPlace:
    """`instant` and `version` of the first log file's name. `prev_commit`, `base_file` and `log_files` (newest first)
    are what its stat says of the slice; `base_instant` is that of the base file whose rows positions count, None where
    there is no base file.
    """

    file_id: str
    instant: InstantTime
    version: int
    prev_commit: InstantTime
    base_file: str = ""
    log_files: tuple[str, ...] = ()
    base_instant: InstantTime | None = None

    def stat(self, partition: str, names: Sequence[str], size_bytes: int) -> WriteStat:
        """What is so of every log file: of the last of `names`, the files that one task has written here."""
        return WriteStat(
            file_id=self.file_id,
            path=path_in(partition, names[-1]),
            prev_commit=self.prev_commit,
            total_write_bytes=size_bytes,
            file_size_bytes=size_bytes,
            partition_path=partition,
            log_version=self.version + len(names) - 1,
            log_offset=0,
            base_file=self.base_file,
            log_files=(*self.log_files, *names),
        )


def pending_compactions(view: View) -> Compactions:
    """The file groups in `view` that a compaction is planned for."""
    return {group.group_id: group.pending_compaction for group in view.groups if group.pending_compaction is not None}


def new_group_place(file_id: str, instant: InstantTime) -> LogPlace:
    """The place of the log file that starts a file group: the same under both ways of naming."""
    return LogPlace(file_id, instant, 1, instant)


def log_place(
    naming: LogNaming,
    one: FileSlice,
    instant: InstantTime,
    compaction: InstantTime | None,
    *,
    logs_changes: bool = False,
) -> LogPlace:
    """The place of a log file that the write `instant` adds to the slice `one`, as a snapshot sees it.

    `compaction` is the pending compaction of the file group, if there is one. In a table that logs changes the stat
    describes the slice in every version: change queries read from there what the log file was written on.
    """
    return _PLACES[naming](one, instant, compaction, logs_changes)


def _next_of_slice(
    one: FileSlice, instant: InstantTime, compaction: InstantTime | None, logs_changes: bool
) -> LogPlace:
    del logs_changes
    joined = compaction or one.base_instant
    before = [log.name for log in one.logs if log.name.instant == joined]
    named, version = NAMED_BY_SLICE.instant_and_version(joined, instant, [name.version for name in before])
    place = LogPlace(one.file_id, named, version, joined, log_files=_newest_first(before), base_instant=_base_of(one))
    return place if one.base is None or compaction else replace(place, base_file=one.base.name.text)


def _first_of_write(
    one: FileSlice, instant: InstantTime, compaction: InstantTime | None, logs_changes: bool
) -> LogPlace:
    del compaction
    named, version = NAMED_BY_WRITE.instant_and_version(one.base_instant, instant, ())
    place = LogPlace(one.file_id, named, version, instant, base_instant=_base_of(one))
    if not logs_changes:
        return place
    base_file = "" if one.base is None else one.base.name.text
    log_files = _newest_first(log.name for log in one.logs)
    return replace(place, prev_commit=one.base_instant, base_file=base_file, log_files=log_files)


_PLACES = {NAMED_BY_SLICE: _next_of_slice, NAMED_BY_WRITE: _first_of_write}


def _base_of(one: FileSlice) -> InstantTime | None:
    return None if one.base is None else one.base.name.instant


def _newest_first(names: Iterable[LogFileName]) -> tuple[str, ...]:
    return tuple(name.text for name in sorted(names, key=lambda name: name.order, reverse=True))
