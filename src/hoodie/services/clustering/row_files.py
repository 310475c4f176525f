"""Files of rows on local disk, on their way through a sort.

1. Rows are written once and read once, after which the file is gone. Small batches are put together before they are
   written.
2. A file knows how many rows it has, how much memory they take, and some of their sort columns, evenly over all: that
   is what a sort parts them by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from hoodie.merge.spill_folder import SpillFolder
from hoodie.services.clustering.row_sample import RowSample

PARTING_SAMPLE: Final = 2048
_BATCH_BYTES: Final = 1 << 20
"""Rows are written in batches of about so many bytes: compressed buffers of a few rows are read slowly."""


class RowFile:
    """A file of rows of `schema` in a folder, empty at first and made with the first row; `columns` are sampled."""

    def __init__(self, folder: SpillFolder, name: str, schema: pa.Schema, columns: Sequence[str] = ()) -> None:
        self.name = name
        self.count = 0
        self.size_bytes = 0
        self._folder = folder
        self._schema = schema
        self._sample = RowSample(pa.schema([schema.field(one) for one in columns]), PARTING_SAMPLE, is_cut=False)
        self._writer: Any = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0

    def write(self, rows: pa.RecordBatch) -> None:
        """Adds rows.

        Raises:
            Unavailable: the disk is full.
        """
        self._sample.add(rows)
        self.count += rows.num_rows
        self.size_bytes += rows.nbytes
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= _BATCH_BYTES:
            self._flush()

    def close(self) -> None:
        """Writes what waits to be. Rows can be read now."""
        self._flush()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    @property
    def sample(self) -> pa.Table:
        """The sampled columns of some rows, evenly over all: of every row while they are few."""
        return self._sample.rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as they came. The file goes afterwards.

        Raises:
            Unavailable: the disk refuses.
        """
        if self.count:
            with self._folder.disk(), pa.OSFile(self._path) as file, pa.ipc.open_stream(file) as reader:  # no map
                yield from reader
            Path(self._path).unlink()

    @property
    def _path(self) -> str:
        return self._folder.path(self.name)

    def _flush(self) -> None:
        if not self._waiting:
            return
        with self._folder.disk():
            if self._writer is None:
                self._writer = self._folder.writer(self.name, self._schema)
            for batch in pa.Table.from_batches(self._waiting, self._schema).combine_chunks().to_batches():
                self._writer.write_batch(batch)
        self._waiting, self._waiting_bytes = [], 0
