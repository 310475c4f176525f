"""The markers of one write as a service keeps them: known in memory, durable in lists, written in batches.

1. Who asks for a marker is answered once its line is durable. Requests wait in a queue, which is written as a whole
   not more often than once in an interval; who comes after a quiet time does not wait for the interval.
2. There are so many lists, `MARKERS0` and on, which take turns; the one that is being written is left out. A list
   belongs to one service from its first line on (`marker_lists`): one that was started anew, or stands beside another,
   begins lists of the next numbers.
3. What was asked for before is looked for on storage, and told to be there where nobody took it away. A batch that
   could not be written is known no more, and who waited hears of it: it may ask again.
4. Once the folder is deleted nothing is written there any more.
5. Others may delete the folder, too: who rolls the write back, and whoever carries its plan out again. So it is looked
   at while markers are asked for, `LOOK_EVERY_S` apart, and once more after the last batch: lists that are known are
   there, not shorter, ours not longer, and so is what says that there are lists. Where they are not, all that is known
   is read from storage anew, numbers of lists that were ours are not taken again, and what was being written meanwhile
   is written once more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from hoodie.env import Env
from hoodie.errors import HudiError, Invalid, Unavailable
from hoodie.spec import InstantTime, is_marker_list, marker_dir, marker_name
from hoodie.spec.markers import MARKER_LIST_PREFIX, marker_type_path
from hoodie.storage import Storage
from hoodie.timeline.marker_lists import MarkerList, ensure_lists_count
from hoodie.timeline.markers import load_markers

log = logging.getLogger(__name__)

MAX_MARKERS = 2_000_000
"""Of one write. Each costs the memory of its name."""
MAX_LISTS = 1000
MAX_INTERVAL_S = 10.0
DELETE_WAIT_S = 60.0
LOOK_EVERY_S = 1.0


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
    """One of the lists, what of it is written (path and size), and whether a batch is being added to it."""

    kept: MarkerList
    written: tuple[str, int] | None = None
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
        self._looking = threading.Lock()
        self._durable: set[str] = set()
        self._others: dict[str, int] = {}
        self._next_number = 0
        self._is_read = False
        self._slots = [_Slot(self._new_list()) for _ in range(batching.lists)]
        self._turn = 0
        self._pending: dict[str, Future[bool]] = {}
        self._queue: list[str] = []
        self._again: dict[str, Future[bool]] = {}
        self._last_batch = -batching.interval_s
        self._looked = env.monotonic()
        self._is_unsure = self._is_look_planned = False
        self._is_closed = False
        self._read()

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for a marker."""
        return not self._pending and not self._again

    def create(self, name: str) -> Future[bool]:
        """Whether the marker is a new one, once it is durable. The future raises:

        Unavailable: it could not be written, or looked for; or there are too many, or the folder is being deleted.
        """
        with self._lock:
            waited = self._pending.get(name) or self._again.get(name)
            if waited is not None:
                return _known_after(waited)
            if self._is_closed:
                return _failed("is being deleted", "Begin the write again")
            answer = Future[bool]()
            if name in self._durable:
                self._again[name] = answer
                is_first = len(self._again) == 1
            elif len(self._durable) + len(self._pending) >= MAX_MARKERS:
                return _failed(f"has {MAX_MARKERS} markers, and takes no more", "Write fewer files at once")
            else:
                self._pending[name] = answer
                self._queue.append(name)
                is_first = len(self._queue) == 1
            due = self._last_batch + self._batching.interval_s
        if is_first:
            self._when_due(self, due)
        return answer

    def write_batch(self) -> None:
        """Looks for the folder where that is due. Writes what waits, and what comes while that lasts and is due then.
        Where all lists are being written, who is through with one does it.
        """
        while True:
            self._look_where_due()
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
        """All markers on storage, whoever wrote them, and those that wait. One listing, and one read for each list.

        Raises:
            Corrupt: a list is damaged.
        """
        with self._lock:  # what is written meanwhile waits now
            waiting = set(self._pending)
        found = self._load()
        with self._lock:
            waiting.update(self._pending)
        return tuple(sorted(found | waiting))

    def exists(self) -> bool:
        """Whether there is anything in the folder, or will be. One listing."""
        if self._pending:
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
            dropped = self._given_up()
        for answer in dropped:
            answer.set_exception(_unavailable("is being deleted", "Begin the write again"))
        with self._lock:
            if not self._lock.wait_for(lambda: not any(one.is_busy for one in self._slots), DELETE_WAIT_S):
                raise _unavailable("is still being written to", "Delete it again")
        if not self._looking.acquire(timeout=DELETE_WAIT_S):
            raise _unavailable("is still being looked at", "Delete it again")
        try:
            return self.storage.delete_dir(marker_dir(self.instant)) > 0
        finally:
            self._looking.release()

    def _load(self) -> set[str]:
        return {marker_name(one.data_path, one.kind) for one in load_markers(self.storage, self.instant) or ()}

    def _read(self) -> None:
        """Makes what is on storage known. A list that is made meanwhile has no marker that counts yet."""
        files = self.storage.list_dir(marker_dir(self.instant)).files
        lists = {file.path: file.size_bytes for file in files if is_marker_list(file.path.rpartition("/")[2])}
        found = self._load()
        # The first number after those of lists of services, so that few are tried that are taken.
        prefix = f"{marker_dir(self.instant)}/{MARKER_LIST_PREFIX}"
        taken = {int(path.removeprefix(prefix)) for path in lists}
        free = next(number for number in range(len(taken) + 1) if number not in taken)
        with self._lock:
            self._durable |= found
            self._others = lists
            self._next_number = max(self._next_number, free)
            self._is_read = True

    def _look_where_due(self) -> None:
        """Looks at the folder for who asks for what is known, and after a while for whoever asks; and whether what was
        written after the last look went to a folder that was deleted.
        """
        has_more = False
        with self._looking:
            while self._is_look_due():
                has_more = self._look() or has_more
        if has_more:
            self._when_due(self, self._last_batch + self._batching.interval_s)

    def _is_look_due(self) -> bool:
        with self._lock:
            is_time = self._env.monotonic() >= self._looked + LOOK_EVERY_S
            return not self._is_closed and bool(self._again or (is_time and (self._queue or self._is_unsure)))

    def _look(self) -> bool:
        """Answers who asks for what is known. Whether some of that has to be written."""
        with self._lock:
            self._looked = self._env.monotonic()
            self._is_unsure = self._is_look_planned = False
            asked = tuple(self._again)
            own = dict(slot.written for slot in self._slots if slot.written is not None)
        try:
            if not (self._is_read and self._is_as_known(own)):
                self._forget()
                self._read()
                if own.keys() & self._others.keys():  # Hudi passes over lists where nothing says that there are some
                    ensure_lists_count(self.storage, self.instant)
        except Exception as error:  # whoever waits hears of it, whatever it is
            log.warning("no look at the markers of %s: %s", self.instant, error)
            with self._lock:
                self._is_unsure = True
                dropped = self._given_up()
            for answer in dropped:
                answer.set_exception(_told(error))
            return False
        with self._lock:
            answers = {name: self._again.pop(name) for name in asked if name in self._again}
            known = [answers.pop(name) for name in asked if name in answers and name in self._durable]
            self._pending.update(answers)
            self._queue.extend(answers)
            known += [self._pending.pop(name) for name in self._queue if name in self._durable]
            self._queue = [name for name in self._queue if name not in self._durable]
        for answer in known:
            answer.set_result(False)
        return bool(answers)

    def _is_as_known(self, own: Mapping[str, int]) -> bool:
        """Whether what is known is there still. One listing, if anything is known."""
        least = {**self._others, **own}
        if not least and not self._durable:
            return True
        found = self.storage.list_dir(marker_dir(self.instant))
        sizes = {file.path: file.size_bytes for file in found.files}
        if not least:
            return bool(found.files or found.dirs)
        with self._lock:
            most = dict(slot.written for slot in self._slots if slot.written is not None and not slot.is_busy)
        is_told = not own or marker_type_path(self.instant) in sizes
        return is_told and all(
            size <= sizes.get(path, -1) <= most.get(path, sizes.get(path, -1)) for path, size in least.items()
        )

    def _forget(self) -> None:
        """Knows nothing any more, and begins other lists. What is being written now may have been taken away."""
        log.info("the markers of %s were deleted, or written by somebody else: they are read anew", self.instant)
        with self._lock:
            self._is_read = False
            self._durable, self._others = set(), {}
            for slot in self._slots:
                slot.kept, slot.written = self._new_list(), None

    def _given_up(self) -> list[Future[bool]]:
        """Who waits for what is not being written, and waits no more; the lock is held."""
        queue, self._queue = self._queue, []
        again, self._again = self._again, {}
        return [*(self._pending.pop(name) for name in queue), *again.values()]

    def _new_list(self) -> MarkerList:
        return MarkerList(self.instant, self._take_number)

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
        kept = slot.kept
        try:
            kept.add(self.storage, batch)
        except Exception as error:  # whoever waits hears of it, whatever it is
            failure = error
            log.warning("%d markers of %s could not be written: %s", len(batch), self.instant, error)
        with self._lock:
            is_lost = slot.kept is not kept and failure is None and not self._is_closed
            if is_lost:
                self._queue.extend(batch)
                answers = []
            else:
                answers = [self._pending.pop(name) for name in batch]
                self._durable.update(() if failure is not None else batch)
            if slot.kept is kept:
                slot.written = kept.written
            self._is_unsure = True
            plans_look, self._is_look_planned = not self._is_look_planned, True
            look_at, due = self._looked + LOOK_EVERY_S, self._last_batch + self._batching.interval_s
        for answer in answers:
            if failure is None:
                answer.set_result(True)
            else:
                answer.set_exception(_told(failure))
        if is_lost:
            self._when_due(self, due)
        if plans_look:
            self._when_due(self, look_at)


def _told(failure: Exception) -> Exception:
    """What is told of a failure to who waits."""
    if isinstance(failure, HudiError):
        return failure
    return _unavailable("could not be written to", "See the log of the service")


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


def _failed(what: str, remedy: str) -> Future[bool]:
    answer = Future[bool]()
    answer.set_exception(_unavailable(what, remedy))
    return answer


def _unavailable(what: str, remedy: str) -> Unavailable:
    return Unavailable(f"The folder of markers {what}", remedy=remedy)
