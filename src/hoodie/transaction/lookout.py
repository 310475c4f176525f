"""Whether another writer is about to write a file group, as its markers tell, before a file of it is begun.

1. Every writer announces its files by markers, of whatever kind, Hudi's writers too. Those of a write count while it is
   pending, gives signs of life (`heartbeat`), and is no plan: what a plan sets aside is everybody's to see.
2. Only writes that began earlier count: of two that look at each other the one that began later gives way, so one goes
   on. It is the order of requested times.
3. Who asks for it is also told of a commit that completed since its write was planned.
4. It spares work that would be lost, and promises nothing: two may look before either has announced. Every commit looks
   again (`overlaps`).

Calls: one listing where nobody else writes; a few for each other writer otherwise. Workers use it, so it is a value.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from hoodie.errors import Corrupt, Missing
from hoodie.spec import (
    CLUSTERING,
    COMPACTION,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    InstantTime,
    LogFileName,
    MarkerKind,
    is_marker_list,
    marker_dir,
    parse_data_file_name,
    parse_marker,
    parse_marker_list,
)
from hoodie.spec.keys import TEMP_DIR
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.storage import FileInfo, Storage
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.transaction.heartbeat import DEFAULT_RULE, HeartbeatRule, is_expired, load_beater
from hoodie.transaction.moves import Mine, Move, completed_move
from hoodie.transaction.overlaps import bucket_of, conflict_of
from hoodie.transaction.write_conflict import REPEAT_THE_WRITE, WriteConflict, told
from hoodie.view import GroupId

log = logging.getLogger(__name__)

_KEPT: Final = 256
_APART: Final = frozenset({COMPACTION, LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT})
"""Actions that write to file groups of their own, or to those that a plan has set aside."""


class EarlyConflict(WriteConflict):
    """A `WriteConflict` that was seen before the file was begun. While the other write goes on, a new try meets it."""


@dataclass(frozen=True, slots=True)
class KnownCommits:
    """What had completed when a write was planned: all up to the requested time `until`, but `unfinished`."""

    until: InstantTime | None
    unfinished: frozenset[InstantTime]

    @classmethod
    def of(cls, timeline: Timeline) -> KnownCommits:
        """Those of a timeline."""
        return cls(timeline.last_time(), frozenset(one.requested for one in timeline.pending()))

    def knows(self, requested: InstantTime) -> bool:
        """Whether this write had completed."""
        return self.until is not None and requested <= self.until and requested not in self.unfinished


@dataclass(frozen=True, slots=True)
class Lookout:
    """Looks around for the write `instant` of a table. `known`: commits that do not matter; None: none does.
    `by_bucket`: file groups of one bucket are one.
    """

    handle: TableHandle
    instant: InstantTime
    operation: str = ""
    rule: HeartbeatRule = DEFAULT_RULE
    by_bucket: bool = False
    known: KnownCommits | None = None

    @property
    def wishes(self) -> tuple[tuple[str, str], ...]:
        """What tells a timeline server to look around before it makes a marker: Hudi's parameter, and one of ours."""
        more = (("bybucket", "true"),) if self.by_bucket else ()
        return (("basepath", self.handle.storage.absolute("")), *more)

    def ensure_free(self, data_path: str) -> None:
        """Checks that nobody else is about to write the file group of a data file, or has meanwhile.

        Raises:
            EarlyConflict: another is, or has.
        """
        group = group_of(data_path)
        if group is not None and (other := self.at_work(group)) is not None:
            raise _conflict(self, group, other)
        self.ensure_unmoved(data_path)

    def ensure_unmoved(self, data_path: str) -> None:
        """Checks that nobody has written the file group of a data file meanwhile, where that is asked for.

        Raises:
            EarlyConflict: another has.
        """
        group = group_of(data_path)
        if group is not None and (other := self._moved(group, only_logs=is_log(data_path))) is not None:
            raise _conflict(self, group, other)

    def at_work(self, group: GroupId) -> Move | None:
        """The write that began before this one and is about to write the group."""
        handle = self.handle
        if not (found := [one for one in self._earlier_writes() if self._announces(one, group)]):
            return None
        pending = (one for one in timeline_of(handle).pending() if one.action not in _APART)
        other = next((one for one in pending if one.requested in found), None)
        if other is None:
            return None
        owner = load_beater(handle.storage, other.requested)
        return Move(other, frozenset({group}), "" if owner is None else owner.operation.upper(), owner)

    def _moved(self, group: GroupId, *, only_logs: bool) -> Move | None:
        if self.known is None:
            return None
        handle = self.handle
        by_completion = handle.profile.log_naming.finds_slice_by_completion
        mine = Mine(frozenset({group}), only_logs=only_logs, finds_slice_by_completion=by_completion)
        for one in timeline_of(handle).completed_writes():
            if one.requested == self.instant or self.known.knows(one.requested):
                continue
            done = completed_move(one, load_commit_metadata(handle.storage, handle.profile, one))
            if conflict_of(mine, done, by_bucket=self.by_bucket):
                return done
        return None

    def _earlier_writes(self) -> list[InstantTime]:
        """Writes that have announced files, began before this one and give signs of life; the oldest first."""
        handle = self.handle
        return [
            one
            for one in writes_with_markers(handle.storage)
            if one < self.instant and not is_expired(handle.storage, one, self.rule, handle.env)
        ]

    def _announces(self, other: InstantTime, group: GroupId) -> bool:
        announced = _announced(self.handle.storage, other, group[0])
        if self.by_bucket:
            return any(bucket_of(one) == bucket_of(group) for one in announced)
        return group in announced


