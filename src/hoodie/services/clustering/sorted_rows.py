"""Rows of one group on their way through a sort, in bounded memory.

1. Rows come in batches and are held up to a limit. Beyond it they go to a file, and only the sort columns stay.
2. Sorting is finding the places of the rows (`row_order`). Rows that are held are taken in that order. Those in a file
   are dealt out to files of consecutive ranks, until these fit in memory; each of them is put in order then.
3. The folder goes when the rows are closed (`spill_folder`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.merge.spill_folder import SpillFolder
from hoodie.services.clustering.row_order import ExecutionStrategy

_ROWS: Final = 1 << 16
"""Rows that are taken at once."""

_FILES: Final = 64
"""Files that are written at the same time; what they hold too much of is dealt out again."""

_SHARE: Final = 4
"""A file of consecutive ranks may take this part of the limit: it is held twice while it is put in order."""


class SortedRows:
    """Rows of `schema` that are added in any order and given back in that of `order`; None: as they came.

    `limit_bytes`: rows held in memory. `parent`: the folder for those that do not fit; None: the system's temporary
    one. A context manager.
    """

    def __init__(
        self, schema: pa.Schema, order: ExecutionStrategy | None, limit_bytes: int, parent: str | None
    ) -> None:
        self.count = 0
        self._schema = schema
        self._order = order
        self._limit = limit_bytes
        self._parent = parent
        self._names = () if order is None else order.columns
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._all_bytes = 0
        self._sorted_by: list[list[pa.Array]] = [[] for _ in self._names]
        self._spill_folder: SpillFolder | None = None
        self._spilled: Any = None

    def __enter__(self) -> SortedRows:
        return self

    def __exit__(self, *_: object) -> None:
        if self._spilled is not None:
            self._spilled.close()
            self._spilled = None
        if self._spill_folder is not None:
            self._spill_folder.close()

    def add(self, rows: pa.RecordBatch) -> None:
        """Adds rows.

        Raises:
            Unavailable: they do not fit in memory, and the disk is full.
        """
        self.count += rows.num_rows
        for column, name in zip(self._sorted_by, self._names, strict=True):
            column.append(rows.column(name))
        self._held.append(rows)
        self._held_bytes += rows.nbytes
        self._all_bytes += rows.nbytes
        if self._held_bytes > self._limit:
            self._spill()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows in order, once.

        Raises:
            Unsupported: a sort column's values have no order. Unavailable: the disk is full.
        """
        if self._order is None:
            yield from self._as_they_came()
            return
        fields = [self._schema.field(name) for name in self._names]
        columns = [
            pa.chunked_array(chunks, type=field.type) for chunks, field in zip(self._sorted_by, fields, strict=True)
        ]
        order = self._order.positions(columns)
        self._sorted_by = [[] for _ in self._names]
        if self._spilled is None:
            table = pa.Table.from_batches(self._held, self._schema).combine_chunks()
            self._held = []
            yield from _taken(table, order)
            return
        if self._held:
            self._spill()
        self._spilled.close()
        yield from self._put_in_order("rows", order)

    def _as_they_came(self) -> Iterator[pa.RecordBatch]:
        if self._spilled is not None:
            self._spilled.close()
            with self._folder.disk(), pa.ipc.open_stream(self._folder.path("rows")) as reader:
                yield from reader
        yield from self._held

    def _spill(self) -> None:
        if self._spill_folder is None:
            self._spill_folder = SpillFolder(self._parent, "Rows to be sorted", "hoodie.memory.compaction.max.size")
        with self._folder.disk():
            if self._spilled is None:
                self._spilled = self._folder.writer("rows", self._schema)
            for rows in self._held:
                self._spilled.write_batch(rows)
        self._held, self._held_bytes = [], 0

    def _put_in_order(self, name: str, order: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        """The rows of a file in `order`. The file goes."""
        parts = min(_FILES, -(-self._all_bytes * len(order) * _SHARE // (self.count * self._limit)))
        if parts <= 1:
            with self._folder.disk():
                table = _read(self._folder.path(name))
                Path(self._folder.path(name)).unlink()
            yield from _taken(table, order)
            return
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
        part_of = ranks * parts // len(order)
        names = [f"{name}-{number}" for number in range(parts)]
        self._deal(name, names, part_of)
        for number, one in enumerate(names):
            yield from self._put_in_order(one, np.argsort(ranks[part_of == number], kind="stable"))

    def _deal(self, name: str, names: Sequence[str], part_of: npt.NDArray[np.int64]) -> None:
        """Deals the rows of a file out to files of these names, each row to its part. The file goes."""
        with self._folder.disk(), ExitStack() as opened:
            writers = [opened.enter_context(self._folder.writer(one, self._schema)) for one in names]
            at = 0
            with pa.ipc.open_stream(self._folder.path(name)) as reader:
                for rows in reader:
                    own = part_of[at : at + rows.num_rows]
                    at += rows.num_rows
                    places = np.argsort(own, kind="stable")
                    bounds = np.searchsorted(own[places], np.arange(len(names) + 1))
                    for number in np.flatnonzero(np.diff(bounds)).tolist():
                        chosen = places[bounds[number] : bounds[number + 1]]
                        writers[number].write_batch(rows.take(pa.array(chosen)))
            Path(self._folder.path(name)).unlink()

    @property
    def _folder(self) -> SpillFolder:
        assert self._spill_folder is not None
        return self._spill_folder


def _read(path: str) -> pa.Table:
    with pa.ipc.open_stream(path) as reader:
        return reader.read_all().combine_chunks()


def _taken(table: pa.Table, order: Sequence[int] | npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    places = pa.array(order)
    for start in range(0, len(places), _ROWS):
        yield from table.take(places.slice(start, _ROWS)).combine_chunks().to_batches()
