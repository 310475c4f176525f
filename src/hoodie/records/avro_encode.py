"""Avro values of many rows from Arrow arrays, column by column.

1. A column becomes *pieces*: binary arrays with the bytes each row gets, or one byte string that all rows get. The
   pieces of all columns, joined row by row, are the rows.
2. Where a union has different branches in different rows, the pieces of each branch are made of its rows alone and
   then spread over all rows, with nulls, which add nothing.
3. The items of a list lie one after the other in their own column's bytes, so a list is only new bounds over them.
4. An array is one block with its number of items (never the form with a size), then 0; one without items just 0.
   Decimals in bytes are as short as their sign allows. A union of int and long gets a long, of float and double a
   double.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.records.avro_nodes import Enum, Fixed, Leaf, Node, Record, Repeated, Union

Piece = Any  # pa.BinaryArray, or pa.BinaryScalar for all rows
Octets = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

_DECIMAL_BYTES: Final = 16
_EMPTY: Final = pa.scalar(b"", pa.binary())
_NOTHING: Final = pa.scalar(None, pa.binary())
_END: Final = pa.scalar(b"\x00", pa.binary())


def encode_record(node: Record, rows: pa.StructArray) -> tuple[pa.Buffer, Longs]:
    """Bytes of all rows, and the bounds of each: one more than rows. No row is null.

    Raises:
        Invalid: a value does not fit its type (a text that is no symbol, bytes of another length ...).
    """
    return _content(_joined(_pieces(node, rows), len(rows)))


def _pieces(node: Node, values: pa.Array) -> list[Piece]:
    """What each row gets. `values` has nulls only where `node` may be null."""
    match node:
        case Record():
            return [piece for at, field in enumerate(node.fields) for piece in _pieces(field, values.field(at))]
        case Repeated():
            return _repeated_pieces(node, values)
        case Union():
            return _union_pieces(node, values)
        case Enum():
            return [_numbers(_symbol_codes(node, values))]
        case Fixed():
            return [_fixed(node, values)]
    return _leaf_pieces(node, values)


def _leaf_pieces(node: Leaf, values: pa.Array) -> list[Piece]:
    match node.kind:
        case "null":
            return []
        case "boolean":
            return [_even(_numpy(values.cast(pa.uint8()))[:, None])]
        case "int":
            return [_numbers(_numpy(values.view(pa.int32())).astype(np.int64))]
        case "long":
            return [_numbers(_numpy(values.view(pa.int64())))]
        case "float" | "double":
            numbers = _numpy(values)
            return [_even(numbers.view(np.uint8).reshape(len(numbers), numbers.itemsize))]
    content = _short_decimals(values) if pa.types.is_decimal(node.arrow) else values.cast(pa.binary())
    return [_numbers(_numpy(pc.binary_length(content)).astype(np.int64)), content]


def _repeated_pieces(node: Repeated, values: pa.Array) -> list[Piece]:
    offsets = _numpy(values.offsets).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    if pa.types.is_map(values.type):
        items = pa.StructArray.from_arrays([values.keys, values.items], fields=list(node.item.arrow))
    else:
        items = values.values
    content, bounds = _content(_joined(_pieces(node.item, items.slice(first, last - first)), last - first))
    counts = np.diff(offsets)
    heads = pc.if_else(pa.array(counts > 0), _numbers(counts), _EMPTY)
    return [heads, _binary(content, bounds[offsets - first]), _END]


def _union_pieces(node: Union, values: pa.Array) -> list[Piece]:
    codes = _member_codes(node, values) if node.has_members else _codes(node, values)
    pieces: list[Piece] = [_numbers(codes)]
    for member, at in enumerate(node.others):
        rows = codes == at
        if rows.any():
            held = values.field(member) if node.has_members else values
            pieces += _branch_pieces(node.branches[at], held, rows)
    return pieces


def _branch_pieces(node: Node, values: pa.Array, rows: npt.NDArray[np.bool_]) -> list[Piece]:
    """The pieces of `node` for `rows`, nothing for the others. `values` are valid in `rows` and null elsewhere."""
    if rows.all():
        return _pieces(node, values)
    held = pa.array(rows)
    if isinstance(node, Leaf):
        # Whatever lies under a null is encoded too, and then left out.
        return [pc.if_else(held, piece, _NOTHING) for piece in _leaf_pieces(node, _without_nulls(values))]
    spread = pa.array(np.cumsum(rows) - 1, mask=~rows)
    return [
        piece.take(spread) if isinstance(piece, pa.Array) else pc.if_else(held, piece, _NOTHING)
        for piece in _pieces(node, values.filter(held))
    ]


def _codes(node: Union, values: pa.Array) -> Longs:
    """The branch of each row: that of null, or the one whose type the column has."""
    is_null = _numpy(values.is_null())
    if is_null.any() and node.null is None:
        raise Invalid(f"A value of the type {values.type} is missing and may not be", remedy="Fill the missing values")
    wanted = [at for at in node.others if node.branches[at].arrow.equals(node.arrow)]
    null = 0 if node.null is None else node.null
    return np.where(is_null, null, wanted[0] if wanted else null).astype(np.int64)


def _member_codes(node: Union, values: pa.Array) -> Longs:
    """The branch of each row: the one member that has a value, or that of null."""
    held = np.stack([_numpy(values.field(member).is_valid()) for member in range(len(node.others))])
    held &= _numpy(values.is_valid())
    members = held.sum(axis=0)
    if members.max(initial=0) > 1 or (node.null is None and members.min(initial=1) < 1):
        raise Invalid(
            "A value of several possible types has more than one of them, or none",
            remedy="Give exactly one member of the struct a value",
            type=str(values.type),
        )
    null = 0 if node.null is None else node.null
    return np.where(members == 0, null, np.asarray(node.others)[held.argmax(axis=0)]).astype(np.int64)


def _symbol_codes(node: Enum, values: pa.Array) -> Longs:
    codes = pc.index_in(values, value_set=pa.array(node.symbols, pa.string()))
    if codes.null_count:
        text = values.filter(codes.is_null())[0].as_py()
        raise Invalid(f"`{text}` is none of {', '.join(node.symbols)}", remedy="Use one of them", value=text)
    return _numpy(codes).astype(np.int64)


def _fixed(node: Fixed, values: pa.Array) -> Piece:
    if not pa.types.is_decimal(node.arrow):
        if not pc.all(pc.equal(pc.binary_length(values), node.size_bytes), min_count=0).as_py():
            raise Invalid(
                f"Bytes of another length than {node.size_bytes}", remedy="Pad or cut them", length=node.size_bytes
            )
        return values
    digits = _big_endian(values)
    dropped = max(_DECIMAL_BYTES - node.size_bytes, 0)
    signs = np.where(digits[:, dropped] > 0x7F, 0xFF, 0x00).astype(np.uint8)[:, None]
    if (digits[:, :dropped] != signs).any():
        raise Invalid(
            f"A decimal does not fit into {node.size_bytes} bytes",
            remedy="Use a smaller number or a larger type",
            type=str(node.arrow),
        )
    padding = np.repeat(signs, max(node.size_bytes - _DECIMAL_BYTES, 0), axis=1)
    return _even(np.hstack([padding, digits[:, dropped:]]))


def _short_decimals(values: pa.Array) -> Piece:
    """Each in as few bytes as its sign allows, one at least."""
    digits = _big_endian(values)
    signs = np.where(digits[:, :1] > 0x7F, 0xFF, 0x00)
    spare = (digits[:, :-1] == signs) & ((digits[:, 1:] ^ signs) < 0x80)
    leading = np.logical_and.accumulate(spare, axis=1).sum(axis=1)
    is_written = np.arange(_DECIMAL_BYTES) >= leading[:, None]
    return _binary(pa.py_buffer(digits[is_written]), _bounds(_DECIMAL_BYTES - leading))


def _without_nulls(values: pa.Array) -> pa.Array:
    """The array with its nulls taken for values."""
    return pa.Array.from_buffers(values.type, len(values), [None, *values.buffers()[1:]], 0, values.offset)


def _big_endian(values: pa.Array) -> Octets:
    """Two's complement of decimals, a row of 16 bytes each."""
    raw = np.frombuffer(values.buffers()[1] or b"", dtype=np.uint8)
    first = values.offset * _DECIMAL_BYTES
    return raw[first : first + len(values) * _DECIMAL_BYTES].reshape(len(values), _DECIMAL_BYTES)[:, ::-1]


