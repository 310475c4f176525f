"""Whether file groups of the metadata table hold what its delta commits and compactions wrote to them.

1. A log file that was emptied, cut off or overwritten looks like one that a dying writer left: nothing in it counts,
   and what it said would be missed in silence; so would be what a file said that is gone. What was committed stands in
   the delta commits and compactions.
2. They are read where there is reason: all since the slice's base file when a log file has a damaged block or none,
   else those without a log file (in version 6, where several append to one file, without a block) in the group; of the
   partition `files` these are none, as a rule. Initialisations are read for groups without a base file, unless later
   records stand in the place of all that they may have said.
3. Of what was archived nothing is known, and an index that was made again has no file that was written before: what its
   groups lack is told from their initialisation on. A file of version 6 may have more than its commits say, by writers
   that died.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hoodie.engine import Engine, TaskId
from hoodie.errors import Corrupt, Missing
from hoodie.metadata.damage import REBUILD
from hoodie.spec import (
    COMMIT,
    DELTA_COMMIT,
    INIT_INSTANT,
    NAMED_BY_SLICE,
    NAMED_BY_WRITE,
    BlockKind,
    Instant,
    InstantTime,
    LogBlock,
    LogNaming,
    parse_log_file_name,
)
from hoodie.spec.instant_time import INSTANT_DIGITS
from hoodie.storage import Storage
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.view import FileSlice, GroupId, placed_at


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
    """What was found in a slice, by the names of its log files. `outlived`: whatever its beginning said of the keys
    that were asked for, later records that were found count in its place.
    """

    part: FileSlice
    logs: Mapping[str, SeenLog]
    outlived: bool = False


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """What a commit says of a file: with its write the file has at least `size_bytes`."""

    partition: str
    file_id: str
    name: str
    size_bytes: int


Written = dict[InstantTime, Mapping[GroupId, Sequence[WrittenFile]]]
"""Files of commits that were looked up, by their groups."""


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
    """Checks that groups of the metadata table (its storage and timeline) have all that counts of its delta commits.
    `written` keeps what was looked up.

    Raises:
        Corrupt: a log file is shorter than it was, or lacks a block.
    """
    commits = [
        one
        for one in timeline.completed()
        if one.action == COMMIT or (one.action == DELTA_COMMIT and (_is_first(one.requested) or counts(one.requested)))
    ]
    asked = [(group, _reasons(group, commits, timeline)) for group in groups]
    wanted = {one.requested: one for _, reasons in asked for one in reasons if one.requested not in written}
    tasks = [_StatsTask(own, timeline, one) for one in wanted.values()]
    rule = _RULES[timeline.profile.log_naming]
    written.update(engine.run(_files_of, tasks, "read commits of the metadata table") if tasks else ())
    for group, reasons in asked:
        for commit in reasons:
            for file in written[commit.requested].get(group.part.group_id, ()):
                seen = group.logs.get(file.name)
                if seen is not None:
                    _ensure_held(seen, commit.requested, file)
                elif rule.must_have(group.part, commit, file.name, timeline) and not _is_elsewhere(own, file):
                    raise _damaged(file, f"is gone, though {commit.requested} committed it")


def _seen(size_bytes: int, blocks: Iterable[LogBlock]) -> SeenLog:
    sound = [block for block in blocks if block.kind is not BlockKind.CORRUPT]
    instants = frozenset(block.instant for block in sound if block.kind is not BlockKind.COMMAND)
    return SeenLog(size_bytes, sum(block.size_bytes for block in sound), instants)


def _reasons(group: SeenGroup, commits: Sequence[Instant], timeline: Timeline) -> list[Instant]:
    """The commits to look into."""
    part, rule = group.part, _RULES[timeline.profile.log_naming]
    later = rule.later(part, commits, timeline)
    if not any(log.is_suspect for log in group.logs.values()):
        there = rule.writers(group)
        later = [one for one in later if one.requested not in there]
    found = {one.requested: one for one in later if one.requested != part.base_instant}
    if part.base is None and not group.outlived:
        first = [one for one in commits if one.requested == part.base_instant]
        found |= {one.requested: one for one in (*rule.beginnings(part, commits), *first)}
    return list(found.values())


class _SliceRule(Protocol):
    """Which commits wrote to a slice, by how its log files are named."""

    def later(self, part: FileSlice, commits: Iterable[Instant], timeline: Timeline) -> list[Instant]:
        """The commits since the slice began."""
        ...

    def beginnings(self, part: FileSlice, commits: Iterable[Instant]) -> list[Instant]:
        """The initialisations that may have begun it under another instant than its own."""
        ...

    def writers(self, group: SeenGroup) -> frozenset[InstantTime]:
        """The commits that its log files are of."""
        ...

    def must_have(self, part: FileSlice, commit: Instant, name: str, timeline: Timeline) -> bool:
        """Whether a file that is not there must have been in the slice. Else it may be of the same group before its
        index was dropped and made again.
        """
        ...


class _NamedBySlice:
    def later(self, part: FileSlice, commits: Iterable[Instant], timeline: Timeline) -> list[Instant]:
        del timeline
        return [one for one in commits if one.requested > part.base_instant]

    def beginnings(self, part: FileSlice, commits: Iterable[Instant]) -> list[Instant]:
        del part, commits
        return []

    def writers(self, group: SeenGroup) -> frozenset[InstantTime]:
        return frozenset[InstantTime]().union(*(log.instants for log in group.logs.values()))

    def must_have(self, part: FileSlice, commit: Instant, name: str, timeline: Timeline) -> bool:
        del timeline
        log = parse_log_file_name(name)
        if log is not None:
            return log.instant == part.base_instant
        # Commits of version 8 and later, from before a downgrade, have shorter instants and come first.
        return commit.requested == part.base_instant or len(commit.requested) > INSTANT_DIGITS


class _NamedByWrite:
    def later(self, part: FileSlice, commits: Iterable[Instant], timeline: Timeline) -> list[Instant]:
        began = _began(part, timeline) or part.base_instant
        times = ((one, placed_at(one.requested, one.completed, began)) for one in commits)
        return [one for one, time in times if time > began and not _is_first(one.requested)]

    def beginnings(self, part: FileSlice, commits: Iterable[Instant]) -> list[Instant]:
        return [one for one in commits if _is_first(one.requested) and one.requested >= part.base_instant]

    def writers(self, group: SeenGroup) -> frozenset[InstantTime]:
        return frozenset(log.name.instant for log in group.part.logs)

    def must_have(self, part: FileSlice, commit: Instant, name: str, timeline: Timeline) -> bool:
        del commit, name
        return _began(part, timeline) is not None


_RULES: Mapping[LogNaming, _SliceRule] = {NAMED_BY_SLICE: _NamedBySlice(), NAMED_BY_WRITE: _NamedByWrite()}


def _is_first(instant: InstantTime) -> bool:
    return instant.startswith(INIT_INSTANT)


def _began(part: FileSlice, timeline: Timeline) -> InstantTime | None:
    """Since when what is committed to the group lies in its slice; None where its initialisation is archived."""
    if not _is_first(part.base_instant):
        return part.base_instant
    return next((one.completed for one in timeline.completed() if one.requested == part.base_instant), None)


def _is_elsewhere(own: Storage, file: WrittenFile) -> bool:
    """Whether a file that the slice lacks is there: then it belongs to the one before."""
    try:
        own.head(f"{file.partition}/{file.name}")
    except Missing:
        return False
    return True


def _ensure_held(seen: SeenLog, instant: InstantTime, file: WrittenFile) -> None:
    if seen.size_bytes < file.size_bytes:
        raise _damaged(file, f"has {seen.size_bytes} bytes of the {file.size_bytes} that were committed")
    if seen.sound_bytes < file.size_bytes or (file.size_bytes and instant not in seen.instants):
        raise _damaged(file, f"is damaged: it lacks what the commit {instant} wrote")


def _damaged(file: WrittenFile, what: str) -> Corrupt:
    path = f"{file.partition}/{file.name}"
    return Corrupt(f"File {path} {what}", remedy=REBUILD, path=path)


@dataclass(frozen=True, slots=True)
class _StatsTask:
    own: Storage
    timeline: Timeline
    instant: Instant


def _files_of(_: TaskId, task: _StatsTask) -> tuple[InstantTime, dict[GroupId, list[WrittenFile]]]:
    metadata = load_commit_metadata(task.own, task.timeline.profile, task.instant)
    found: dict[GroupId, list[WrittenFile]] = defaultdict(list)
    for partition, stat in metadata.write_stats():
        if stat.path:
            file = WrittenFile(partition, stat.file_id or "", stat.path.rpartition("/")[2], stat.file_size_bytes)
            found[partition, file.file_id].append(file)
    return task.instant.requested, dict(found)
