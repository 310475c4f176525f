"""Sending the rows of file slices to the child nodes of a hash ring. This is what runs on a worker.

1. The marker exists before the file does, as for every data file.
2. Slices stream through the reader's merge; a child node gets a base file when its first row comes.
3. Memory: the log of one slice up to its limit, one batch, and a row group for each child.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from hoodie.engine import TaskId
from hoodie.index import HashRing
from hoodie.read import SliceRead
from hoodie.records import FILE_NAME_FIELD, KEY_FIELD, BaseFileWriter, with_meta
from hoodie.services.compaction.task import CompactTarget
from hoodie.spec import NULL_COMMIT, BaseFileName, MarkerKind, RuntimeStats, WriteStat, marker_path


@dataclass(frozen=True, slots=True, eq=False)
class ResizeTask:
    """Slices to read, and the ring their rows are sent by: it has no nodes but the children that get rows."""

    target: CompactTarget
    parts: tuple[SliceRead, ...]
    ring: HashRing


def resize_slices(task_id: TaskId, task: ResizeTask) -> tuple[WriteStat, ...]:
    """The write stats of the base files of the child nodes, one for each that got rows.

    Raises:
        Corrupt: a file of a slice is damaged. Missing: one is gone.
    """
    files: dict[int, _ChildFile] = {}
    try:
        for part in task.parts:
            with task.target.slices(part, None).opened(part) as merge:
                for piece in merge.pieces():
                    for number, rows in _by_child(task.ring, piece.rows):
                        if number not in files:
                            files[number] = _ChildFile(task, task_id, part.partition, task.ring.file_id(number))
                        files[number].write(rows)
        return tuple(files[number].close() for number in sorted(files))
    except BaseException:
        for file in files.values():
            file.abort()
        raise


class _ChildFile:
    """The base file of one child node."""

    def __init__(self, task: ResizeTask, task_id: TaskId, partition: str, file_id: str) -> None:
        target = task.target
        self._env, self._started = target.env, target.env.monotonic()
        self._partition, self._file_id = partition, file_id
        self._name = BaseFileName(file_id, target.token(task_id), target.instant, "parquet").text
        self._path = f"{partition}/{self._name}" if partition else self._name
        self._schema = with_meta(target.schema)
        target.storage.create(marker_path(target.instant, self._path, MarkerKind.CREATE), b"")
        self._writer = BaseFileWriter(
            target.storage, self._path, self._schema, target.base_file, table_name=target.table_name
        )

    def write(self, rows: pa.RecordBatch) -> None:
        named = pa.repeat(pa.scalar(self._name, pa.string()), rows.num_rows)
        columns = [named if name == FILE_NAME_FIELD else rows.column(name) for name in self._schema.names]
        self._writer.write(pa.Table.from_arrays(columns, schema=self._schema))

    def close(self) -> WriteStat:
        written = self._writer.close()
        return WriteStat(
            file_id=self._file_id,
            path=self._path,
            prev_commit=NULL_COMMIT,
            num_writes=written.rows,
            num_inserts=written.rows,
            total_write_bytes=written.size_bytes,
            file_size_bytes=written.size_bytes,
            partition_path=self._partition,
            runtime=RuntimeStats(total_create_time_ms=int((self._env.monotonic() - self._started) * 1000)),
        )

    def abort(self) -> None:
        self._writer.abort()


def _by_child(ring: HashRing, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    if ring.count == 1:
        yield 0, rows
        return
    numbers = ring.numbers(rows.column(KEY_FIELD))
    for number in range(ring.count):
        mask = numbers == number
        if mask.any():
            yield number, rows.filter(pa.array(mask))
