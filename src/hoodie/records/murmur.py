"""Murmur2 of many keys at once, the way Hudi's bloom filters use it: each round's hash is the seed of the next.

1. The mixing of the four-byte words does not depend on the seed, so it is done once for all rounds (`blocks`); a
   round then costs one multiplication and one exclusive or per word (`chain`).
2. Keys of one length share every step, so a block holds keys of one length only. Blocks are small enough for the cache.
   Few keys of about the same length are one block all the same: the steps that some of them lack change nothing there.
   So it goes through the steps once; their number is the cost of a small file's filter.
3. Tail bytes are sign-extended, as in Java: this matters for keys with characters beyond ASCII. In full words the
   sign bits are shifted out, so they are plain little-endian numbers.

Format page: docs/format/bloom-filter.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
_FEW_KEYS: Final = 2048
_LIKE_LENGTHS: Final = 16

Words = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Block:
    """Keys mixed and ready for hashing: of one byte length, or few of different ones.

    `words` has one row per four-byte word, `tail` the folded last one to three bytes (None when the length is a
    multiple of 4), `rows` says which keys of the input these are. A hash is multiplied by the word's one of `factors`
    before the word is added, and by the `tail_factor` after the tail: by 1, for keys that do not have it.
    """

    length: np.uint32 | Words
    words: Words
    factors: Sequence[np.uint32 | Words]
    tail: Words | None
    tail_factor: np.uint32 | Words
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
    steps = list(zip(block.words, block.factors, strict=True))
    shifted = np.empty(len(block), dtype=np.uint32)
    seed: Any = np.uint32(0)
    for h in out[:rounds]:
        np.bitwise_xor(seed, block.length, out=h)
        for word, factor in steps:
            np.multiply(h, factor, out=h)
            np.bitwise_xor(h, word, out=h)
        if block.tail is not None:
            np.bitwise_xor(h, block.tail, out=h)
            np.multiply(h, block.tail_factor, out=h)
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
    shortest, longest = int(lengths.min()), int(lengths.max())
    if len(lengths) <= _FEW_KEYS and 0 < longest - shortest <= _LIKE_LENGTHS:
        yield _mixed_lengths(keys, lengths, slice(first, first + len(lengths)))
        return
    if shortest != longest:
        # Stable sort of 16-bit numbers is a radix sort; longer keys take the slower way.
        order = np.argsort(lengths.astype(np.uint16) if longest < 1 << 16 else lengths, kind="stable")
        keys, lengths = keys.take(pa.array(order)), lengths[order]
    offsets = _offsets(keys)
    data = np.frombuffer(keys.buffers()[2] or b"", dtype=np.uint8)
    for start, stop in _runs(lengths):
        for at in range(start, stop, _BLOCK_KEYS):
            end = min(at + _BLOCK_KEYS, stop)
            length = int(lengths[at])
            words, tail = _mixed(data[offsets[at] : offsets[end]].reshape(end - at, length))
            rows = slice(first + at, first + end) if order is None else order[at:end] + first
            yield Block(np.uint32(length), words, [_M] * len(words), tail, _M, rows)


def _mixed_lengths(keys: pa.StringArray, lengths: npt.NDArray[np.int32], rows: slice) -> Block:
    """One block of keys of different lengths. Behind the end of a key there are zeros."""
    offsets, size = _offsets(keys), int(lengths.max())
    padded = np.zeros((len(lengths), -(-size // 4) * 4), dtype=np.uint8)
    data = np.frombuffer(keys.buffers()[2] or b"", dtype=np.uint8)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = data[offsets[0] : offsets[-1]]
    words, _ = _mixed(padded[:, : size // 4 * 4])
    whole, left = lengths // 4, lengths % 4
    absent = np.arange(len(words))[:, None] >= whole
    words[absent] = 0
    factors = np.where(absent, np.uint32(1), _M)
    tail = np.zeros(len(lengths), dtype=np.int32)
    for back in range(1, 4):
        last = padded[np.arange(len(lengths)), np.maximum(lengths - back, 0)].view(np.int8).astype(np.int32)
        tail ^= np.where(left >= back, last << (8 * (back - 1)), 0).astype(np.int32)
    tail_factor = np.where(left > 0, _M, np.uint32(1))
    return Block(lengths.astype(np.uint32), words, list(factors), tail.view(np.uint32), tail_factor, rows)


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