def writes_with_markers(storage: Storage) -> list[InstantTime]:
    """Instants of the marker folders that are there, the oldest first. One listing."""
    folders = (path.rpartition("/")[2] for path in _listed(storage, TEMP_DIR)[1])
    return sorted(name for name in folders if name.isascii() and name.isdigit())


def group_of(data_path: str) -> GroupId | None:
    """The file group of a data file; None for another file."""
    partition, _, file_name = data_path.rpartition("/")
    name = parse_data_file_name(file_name)
    return None if name is None else (partition, name.file_id)


def is_log(data_path: str) -> bool:
    """Whether it is a log file."""
    return isinstance(parse_data_file_name(data_path.rpartition("/")[2]), LogFileName)


def is_of_new_group(data_path: str, kind: MarkerKind, *, by_bucket: bool) -> bool:
    """Whether the file is the first one of a file group that nobody else can know: its id has just been drawn."""
    return kind is MarkerKind.CREATE and not by_bucket and not is_log(data_path)


def _announced(storage: Storage, instant: InstantTime, partition: str) -> Iterator[GroupId]:
    """File groups of a partition that a write has announced. One listing or two, one read for each list that grew."""
    folder = marker_dir(instant)
    files, _ = _listed(storage, folder)
    lists = [file for file in files if is_marker_list(file.path.rpartition("/")[2])]
    direct = files if partition == "" else _listed(storage, f"{folder}/{partition}")[0]
    yield from _groups(file.path[len(folder) + 1 :] for file in direct)
    for file in lists:
        yield from (one for one in _groups_in_list(storage, file) if one[0] == partition)


def _groups(names: Iterable[str]) -> Iterator[GroupId]:
    for name in names:
        marker = parse_marker(name)
        group = None if marker is None else group_of(marker.data_path)
        if group is not None:
            yield group


_lists: OrderedDict[tuple[str, str], tuple[int, frozenset[GroupId]]] = OrderedDict()
_lock = threading.Lock()


def _groups_in_list(storage: Storage, file: FileInfo) -> Collection[GroupId]:
    """The file groups in a list of markers. Lists only grow, so one of the same length is the one that was read."""
    key = storage.uri, file.path
    with _lock:
        size, groups = _lists.get(key, (-1, frozenset()))
    if size == file.size_bytes:
        return groups
    try:
        data = storage.read(file.path)
        markers = parse_marker_list(data, file.path)
    except Missing:  # the write has ended
        return ()
    except Corrupt as damage:  # its own writer, or who rolls it back, has to do with it
        log.warning("not looked at for conflicts: %s", damage.cause)
        return ()
    groups = frozenset(one for one in (group_of(marker.data_path) for marker in markers) if one is not None)
    with _lock:
        _lists[key] = len(data), groups
        _lists.move_to_end(key)
        while len(_lists) > _KEPT:
            _lists.popitem(last=False)
    return groups


def _listed(storage: Storage, folder: str) -> tuple[tuple[FileInfo, ...], tuple[str, ...]]:
    """Files and folders in a folder, which may not be there."""
    try:
        found = storage.list_dir(folder)
    except Missing:
        return (), ()
    return found.files, found.dirs


def _conflict(mine: Lookout, group: GroupId, other: Move) -> EarlyConflict:
    partition, file_id = group
    what = f"The {mine.operation} {mine.instant}".replace("  ", " ")
    does = "has changed" if other.instant.is_completed else "is about to write"
    return EarlyConflict(
        f"{what} was stopped early: {told(other)} {does} the same file group ({file_id}, in {partition!r})",
        remedy=REPEAT_THE_WRITE,
        instant=mine.instant,
        operation=mine.operation,
        other=other.instant.requested,
        other_operation=other.operation,
        owner=other.owner,
        groups=(group,),
        partitions=(partition,),
        keys=(),
    )
