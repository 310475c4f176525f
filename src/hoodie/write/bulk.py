"""Bulk insert: every task of the input writes its own base files, no lookup, no small-file filling.

1. A task holds one open file per partition path it meets and closes it when it reaches the size limit.
2. Rows wait in memory until a partition has enough of them for an efficient write; past `HELD_BYTES` in one task the
   partitions with most waiting rows are written out, and past `OPEN_FILES` the file unused for longest is closed.
   Unsorted input over many partitions therefore makes more files, never more memory.
3. What still waits at the end of a task is a file for each partition; a file is what costs then, not its rows. Where
   tasks run in this process their rests are joined first. Many small files are written several at a time.
4. File ids of a task share one UUID and count up, as Hudi's row writer names them.
5. An append comes often and is small: the bloom filter of a file that is written whole is made for the rows it has.
   One for the default number of keys would be as large as a megabyte of rows.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from hoodie.engine import BulkInsertSortMode, LocalEngine, Source, TaskId
from hoodie.records.deletion import without_deleted
from hoodie.spec import new_file_id
from hoodie.write.file_task import MetaColumnWriter, WriteTarget, written_base_file
from hoodie.write.incoming import KEY, PARTITION, split_by_partition
from hoodie.write.keyed_input import KeyedForm, key_rows
from hoodie.write.new_base_file import NewBaseFile
from hoodie.write.written_file import WrittenFile

HELD_BYTES = 128 * 1024 * 1024
FLUSH_BYTES = 8 * 1024 * 1024
OPEN_FILES = 64
FEW_FILES = 16
"""So many small files are written one after the other: threads would not pay."""
SMALL_FILE_THREADS = 16
FILTER_STEP = 1_000
"""Filters are made for a multiple of so many keys."""


@dataclass(frozen=True, slots=True)
class BulkTask:
    """What every task of a bulk insert needs to know. `fits_filters`: bloom filters are made for the rows of a file,
    where these are known to be fewer than the options say.
    """

    target: WriteTarget
    form: KeyedForm
    max_file_bytes: int
    fits_filters: bool = False

    def target_for(self, rows: int) -> WriteTarget:
        """The target of a file of so many rows."""
        options = self.target.options
        entries = -(-rows // FILTER_STEP) * FILTER_STEP
        if not self.fits_filters or options.bloom is None or entries >= options.bloom.entries:
            return self.target
        return replace(self.target, options=replace(options, bloom=replace(options.bloom, entries=entries)))


@dataclass(frozen=True, slots=True)
class _Rests:
    """What a task has left: rows by partition, too few for a file of their own, in the order of their arrival. `first`:
    how many it has written.
    """

    task_id: TaskId
    first: int
    rows: Mapping[str, pa.Table]


def run_bulk_insert(source: Source, task: BulkTask, sort_mode: BulkInsertSortMode) -> list[WrittenFile]:
    """All files, after the source was evaluated once."""
    if sort_mode is BulkInsertSortMode.NONE:
        written = source.consume(partial(_key_and_write, task, keeps_rests=source.in_process), "bulk_insert")
    else:
        keyed = source.mapped(partial(key_rows, task.form), task.form.keyed_schema)
        arranged = keyed.in_sort_mode(sort_mode, PARTITION, KEY)
        written = arranged.consume(partial(_write_keyed, task, keeps_rests=False), "bulk_insert")
    files = [one for one in written if isinstance(one, WrittenFile)]
    return files + list(_write_rests(task, [one for one in written if isinstance(one, _Rests)]))


def _write_rests(task: BulkTask, rests: Sequence[_Rests]) -> Iterator[WrittenFile]:
    """The rests of all tasks together, as the files of one more task; of one task, as its own. They are in memory: no
    more of it is needed.
    """
    if not any(rest.rows for rest in rests):
        return
    task_id, first = max(((rest.task_id, rest.first) for rest in rests), key=lambda one: one[0].partition)
    if len(rests) > 1:
        task_id, first = replace(task_id, partition=task_id.partition + 1), 0
    writers = _Writers(task, task_id, sys.maxsize, first)
    try:
        for rest in rests:
            for partition, rows in rest.rows.items():
                yield from writers.add(partition, rows)
        yield from writers.close()
    except BaseException:
        writers.abort()
        raise


def _key_and_write(
    task: BulkTask, task_id: TaskId, batches: Iterator[pa.RecordBatch], *, keeps_rests: bool
) -> Iterator[WrittenFile | _Rests]:
    return _write_keyed(task, task_id, key_rows(task.form, task_id, batches), keeps_rests=keeps_rests)


def _write_keyed(
    task: BulkTask, task_id: TaskId, batches: Iterator[pa.RecordBatch], *, keeps_rests: bool
) -> Iterator[WrittenFile | _Rests]:
    writers = _Writers(task, task_id)
    try:
        for batch in batches:
            for partition, rows in split_by_partition(batch, batch.drop_columns(PARTITION)):
                kept = without_deleted(pa.Table.from_batches([rows]), task.target.delete_marker)
                if kept.num_rows:
                    yield from writers.add(partition, kept)
        if keeps_rests:
            yield from writers.close_open()
            yield writers.rests()
        else:
            yield from writers.close()
    except BaseException:
        writers.abort()
        raise


class _OpenFile:
    """One base file being written."""

    def __init__(self, target: WriteTarget, task_id: TaskId, partition: str, file_id: str, first: int) -> None:
        self._target = target
        self._file = NewBaseFile(target, partition, file_id, task_id.token)
        self._meta_columns = MetaColumnWriter(target, task_id, partition, self._file.name, first)
        self._writer = self._file.open(target.file_schema)

    def write(self, rows: pa.Table) -> int:
        """Bytes of the file so far."""
        self._writer.write(self._meta_columns.encoded_rows(rows))
        return self._writer.size_estimate()

    def close(self) -> WrittenFile:
        return written_base_file(self._target, self._file.stat(self._writer.close()), self._writer)

    def abort(self) -> None:
        self._writer.abort()


@dataclass(frozen=True, slots=True)
class _SmallFile:
    """A base file that is written whole: its rows, and the number of the first one in its task."""

    task: BulkTask
    task_id: TaskId
    partition: str
    file_id: str
    first: int
    rows: pa.Table


def _write_small_file(_: TaskId, small: _SmallFile) -> WrittenFile:
    """The file, under the name of the bulk insert's task. Its rows are in pieces, and every step would pay for each."""
    target = small.task.target_for(small.rows.num_rows)
    file = _OpenFile(target, small.task_id, small.partition, small.file_id, small.first)
    try:
        file.write(small.rows.combine_chunks())
        return file.close()
    except BaseException:
        file.abort()
        raise


