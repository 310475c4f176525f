"""The file slices of a table after an action, from those before it and what the action wrote.

1. A base file begins a new slice of its group; where a compaction wrote it, log files that were written since the
   compaction was planned are on top of it. A log file is on top of the slice before.
2. Groups that the action replaces have no slice any more.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection

from hoodie.metadata_writer.update import TableUpdate
from hoodie.spec import WriteStat, parse_base_file_name, parse_log_file_name
from hoodie.view import BaseFile, FileSlice, GroupId, LogFile, View


def slices_before(view: View, groups: Collection[GroupId]) -> dict[GroupId, FileSlice]:
    """The slices a snapshot reads of some groups, those that have one."""
    wanted = set(groups)
    partitions = {partition for partition, _ in wanted}
    return {part.group_id: part for part in view.slices_at(None, partitions) if part.group_id in wanted}


def slices_after(view: View, update: TableUpdate, partitions: Collection[str]) -> dict[GroupId, FileSlice]:
    """The slices a snapshot reads of the partitions after the action. `view` has them as they were before."""
    replaced = {(partition, file_id) for partition, ids in update.replaced.items() for file_id in ids}
    slices = {part.group_id: part for part in view.slices_at(None, partitions) if part.group_id not in replaced}
    for group_id, stats in stats_by_group(update).items():
        if group_id[0] in partitions:
            slices[group_id] = slice_after(view, update, group_id, stats, slices.get(group_id))
    return slices


def stats_by_group(update: TableUpdate) -> dict[GroupId, tuple[WriteStat, ...]]:
    """What was written by file group; statistics without a file are left out."""
    found: dict[GroupId, tuple[WriteStat, ...]] = {}
    for stat in update.stats:
        if stat.path is not None:
            group_id = stat.partition_path, stat.file_id
            found[group_id] = (*found.get(group_id, ()), stat)
    return found


def slice_after(
    view: View, update: TableUpdate, group_id: GroupId, stats: tuple[WriteStat, ...], before: FileSlice | None
) -> FileSlice:
    """The slice of one group after `stats` were written to it."""
    bases = [base_file_of(stat) for stat in stats if not stat.is_log]
    logs = tuple(log_file_of(stat) for stat in sorted(stats, key=lambda stat: stat.file_size_bytes) if stat.is_log)
    base = bases[-1] if bases else None
    if base is not None:
        return FileSlice(*group_id, base.name.instant, base, (*_logs_since(view, update, group_id), *logs))
    if before is None:
        return FileSlice(*group_id, logs[0].name.instant, None, logs)
    known = {log.path: log for log in before.logs}
    return before._replace(logs=tuple((known | {log.path: log for log in logs}).values()))


def base_file_of(stat: WriteStat) -> BaseFile:
    """The base file a statistic is about."""
    path = stat.path or ""
    name = parse_base_file_name(path.rpartition("/")[2])
    if name is None:
        raise ValueError(f"{path} is no name of a base file")
    return BaseFile(path, name, stat.file_size_bytes)


def log_file_of(stat: WriteStat) -> LogFile:
    """The log file a statistic is about."""
    path = stat.path or ""
    name = parse_log_file_name(path.rpartition("/")[2])
    if name is None:
        raise ValueError(f"{path} is no name of a log file")
    return LogFile(path, name, stat.file_size_bytes)


def _logs_since(view: View, update: TableUpdate, group_id: GroupId) -> tuple[LogFile, ...]:
    """Log files in the slice that a compaction, which is done now, had reserved."""
    for group in view.groups:
        if group.group_id == group_id and group.pending_compaction == update.instant and group.slices:
            newest = group.slices[0]
            return newest.logs if newest.base_instant == update.instant else ()
    return ()
