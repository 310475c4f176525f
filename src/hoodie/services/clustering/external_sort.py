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

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.ahead import done_ahead
from hoodie.merge.spill_folder import SpillFolder
from hoodie.services.clustering.positions import Places
from hoodie.services.clustering.row_files import SAMPLES, FileShare, RowFile
from hoodie.services.clustering.row_sample import FEW_ROWS
from hoodie.services.clustering.value_numbers import numbered_values

BATCH_ROWS: Final = 1 << 16
"""Rows that are taken at once, at most."""

_BATCH_BYTES: Final = 8 << 20
"""So are bytes, about."""

_PARTING_ROWS: Final = 31
"""Rows of the sample that part the others: twice as many files and one are written at the same time, at most. They are
fewer where their values are long: a few rows of each file are in its sample, which has a share of the limit.
"""

_BATCHES: Final = 16
"""Rows are parted in batches of this part of the limit: each is taken apart, and small pieces cost as much as large."""

THREADS: Final = 2
"""Threads that part and sort while the caller writes: more would hold more rows in memory."""

_SHARE: Final = 2
"""What is sorted at once may take this part of the limit. It is held twice while it is put in order, and so are those
that threads sort ahead."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueOrder:
    """An order in which two rows compare by their own values of `columns`, whatever other rows there are. `positions`
    gives the places of rows by them, and is stable. `by_first`: a row with a lesser value in the first column comes
    before others (NULL is the least, NaN the greatest).
    """

    columns: tuple[str, ...]
    positions: Callable[[Sequence[pa.ChunkedArray]], Places]
    by_first: bool


class ExternalSort:
    """Sorts rows of `schema` by `order`, in a folder and in some parts of `limit_bytes`."""

    def __init__(self, folder: SpillFolder, schema: pa.Schema, order: ValueOrder, limit_bytes: int) -> None:
        self._folder = folder
        self._schema = schema
        self._order = order
        self._limit = limit_bytes

    def new_file(self, name: str, files: int) -> RowFile:
        """An empty file for rows that are to be sorted, one of so many that are written side by side."""
        share = FileShare.of(self._limit, files)
        return RowFile(self._folder, name, self._schema, share, self._order.columns)

    def in_order(self, file: RowFile) -> Iterator[pa.RecordBatch]:
        """The rows of a file in order, once. The file goes.

        Raises:
            Unsupported: values have no order. Unavailable: the disk is full.
        """
        if self.fits(file):
            yield from taken(*self.held(file))
        else:
            yield from self.parted(file.name, file.batches(), file.take_sample(), file.size_bytes)

    def parted(
        self, name: str, rows: Iterator[pa.RecordBatch], sample: pa.Table, size_bytes: int
    ) -> Iterator[pa.RecordBatch]:
        """Rows of about so many bytes in order. `sample`: sort columns of some of them; files are called by `name`."""
        wanted = max(1, 2 * size_bytes * _SHARE // self._limit)  # few files turn out too large
        parts = self.new_parts(name, sample, wanted)
        parts.add(rows)
        yield from parts.in_order()

    def new_parts(self, name: str, sample: pa.Table, wanted: int = _PARTING_ROWS) -> RowParts:
        """No rows yet, which `wanted` rows of the sample are to part, or as many as may."""
        places = self._order.positions(sample.columns)
        wanted = min(_PARTING_ROWS, wanted, max(1, self._most_files(sample) // 2))
        chosen = places[np.arange(1, wanted + 1) * len(places) // (wanted + 1)]
        return RowParts(self, name, _Parting(self._order, sample.take(pa.array(chosen))))

    def _most_files(self, sample: pa.Table) -> int:
        """How many files there may be, for a few rows like those of the sample to have room in the sample of each."""
        few_bytes: int = FEW_ROWS * sample.nbytes // max(1, len(sample))
        return self._limit // (SAMPLES * max(1, few_bytes))

    def fits(self, file: RowFile) -> bool:
        """Whether the rows of a file can be sorted in memory."""
        return file.count <= 1 or file.size_bytes * _SHARE <= self._limit

    def held(self, file: RowFile) -> tuple[pa.Table, Places]:
        """The rows of a file that fits in memory, and their order. The file goes."""
        table = pa.Table.from_batches(file.batches(), self._schema).combine_chunks()
        return table, self._order.positions([table.column(name) for name in self._order.columns])

    def in_large_batches(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows in batches that are worth to be parted: of as many rows or bytes as are taken at once, or of this
        part of the limit.
        """
        size_bytes = min(_BATCH_BYTES, self._limit // _BATCHES)
        held: list[pa.RecordBatch] = []
        held_rows = held_bytes = 0
        for batch in rows:
            held.append(batch)
            held_rows, held_bytes = held_rows + batch.num_rows, held_bytes + batch.nbytes
            if held_rows >= BATCH_ROWS or held_bytes >= size_bytes:
                yield from pa.Table.from_batches(held).combine_chunks().to_batches()
                held, held_rows, held_bytes = [], 0, 0
        if held:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()


class RowParts:
    """Files with the rows that lie between parting ones, called by `name`, each made with its first row."""

    def __init__(self, sort: ExternalSort, name: str, parting: _Parting) -> None:
        self._sort = sort
        self._name = name
        self._parting = parting
        self._most = 2 * parting.count + 1
        self._files: dict[int, RowFile] = {}

    def add(self, rows: Iterable[pa.RecordBatch]) -> None:
        """Adds rows.

        Raises:
            Unavailable: the disk is full.
        """
        for pieces in done_ahead(self._parting.pieces, self._sort.in_large_batches(rows), THREADS):
            for number, piece in pieces:
                if number not in self._files:
                    self._files[number] = self._sort.new_file(f"{self._name}-{number}", self._most)
                self._files[number].write(piece)

    def close(self) -> None:
        """Closes the files: rows can be read now."""
        for file in self._files.values():
            file.close()

    def drop(self) -> None:
        """Gives up the rows."""
        for file in self._files.values():
            file.drop()

    def in_order(self) -> Iterator[pa.RecordBatch]:
        """The rows in order, once. The files go.

        Raises:
            Unsupported: values have no order. Unavailable: the disk is full.
        """
        self.close()
        parts = [(self._files[number], number in self._parting.alike) for number in sorted(self._files)]
        for part, is_alike in parts:
            if is_alike or self._sort.fits(part):
                part.drop_sample()
        fitting = (part for part, is_alike in parts if not is_alike and self._sort.fits(part))
        with closing(done_ahead(self._sort.held, fitting, THREADS)) as in_memory:
            for part, is_alike in parts:
                if is_alike:
                    yield from part.batches()
                elif self._sort.fits(part):
                    yield from taken(*next(in_memory))
                else:
                    yield from self._sort.in_order(part)


class _Parting:
    """`count` rows that part others, and the numbers of the files that these go to. `alike`: files whose rows are all
    alike.
    """

    def __init__(self, order: ValueOrder, rows: pa.Table) -> None:
        self._order = order
        self._rows = rows
        self.count = len(rows)
        self._first = numbered_values(rows.column(0)) if order.by_first else None
        before, behind = self._counted(rows)
        self._least = 1 if (before - behind == len(rows)).all() else 2
        self.alike = frozenset((before + behind)[before - behind >= self._least].tolist())

    def pieces(self, batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
        """The rows of a batch by the numbers of their files."""
        before, behind = self._counted(batch)
        numbers = np.where(before - behind >= self._least, before + behind, 2 * before)
        grouped = np.argsort(numbers.astype(np.uint8), kind="stable")  # numpy sorts small numbers by their digits
        found, first = np.unique(numbers[grouped], return_index=True)
        ends = [*first[1:], len(grouped)]
        return [
            (number, batch.take(pa.array(grouped[at:end])))
            for number, at, end in zip(found.tolist(), first, ends, strict=True)
        ]

    def _counted(self, batch: pa.RecordBatch | pa.Table) -> tuple[Places, Places]:
        """For each row how many parting rows are not behind it, and how many lie before it."""
        if self._first is None:
            return self._compared(batch)
        behind, before = self._first.counted(pa.chunked_array(_chunks(batch.column(self._order.columns[0]))))
        (unknown,) = np.nonzero(before != behind)  # numbers say that they are near a parting row, not on which side
        if len(unknown):
            before[unknown], behind[unknown] = self._compared(batch.take(pa.array(unknown)))
        return before, behind

    def _compared(self, batch: pa.RecordBatch | pa.Table) -> tuple[Places, Places]:
        """What `_counted` gives, by putting parting rows and others in order together."""
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
    rows = min(BATCH_ROWS, max(1, _BATCH_BYTES * len(places) // max(1, table.nbytes)))
    for start in range(0, len(places), rows):
        yield from table.take(places.slice(start, rows)).combine_chunks().to_batches()
