"""Rows that do not fit in memory, put in order by way of the disk.

1. Rows of a sample part the others: each goes to the file of those that lie between the same two of them. A file that
   fits in memory is read and sorted, a larger one is parted again. All files of one level are in order.
2. Nothing is asked of an order but the places it gives to rows (`ValueOrder`): a batch is put in order together with
   the rows of the sample, once before and once behind it. A stable order then has rows like one of the sample between
   its two copies, lesser ones before the first and greater ones behind the second.
3. Rows that are like each other, however many, need no order. Those like two rows of the sample have a file of their
   own, which is read as it was written. So each file of a level lacks a row that its parent has: the recursion ends.
4. It is stable: files keep the order in which rows came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.merge.spill_folder import SpillFolder
from hoodie.services.clustering.row_files import RowFile

Places = npt.NDArray[np.int64]

BATCH_ROWS: Final = 1 << 16
"""Rows that are taken at once."""

_PARTING_ROWS: Final = 31
"""Rows of the sample that part the others: twice as many files and one are written at the same time, at most."""

_SHARE: Final = 4
"""What is sorted at once may take this part of the limit: it is held twice while it is put in order."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueOrder:
    """An order in which two rows compare by their own values of `columns`, whatever other rows there are. `positions`
    gives the places of rows by them, and is stable.
    """

    columns: tuple[str, ...]
    positions: Callable[[Sequence[pa.ChunkedArray]], Places]


class ExternalSort:
    """Sorts rows of `schema` by `order`, in a folder and in some parts of `limit_bytes`."""

    def __init__(self, folder: SpillFolder, schema: pa.Schema, order: ValueOrder, limit_bytes: int) -> None:
        self._folder = folder
        self._schema = schema
        self._order = order
        self._limit = limit_bytes

    def new_file(self, name: str) -> RowFile:
        """An empty file for rows that are to be sorted."""
        return RowFile(self._folder, name, self._schema, self._order.columns)

    def in_order(self, file: RowFile) -> Iterator[pa.RecordBatch]:
        """The rows of a file in order, once. The file goes.

        Raises:
            Unsupported: values have no order. Unavailable: the disk is full.
        """
        if file.count <= 1 or file.size_bytes * _SHARE <= self._limit:
            table = pa.Table.from_batches(file.batches(), self._schema).combine_chunks()
            yield from taken(table, self._order.positions([table.column(name) for name in self._order.columns]))
            return
        yield from self.parted(file.name, file.batches(), file.sample, file.size_bytes)

    def parted(
        self, name: str, rows: Iterator[pa.RecordBatch], sample: pa.Table, size_bytes: int
    ) -> Iterator[pa.RecordBatch]:
        """Rows of about so many bytes in order. `sample`: sort columns of some of them; files are called by `name`."""
        places = self._order.positions(sample.columns)
        wanted = min(_PARTING_ROWS, max(1, size_bytes * _SHARE // self._limit))
        chosen = places[np.arange(1, wanted + 1) * len(places) // (wanted + 1)]
        parting = _Parting(self._order, sample.take(pa.array(chosen)))
        files: dict[int, RowFile] = {}
        for batch in rows:
            numbers = parting.numbers(batch)
            grouped = np.argsort(numbers, kind="stable")
            found, first = np.unique(numbers[grouped], return_index=True)
            for number, at, end in zip(found.tolist(), first, [*first[1:], len(grouped)], strict=True):
                file = files.setdefault(number, self.new_file(f"{name}-{number}"))
                file.write(batch.take(pa.array(grouped[at:end])))
        for file in files.values():
            file.close()
        for number in sorted(files):
            part = files.pop(number)
            yield from part.batches() if number in parting.alike else self.in_order(part)


class _Parting:
    """Rows that part others, and the numbers of the files that these go to. `alike`: files whose rows are all alike."""

    def __init__(self, order: ValueOrder, rows: pa.Table) -> None:
        self._order = order
        self._rows = rows
        before, behind = self._counted(rows)
        self._least = 1 if (before - behind == len(rows)).all() else 2
        self.alike = frozenset((before + behind)[before - behind >= self._least].tolist())

    def numbers(self, batch: pa.RecordBatch) -> Places:
        """The file of each row."""
        before, behind = self._counted(batch)
        found: Places = np.where(before - behind >= self._least, before + behind, 2 * before)
        return found

    def _counted(self, batch: pa.RecordBatch | pa.Table) -> tuple[Places, Places]:
        """For each row how many parting rows are not behind it, and how many lie before it."""
        asked, parts = batch.num_rows, len(self._rows)
        places = self._order.positions(
            [
                pa.chunked_array([*one.chunks, *_chunks(batch.column(name)), *one.chunks])
                for name, one in zip(self._order.columns, self._rows.columns, strict=True)
            ]
        )
        counts = []
        for first in (0, parts + asked):
            is_part = (places >= first) & (places < first + parts)
            count = np.empty(len(places), dtype=np.int64)
            count[places] = np.cumsum(is_part)
            counts.append(count[parts : parts + asked])
        return counts[0], counts[1]


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def taken(table: pa.Table, order: Places) -> Iterator[pa.RecordBatch]:
    """The rows of the table at these places."""
    places = pa.array(order)
    for start in range(0, len(places), BATCH_ROWS):
        yield from table.take(places.slice(start, BATCH_ROWS)).combine_chunks().to_batches()
