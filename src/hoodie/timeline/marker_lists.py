"""Markers as lines of lists, `MARKERS<n>`: a few files, however many markers.

1. A list has one writer. Its number is taken by `create`, which one of many callers wins, and is not given up: nobody
   else, and not the same process after it was started anew, ever writes it. So no writer takes lines of another away.
2. A list is written whole each time. Where that fails nobody knows what will stand there in the end, but it holds what
   the list held before: the list is left alone, and further lines go to another one.
3. `MARKERS.type` says that there are lists, and stands before the first one: Hudi reads lists, or direct markers.
4. Lines are durable before the data files they announce are made. Threads that wait at the same time share one write.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hoodie.env import SystemEnv
from hoodie.errors import Conflict
from hoodie.spec import MARKER_TYPE, InstantTime, Marker, MarkerKind, marker_dir, marker_name
from hoodie.spec.markers import marker_list_path, marker_type_path
from hoodie.storage import Storage
from hoodie.timeline.markers import load_markers

log = logging.getLogger(__name__)

_NUMBERS = range(1000, 1 << 31)
"""Those of processes; lower ones are left to servers. Hudi reads numbers of 31 bits."""
_KEPT_WRITES = 64
_MAX_TRIES = 100


class MarkerList:
    """One list at a time that this process alone writes. `numbers` gives the next number to try. One thread at a time
    uses it.
    """

    def __init__(self, instant: InstantTime, numbers: Callable[[], int]) -> None:
        self._instant = instant
        self._numbers = numbers
        self._path: str | None = None
        self._text = b""

    @property
    def written(self) -> tuple[str, int] | None:
        """Path and size of the list; None where none is begun, or the last one was left."""
        return None if self._path is None else (self._path, len(self._text))

    def add(self, storage: Storage, names: Sequence[str]) -> None:
        """Adds markers, which are durable then. One call; two calls more for the first ones.

        Raises:
            Unavailable: they may be there or not. None of those before is gone.
        """
        more = "".join(f"{name}\n" for name in names).encode()
        path, text = self._path, self._text + more
        self._path, self._text = None, b""
        if path is None:
            path, text = self._begun(storage, more), more
        else:
            storage.put(path, text)
        self._path, self._text = path, text

    def _begun(self, storage: Storage, text: bytes) -> str:
        ensure_lists_count(storage, self._instant)
        for _ in range(_MAX_TRIES):
            path = marker_list_path(self._instant, self._numbers())
            try:
                storage.create(path, text)
            except Conflict:
                continue
            return path
        raise Conflict(
            f"{_MAX_TRIES} numbers of lists in {marker_dir(self._instant)} are taken", remedy="See who writes there"
        )


def ensure_lists_count(storage: Storage, instant: InstantTime) -> None:
    """Says in the marker folder that there are lists. One call; two where somebody said so before."""
    path = marker_type_path(instant)
    try:
        storage.create(path, MARKER_TYPE)
    except Conflict:
        said = storage.read(path)
        if said.strip() != MARKER_TYPE:  # its writer died, or it is damaged: without it Hudi finds no list
            if said.strip():
                log.warning("%s said %r: it says now that there are lists of markers", path, said[:40])
            storage.put(path, MARKER_TYPE)


@dataclass(frozen=True, slots=True)
class ListedMarkers:
    """Markers of which each process keeps one list; one for each `attempt` at the instant: the lists of those before
    are gone, and what said that there are lists.
    """

    storage: Storage
    instant: InstantTime
    attempt: int = 0

    def create(self, data_path: str, kind: MarkerKind) -> None:
        """See `Markers`: at most one call, two more for the first marker of a process."""
        _shared_list(self).add(self.storage, marker_name(data_path, kind))

    def load(self) -> tuple[Marker, ...] | None:
        """See `Markers`: as `load_markers`."""
        return load_markers(self.storage, self.instant)

    def drop(self) -> None:
        """See `Markers`: one call."""
        with _lock:
            _lists.pop(_key(self), None)
        self.storage.delete_dir(marker_dir(self.instant))


@dataclass(slots=True, eq=False)
class _Line:
    """A marker somebody waits for."""

    name: str
    is_settled: bool = False
    failure: BaseException | None = None


@dataclass(slots=True)
class _SharedList:
    """The list of this process for one write. Who comes while it is written waits, and goes into the next write."""

    kept: MarkerList
    known: set[str] = field(default_factory=set)
    queue: list[_Line] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    writing: threading.Lock = field(default_factory=threading.Lock)

    def add(self, storage: Storage, name: str) -> None:
        line = _Line(name)
        with self.lock:
            if name in self.known:
                raise Conflict(f"There is a marker {name} already", path=name)
            self.known.add(name)
            self.queue.append(line)
        with self.writing:
            if not line.is_settled:
                self._write(storage)
        if line.failure is not None:
            raise line.failure

    def _write(self, storage: Storage) -> None:
        with self.lock:
            lines, self.queue = self.queue, []
        failure: BaseException | None = None
        try:
            self.kept.add(storage, [line.name for line in lines])
        except BaseException as error:  # it is raised by all who wait
            failure = error
            with self.lock:
                self.known.difference_update(line.name for line in lines)
        for line in lines:
            line.failure, line.is_settled = failure, True


_Key = tuple[int, str, InstantTime, int]
_lists: OrderedDict[_Key, _SharedList] = OrderedDict()
_lock = threading.Lock()


def _key(markers: ListedMarkers) -> _Key:
    """A list belongs to a process: one that was forked begins its own."""
    return os.getpid(), markers.storage.uri, markers.instant, markers.attempt


def _any_number() -> int:
    return _NUMBERS.start + int(SystemEnv().random() * len(_NUMBERS))


def _shared_list(markers: ListedMarkers) -> _SharedList:
    with _lock:
        key = _key(markers)
        found = _lists.get(key)
        if found is None:
            found = _lists[key] = _SharedList(MarkerList(markers.instant, _any_number))
        _lists.move_to_end(key)
        while len(_lists) > _KEPT_WRITES:
            _lists.popitem(last=False)
        return found
