"""A storage with one parquet file, for tests of how much of it is read."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


class OneFile:
    """A storage with one file, which counts the bytes that are read of it."""

    def __init__(self, data: bytes, scheme: str = "memory") -> None:
        self.data = data
        self.scheme = scheme
        self.read_bytes = 0

    def open_input(self, path: str) -> Any:
        """The file, whatever its path."""
        del path
        return pa.PythonFile(_Counted(self), mode="r")


class _Counted(io.BytesIO):
    def __init__(self, file: OneFile) -> None:
        super().__init__(file.data)
        self._file = file

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self._file.read_bytes += len(found)
        return found


def many_pages(rows: pa.Table, **options: Any) -> bytes:
    """The bytes of a parquet file of the rows, in pages of 500 with an index; `options` of Arrow's go before."""
    sink = io.BytesIO()
    given = {"write_page_index": True, "data_page_size": 8192, "max_rows_per_page": 500, "write_batch_size": 100}
    pq.write_table(rows, sink, **{**given, **options})
    return sink.getvalue()