def _numbers(values: Longs) -> Piece:
    """Avro's whole numbers: zigzag, seven bits a byte, lowest first."""
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    largest = int(zigzag.max(initial=0))
    if largest < 0x80:
        if len(zigzag) and int(zigzag.min()) == largest:
            return pa.scalar(bytes((largest,)), pa.binary())
        return _even(zigzag.astype(np.uint8)[:, None])
    width = (largest.bit_length() + 6) // 7
    groups = np.empty((len(values), width), dtype=np.uint8)
    sizes = np.ones(len(values), dtype=np.int64)
    for place in range(width):
        rest = zigzag >> np.uint64(7 * place)
        goes_on = rest > 0x7F
        groups[:, place] = (rest & np.uint64(0x7F)).astype(np.uint8) | (goes_on.view(np.uint8) << 7)
        sizes += goes_on
    is_written = np.arange(width) < sizes[:, None]
    return _binary(pa.py_buffer(groups[is_written]), _bounds(sizes))


def _joined(pieces: list[Piece], rows: int) -> pa.Array:
    """The pieces of each row, one behind the other."""
    if not pieces or not rows:
        return pa.repeat(_EMPTY, rows)
    joined = pc.binary_join_element_wise(*pieces, _EMPTY, null_handling="replace", null_replacement="")
    return joined if isinstance(joined, pa.Array) else pa.repeat(joined, rows)


def _content(values: pa.Array) -> tuple[pa.Buffer, Longs]:
    """The bytes of a binary array that begins at offset 0, and the bounds of its elements."""
    _, offsets, content = values.buffers()
    if not len(values):
        return pa.py_buffer(b""), np.zeros(1, dtype=np.int64)
    bounds = np.frombuffer(offsets, dtype=np.int32)[: len(values) + 1].astype(np.int64)
    return (content or pa.py_buffer(b"")).slice(0, int(bounds[-1])), bounds


def _even(rows: Octets) -> Piece:
    """A binary array of elements that all have the same length."""
    count, size = rows.shape
    return _binary(pa.py_buffer(np.ascontiguousarray(rows)), np.arange(count + 1, dtype=np.int64) * size)


def _binary(content: pa.Buffer, bounds: Longs) -> Piece:
    buffers = [None, pa.py_buffer(bounds.astype(np.int32)), content]
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, buffers, 0)


def _bounds(sizes: npt.NDArray[Any]) -> Longs:
    bounds = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=bounds[1:])
    return bounds


def _numpy(values: pa.Array) -> npt.NDArray[Any]:
    plain: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return plain
