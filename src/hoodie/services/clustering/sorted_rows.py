"""Rows of one group on their way through a sort, in bounded memory.

1. Rows come in batches and are held up to a limit. Beyond it they go to a file.
2. Rows that are held are sorted by their places (`row_order`) and taken in that order.
3. Those in a file are put in order by way of the disk (`external_sort`). Where an order looks at all rows to place one
   (ranks or samples on a curve), they are sorted by words that say where they are on it: made in memory while the sort
   columns fit there, else by way of the disk, too (`curve_words`).
4. An order of a caller's own is given its columns of all rows: these are held, whatever they take.
5. The folder goes when the rows are closed (`spill_folder`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.merge.spill_folder import SpillFolder
from hoodie.services.clustering.curve_words import by_words, curve_words
from hoodie.services.clustering.external_sort import BATCH_ROWS, ExternalSort, ValueOrder, taken
from hoodie.services.clustering.row_files import RowFile
from hoodie.services.clustering.row_order import ByColumns, ExecutionStrategy
from hoodie.services.clustering.row_pieces import RowPieces

_PLACING_BYTES: Final = 48
"""What placing a row on a curve takes for each sort column, beside the column."""


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
        self._spilled: RowFile | None = None
        self._keys: _Keys | None = None

    def __enter__(self) -> SortedRows:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._spilled, None if self._keys is None else self._keys.file):
            if file is not None:
                file.close()
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
        if self._held_bytes > self._limit:
            self._spill()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows in order, once.

        Raises:
            Unsupported: a sort column's values have no order. Unavailable: the disk is full.
        """
        if self._spilled is not None:
            yield from self._by_way_of_the_disk(self._spilled)
        elif self._order is None:
            yield from self._held
        else:
            table = pa.Table.from_batches(self._held, self._schema).combine_chunks()
            self._held = []
            yield from taken(table, self._order.positions([table.column(name) for name in self._order.columns]))

    def _spill(self) -> None:
        if self._spill_folder is None:
            folder = SpillFolder(self._parent, "Rows to be sorted", "hoodie.memory.compaction.max.size")
            by_value = _value_order(self._order)
            self._spill_folder = folder
            self._spilled = RowFile(folder, "rows", self._schema, () if by_value is None else by_value.columns)
            if self._order is not None and by_value is None:
                self._keys = _Keys(folder, self._order, self._schema, self._limit)
        assert self._spilled is not None
        for rows in self._held:
            self._spilled.write(rows)
            if self._keys is not None:
                self._keys.add(rows)
        self._held, self._held_bytes = [], 0

    def _by_way_of_the_disk(self, spilled: RowFile) -> Iterator[pa.RecordBatch]:
        assert self._spill_folder is not None
        if self._held:
            self._spill()
        spilled.close()
        by_value = _value_order(self._order)
        if self._order is None:
            yield from spilled.batches()
        elif by_value is not None:
            yield from ExternalSort(self._spill_folder, self._schema, by_value, self._limit).in_order(spilled)
        else:
            assert self._keys is not None
            words = self._keys.words()
            order = by_words(len(words.sample.schema))
            keyed = pa.schema([*self._schema, *words.sample.schema])
            sort = ExternalSort(self._spill_folder, keyed, order, self._limit)
            size_bytes = spilled.size_bytes + words.size_bytes
            for rows in sort.parted("keyed", _joined(spilled, words, keyed), words.sample, size_bytes):
                yield rows.select(self._schema.names)


class _Keys:
    """The sort columns of rows that went to a file: in memory while they fit, or while there is no other way. `file`:
    where they are when they do not.
    """

    def __init__(self, folder: SpillFolder, order: ExecutionStrategy, schema: pa.Schema, limit_bytes: int) -> None:
        self.file: RowFile | None = None
        self._folder = folder
        self._order = order
        self._schema = pa.schema([schema.field(name) for name in order.columns])
        self._limit = limit_bytes
        self._held: list[pa.RecordBatch] = []
        self._needed_bytes = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Adds the sort columns of rows."""
        keys = rows.select(self._schema.names)
        self._needed_bytes += keys.nbytes + keys.num_rows * _PLACING_BYTES * len(self._schema)
        self._held.append(keys)
        if isinstance(self._order, ByColumns) and self._needed_bytes > self._limit:
            self.file = self.file or RowFile(self._folder, "keys", self._schema)
            for held in self._held:
                self.file.write(held)
            self._held = []

    def words(self) -> RowFile:
        """A file of words by which the rows are sorted, in the order of the rows."""
        if self.file is not None:
            assert isinstance(self._order, ByColumns)
            self.file.close()
            return curve_words(self._order.order, self.file, self._folder, self._limit)
        table = pa.Table.from_batches(self._held, self._schema)
        self._held = []
        places = self._order.positions(table.columns)
        ranks = np.empty(len(places), dtype=np.uint64)
        ranks[places] = np.arange(len(places), dtype=np.uint64)
        (name,) = by_words(1).columns
        file = RowFile(self._folder, "words", pa.schema([(name, pa.uint64())]), (name,))
        for at in range(0, len(ranks), BATCH_ROWS):
            file.write(pa.RecordBatch.from_arrays([pa.array(ranks[at : at + BATCH_ROWS])], names=[name]))
        file.close()
        return file


def _value_order(order: ExecutionStrategy | None) -> ValueOrder | None:
    """The order, if rows compare by their own values alone."""
    if isinstance(order, ByColumns) and order.is_of_values:
        return ValueOrder(order.columns, order.positions)
    return None


def _joined(rows: RowFile, words: RowFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows with their words."""
    pieces = RowPieces(words.batches())
    for batch in rows.batches():
        own = pa.Table.from_batches(pieces.take(batch.num_rows)).combine_chunks().to_batches()[0]
        yield pa.RecordBatch.from_arrays([*batch.columns, *own.columns], schema=schema)
