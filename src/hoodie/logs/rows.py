"""Rows of data blocks in Arrow, whatever form they are stored in.

1. The schema in the block's header says what rows are: names, order and types come from it (`records.from_avro`), so
   that Avro, Parquet and HFile blocks of one write give the same table, in the types base files have.
2. An Avro block is decoded whole or, with `columns`, up to the last column wanted. Of a Parquet block only the wanted
   columns are read.
3. An HFile stores rows with a text field `key` blank, since its entries have it as their key: it is filled in again.
4. A partial block has some columns of the table; those it has are all there is.

It does not know which rows win. Grammar and examples: `docs/format/log-files.md`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.errors import Corrupt, Invalid
from hoodie.hfile import HFile, KeyValues, open_hfile
from hoodie.logs.content_input import ContentStorage
from hoodie.logs.read import RangeStorage, damaged, read_content
from hoodie.records import RowBytes, align, decode_rows, read_columns, read_footer, verify_base_file
from hoodie.spec import RECORD_LENGTH_BYTES, BlockKind, LogBlock, parse_record_marks

BLANK_KEY_FIELD: Final = "key"
"""Field of HFile rows whose value is the key of their entry."""


def read_block_rows(storage: RangeStorage, block: LogBlock, *, columns: Collection[str] | None = None) -> pa.Table:
    """Rows of a data or change-data block, in the order of the block and the schema of its header.

    `columns`: of the block's columns only these, in the order of the schema; names it does not have are no error.

    Raises:
        Corrupt: the content or the schema is damaged; with path and offset.
        Unsupported: the schema has a type that Arrow cannot hold.
        Invalid: the block is of a kind that holds no rows.
    """
    match block.kind:
        case BlockKind.AVRO_DATA | BlockKind.CDC_DATA:
            return _avro_rows(storage, block, columns)
        case BlockKind.PARQUET_DATA:
            return _parquet_rows(storage, block, columns)
        case BlockKind.HFILE_DATA:
            parts = (rows_of_entries(part, block, columns) for part in open_block_hfile(storage, block).scan())
            # From batches, not by concatenating tables: those forget how many rows they have without columns.
            batches = [batch for part in parts for batch in part.to_batches()]
            return pa.Table.from_batches(batches, schema=_schema_of(block, columns))
    raise Invalid(f"A block of kind {block.kind.name} holds no rows", path=block.path, offset=block.start)


def verify_parquet_block(storage: RangeStorage, block: LogBlock) -> None:
    """Checks that every value of a Parquet block can be decoded, and that every page has its checksum, where it has
    one; reading rows does not compare them.

    Raises:
        Corrupt: the content is damaged; with path and offset.
    """
    try:
        verify_base_file(ContentStorage(storage, block, whole=True), block.path)
    except Corrupt as error:
        raise damaged(block, f"cannot be read: {error.cause}") from error


def open_block_hfile(storage: RangeStorage, block: LogBlock) -> HFile:
    """The content of an HFile block, for looking up keys. A large one is read by ranges.

    Raises:
        Corrupt: not an HFile.
        Invalid: a block of another kind.
    """
    if block.kind is not BlockKind.HFILE_DATA:
        raise Invalid(f"A block of kind {block.kind.name} holds no HFile", path=block.path, offset=block.start)
    content = ContentStorage(storage, block, whole=False)
    return open_hfile(content.read, block.content_bytes, block.path, start=block.content_start)


def rows_of_entries(entries: KeyValues, block: LogBlock, columns: Collection[str] | None = None) -> pa.Table:
    """Rows that entries of an HFile block hold, in the order of the entries.

    Raises:
        Corrupt: a value does not fit the block's schema, or a key is not UTF-8.
    """
    rows = _decoded(RowBytes(entries.data, entries.starts, entries.ends), block, columns)
    at = rows.schema.get_field_index(BLANK_KEY_FIELD)
    if at < 0 or not pa.types.is_string(rows.schema.field(at).type):
        return rows
    try:
        return rows.set_column(at, rows.schema.field(at), entries.keys.cast(pa.string()))
    except pa.ArrowInvalid as error:
        raise damaged(block, f"has a key that is not UTF-8: {error}") from error


def _avro_rows(storage: RangeStorage, block: LogBlock, columns: Collection[str] | None) -> pa.Table:
    content = read_content(storage, block)
    marks = np.frombuffer(parse_record_marks(content, block.path, block.content_start), dtype=np.int64)
    return _decoded(RowBytes(content, marks[:-1] + RECORD_LENGTH_BYTES, marks[1:]), block, columns)


def _decoded(rows: RowBytes, block: LogBlock, columns: Collection[str] | None) -> pa.Table:
    return decode_rows(rows, block.schema, columns=columns, path=block.path, offset=block.content_start)


def _parquet_rows(storage: RangeStorage, block: LogBlock, columns: Collection[str] | None) -> pa.Table:
    wanted = _schema_of(block, columns)
    content = ContentStorage(storage, block, whole=columns is None)
    try:
        footer = read_footer(content, block.path)
        stored = [name for name in wanted.names if name in footer.schema.names]
        return align(read_columns(content, block.path, stored, footer=footer), wanted)
    except Corrupt as error:
        raise damaged(block, f"cannot be read: {error.cause}") from error
    except Invalid as error:
        raise damaged(block, f"does not hold what its schema says: {error.cause}") from error


def _schema_of(block: LogBlock, columns: Collection[str] | None) -> pa.Schema:
    """The schema of the block's rows in Arrow."""
    none = np.empty(0, dtype=np.int64)
    return _decoded(RowBytes(b"no rows", none, none), block, columns).schema
