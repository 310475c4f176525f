"""The markers of one write as a service keeps them: known in memory, durable in lists, written in batches.

1. Who asks for a marker is answered once its line is durable. Requests wait in a queue, which is written as a whole
   not more often than once in an interval; who comes after a quiet time does not wait for the interval.
2. There are so many lists, `MARKERS0` and on, which take turns; the one that is being written is left out. A list
   belongs to one service from its first line on (`marker_lists`): one that was started anew, or stands beside another,
   begins lists of the next numbers.
3. What was asked for before is answered from memory, once it is durable. A batch that could not be written is known no
   more, and who waited hears of it: it may ask again.
4. Once the folder is deleted nothing is written there any more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from hoodie.env import Env
from hoodie.errors import HudiError, Invalid, Unavailable
from hoodie.spec import InstantTime, is_marker_list, marker_dir, marker_name
from hoodie.spec.markers import MARKER_LIST_PREFIX
from hoodie.storage import Storage
from hoodie.timeline.marker_lists import MarkerList
from hoodie.timeline.markers import load_markers

log = logging.getLogger(__name__)

MAX_MARKERS = 2_000_000
"""Of one write. Each costs the memory of its name."""
MAX_LISTS = 1000
MAX_INTERVAL_S = 10.0
DELETE_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Batching:
    """Into how many lists markers go, and the shortest time between two batches of one write.

    Raises:
        Invalid: there would be none, or nobody waits so long.
    """

    lists: int = 20
    interval_s: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.lists <= MAX_LISTS or not 0 <= self.interval_s <= MAX_INTERVAL_S:
            raise Invalid(
                f"Markers cannot go into {self.lists} lists every {self.interval_s} seconds",
                remedy=f"Use 1 to {MAX_LISTS} lists, and at most {MAX_INTERVAL_S} seconds",
            )


@dataclass(slots=True)
class _Slot:
    """One of the lists, and whether a batch is being written to it."""

    kept: MarkerList
    is_busy: bool = False


class MarkerFolder:
    """The markers of the write `instant`. Threads share it. Making it reads what is there. `when_due` is told when
    something waits, and from which time on it may be written: then `write_batch` is to be called.
    """

    def __init__(
        self,
        storage: Storage,
        instant: InstantTime,
        batching: Batching,
        env: Env,
        when_due: Callable[[MarkerFolder, float], None],
    ) -> None:
        self.storage = storage
        self.instant = instant
        self._batching = batching
        self._env = env
        self._when_due = when_due
        self._lock = threading.Condition()
        self._durable = self._load()
        self._next_number = self._free_number()
        self._slots = [_Slot(MarkerList(instant, self._take_number)) for _ in range(batching.lists)]
        self._turn = 0
        self._pending: dict[str, Future[bool]] = {}
        self._queue: list[str] = []
        self._last_batch = -batching.interval_s
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for a marker."""
        return not self._pending

    def create(self, name: str) -> Future[bool]:
        """Whether the marker is a new one, once it is durable. The future raises:

        Unavailable: it could not be written, or there are too many, or the folder is being deleted.
        """
        with self._lock:
            if name in self._durable:
                return _done(False)
            waited = self._pending.get(name)
            if waited is not None:
                return _known_after(waited)
            if self._is_closed:
                return _failed("is being deleted", "Begin the write again")
            if len(self._durable) + len(self._pending) >= MAX_MARKERS:
                return _failed(f"has {MAX_MARKERS} markers, and takes no more", "Write fewer files at once")
            answer = self._pending[name] = Future[bool]()
            self._queue.append(name)
            is_first = len(self._queue) == 1
            due = self._last_batch + self._batching.interval_s
        if is_first:
            self._when_due(self, due)
        return answer

    def write_batch(self) -> None:
        """Writes what waits, and what comes while that lasts and is due then. Where all lists are being written, who is
        through with one does it.
        """
        while True:
            with self._lock:
                slot = self._free_slot() if self._queue else None
                if slot is None:
                    return
                batch, self._queue = self._queue, []
                slot.is_busy = True
                self._last_batch = self._env.monotonic()
            self._write(slot, batch)
            with self._lock:
                slot.is_busy = False
                self._lock.notify_all()
                if self._env.monotonic() < self._last_batch + self._batching.interval_s:
                    return

    def names(self) -> tuple[str, ...]:
        """All markers, whoever wrote them, and those that wait. One listing, and one read for each list.

        Raises:
            Corrupt: a list is damaged.
        """
        found = self._load()
        with self._lock:
            return tuple(sorted({*found, *self._durable, *self._pending}))

    def exists(self) -> bool:
        """Whether there is anything in the folder, or will be. One listing."""
        if self._durable or self._pending:
            return True
        found = self.storage.list_dir(marker_dir(self.instant))
        return bool(found.files or found.dirs)

    def delete(self) -> bool:
        """Removes the folder; False when there was none. What waits is not written any more.

        Raises:
            Unavailable: a batch is being written, for too long; or the storage refused.
        """
        with self._lock:
            self._is_closed = True
            queue, self._queue = self._queue, []
            dropped = [self._pending.pop(name) for name in queue]
        for answer in dropped:
            answer.set_exception(_unavailable("is being deleted", "Begin the write again"))
        with self._lock:
            if not self._lock.wait_for(lambda: not any(one.is_busy for one in self._slots), DELETE_WAIT_S):
                raise _unavailable("is still being written to", "Delete it again")
        return self.storage.delete_dir(marker_dir(self.instant)) > 0

    def _load(self) -> set[str]:
        return {marker_name(one.data_path, one.kind) for one in load_markers(self.storage, self.instant) or ()}

    def _free_number(self) -> int:
        """The first number after those of lists of services, so that few are tried that are taken."""
        prefix = f"{marker_dir(self.instant)}/{MARKER_LIST_PREFIX}"
        names = [file.path for file in self.storage.list_dir(marker_dir(self.instant)).files]
        taken = {int(name.removeprefix(prefix)) for name in names if is_marker_list(name.rpartition("/")[2])}
        return next(number for number in range(len(taken) + 1) if number not in taken)

    def _take_number(self) -> int:
        with self._lock:
            self._next_number += 1
            return self._next_number - 1

    def _free_slot(self) -> _Slot | None:
        for step in range(len(self._slots)):
            slot = self._slots[(self._turn + step) % len(self._slots)]
            if not slot.is_busy:
                self._turn = (self._turn + step + 1) % len(self._slots)
                return slot
        return None

    def _write(self, slot: _Slot, batch: Sequence[str]) -> None:
        failure: Exception | None = None
        try:
            slot.kept.add(self.storage, batch)
        except Exception as error:  # whoever waits hears of it, whatever it is
            failure = error
            log.warning("%d markers of %s could not be written: %s", len(batch), self.instant, error)
        with self._lock:
            answers = [self._pending.pop(name) for name in batch]
            if failure is None:
                self._durable.update(batch)
        for answer in answers:
            if failure is None:
                answer.set_result(True)
            elif isinstance(failure, HudiError):
                answer.set_exception(failure)
            else:
                answer.set_exception(_unavailable("could not be written to", "See the log of the service"))


def _known_after(first: Future[bool]) -> Future[bool]:
    """What a second request is told once the first one is through: that the marker was known."""
    answer = Future[bool]()

    def settle(done: Future[bool]) -> None:
        error = done.exception()
        if error is None:
            answer.set_result(False)
        else:
            answer.set_exception(error)

    first.add_done_callback(settle)
    return answer


def _done(value: bool) -> Future[bool]:
    answer = Future[bool]()
    answer.set_result(value)
    return answer


def _failed(what: str, remedy: str) -> Future[bool]:
    answer = Future[bool]()
    answer.set_exception(_unavailable(what, remedy))
    return answer


def _unavailable(what: str, remedy: str) -> Unavailable:
    return Unavailable(f"The folder of markers {what}", remedy=remedy)
