"""Rows of one group on their way through a sort, in bounded memory.

1. Rows come in batches and are held up to a limit. Beyond it they go to files.
2. Rows that are held are sorted by their places (`row_order`) and taken in that order.
3. The others are put in order by way of the disk (`external_sort`). Where rows compare by their own values, the first
   that were held part them, and those that follow, into files that are sorted one by one.
4. Where an order on a curve goes by a sample of all rows, this is gathered as they come and go to one file. Then they
   are sorted by words that say where they are on the curve (`curve_words`).
5. An order of a caller's own is given its columns of all rows: these are held, whatever they take.
6. The folder goes when the rows are closed (`spill_folder`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.ahead import done_ahead
from hoodie.merge.spill_folder import SpillFolder
from hoodie.services.clustering.curve_words import CurveWords, curve_sample_rows
from hoodie.services.clustering.external_sort import THREADS, ExternalSort, RowParts, ValueOrder, taken
from hoodie.services.clustering.positions import places_by
from hoodie.services.clustering.row_files import SAMPLES, FileShare, RowFile, parting_sample
from hoodie.services.clustering.row_order import ByColumns, ExecutionStrategy
from hoodie.services.clustering.row_sample import RowSample
from hoodie.services.clustering.sampled_ranks import SAMPLED_ROWS, sampling_step

Words = npt.NDArray[np.uint64]

_NEXT: Final = 4
"""Once rows have gone to files, this part of the limit is held until the next go."""


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
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._spill_folder: SpillFolder | None = None
        self._spilled: RowFile | RowParts | None = None
        self._keys: _CurveKeys | _OwnKeys | None = None

    def __enter__(self) -> SortedRows:
        return self

    def __exit__(self, *_: object) -> None:
        if self._spilled is not None:
            self._spilled.drop()
        if self._spill_folder is not None:
            self._spill_folder.close()

    def add(self, rows: pa.RecordBatch) -> None:
        """Adds rows.

        Raises:
            Unavailable: they do not fit in memory, and the disk is full.
        """
        self.count += rows.num_rows
        self._held.append(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes > (self._limit if self._spilled is None else self._limit // _NEXT):
            self._spill()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows in order, once.

        Raises:
            Unsupported: a sort column's values have no order. Unavailable: the disk is full.
        """
        if self._spilled is not None:
            self._spill()
            yield from self._by_way_of_the_disk(self._spilled)
        elif self._order is None:
            yield from self._held
        else:
            table = pa.Table.from_batches(self._held, self._schema).combine_chunks()
            self._held = []
            yield from taken(table, self._order.positions([table.column(name) for name in self._order.columns]))

    def _spill(self) -> None:
        if self._spilled is None:
            self._spilled = self._first_spill()
        if isinstance(self._spilled, RowParts):
            self._spilled.add(self._held)
        else:
            for rows in self._held:
                self._spilled.write(rows)
                if self._keys is not None:
                    self._keys.add(rows)
        self._held, self._held_bytes = [], 0

    def _first_spill(self) -> RowFile | RowParts:
        """Where the rows go: to files that those which are held part, or to one."""
        folder = SpillFolder(self._parent, "Rows to be sorted", "hoodie.memory.compaction.max.size")
        self._spill_folder = folder
        by_value = _value_order(self._order)
        if by_value is not None:
            sample = parting_sample(self._schema, by_value.columns, self._limit // SAMPLES)
            for rows in self._held:
                sample.add(rows)
            return ExternalSort(folder, self._schema, by_value, self._limit).new_parts("rows", sample.rows)
        if isinstance(self._order, ByColumns):
            self._keys = _CurveKeys(self._order, self._schema)
        elif self._order is not None:
            self._keys = _OwnKeys(self._order, self._schema)
        return RowFile(folder, "rows", self._schema, FileShare.of(self._limit, 1))

    def _by_way_of_the_disk(self, spilled: RowFile | RowParts) -> Iterator[pa.RecordBatch]:
        spilled.close()
        if isinstance(spilled, RowParts):
            yield from spilled.in_order()
        elif self._keys is None:
            yield from spilled.batches()
        else:
            assert self._spill_folder is not None
            sample, keyed = self._keys.keyed(spilled.batches())
            schema = pa.schema([*self._schema, *sample.schema])
            by_words = ValueOrder(tuple(sample.schema.names), _places_by_words, by_first=True)
            sort = ExternalSort(self._spill_folder, schema, by_words, self._limit)
            word_bytes = spilled.count * 8 * sample.num_columns
            for rows in sort.parted("keyed", keyed, sample, spilled.size_bytes + word_bytes):
                yield rows.select(self._schema.names)


class _CurveKeys:
    """Where rows are on a curve, by a sample of all that were added."""

    def __init__(self, order: ByColumns, schema: pa.Schema) -> None:
        self._order = order.order
        columns = pa.schema([schema.field(name) for name in order.columns])
        self._sample = RowSample(columns, curve_sample_rows(self._order), is_cut=True)

    def add(self, rows: pa.RecordBatch) -> None:
        """Looks at rows."""
        self._sample.add(rows)

    def keyed(self, rows: Iterator[pa.RecordBatch]) -> tuple[pa.Table, Iterator[pa.RecordBatch]]:
        """Words of some rows, and all rows with their words."""
        sample = self._sample.rows
        curve = CurveWords(self._order, sample.columns)

        def with_words(batch: pa.RecordBatch) -> pa.RecordBatch:
            columns = [pa.chunked_array([batch.column(name)]) for name in self._order.columns]
            return _with_words(batch, curve.of(columns))

        return _words_table(curve.of(sample.columns)), done_ahead(with_words, rows, THREADS)


class _OwnKeys:
    """Where rows are in an order of a caller's own, by the columns it looks at of all that were added."""

    def __init__(self, order: ExecutionStrategy, schema: pa.Schema) -> None:
        self._order = order
        self._schema = pa.schema([schema.field(name) for name in order.columns])
        self._held: list[pa.RecordBatch] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Keeps their columns."""
        self._held.append(rows.select(self._schema.names))

    def keyed(self, rows: Iterator[pa.RecordBatch]) -> tuple[pa.Table, Iterator[pa.RecordBatch]]:
        """Words of some rows, and all rows with their words."""
        table = pa.Table.from_batches(self._held, self._schema)
        self._held = []
        places = self._order.positions(table.columns)
        ranks = np.empty(len(places), dtype=np.uint64)
        ranks[places] = np.arange(len(places), dtype=np.uint64)

        def with_ranks() -> Iterator[pa.RecordBatch]:
            at = 0
            for batch in rows:
                yield _with_words(batch, [ranks[at : at + batch.num_rows]])
                at += batch.num_rows

        return _words_table([ranks[:: sampling_step(len(ranks), SAMPLED_ROWS)]]), with_ranks()


def _with_words(batch: pa.RecordBatch, words: Sequence[Words]) -> pa.RecordBatch:
    fields = [*batch.schema, *_words_table(words).schema]
    return pa.RecordBatch.from_arrays([*batch.columns, *(pa.array(one) for one in words)], schema=pa.schema(fields))


def _words_table(words: Sequence[Words]) -> pa.Table:
    """The words as columns, with names that no column of a table can have."""
    return pa.table({f"word {number}": one for number, one in enumerate(words)})


def _places_by_words(words: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.int64]:
    return places_by([one.to_numpy() for one in words])


def _value_order(order: ExecutionStrategy | None) -> ValueOrder | None:
    """The order, if rows compare by their own values alone."""
    if isinstance(order, ByColumns) and order.is_of_values:
        return ValueOrder(order.columns, order.positions, by_first=order.is_linear)
    return None
