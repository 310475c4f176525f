"""The rows of a query, on their way to whoever wants them: an Arrow stream with doors to other libraries.

1. Rows can be read once, and asking again is an error: none would pass for an answer. Nothing is read before the first
   batch is asked for.
2. pandas, polars and DuckDB are loaded when they are asked for; polars and DuckDB are no dependencies of this package.
3. Whatever takes an Arrow stream (`pa.table(rows)`, `pl.from_arrow(rows)`, DuckDB's SQL) takes this.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.notebook import Displayed


class Rows(Displayed):
    """A stream of record batches of one schema. What gives rows raises `Invalid` when all have been given already."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader
        self._is_read = False

    @property
    def schema(self) -> pa.Schema:
        return self._reader.schema

    @property
    def reader(self) -> pa.RecordBatchReader:
        """The same stream as pyarrow's own class."""
        return self._reader

    def peek(self, count: int) -> pa.Table:
        """The first rows, at most `count` of the next batch. They are read for it, and stay part of the stream."""
        schema, rest = self.schema, self._reader
        first = next(iter(rest), None)
        if first is None:
            return schema.empty_table()
        self._reader = pa.RecordBatchReader.from_batches(schema, itertools.chain((first,), rest))
        return pa.Table.from_batches([first.slice(0, count)])

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._ensure_unread()
        return self._batches()

    def __next__(self) -> pa.RecordBatch:
        return self.read_next_batch()

    def read_next_batch(self) -> pa.RecordBatch:
        """The next batch.

        Raises:
            StopIteration: there is none.
        """
        try:
            return self._reader.read_next_batch()
        except StopIteration:
            self._is_read = True
            raise

    def read_all(self) -> pa.Table:
        """All rows that are left."""
        return self._rest().read_all()

    def to_arrow(self) -> pa.Table:
        """All rows that are left, as an Arrow table."""
        return self._rest().read_all()

    def to_batches(self) -> list[pa.RecordBatch]:
        """All batches that are left."""
        return list(self._rest())

    def to_pylist(self) -> list[dict[str, Any]]:
        """All rows that are left, as dicts."""
        return self._rest().read_all().to_pylist()  # type: ignore[no-any-return]

    def to_pandas(self, **options: Any) -> Any:
        """All rows that are left, as a pandas DataFrame; `options` are those of `pyarrow.Table.to_pandas`."""
        return self._rest().read_all().to_pandas(**options)

    def to_polars(self) -> Any:
        """All rows that are left, as a polars DataFrame.

        Raises:
            Invalid: polars is not installed.
        """
        return _library("polars").from_arrow(self._rest().read_all())

    def to_duckdb(self, connection: Any = None) -> Any:
        """All rows that are left, as a DuckDB relation; `connection` defaults to DuckDB's own.

        The rows are held in memory, since DuckDB runs a relation again each time it is looked at.

        Raises:
            Invalid: duckdb is not installed.
        """
        duckdb = _library("duckdb")
        return (connection or duckdb).from_arrow(self._rest().read_all())

    def close(self) -> None:
        """Ends reading: threads stop, files are closed, and no row is left."""
        self._reader.close()
        self._is_read = False
        self._reader = pa.RecordBatchReader.from_batches(self.schema, [])

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._rest().__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._reader
        self._is_read = True

    def _rest(self) -> pa.RecordBatchReader:
        """What is left, for one who takes all of it."""
        self._ensure_unread()
        self._is_read = True
        return self._reader

    def _ensure_unread(self) -> None:
        if self._is_read:
            raise Invalid("These rows have been read", remedy="Keep what read_all() gave, or ask the table again")

    def __repr__(self) -> str:
        columns = "\n".join(f"  {field.name}: {field.type}" for field in self.schema)
        return f"Rows, read once, with the columns\n{columns}"


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Invalid(
            f"{name} is not installed", remedy=f"Install it (pip install {name}), or use to_pandas() or read_all()"
        ) from error