class _Writers:
    """Waiting rows and open files of one task, by partition path; least recently used first."""

    def __init__(self, task: BulkTask, task_id: TaskId, held_bytes: int | None = None, first: int = 0) -> None:
        self._task = task
        self._task_id = task_id
        self._held_bytes = HELD_BYTES if held_bytes is None else held_bytes
        self._flush_bytes = min(FLUSH_BYTES, task.max_file_bytes)
        self._prefix = task.target.env.uuid()
        self._files = 0
        self._rows = first
        self._open: OrderedDict[str, _OpenFile] = OrderedDict()
        self._waiting: dict[str, list[pa.Table]] = {}
        self._sizes: dict[str, int] = {}
        self._held = 0

    def add(self, partition: str, rows: pa.Table) -> Iterator[WrittenFile]:
        self._waiting.setdefault(partition, []).append(rows)
        self._sizes[partition] = self._sizes.get(partition, 0) + rows.nbytes
        self._held += rows.nbytes
        if self._sizes[partition] >= self._flush_bytes:
            yield from self._flush(partition)
        elif self._held > self._held_bytes:
            yield from self._flush_largest()

    def close(self) -> Iterator[WrittenFile]:
        yield from self.close_open()
        small = [self._small_file(partition, rows) for partition, rows in self._waiting.items()]
        self._waiting.clear()
        threads = SMALL_FILE_THREADS if len(small) > FEW_FILES else 1
        yield from LocalEngine(threads).run(_write_small_file, small, "small files of a bulk insert")

    def close_open(self) -> Iterator[WrittenFile]:
        """Finish the open files with the rows that wait for them."""
        for partition in [opened for opened in self._open if opened in self._waiting]:
            yield from self._flush(partition)
        while self._open:
            yield self._open.popitem(last=False)[1].close()

    def rests(self) -> _Rests:
        """What waits when no file is open. It does not wait any more."""
        rows = {partition: pa.concat_tables(waiting) for partition, waiting in self._waiting.items()}
        self._waiting.clear()
        return _Rests(self._task_id, self._rows, rows)

    def abort(self) -> None:
        for file in self._open.values():
            file.abort()

    def _small_file(self, partition: str, rows: list[pa.Table]) -> _SmallFile:
        """A new file of all rows that wait for a partition; they are fewer than fill a file."""
        waiting = pa.concat_tables(rows)
        small = _SmallFile(self._task, self._task_id, partition, self._new_file_id(), self._rows, waiting)
        self._rows += waiting.num_rows
        return small

    def _new_file_id(self) -> str:
        self._files += 1
        return new_file_id(self._prefix, self._files - 1)

    def _flush_largest(self) -> Iterator[WrittenFile]:
        """Write out half of what waits, largest partitions first: one at a time would sort all of them for each."""
        for partition in sorted(self._sizes, key=self._sizes.__getitem__, reverse=True):
            yield from self._flush(partition)
            if self._held <= self._held_bytes // 2:
                return

    def _flush(self, partition: str) -> Iterator[WrittenFile]:
        """Write the waiting rows in steps, so that a file ends near its limit however many rows come at once."""
        waiting = pa.concat_tables(self._waiting.pop(partition))
        size = self._sizes.pop(partition)
        self._held -= size
        step = max(1, waiting.num_rows * self._flush_bytes // max(1, size))
        for first in range(0, waiting.num_rows, step):
            yield from self._write(partition, waiting.slice(first, step))

    def _write(self, partition: str, rows: pa.Table) -> Iterator[WrittenFile]:
        file = self._open.pop(partition, None)
        if file is None:
            if len(self._open) >= OPEN_FILES:
                yield self._open.popitem(last=False)[1].close()
            file = _OpenFile(self._task.target, self._task_id, partition, self._new_file_id(), self._rows)
        self._rows += rows.num_rows
        if file.write(rows) >= self._task.max_file_bytes:
            yield file.close()
        else:
            self._open[partition] = file
