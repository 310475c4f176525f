"""Murmur2 of many keys at once, the way Hudi's bloom filters use it: each round's hash is the seed of the next.

1. The mixing of the four-byte words does not depend on the seed, so it is done once for all rounds (`blocks`); a
   round then costs one multiplication and one exclusive or per word (`chain`).
2. Keys of one length share every step, so a block holds keys of one length only. Blocks are small enough for the cache.
3. Tail bytes are sign-extended, as in Java: this matters for keys with characters beyond ASCII. In full words the
   sign bits are shifted out, so they are plain little-endian numbers.

Format page: docs/format/bloom-filter.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_M: Final = np.uint32(0x5BD1E995)
_R: Final = 24
_BLOCK_KEYS: Final = 16 * 1024
_SORT_KEYS: Final = 8 * _BLOCK_KEYS

Words = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Block:
    """Keys of one byte length, mixed and ready for hashing.

    `words` has one row per four-byte word, `tail` the folded last one to three bytes (None when the length is a
    multiple of 4), `rows` says which keys of the input these are.
    """

    length: int
    words: Words
    tail: Words | None
    rows: npt.NDArray[np.int64] | slice

    def __len__(self) -> int:
        return int(self.words.shape[1])


def blocks(keys: pa.StringArray) -> Iterator[Block]:
    """All keys as blocks, in no particular order. `keys` has no nulls and 32-bit offsets (string or binary)."""
    for start in range(0, len(keys), _SORT_KEYS):
        yield from _blocks_of(keys.slice(start, _SORT_KEYS), start)


def chain(block: Block, rounds: int, out: Words) -> None:
    """Fill `out` (shape rounds x keys): row 0 is the hash with seed 0, every further row has the row before as its
    seed.
    """
    length = np.uint32(block.length)
    shifted = np.empty(len(block), dtype=np.uint32)
    seed: Any = np.uint32(0)
    for h in out[:rounds]:
        np.bitwise_xor(seed, length, out=h)
        for word in block.words:
            np.multiply(h, _M, out=h)
            np.bitwise_xor(h, word, out=h)
        if block.tail is not None:
            np.bitwise_xor(h, block.tail, out=h)
            np.multiply(h, _M, out=h)
        np.right_shift(h, 13, out=shifted)
        np.bitwise_xor(h, shifted, out=h)
        np.multiply(h, _M, out=h)
        np.right_shift(h, 15, out=shifted)
        np.bitwise_xor(h, shifted, out=h)
        seed = h


def _blocks_of(keys: pa.StringArray, first: int) -> Iterator[Block]:
    lengths = np.diff(_offsets(keys))
    if len(lengths) == 0:
        return
    order: npt.NDArray[np.int64] | None = None
    if lengths.min() != lengths.max():
        # Stable sort of 16-bit numbers is a radix sort; longer keys take the slower way.
        order = np.argsort(lengths.astype(np.uint16) if lengths.max() < 1 << 16 else lengths, kind="stable")
        keys, lengths = keys.take(pa.array(order)), lengths[order]
    offsets = _offsets(keys)
    data = np.frombuffer(keys.buffers()[2] or b"", dtype=np.uint8)
    for start, stop in _runs(lengths):
        for at in range(start, stop, _BLOCK_KEYS):
            end = min(at + _BLOCK_KEYS, stop)
            length = int(lengths[at])
            words, tail = _mixed(data[offsets[at] : offsets[end]].reshape(end - at, length))
            yield Block(length, words, tail, slice(first + at, first + end) if order is None else order[at:end] + first)


def _offsets(keys: pa.StringArray) -> npt.NDArray[np.int32]:
    buffer = keys.buffers()[1]
    if buffer is None:
        return np.zeros(len(keys) + 1, dtype=np.int32)
    return np.frombuffer(buffer, dtype=np.int32)[keys.offset : keys.offset + len(keys) + 1]


def _runs(sorted_lengths: npt.NDArray[np.int32]) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(sorted_lengths)) + 1
    cuts = [0, *edges.tolist(), len(sorted_lengths)]
    yield from pairwise(cuts)


def _mixed(rows: npt.NDArray[np.uint8]) -> tuple[Words, Words | None]:
    count, length = rows.shape
    whole = length // 4
    # A copy even where the layout would not need one: the rows are the caller's Arrow buffer.
    words = np.array(np.ascontiguousarray(rows[:, : whole * 4]).view("<u4").T, dtype=np.uint32, order="C", copy=True)
    np.multiply(words, _M, out=words)
    np.bitwise_xor(words, words >> np.uint32(_R), out=words)
    np.multiply(words, _M, out=words)
    left = length % 4
    if left == 0:
        return words.reshape(whole, count), None
    tail = np.zeros(count, dtype=np.int32)
    for back in range(1, left + 1):
        tail ^= rows[:, length - back].view(np.int8).astype(np.int32) << (8 * (back - 1))
    return words.reshape(whole, count), tail.view(np.uint32)
