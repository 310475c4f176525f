"""Batches of rows that are given out a number of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


class RowPieces:
    """Rows that come in batches of any size, and are taken from in pieces."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._rest: pa.RecordBatch | None = None

    def take(self, count: int) -> Iterator[pa.RecordBatch]:
        """The next `count` rows, or what is left."""
        while count:
            batch = next(self._batches, None) if self._rest is None else self._rest
            self._rest = None
            if batch is None:
                return
            if batch.num_rows > count:
                self._rest = batch.slice(count)
                batch = batch.slice(0, count)
            count -= batch.num_rows
            yield batch
