"""Files of rows on local disk, on their way through a sort.

1. Rows are written once and read once, after which the file is gone. Small batches are put together before they are
   written.
2. A file knows how many rows it has, how much memory they take, and some of their sort columns, evenly over all: that
   is what a sort parts them by.
3. What files that are written side by side hold in memory, rows that wait to be written and samples, is so much of a
   sort's limit, however many they are and however long their values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from hoodie.merge.spill_folder import SpillFolder
from hoodie.services.clustering.row_sample import RowSample

PARTING_SAMPLE: Final = 2048
"""Rows that are sampled of each file, at most."""

SAMPLES: Final = 8
"""Samples of all files take this part of a sort's limit."""

WAITING: Final = 2
"""Rows that wait to be written take this part of it at most. It is a quarter of that on average: half of the files are
for rows that are all alike, which are few, and half a batch waits.
"""

_BATCH_BYTES: Final = 1 << 20
"""Rows are written in batches of about so many bytes: compressed buffers of a few rows are read slowly."""

_FEW_BYTES: Final = 1 << 16
"""Batches have at least so many."""


@dataclass(frozen=True, slots=True)
class FileShare:
    """What one of several files may hold in memory: rows that wait to be written, and the sample of its rows."""

    waiting_bytes: int
    sample_bytes: int

    @classmethod
    def of(cls, limit_bytes: int, files: int) -> FileShare:
        """The share of one of so many files, all of which hold these parts of the limit."""
        waiting = min(_BATCH_BYTES, max(_FEW_BYTES, limit_bytes // (WAITING * files)))
        return cls(waiting, limit_bytes // (SAMPLES * files))


class RowFile:
    """A file of rows of `schema` in a folder, empty at first and made with the first row; `columns` are sampled."""

    def __init__(
        self, folder: SpillFolder, name: str, schema: pa.Schema, share: FileShare, columns: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.count = 0
        self.size_bytes = 0
        self._folder = folder
        self._schema = schema
        self._sample: RowSample | None = parting_sample(schema, columns, share.sample_bytes) if columns else None
        self._batch_bytes = share.waiting_bytes
        self._writer: Any = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0

    def write(self, rows: pa.RecordBatch) -> None:
        """Adds rows.

        Raises:
            Unavailable: the disk is full.
        """
        if self._sample is not None:
            self._sample.add(rows)
        self.count += rows.num_rows
        self.size_bytes += rows.nbytes
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= self._batch_bytes:
            self._flush()

    def close(self) -> None:
        """Writes what waits to be. Rows can be read now."""
        self._flush()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def drop(self) -> None:
        """Gives up the rows: the file is closed as it is, and goes with its folder."""
        self._waiting, self._waiting_bytes = [], 0
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(OSError):  # the disk may be full
                writer.close()

    def take_sample(self) -> pa.Table:
        """The sampled columns of some rows, evenly over all, once: of every row while they are few."""
        assert self._sample is not None
        rows, self._sample = self._sample.rows, None
        return rows

    def drop_sample(self) -> None:
        """Gives the sample up, where rows are not to be parted again."""
        self._sample = None

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


def parting_sample(schema: pa.Schema, columns: Sequence[str], limit_bytes: int) -> RowSample:
    """An empty sample of these columns, by which rows of `schema` can be parted."""
    sampled = pa.schema([schema.field(name) for name in columns])
    return RowSample(sampled, PARTING_SAMPLE, is_cut=False, limit_bytes=limit_bytes)
