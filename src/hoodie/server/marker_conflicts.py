"""Whether a writer is about to write a file group that another one has announced: what a service looks at for those
whose markers it writes.

1. Who wants it says so with each marker, as Hudi's writers do by `basepath`. Who does not is seen by others, too.
2. It knows which file groups it was asked to make markers of, and which are announced on storage, by whatever kind of
   markers: it looks there before the first marker of a table, and then once in a period while markers are asked for.
3. What is suspect is looked at once more before anybody is told (`hoodie.transaction.lookout`): the marker on storage,
   the other's heartbeat, the timeline. Where a look fails the marker is made, as by Hudi: every commit looks, too.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from hoodie.config import Config
from hoodie.env import Env
from hoodie.errors import HudiError, Invalid
from hoodie.spec import InstantTime
from hoodie.state.handle import TableHandle, load_handle, storage_of
from hoodie.storage import Storage
from hoodie.timeline.markers import load_markers
from hoodie.transaction.heartbeat import DEFAULT_RULE, HeartbeatRule, heartbeat_rule, is_expired
from hoodie.transaction.lookout import Lookout, group_of, writes_with_markers
from hoodie.transaction.overlaps import bucket_of
from hoodie.view import GroupId

log = logging.getLogger(__name__)

MAX_DELAY_S: Final = 86_400.0

_DELAY: Final = "hoodie.write.concurrency.async.conflict.detector.initial_delay_ms"
_PERIOD: Final = "hoodie.write.concurrency.async.conflict.detector.period_ms"


@dataclass(frozen=True, slots=True)
class Detection:
    """How often markers on storage are looked at, from when on, and how long other writers may be silent.

    Raises:
        Invalid: nobody waits so long.
    """

    initial_delay_s: float = 0.0
    period_s: float = 30.0
    rule: HeartbeatRule = DEFAULT_RULE

    def __post_init__(self) -> None:
        if not 0 <= self.initial_delay_s <= MAX_DELAY_S or not 0 < self.period_s <= MAX_DELAY_S:
            raise Invalid(
                f"Nobody can look for conflicts every {self.period_s} seconds, first after {self.initial_delay_s}",
                remedy=f"Use at most {MAX_DELAY_S} seconds, and more than 0 for the period",
            )


def detection_of(config: Config) -> Detection:
    """How to look, by Hudi's keys."""
    return Detection(config.integer(_DELAY) / 1000, config.integer(_PERIOD) / 1000, heartbeat_rule(config))


class WatchedTable:
    """The file groups that writers of one table have announced. Threads share it."""

    def __init__(self, handle: TableHandle, detection: Detection) -> None:
        self._handle = handle
        self._detection = detection
        self._lock = threading.Lock()
        self._asked: dict[InstantTime, set[GroupId]] = {}
        self._stored: dict[InstantTime, frozenset[GroupId]] = {}
        self._was_used = True

    def suspects(self, instant: InstantTime, group: GroupId) -> bool:
        """Whether a write that began before `instant` may be about to write the group, or one of its bucket. What is
        not suspect is known as announced by `instant` from now on.
        """
        sought = bucket_of(group)
        with self._lock:
            self._was_used = True
            for announced in (self._asked, self._stored):
                if any(one < instant and sought in groups for one, groups in announced.items()):
                    return True
            self._asked.setdefault(instant, set()).add(sought)
        return False

    def is_taken(self, instant: InstantTime, group: GroupId, *, by_bucket: bool) -> bool:
        """Whether one is, as storage says. Reads properties, the markers of others, their heartbeats, the timeline."""
        try:
            handle = load_handle(self._handle.storage, self._handle.env)  # the table may have another version by now
            found = Lookout(handle, instant, rule=self._detection.rule, by_bucket=by_bucket).at_work(group)
        except HudiError as error:
            log.warning("no look for others that may write %s: %s", "/".join(group), error)
            return False
        if found is None:
            with self._lock:
                self._asked.setdefault(instant, set()).add(bucket_of(group))
        return found is not None

    def look(self) -> None:
        """Looks at what is announced on storage by writers that live."""
        storage, found = self._handle.storage, dict[InstantTime, frozenset[GroupId]]()
        with self._lock:
            asked_before = frozenset(self._asked)
        try:
            for one in writes_with_markers(storage):
                if is_expired(storage, one, self._detection.rule, self._handle.env):
                    continue
                groups = (group_of(marker.data_path) for marker in load_markers(storage, one) or ())
                found[one] = frozenset(bucket_of(group) for group in groups if group is not None)
        except HudiError as error:
            log.warning("no look at the markers in %s: %s", storage.uri, error)
            return
        with self._lock:
            self._stored = found
            # Who asked for the first time since then may not be listed yet.
            ended = asked_before - found.keys()
            self._asked = {one: groups for one, groups in self._asked.items() if one not in ended}

    def forget(self, instant: InstantTime) -> None:
        """The write has ended."""
        with self._lock:
            self._asked.pop(instant, None)
            self._stored.pop(instant, None)

    def reopen(self, storage: Storage) -> None:
        """Looks by way of another storage from now on, which leads to the same table."""
        self._handle = replace(self._handle, storage=storage_of(storage, self._handle.config))

    def was_used(self) -> bool:
        """Whether anybody asked since this was asked last."""
        with self._lock:
            was, self._was_used = self._was_used, False
        return was


class WatchedTables:
    """Tables whose writers want to hear of others, by their places, while they ask. `later` is told what to do, and
    after how many seconds.
    """

    def __init__(self, detection: Detection, later: Callable[[float, Callable[[], None]], None]) -> None:
        self._detection = detection
        self._later = later
        self._lock = threading.Lock()
        self._gates: dict[str, threading.Lock] = {}
        self._tables: dict[str, WatchedTable] = {}

    def known(self, place: str) -> WatchedTable | None:
        """The table there, where somebody asked before."""
        return self._tables.get(place)

    def at(self, place: str, storage: Storage, env: Env) -> WatchedTable:
        """The table there. Looks at it where nobody asked before, unless the first look is to come later."""
        with self._lock:
            gate = self._gates.setdefault(place, threading.Lock())
        with gate:  # a table that hangs holds up no other
            found = self._tables.get(place)
            if found is not None:
                return found
            found = WatchedTable(load_handle(storage, env), self._detection)
            if not self._detection.initial_delay_s:
                found.look()
            self._tables[place] = found
        self._later(self._detection.initial_delay_s or self._detection.period_s, lambda: self._look_again(place))
        return found

    def forget(self, place: str, instant: InstantTime) -> None:
        """A write of the table there has ended."""
        found = self._tables.get(place)
        if found is not None:
            found.forget(instant)

    def reopen(self, place: str, storage: Storage) -> None:
        """Looks at the table there by way of another storage from now on."""
        found = self._tables.get(place)
        if found is not None:
            found.reopen(storage)

    def _look_again(self, place: str) -> None:
        with self._lock:
            found = self._tables.get(place)
            if found is None or not found.was_used():
                self._tables.pop(place, None)
                self._gates.pop(place, None)
                return
        try:
            found.look()
        finally:
            self._later(self._detection.period_s, lambda: self._look_again(place))
