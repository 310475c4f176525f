"""Writes the next version of a base file: row groups that did not change are copied, rows of the others are encoded.

1. Rows between two runs of copied row groups are encoded to Parquet files in memory, whose row groups are copied like
   the others. So there is one way to make a footer. Memory holds two encoded row groups of the wanted size.
2. Of a row group whose rows stay, columns that did not change are copied as well (`change`).
3. A row group that is encoded anew stays one: it may grow to twice the wanted size before it is split. Groups would
   fall to pieces otherwise, a little with each write.
4. Keys are collected as by the writer that encodes all rows: where its footer is inherited, those of copied row groups
   are covered by it, else they are read.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa

from hoodie.records.base_file import InputStorage, read_footer
from hoodie.records.base_file_reader import iter_batches
from hoodie.records.base_file_writer import (
    BaseFileOptions,
    BaseFileWriter,
    KeyCollector,
    OutputStorage,
    avro_text,
)
from hoodie.records.footer import AVRO_SCHEMA_FOOTER_KEY, MODEL_FOOTER_KEY, BaseFooter
from hoodie.records.joined_keys import KeyFooter
from hoodie.records.parquet_layout import ParquetLayout, load_layout, why_not_copied
from hoodie.records.row_group_copy import RowGroupCopy
from hoodie.records.schema import KEY_FIELD
from hoodie.records.unfinished_file import BaseFileStats

_ROWS: Final = "rows.parquet"
_GROWTH: Final = 2


def patched_like(layout: ParquetLayout, schema: pa.Schema) -> ParquetLayout | None:
    """What the footer of a file is like which has rows of `schema` that are encoded here, and row groups of the file;
    None when they do not fit into one file.
    """
    encoded = _encoded_layout(schema)
    if why_not_copied(layout, encoded) is not None:
        return None
    return layout if layout.footer.schema.equals(schema) else encoded


class PatchedFileWriter:
    """One base file being written, of rows and of row groups. Use as a context manager: leaving it normally closes, an
    exception aborts.
    """

    def __init__(  # noqa: PLR0917
        self,
        storage: OutputStorage,
        path: str,
        schema: pa.Schema,
        options: BaseFileOptions,
        like: ParquetLayout,
        file_name: str | None,
        *,
        table_name: str,
        inherit: BaseFooter | None,
    ) -> None:
        """Opens `path`. `like` is what its footer is like (`patched_like`), `file_name` what rows say they lie in;
        `inherit` as `BaseFileWriter` has it.
        """
        self._schema = schema
        self._options = replace(options, bloom=None, row_group_bytes=_GROWTH * options.row_group_bytes)
        self._avro_schema = avro_text(schema, table_name)
        self._keys = KeyCollector(options.bloom, inherit) if options.bloom and KEY_FIELD in schema.names else None
        self._encoder: BaseFileWriter | None = None
        self._memory = _Memory()
        self._copy = RowGroupCopy(storage, path, like, file_name, self._key_footer)

    def write(self, rows: pa.Table, *, inherited: bool = False) -> None:
        """Appends rows. As `BaseFileWriter.write`."""
        if not rows.num_rows:
            return
        if self._encoder is None:
            self._encoder = BaseFileWriter(self._memory, _ROWS, self._schema, self._options, avro_schema="")
        self._encoder.write(rows, inherited=inherited)
        if self._keys is not None:
            self._keys.add(rows.column(KEY_FIELD), inherited=inherited)
        if self._encoder.size_estimate() > self._options.row_group_bytes:
            self._settle()

    def copy(self, storage: InputStorage, layout: ParquetLayout, groups: Collection[int]) -> None:
        """Appends row groups of a file, as they are.

        Raises:
            Corrupt: the file is damaged. Missing: it is gone. Unavailable: a storage failed.
        """
        self._settle()
        self._copy.copy(storage, layout, groups)
        self._add_keys(storage, layout, groups)

    def change(self, storage: InputStorage, layout: ParquetLayout, group: int, columns: pa.Table) -> None:
        """Appends a row group of a file with `columns` in place of its own: as many rows, of the same keys.

        Raises:
            Corrupt: the file is damaged. Missing: it is gone. Unavailable: a storage failed.
        """
        self._settle()
        memory = _Memory()
        schema = pa.schema([self._schema.field(name) for name in columns.schema.names])
        options = replace(self._options, row_group_bytes=sys.maxsize)
        with BaseFileWriter(memory, _ROWS, schema, options, avro_schema="") as encoder:
            encoder.write(columns)
        self._copy.copy_with(storage, layout, group, memory, memory.layout())
        self._add_keys(storage, layout, (group,))

    def close(self) -> BaseFileStats:
        """Finishes the file and makes it durable; what was written. Closing twice gives the same answer."""
        self._settle()
        return self._copy.close()

    def footer(self) -> BaseFooter:
        """The footer of the file, which is closed."""
        return self._copy.footer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.close()
        finally:
            if self._encoder is not None:
                self._encoder.abort()
            self._copy.abort()

    def _add_keys(self, storage: InputStorage, layout: ParquetLayout, groups: Collection[int]) -> None:
        """Adds the keys of row groups that were copied, where they are not inherited."""
        if self._keys is None or self._keys.inherits:
            return
        for batch in iter_batches(storage, layout.path, [KEY_FIELD], footer=layout.footer, groups=groups):
            self._keys.add(pa.chunked_array([batch.column(0)]), inherited=True)

    def _settle(self) -> None:
        """Copies the rows that were encoded in memory."""
        if self._encoder is None:
            return
        self._encoder.close()
        self._encoder = None
        self._copy.copy(self._memory, self._memory.layout())

    def _key_footer(self) -> KeyFooter:
        values = {AVRO_SCHEMA_FOOTER_KEY: self._avro_schema, MODEL_FOOTER_KEY: "avro"}
        if self._keys is None:
            return KeyFooter(values, None)
        return KeyFooter(values | self._keys.footer(), self._keys.range)


class _Memory:
    """A storage of one file, in memory, which can be written again."""

    scheme = "memory"

    def __init__(self) -> None:
        self._buffer = pa.py_buffer(b"")

    def open_output(self, path: str) -> Any:
        del path
        return _MemoryFile(self)

    def open_input(self, path: str) -> Any:
        del path
        return pa.BufferReader(self._buffer)

    def keep(self, buffer: pa.Buffer) -> None:
        self._buffer = buffer

    def layout(self) -> ParquetLayout:
        """The layout of the file."""
        layout = load_layout(self, read_footer(self, _ROWS))
        assert layout is not None
        return layout


class _MemoryFile:
    """The file being written."""

    def __init__(self, memory: _Memory) -> None:
        self._memory = memory
        self._out = pa.BufferOutputStream()
        self.closed = False

    def write(self, data: Any) -> int:
        return int(self._out.write(data))

    def close(self) -> None:
        self.closed = True
        self._memory.keep(self._out.getvalue())

    def abort(self) -> None:
        self.closed = True


@lru_cache(16)
def _encoded_layout(schema: pa.Schema) -> ParquetLayout:
    """The layout of a file of this schema without rows, as it is encoded here."""
    memory = _Memory()
    with BaseFileWriter(memory, _ROWS, schema, BaseFileOptions(bloom=None), avro_schema=""):
        pass
    return memory.layout()
