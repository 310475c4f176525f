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
from hoodie.records import FILE_NAME_FIELD, KEY_FIELD, with_meta
from hoodie.services.rewrite.target import RewriteTarget
from hoodie.slices import SliceRead
from hoodie.spec import WriteStat
from hoodie.write.new_base_file import NewBaseFile


@dataclass(frozen=True, slots=True, eq=False)
class ResizeTask:
    """Slices to read, and the ring their rows are sent by: it has no nodes but the children that get rows."""

    target: RewriteTarget
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
        self._schema = with_meta(task.target.schema)
        self._file = NewBaseFile(task.target, partition, file_id, task.target.token(task_id))
        self._writer = self._file.open(self._schema)

    def write(self, rows: pa.RecordBatch) -> None:
        named = pa.repeat(pa.scalar(self._file.name, pa.string()), rows.num_rows)
        columns = [named if name == FILE_NAME_FIELD else rows.column(name) for name in self._schema.names]
        self._writer.write(pa.Table.from_arrays(columns, schema=self._schema))

    def close(self) -> WriteStat:
        return self._file.stat(self._writer.close())

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
