"""What the markers of a large write cost on a store like S3, by kind: calls, files, seconds.

    python bench/marker_store.py [files] [tasks] [kind ...]

1. The store is in memory and as slow as S3: each request takes 30 ms, and below one prefix it takes 3 500 changed
   objects a second, whoever asks. A listing has 1 000 names a page, a deletion 1 000 names a request.
2. Each task is a thread, which makes one marker after the other and writes no data file in between: all the time is
   that of markers. A service is asked without HTTP; what HTTP costs tells `markers.py`.
"""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from math import ceil

from hoodie.env import SystemEnv
from hoodie.server.due_work import DueWork
from hoodie.server.marker_folder import Batching, MarkerFolder
from hoodie.spec import MarkerKind, marker_dir, marker_name
from hoodie.storage import MemoryStorage, Storage
from hoodie.testing.counting_storage import Call, CountingStorage
from hoodie.timeline import DirectMarkers
from hoodie.timeline.marker_lists import MarkerList

INSTANT = "20260101000000000"
REQUEST_S = 0.030
CHANGED_A_SECOND = 3500
PAGE = 1000


class Far:
    """What a far store makes of the calls of a storage: requests that take their time, and so many a second."""

    def __init__(self) -> None:
        self.inner = MemoryStorage(uuid.uuid4().hex)
        self.storage = CountingStorage(self.inner, on_call=self._heard)
        self.requests: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._free_at = 0.0

    def files(self) -> int:
        """Files that are there."""
        return sum(1 for _ in self.inner.list(marker_dir(INSTANT)))

    def _heard(self, call: Call) -> None:
        if call.op in ("create", "put"):
            self._wait("PUT", 1)
        elif call.op == "delete_dir":
            count = self.files()
            for page in range(ceil(count / PAGE)):
                self._wait("LIST", 0)
                self._wait("DELETE", min(PAGE, count - page * PAGE))

    def _wait(self, what: str, changed: int) -> None:
        with self._lock:
            self.requests[what] += 1
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + changed / CHANGED_A_SECOND
            until = max(self._free_at, now) + REQUEST_S
        time.sleep(until - now)


def measure(kind: str, files: int, tasks: int) -> None:
    """Prints what one kind of markers costs."""
    far = Far()
    store = far.storage
    folder, due = None, DueWork(SystemEnv())
    if kind == "TIMELINE_SERVER_BASED":
        folder = MarkerFolder(store, INSTANT, Batching(), SystemEnv(), lambda one, at: due.add(at, one.write_batch))
    began = time.monotonic()
    threads = []
    for task in range(tasks):
        count = files // tasks + (task < files % tasks)
        args = (_maker(kind, store, task, folder), task, count)
        threads.append(threading.Thread(target=_make, args=args))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = time.monotonic() - began
    puts, left = far.requests["PUT"], far.files()
    began = time.monotonic()
    if folder is None:
        DirectMarkers(store, INSTANT).drop()
    else:
        folder.delete()
    gone = time.monotonic() - began
    print(
        f"{kind}: {files} markers by {tasks} tasks: {puts} PUTs, {left} files, made in {made:.1f} s, "
        f"deleted in {gone:.2f} s by {far.requests['LIST'] + far.requests['DELETE']} requests",
        flush=True,
    )
    due.close()


def _maker(kind: str, store: Storage, task: int, folder: MarkerFolder | None) -> Callable[[str], object]:
    if folder is not None:

        def ask(path: str) -> object:
            answer: Future[bool] = folder.create(marker_name(path, MarkerKind.CREATE))
            return answer.result()

        return ask
    if kind == "DIRECT":
        return lambda path: DirectMarkers(store, INSTANT).create(path, MarkerKind.CREATE)
    # One list for each task, as if each were a process.
    own = MarkerList(INSTANT, lambda: 1000 + task)
    return lambda path: own.add(store, [marker_name(path, MarkerKind.CREATE)])


def _make(make: Callable[[str], object], task: int, count: int) -> None:
    for number in range(count):
        make(
            f"region={number % 9}/{task:08x}-{number:04x}-4c11-9bd2-0f2b4f1c7a55-0_{task}-7-{number}_{INSTANT}.parquet"
        )


if __name__ == "__main__":
    how_many, by = int((sys.argv[1:2] or ["165000"])[0]), int((sys.argv[2:3] or ["240"])[0])
    for one in sys.argv[3:] or ["DIRECT", "PROCESS_LISTS", "TIMELINE_SERVER_BASED"]:
        measure(one, how_many, by)
