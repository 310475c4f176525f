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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hoodie.spec import InstantTime, LogNaming, WriteStat, path_in
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
    base_instant = None if one.base is None else one.base.name.instant
    by_completion = naming.finds_slice_by_completion
    joined = one.base_instant if by_completion else compaction or one.base_instant
    before = [log.name for log in one.logs if by_completion or log.name.instant == joined]
    named, version = naming.instant_and_version(joined, instant, [name.version for name in before])
    if by_completion and not logs_changes:
        return LogPlace(one.file_id, named, version, instant, base_instant=base_instant)
    base = one.base if by_completion or compaction is None else None
    return LogPlace(
        file_id=one.file_id,
        instant=named,
        version=version,
        prev_commit=joined,
        base_file="" if base is None else base.name.text,
        log_files=tuple(name.text for name in sorted(before, key=lambda name: name.order, reverse=True)),
        base_instant=base_instant,
    )
