"""Whether file groups of the metadata table hold what its delta commits wrote to them.

1. A log file that was emptied, cut off or overwritten looks like one that a dying writer left: nothing in it counts,
   and what it said would be missed in silence. What was committed stands in the delta commits.
2. They are read where there is reason: all since the slice's base file when a log file has a damaged block or none. In
   version 6, where several append to one file, also those without a block in the group (of the partition `files` none,
   as a rule). Initialisations write base files.
3. Of archived delta commits nothing is known, and files that are gone are not missed: an index that was made again has
   none of those that delta commits wrote before. A file of version 6 may have more than its commits say, by writers
   that died.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hoodie.engine import Engine, TaskId
from hoodie.errors import Corrupt
from hoodie.metadata.damage import REBUILD
from hoodie.spec import (
    DELTA_COMMIT,
    INIT_INSTANT,
    BlockKind,
    Instant,
    InstantTime,
    LogBlock,
    LogFileName,
    parse_log_file_name,
)
from hoodie.storage import Storage
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.view import FileSlice


@dataclass(frozen=True, slots=True)
class SeenLog:
    """What was found in a log file: its size, bytes of sound blocks and the instants that wrote them."""

    size_bytes: int
    sound_bytes: int
    instants: frozenset[InstantTime]

    @property
    def is_suspect(self) -> bool:
        """Whether some of it is no sound block."""
        return self.sound_bytes < self.size_bytes or not self.sound_bytes


@dataclass(frozen=True, slots=True)
class SeenGroup:
    """What was found in a slice, by the names of its log files."""

    part: FileSlice
    logs: Mapping[str, SeenLog]


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """What a delta commit says of a log file: with its write the file has at least `size_bytes`."""

    partition: str
    name: LogFileName
    size_bytes: int


Written = dict[InstantTime, tuple[WrittenLog, ...]]
"""Log files of delta commits that were looked up."""


def seen_group(part: FileSlice, blocks: Mapping[str, Iterable[LogBlock]]) -> SeenGroup:
    """What was found in a slice, from the blocks of its log files by path."""
    return SeenGroup(part, {log.name.text: _seen(log.size_bytes, blocks[log.path]) for log in part.logs})


def ensure_whole(  # noqa: PLR0917
    own: Storage,
    timeline: Timeline,
    counts: Callable[[InstantTime], bool],
    groups: Sequence[SeenGroup],
    written: Written,
    engine: Engine,
) -> None:
    """Nothing, when groups of the metadata table (its storage and timeline) have all that counts of its delta commits.
    `written` keeps what was looked up.

    Raises:
        Corrupt: a log file is shorter than it was, or lacks a block.
    """
    commits = [
        one
        for one in timeline.completed()
        if one.action == DELTA_COMMIT and not one.requested.startswith(INIT_INSTANT) and counts(one.requested)
    ]
    asked = [(group, _reasons(group, commits, timeline)) for group in groups]
    wanted = {one.requested: one for _, reasons in asked for one in reasons if one.requested not in written}
    tasks = [_StatsTask(own, timeline, one) for one in wanted.values()]
    written.update(engine.run(_log_stats, tasks, "read commits of the metadata table") if tasks else ())
    for group, reasons in asked:
        for commit in reasons:
            for log in written[commit.requested]:
                if (log.partition, log.name.file_id) == group.part.group_id:
                    _ensure_there(group, commit.requested, log)


def _seen(size_bytes: int, blocks: Iterable[LogBlock]) -> SeenLog:
    sound = [block for block in blocks if block.kind is not BlockKind.CORRUPT]
    instants = frozenset(block.instant for block in sound if block.kind is not BlockKind.COMMAND)
    return SeenLog(size_bytes, sum(block.size_bytes for block in sound), instants)


def _reasons(group: SeenGroup, commits: Sequence[Instant], timeline: Timeline) -> list[Instant]:
    """The delta commits to look into."""
    part = group.part
    by_completion = timeline.profile.slicing == "completion"
    since = [
        one
        for one in commits
        if ((one.completed or "") if by_completion else one.requested) > part.base_instant
        or (part.base is None and one.requested == part.base_instant)
    ]
    if any(log.is_suspect for log in group.logs.values()):
        return since
    if by_completion:
        return []
    there = frozenset[InstantTime]().union(*(log.instants for log in group.logs.values()))
    return [one for one in since if one.requested not in there]


def _ensure_there(group: SeenGroup, instant: InstantTime, log: WrittenLog) -> None:
    seen = group.logs.get(log.name.text)
    if seen is None:  # dropped with its partition, which was made again since
        return
    if seen.size_bytes < log.size_bytes:
        what = f"has {seen.size_bytes} bytes of the {log.size_bytes} that were committed"
    elif seen.sound_bytes < log.size_bytes or (log.size_bytes and instant not in seen.instants):
        what = f"is damaged: it lacks what the commit {instant} wrote"
    else:
        return
    path = f"{log.partition}/{log.name.text}"
    raise Corrupt(f"Log file {path} {what}", remedy=REBUILD, path=path)


@dataclass(frozen=True, slots=True)
class _StatsTask:
    own: Storage
    timeline: Timeline
    instant: Instant


def _log_stats(_: TaskId, task: _StatsTask) -> tuple[InstantTime, tuple[WrittenLog, ...]]:
    metadata = load_commit_metadata(task.own, task.timeline.profile, task.instant)
    named = (
        (partition, parse_log_file_name(stat.path.rpartition("/")[2]), stat.file_size_bytes)
        for partition, stat in metadata.write_stats()
        if stat.is_log and stat.path
    )
    return task.instant.requested, tuple(
        WrittenLog(partition, name, size) for partition, name, size in named if name is not None
    )
