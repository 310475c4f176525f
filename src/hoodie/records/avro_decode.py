"""Arrow arrays from Avro values of many rows, read in step.

1. A field is decoded for all rows before the next one is looked at. Every read checks every row's bounds.
2. Where a union has different branches in different rows, each branch is decoded for its rows and then spread over all
   rows, null elsewhere. Rows that all have the same branch, the common case, are not taken apart.
3. The items of arrays and maps are one long column, decoded like rows (`avro_skip.py` says where they start).
4. Texts are UTF-8 and decimals fit their precision, or the row is damaged.
5. What is built is limited by the bytes there are: `MAX_CELLS_PER_BYTE`. Only nulls of wide structs can be many in few
   bytes.

It does not know where rows come from (`avro_rows.py`).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.records.avro_cursor import (
    NO_BRANCH,
    NO_SYMBOL,
    Chunk,
    Cursor,
    Damage,
    Longs,
    Positions,
    Words,
    bytes_of,
)
from hoodie.records.avro_nodes import Enum, Fixed, Leaf, Node, Record, Repeated, Union
from hoodie.records.avro_skip import item_starts

MAX_CELLS_PER_BYTE: Final = 256
FREE_CELLS: Final = 1 << 24
"""Arrays of a chunk may have so many elements together, and `MAX_CELLS_PER_BYTE` for each of its bytes."""

_WORD_BYTES: Final = 8
_DECIMAL_BYTES: Final = 16


def decode(node: Node, cursor: Cursor) -> pa.Array:
    """One value of `node` of every row, as an array of `node.arrow`. Moves `cursor` behind them.

    Raises:
        Damage: a row does not hold such a value.
    """
    if not len(cursor):
        return pa.nulls(0, node.arrow)
    match node:
        case Leaf():
            return _decode_leaf(node, cursor)
        case Fixed():
            return _decode_fixed(node, cursor)
        case Enum():
            codes = cursor.codes(len(node.symbols), NO_SYMBOL)
            return pa.array(node.symbols, pa.string()).take(pa.array(codes))
        case Record():
            children = [decode(field, cursor) for field in node.fields]
            return _struct(children, node.arrow, len(cursor))
        case Repeated():
            return _decode_repeated(node, cursor)
    return _decode_union(node, cursor)


def ensure_cells(node: Node, rows: int, size_bytes: int, at: int) -> None:
    """Refuses columns that would take far more memory than the bytes they come from.

    Raises:
        Damage: `rows` values of `node` may have more elements than `size_bytes` bytes can mean.
    """
    if rows * node.extent.nodes > MAX_CELLS_PER_BYTE * size_bytes + FREE_CELLS:
        raise Damage(at, f"has {rows} values of {node.extent.nodes} parts in {size_bytes} bytes")


def _decode_leaf(node: Leaf, cursor: Cursor) -> pa.Array:
    match node.kind:
        case "null":
            return pa.nulls(len(cursor))
        case "boolean":
            return pa.array(cursor.booleans())
        case "int":
            return _plain(cursor.ints(), node.arrow)
        case "long":
            return _plain(cursor.longs(), node.arrow)
        case "float":
            return _plain(cursor.floats(), node.arrow)
        case "double":
            return _plain(cursor.doubles(), node.arrow)
        case "string":
            return _texts(cursor.chunk, *cursor.runs())
    starts, ends = cursor.runs()
    if pa.types.is_decimal(node.arrow):
        return _decode_decimals(cursor.chunk, starts, ends, node.arrow)
    return bytes_of(cursor.chunk, starts, ends)


def _decode_fixed(node: Fixed, cursor: Cursor) -> pa.Array:
    starts, ends = cursor.fixed(node.size_bytes)
    if not pa.types.is_decimal(node.arrow):
        return bytes_of(cursor.chunk, starts, ends)
    surplus = node.size_bytes - _DECIMAL_BYTES
    if surplus > 0:
        _ensure_only_signs(cursor.chunk, starts, surplus)
        starts = ends - _DECIMAL_BYTES
    return _decode_decimals(cursor.chunk, starts, ends, node.arrow)


def _decode_repeated(node: Repeated, cursor: Cursor) -> pa.Array:
    first = int(cursor.at[0])
    starts, counts = item_starts(node.item, cursor)
    ensure_cells(node.item, len(starts), cursor.chunk.data.size, first)
    items = decode(node.item, Cursor(cursor.chunk, starts, np.repeat(cursor.stop, counts)))
    offsets = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.Array.from_buffers(node.arrow, len(counts), [None, pa.py_buffer(offsets)], 0, children=[items])


def _decode_union(node: Union, cursor: Cursor) -> pa.Array:
    codes = cursor.codes(len(node.branches), NO_BRANCH)
    members = [_decode_branch(node, at, codes, cursor) for at in node.others]
    if not members:
        return pa.nulls(len(cursor))
    if len(members) == 1:
        return members[0]
    if not node.has_members:
        return pc.coalesce(*(member.cast(node.arrow) for member in members))
    is_null = None if node.null is None else pa.array(codes == node.null)
    return pa.StructArray.from_arrays(members, fields=list(node.arrow), mask=is_null)


def _decode_branch(node: Union, at: int, codes: Longs, cursor: Cursor) -> pa.Array:
    """Values of the branch `at`, null in rows that have another one."""
    branch = node.branches[at]
    chosen = codes == at
    rows = np.flatnonzero(chosen)
    if len(rows) == len(codes):
        return decode(branch, cursor)
    if not len(rows):
        return pa.nulls(len(codes), branch.arrow)
    part = cursor.pick(rows)
    values = decode(branch, part)
    cursor.put(rows, part)
    return values.take(pa.array(np.cumsum(chosen) - 1, mask=~chosen))


def _struct(children: list[pa.Array], arrow: pa.StructType, rows: int) -> pa.Array:
    if not children:
        return pa.StructArray.from_buffers(arrow, rows, [None])
    return pa.StructArray.from_arrays(children, fields=list(arrow))


def _plain(values: npt.NDArray[Any], arrow: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(arrow, len(values), [None, pa.py_buffer(values)], 0)


def _texts(chunk: Chunk, starts: Positions, ends: Positions) -> pa.Array:
    """Raises Damage where the bytes are not UTF-8."""
    values = bytes_of(chunk, starts, ends)
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid as error:
        wrong = next((row for row, value in enumerate(values.to_pylist()) if not _is_text(value)), 0)
        raise Damage(int(starts[wrong]), "has a text that is not UTF-8") from error


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _decode_decimals(chunk: Chunk, starts: Positions, ends: Positions, arrow: pa.DataType) -> pa.Array:
    """Big-endian two's complement of 1 to 16 bytes."""
    sizes = ends - starts
    wrong = (sizes < 1) | (sizes > _DECIMAL_BYTES)
    if wrong.any():
        raise Damage(int(starts[int(wrong.argmax())]), "has a decimal of no or more than 16 bytes")
    halves = np.empty((len(starts), 2), dtype=np.int64)
    halves[:, 0] = _signed(chunk.words(ends - _WORD_BYTES), _WORD_BYTES - sizes)
    halves[:, 1] = halves[:, 0] >> 63
    long = np.flatnonzero(sizes > _WORD_BYTES)
    if len(long):
        halves[long, 1] = _signed(chunk.words(ends[long] - _DECIMAL_BYTES), _DECIMAL_BYTES - sizes[long])
    values = _plain(halves, arrow)
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise Damage(int(starts[0]), f"has a decimal with too many digits ({error})") from error
    return values


def _signed(words: Words, surplus_bytes: Positions) -> Longs:
    """Big-endian words as numbers, of which the first `surplus_bytes` (none if below zero) are not part."""
    shift = np.maximum(surplus_bytes, 0) * 8
    numbers: Longs = (words.byteswap() << shift.view(np.uint64)).view(np.int64) >> shift
    return numbers


def _ensure_only_signs(chunk: Chunk, starts: Positions, count: int) -> None:
    """Decimals in more than 16 bytes begin with bytes that only repeat the sign."""
    leading = np.lib.stride_tricks.sliding_window_view(chunk.data, count + 1)[starts]
    signs = np.where(leading[:, -1] > 0x7F, 0xFF, 0x00)
    wrong = (leading[:, :-1] != signs[:, None]).any(axis=1)
    if wrong.any():
        raise Damage(int(starts[int(wrong.argmax())]), "has a decimal of more than 16 bytes")
