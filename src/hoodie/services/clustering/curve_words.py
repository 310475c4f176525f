"""Where rows are on a curve, when the places of one depend on all others and there are more than fit in memory.

1. A rank counts the rows below a value. Each column is sorted by itself, by way of the disk, and its ranks are brought
   back to the order of the rows: in memory while they fit there, else by another sort. They are the ranks that
   `positions` finds in memory.
2. Bounds of a sample are those of the same rows that `hudi_curves` takes in memory.
3. What comes out is words: columns of 64-bit numbers, for each row, that sort as the rows do. Two rows compare by them
   alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.ahead import done_ahead
from hoodie.engine import side_by_side
from hoodie.merge.spill_folder import SpillFolder
from hoodie.services.clustering.curves import Ranks
from hoodie.services.clustering.external_sort import BATCH_ROWS, THREADS, ExternalSort, ValueOrder
from hoodie.services.clustering.hudi_curves import sampled_words, sampling_step
from hoodie.services.clustering.positions import (
    curve_bits,
    curve_word,
    ordered_values,
    scaled_ranks,
    sorted_positions,
    value_ranks,
)
from hoodie.services.clustering.row_files import RowFile
from hoodie.services.clustering.row_pieces import RowPieces
from hoodie.spec import Curve, CurveMethod, SortOrder

_HELD_BYTES: Final = 4
_PLACED = pa.schema([("place", pa.int64()), ("rank", pa.uint64())])


def by_words(count: int) -> ValueOrder:
    """The order of so many words."""
    names = tuple(f"_word_{number}" for number in range(count))
    return ValueOrder(names, lambda words: np.lexsort([one.to_numpy() for one in reversed(words)]))


def curve_words(order: SortOrder, keys: RowFile, folder: SpillFolder, limit_bytes: int) -> RowFile:
    """A file of the words of all rows, in their order. `keys` has the columns of `order`, of all rows; it goes.

    Raises:
        Unsupported: values that have no order. Unavailable: the disk is full.
    """
    found = (
        _by_sample(order, keys) if order.method is CurveMethod.SAMPLE else _by_ranks(order, keys, folder, limit_bytes)
    )
    file: RowFile | None = None
    for words in found:
        names = by_words(len(words)).columns
        file = file or RowFile(folder, "words", pa.schema([(name, pa.uint64()) for name in names]), names)
        file.write(pa.RecordBatch.from_arrays([pa.array(one) for one in words], names=list(names)))
    assert file is not None, "nobody spills no rows"
    file.close()
    return file


def _by_sample(order: SortOrder, keys: RowFile) -> Iterator[Sequence[Ranks]]:
    step = sampling_step(keys.count, order.sample_size)
    at, few = 0, []
    for batch in keys.batches(is_kept=True):
        few.append(batch.take(pa.array(np.arange(-at % step, batch.num_rows, step))))
        at += batch.num_rows
    sampled = pa.Table.from_batches(few).combine_chunks()
    for batch in keys.batches():
        columns = pa.Table.from_batches([batch]).columns
        yield sampled_words(columns, order.columns, sampled.columns, hilbert=order.curve is Curve.HILBERT)


def _by_ranks(order: SortOrder, keys: RowFile, folder: SpillFolder, limit_bytes: int) -> Iterator[Sequence[Ranks]]:
    count = len(order.columns)
    bits = curve_bits(count)
    ranked = [_Ranked(folder, name, number, max(1, limit_bytes // count)) for number, name in enumerate(order.columns)]
    for batch in keys.batches():
        for column in ranked:
            column.add(pa.chunked_array([batch.column(column.name)]))
    side_by_side(*(column.rank for column in ranked))

    def words(ranks: Sequence[Ranks]) -> Sequence[Ranks]:
        scaled = [scaled_ranks(one, column.most, bits) for one, column in zip(ranks, ranked, strict=True)]
        return [curve_word(scaled, order.curve, bits)]

    yield from done_ahead(words, _ranks_of_rows(ranked), THREADS)


def _ranks_of_rows(ranked: Sequence[_Ranked]) -> Iterator[Sequence[Ranks]]:
    """The ranks of all columns, in the order of the rows, some rows at a time."""
    streams = [RowPieces(column.in_row_order()) for column in ranked]
    while (first := next(streams[0].take(BATCH_ROWS), None)) is not None:
        others = [pa.Table.from_batches(one.take(first.num_rows)) for one in streams[1:]]
        yield [one.column("rank").to_numpy() for one in (first, *others)]


class _Ranked:
    """A column on its way to ranks. `most`: the greatest, when all are known."""

    def __init__(self, folder: SpillFolder, name: str, number: int, limit_bytes: int) -> None:
        self.name = name
        self.most = 1
        self._rows = 0
        self._folder = folder
        self._limit = limit_bytes
        self._number = number
        self._values: tuple[ExternalSort, RowFile] | None = None
        by_place = ValueOrder(("place",), lambda one: np.argsort(one[0].to_numpy(), kind="stable"))
        self._by_place = ExternalSort(folder, _PLACED, by_place, limit_bytes)
        self._ranks = self._by_place.new_file(f"rank-{number}")
        self._held: npt.NDArray[np.uint32] | None = None

    def add(self, column: pa.ChunkedArray) -> None:
        """Adds the values of more rows."""
        values = ordered_values(column).combine_chunks()
        schema = pa.schema([("value", values.type), ("place", pa.int64())])
        if self._values is None:
            by_value = ValueOrder(("value",), lambda one: sorted_positions(one, (self.name,), Curve.LINEAR))
            sort = ExternalSort(self._folder, schema, by_value, self._limit)
            self._values = sort, sort.new_file(f"value-{self._number}")
        places = pa.array(np.arange(self._rows, self._rows + len(values)))
        self._values[1].write(pa.RecordBatch.from_arrays([_one_array(values), places], schema=schema))
        self._rows += len(values)

    def rank(self) -> None:
        """Ranks all values."""
        if self._values is None:
            return
        sort, file = self._values
        file.close()
        if self._rows * _HELD_BYTES <= self._limit:
            self._held = np.empty(self._rows, np.uint32)
        seen, last, rank = 0, None, 0
        for batch in sort.in_order(file):
            values = batch.column("value")
            before = values.slice(0, 1) if last is None else last
            dense = value_ranks(pa.chunked_array([before, values]), self.name, "dense")
            is_new = dense[1:] != dense[:-1]
            is_new[0] |= last is None
            ranks = np.where(is_new, np.arange(seen + 1, seen + 1 + len(values), dtype=np.uint64), np.uint64(0))
            ranks[0] = max(ranks[0], np.uint64(rank))
            ranks = np.maximum.accumulate(ranks)
            ranks[dense[1:] == 0] = 0  # NULL
            if self._held is not None:
                self._held[batch.column("place").to_numpy()] = ranks
            else:
                self._ranks.write(pa.RecordBatch.from_arrays([batch.column("place"), pa.array(ranks)], schema=_PLACED))
            seen, last, rank = seen + len(values), _copied(values.slice(len(values) - 1)), int(ranks[-1])
        self._ranks.close()
        self.most = max(1, rank)

    def in_row_order(self) -> Iterator[pa.RecordBatch]:
        """The ranks in the order of the rows."""
        if self._held is None:
            yield from self._by_place.in_order(self._ranks)
            return
        for at in range(0, self._rows, BATCH_ROWS):
            ranks = self._held[at : at + BATCH_ROWS].astype(np.uint64)
            yield pa.RecordBatch.from_arrays(
                [pa.array(np.arange(at, at + len(ranks))), pa.array(ranks)], schema=_PLACED
            )


def _one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values


def _copied(values: pa.Array) -> pa.Array:
    return values.take(pa.array([0]))
