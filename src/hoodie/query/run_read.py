"""Rows of a plan as a stream, with the next files being read while the caller works on this one.

1. Rows come in plan order, whatever finishes first.
2. At most `parallelism` files are open, and each may be ahead by `BATCHES_AHEAD` batches: memory does not grow with the
   table.
3. Closing or dropping the stream stops the threads; an error in a file surfaces when its turn comes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from queue import Full, Queue

import pyarrow as pa

from hoodie.engine import Engine, LocalEngine
from hoodie.query.read_plan import ReadPlan
from hoodie.slices import FileRead, RowPlan, read_rows
from hoodie.storage import Storage

BATCHES_AHEAD = 4
_POLL_SECONDS = 0.1


Progress = Callable[[int, int], None]
"""Called with the bytes of files that were read to their end, and the bytes of all files of the plan."""


def run_read(
    plan: ReadPlan, storage: Storage, engine: Engine | None = None, progress: Progress | None = None
) -> pa.RecordBatchReader:
    """The rows of the plan, streamed; nothing is read before the first batch is asked for."""
    parallelism = (engine or LocalEngine()).parallelism
    watch = _Watch(plan.size_bytes, progress)
    rows = _sharing_memory(plan.rows, min(parallelism, len(plan.files)))
    return pa.RecordBatchReader.from_batches(plan.schema, stream(plan.files, rows, storage, parallelism, watch))


def stream(
    files: Sequence[FileRead], rows: RowPlan, storage: Storage, parallelism: int, watch: _Watch
) -> Iterator[pa.RecordBatch]:
    """Batches of all files in order, with up to `parallelism` files read at the same time. As many more wait for a
    thread, so that none has to wait for the caller.
    """
    watch.start()
    if parallelism <= 1 or len(files) <= 1:
        for file in files:
            yield from read_rows(storage, rows, file)
            watch.finished(file)
        return
    stopped = threading.Event()
    waiting = deque(files)
    open_files: deque[_Ahead] = deque()
    with ThreadPoolExecutor(parallelism, thread_name_prefix="hoodie-read") as pool:
        try:
            while waiting or open_files:
                while waiting and len(open_files) < 2 * parallelism:
                    open_files.append(_Ahead(pool, storage, rows, waiting.popleft(), stopped))
                yield from open_files[0].batches()
                watch.finished(open_files.popleft().file)
        finally:
            stopped.set()


def _sharing_memory(rows: RowPlan, readers: int) -> RowPlan:
    """The row plan for so many slices at the same time: together they keep to the limit for log rows in memory."""
    if rows.merge is None or readers <= 1:
        return rows
    return replace(rows, merge=replace(rows.merge, memory_bytes=max(1, rows.merge.memory_bytes // readers)))


class _Watch:
    """Tells how far a read is."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done = 0
        self._total = total
        self._progress = progress

    def start(self) -> None:
        if self._progress is not None:
            self._progress(0, self._total)

    def finished(self, file: FileRead) -> None:
        self._done += file.size_bytes
        if self._progress is not None:
            self._progress(self._done, self._total)


class _Ahead:
    """One file being read by a thread, into a queue that is short on purpose. Its last entry is None or the error."""

    def __init__(
        self, pool: ThreadPoolExecutor, storage: Storage, rows: RowPlan, file: FileRead, stopped: threading.Event
    ) -> None:
        self.file = file
        self._queue: Queue[pa.RecordBatch | BaseException | None] = Queue(BATCHES_AHEAD)
        self._stopped = stopped
        pool.submit(self._fill, storage, rows, file)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What the thread reads, until it is through; then its error, if it had one."""
        while (entry := self._queue.get()) is not None:
            if isinstance(entry, BaseException):
                raise entry
            yield entry

    def _fill(self, storage: Storage, rows: RowPlan, file: FileRead) -> None:
        try:
            for batch in read_rows(storage, rows, file):
                if not self._put(batch):
                    return
            self._put(None)
        except BaseException as error:  # whatever it is, it belongs to the one who asked for the rows
            self._put(error)

    def _put(self, entry: pa.RecordBatch | BaseException | None) -> bool:
        """Whether the entry found a place before the stream was closed."""
        while not self._stopped.is_set():
            try:
                self._queue.put(entry, timeout=_POLL_SECONDS)
            except Full:
                continue
            return True
        return False
