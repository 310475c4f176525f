"""Contents of data blocks, written: the reverse of `rows`.

1. Avro content is byte for byte what Hudi writes for the same rows and schema.
2. Parquet content is a whole file as `records.BaseFileWriter` makes it, without bloom filter and key range.
3. HFile content has its entries sorted by key, and a text field `key` of the rows blank.

The frame around it is `hoodie.spec.encode_block`; deletes are `hoodie.logs.deletes`. Grammar and examples:
`docs/format/log-files.md`.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.hfile import HFileOptions, encode_hfile
from hoodie.logs.rows import BLANK_KEY_FIELD
from hoodie.records import BaseFileOptions, BaseFileWriter, align, encode_rows, from_avro
from hoodie.spec import RECORD_CONTENT_VERSION, RECORD_LENGTH_BYTES
from hoodie.storage import OutputFile

_MAX_BYTES: Final = (1 << 31) - 1


def encode_avro_content(rows: pa.Table, schema: str) -> bytes:
    """Content of an Avro (or change-data) block with these rows in the Avro record `schema`.

    Raises:
        Invalid: a value does not fit the schema, or the rows take more than 2 GiB: write several blocks.
    """
    values = _values(rows, schema)
    lengths = np.diff(np.frombuffer(values.buffers()[1], dtype=np.int32, count=len(values) + 1))
    start = struct.pack(">ii", RECORD_CONTENT_VERSION, len(values))
    body_bytes = int(lengths.sum()) + RECORD_LENGTH_BYTES * len(values)
    if body_bytes > _MAX_BYTES - len(start):
        raise _too_large()
    if not len(values):
        return start
    marks = np.arange(len(values) + 1, dtype=np.int32) * RECORD_LENGTH_BYTES
    buffers = [None, pa.py_buffer(marks), pa.py_buffer(lengths.astype(">i4"))]
    prefixes = pa.Array.from_buffers(pa.binary(), len(values), buffers)
    joined = pc.binary_join_element_wise(prefixes, values, b"")
    body: bytes = joined.buffers()[2].slice(0, body_bytes).to_pybytes()
    return start + body


def encode_parquet_content(rows: pa.Table, schema: str, options: BaseFileOptions | None = None) -> bytes:
    """Content of a Parquet block with these rows in the Avro record `schema`.

    Raises:
        Invalid: a value does not fit the schema.
    """
    stored = from_avro(schema)
    sink = _Memory()
    writer = BaseFileWriter(
        sink, "log block", stored, replace(options or BaseFileOptions(), bloom=None), avro_schema=schema
    )
    with writer:
        writer.write(align(rows, stored))
    return bytes(sink.data)


def encode_hfile_content(
    rows: pa.Table, schema: str, key: str = BLANK_KEY_FIELD, options: HFileOptions | None = None
) -> bytes:
    """Content of an HFile block with these rows in the Avro record `schema`, by the text column `key`.

    Raises:
        Invalid: a value does not fit the schema, or a key is NULL, there twice or longer than 32767 bytes.
    """
    keys = rows.column(key).combine_chunks()
    at = rows.schema.get_field_index(BLANK_KEY_FIELD)
    if at >= 0 and pa.types.is_string(rows.schema.field(at).type):
        rows = rows.set_column(at, rows.schema.field(at), pa.repeat("", rows.num_rows))
    return encode_hfile(keys, _values(rows, schema), schema=schema, options=options)


class _Memory(OutputFile):
    """A storage whose one file stays in memory."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def open_output(self, path: str) -> OutputFile:
        del path
        return self

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        self.data += view
        return len(view)

    def tell(self) -> int:
        return len(self.data)

    def close(self) -> None:
        self._closed = True

    def abort(self) -> None:
        self._closed = True


def _values(rows: pa.Table, schema: str) -> pa.BinaryArray:
    """Rows as bare Avro values, one after the other in one buffer."""
    encoded = encode_rows(rows, schema)
    if len(encoded) and int(encoded.ends[-1]) > _MAX_BYTES:
        raise _too_large()
    offsets = np.append(0, encoded.ends).astype(np.int32)
    data = encoded.data if isinstance(encoded.data, pa.Buffer) else pa.py_buffer(encoded.data)
    return pa.Array.from_buffers(pa.binary(), len(encoded), [None, pa.py_buffer(offsets), data])


def _too_large() -> Invalid:
    return Invalid("The rows of one block take more than 2 GiB", remedy="Write them as several blocks")
