"""Rows as bare Avro values lying one after the other in a buffer, to Arrow and back: the content of log blocks, HFiles
and delete lists.

1. One buffer holds all rows; what lies between them (lengths, keys) belongs to who made `RowBytes`.
2. Rows are decoded in chunks that fit into the processor's cache, and a chunk of the result is a chunk of the input.
3. A row must fill its bytes exactly. When only the first columns are wanted the rest of a row is not looked at.
4. Damage is `Corrupt` with the path and the place in the file; nothing is allocated because a length says so.

Format page: docs/format/avro-rows.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.errors import Corrupt
from hoodie.records.align import align, batch_of
from hoodie.records.avro_cursor import Chunk, Cursor, Damage, Positions
from hoodie.records.avro_decode import decode, ensure_cells
from hoodie.records.avro_encode import encode_record
from hoodie.records.avro_nodes import Record, parse_nodes, parse_nodes_of
from hoodie.records.avro_skip import skip

CHUNK_ROWS: Final = 1 << 14
CHUNK_BYTES: Final = 1 << 22
ENCODE_ROWS: Final = 1 << 16
ENCODE_BYTES: Final = 1 << 26

_MAX_ROW_BYTES: Final = (1 << 31) - (1 << 10)


@dataclass(frozen=True, slots=True, eq=False)
class RowBytes:
    """Avro values in a buffer: row i is `data[starts[i]:ends[i]]`. Rows ascend and do not overlap."""

    data: bytes | pa.Buffer
    starts: Positions
    ends: Positions

    def __len__(self) -> int:
        return len(self.starts)


def decode_rows(
    rows: RowBytes, schema: str, *, columns: Collection[str] | None = None, path: str = "", offset: int = 0
) -> pa.Table:
    """The rows, with the columns of the Avro record `schema` in its order, typed as `from_avro` says.

    With `columns` only those of them that the schema has. `path` and `offset` tell where the buffer lies in a file, for
    errors. Columns come in chunks of some thousand rows.

    Raises:
        Corrupt: a row is not of the schema or not inside the buffer, or the schema is none.
        Unsupported: the schema has a type that contains itself, or a VECTOR, VARIANT or BLOB.
    """
    record = parse_nodes_of(schema, path, offset)
    source = np.frombuffer(rows.data, dtype=np.uint8)
    _ensure_in_order(rows, len(source), path, offset)
    wanted = [columns is None or field.name in columns for field in record.arrow]
    arrow = pa.schema([field for field, is_wanted in zip(record.arrow, wanted, strict=True) if is_wanted])
    batches = []
    for first, last in _chunks(rows):
        start, stop = int(rows.starts[first]), int(rows.ends[last - 1])
        chunk = Chunk(source, start, stop)
        shift = chunk.first - start
        cursor = Cursor(chunk, _shifted(rows.starts[first:last], shift), _shifted(rows.ends[first:last], shift))
        try:
            ensure_cells(record, last - first, stop - start, chunk.first)
            batches.append(batch_of(_decode_columns(record, wanted, cursor), arrow, last - first))
        except Damage as damage:
            at = min(damage.at - shift, stop)  # a number may have been read on into the room behind the rows
            raise _corrupt(damage.cause, path, offset + at) from damage
    return pa.Table.from_batches(batches, schema=arrow)


def encode_rows(rows: pa.Table, schema: str) -> RowBytes:
    """The rows as values of the Avro record `schema`, without gaps: the bytes Avro's own writers give.

    Rows are aligned to the schema first: columns by name, absent ones null.

    Raises:
        Corrupt: the schema is none.
        Invalid: a value does not fit the schema.
        Unsupported: the schema has a type that contains itself, or a VECTOR, VARIANT or BLOB.
    """
    record = parse_nodes(schema)
    aligned = align(rows, pa.schema(list(record.arrow)))
    parts = [encode_record(record, part) for part in _encodable(aligned)]
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(np.diff(bounds) for _, bounds in parts)])
    ends = np.cumsum(sizes, dtype=np.int64)
    data = b"".join(content for content, _ in parts)
    return RowBytes(data, ends - sizes, ends)


def _ensure_in_order(rows: RowBytes, size: int, path: str, offset: int) -> None:
    if len(rows.starts) != len(rows.ends):
        raise ValueError("RowBytes needs as many ends as starts")
    if not len(rows):
        return
    wrong = (rows.ends < rows.starts) | (rows.ends - rows.starts > _MAX_ROW_BYTES) | (rows.ends > size)
    wrong[1:] |= rows.starts[1:] < rows.ends[:-1]
    wrong[0] |= rows.starts[0] < 0
    if wrong.any():
        row = int(wrong.argmax())
        raise _corrupt("lies outside the buffer or in another row", path, offset + int(rows.starts[row]))


def _chunks(rows: RowBytes) -> Iterator[tuple[int, int]]:
    """First and last (exclusive) row of each chunk: one row at least, else at most `CHUNK_ROWS` and `CHUNK_BYTES`."""
    first = 0
    while first < len(rows):
        reach = int(np.searchsorted(rows.ends, rows.starts[first] + CHUNK_BYTES, side="right"))
        last = max(first + 1, min(reach, first + CHUNK_ROWS))
        yield first, last
        first = last


def _shifted(positions: Positions, by: int) -> Positions:
    return positions.astype(np.int64) + by


def _decode_columns(record: Record, wanted: list[bool], cursor: Cursor) -> list[pa.Array]:
    columns = []
    # Behind the last wanted column there is nothing to do, and what is not read cannot be checked.
    count = len(wanted) if all(wanted) else max((at + 1 for at, is_wanted in enumerate(wanted) if is_wanted), default=0)
    for node, is_wanted in zip(record.fields[:count], wanted, strict=False):
        if is_wanted:
            columns.append(decode(node, cursor))
        else:
            skip(node, cursor)
    if count == len(wanted) and (short := cursor.at < cursor.stop).any():
        raise Damage(int(cursor.at[int(short.argmax())]), "goes on behind its last column")
    return columns


def _encodable(rows: pa.Table) -> Iterator[pa.StructArray]:
    """The rows in parts whose bytes Arrow's 32-bit offsets can count."""
    if rows.num_rows > ENCODE_ROWS or (rows.nbytes > ENCODE_BYTES and rows.num_rows > 1):
        half = rows.num_rows // 2
        yield from _encodable(rows.slice(0, half))
        yield from _encodable(rows.slice(half))
    elif rows.num_rows:
        yield rows.combine_chunks().to_struct_array().combine_chunks()


def _corrupt(cause: str, path: str, at: int) -> Corrupt:
    where = f"{path} at {at}" if path else f"Avro data at {at}"
    return Corrupt(
        f"{where}: a row {cause}",
        remedy="The file is damaged: restore it from a copy, or roll back the commit that wrote it",
        path=path,
        offset=at,
    )
