"""Some of the rows that go by, evenly spaced over all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hoodie.services.clustering.sampled_ranks import cut_texts, sampling_step


class RowSample:
    """The columns of `schema` of each so many row (`sampling_step`), `most` at most; `is_cut`: with as much of texts as
    ranks go by.
    """

    def __init__(self, schema: pa.Schema, most: int, *, is_cut: bool) -> None:
        self._names = schema.names
        self._most = most
        self._is_cut = is_cut
        self._seen = 0
        self._step = 1
        self._held = [self._taken(schema.empty_table(), 1)]

    def add(self, rows: pa.RecordBatch) -> None:
        """Looks at the next rows."""
        table = pa.Table.from_batches([rows]).select(self._names).slice(-self._seen % self._step)
        self._held.append(self._taken(table, self._step))
        self._seen += rows.num_rows
        wanted = sampling_step(self._seen, self._most)
        if wanted > self._step:
            self._held = [self.rows.take(pa.array(np.arange(0, len(self.rows), wanted // self._step)))]
            self._step = wanted

    @property
    def rows(self) -> pa.Table:
        """The sample of all rows so far: every row while they are few."""
        return pa.concat_tables(self._held).combine_chunks()

    def _taken(self, table: pa.Table, step: int) -> pa.Table:
        few = table.take(pa.array(np.arange(0, len(table), step)))
        return pa.table([cut_texts(one) for one in few.columns], few.schema.names) if self._is_cut else few
