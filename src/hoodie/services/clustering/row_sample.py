"""Some of the rows that go by, evenly spaced over all, in bounded memory.

A sample that takes too many bytes goes on with each second of its rows, as one of too many rows does. A few rows stay,
however long they are: by one row alone, the first, rows that come in order would not be parted at all.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.services.clustering.sampled_ranks import cut_texts, sampling_step

FEW_ROWS: Final = 8
"""So many rows, or half of them, stay in a sample whatever they take."""


class RowSample:
    """The columns of `schema` of each so many row (`sampling_step`), `most` at most, which take `limit_bytes` at most
    unless they are few; `is_cut`: with as much of texts as ranks go by.
    """

    def __init__(self, schema: pa.Schema, most: int, *, is_cut: bool, limit_bytes: int | None = None) -> None:
        self._names = schema.names
        self._most = most
        self._limit_bytes = limit_bytes
        self._is_cut = is_cut
        self._seen = 0
        self._step = 1
        self._held = [self._taken(schema.empty_table(), 1)]
        self._held_rows = self._held_bytes = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Looks at the next rows."""
        table = pa.Table.from_batches([rows]).select(self._names).slice(-self._seen % self._step)
        self._hold(self._taken(table, self._step))
        self._seen += rows.num_rows
        wanted = sampling_step(self._seen, self._most)
        if wanted > self._step:
            self._thin_out(wanted)
        while self._is_large:
            self._thin_out(2 * self._step)

    @property
    def rows(self) -> pa.Table:
        """The sample of all rows so far: every row while they are few."""
        return pa.concat_tables(self._held).combine_chunks()

    @property
    def _is_large(self) -> bool:
        return self._limit_bytes is not None and self._held_bytes > self._limit_bytes and self._held_rows > FEW_ROWS

    def _hold(self, few: pa.Table) -> None:
        if len(few):
            self._held.append(few)
            self._held_rows += len(few)
            self._held_bytes += few.nbytes

    def _thin_out(self, step: int) -> None:
        """Goes on with each `step`th row, a multiple of what it was."""
        rows = self.rows
        self._held, self._held_rows, self._held_bytes = self._held[:1], 0, 0  # no rows, nor the bytes of any
        self._hold(rows.take(pa.array(np.arange(0, len(rows), step // self._step))))
        self._step = step

    def _taken(self, table: pa.Table, step: int) -> pa.Table:
        few = table.take(pa.array(np.arange(0, len(table), step)))
        return pa.table([cut_texts(one) for one in few.columns], few.schema.names) if self._is_cut else few
