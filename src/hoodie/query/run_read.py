"""Rows of a plan as a stream, with the next files being read while the caller works on this one.

1. Rows come in plan order, whatever finishes first.
2. At most `parallelism` files are open, and each may be ahead by a few batches (`hoodie.ahead`): memory does not
   grow with the table.
3. Closing or dropping the stream stops the threads; an error in a file surfaces when its turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import pyarrow as pa

from hoodie.ahead import all_made_ahead
from hoodie.engine import Engine, LocalEngine
from hoodie.query.read_plan import ReadPlan
from hoodie.slices import FileRead, RowPlan, read_rows
from hoodie.storage import Storage

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
    """Batches of all files in order, with up to `parallelism` files read at the same time."""
    watch.start()
    if parallelism <= 1 or len(files) <= 1:
        for file in files:
            yield from read_rows(storage, rows, file)
            watch.finished(file)
        return
    reads = [partial(read_rows, storage, rows, file) for file in files]
    with closing(all_made_ahead(reads, parallelism)) as read:
        for file, batches in zip(files, read, strict=True):
            yield from batches
            watch.finished(file)


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
