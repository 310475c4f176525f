"""xxHash, as the metadata table and consistent hashing use it.

1. `xxhash64` is one hash of few bytes: names of columns and partitions, of which there are few.
2. `xxhash32` is the hash of many keys at once: keys of one byte length share every step.
3. Both are the published functions, little-endian, and give the same numbers on every machine.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.records.byte_columns import bytes_of

_MASK64: Final = 0xFFFF_FFFF_FFFF_FFFF
_P64: Final = (
    0x9E37_79B1_85EB_CA87,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0x85EB_CA77_C2B2_AE63,
    0x27D4_EB2F_1656_67C5,
)
_P32: Final = tuple(np.uint32(p) for p in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1))

Hashes = npt.NDArray[np.uint32]


def xxhash64(data: bytes, seed: int = 0) -> int:
    """The 64-bit hash of `data`, 0 to 2**64 - 1; `seed` is taken modulo 2**64."""
    seed &= _MASK64
    length, at = len(data), 0
    if length >= 32:
        lanes = [
            (seed + _P64[0] + _P64[1]) & _MASK64,
            (seed + _P64[1]) & _MASK64,
            seed,
            (seed - _P64[0]) & _MASK64,
        ]
        while at + 32 <= length:
            lanes = [_round64(lane, _word(data, at + 8 * n, 8)) for n, lane in enumerate(lanes)]
            at += 32
        h = sum(_rotated(lane, turn) for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK64
        for lane in lanes:
            h = ((h ^ _round64(0, lane)) * _P64[0] + _P64[3]) & _MASK64
    else:
        h = (seed + _P64[4]) & _MASK64
    h = (h + length) & _MASK64
    while at + 8 <= length:
        h = (_rotated(h ^ _round64(0, _word(data, at, 8)), 27) * _P64[0] + _P64[3]) & _MASK64
        at += 8
    if at + 4 <= length:
        h = (_rotated(h ^ (_word(data, at, 4) * _P64[0] & _MASK64), 23) * _P64[1] + _P64[2]) & _MASK64
        at += 4
    for byte in data[at:]:
        h = _rotated(h ^ (byte * _P64[4] & _MASK64), 11) * _P64[0] & _MASK64
    h = (h ^ h >> 33) * _P64[1] & _MASK64
    h = (h ^ h >> 29) * _P64[2] & _MASK64
    return h ^ h >> 32


def xxhash32(texts: pa.StringArray | pa.BinaryArray, seed: int = 0) -> Hashes:
    """The 32-bit hash of the bytes of each text, in their order. No nulls; 32-bit offsets."""
    result = np.empty(len(texts), dtype=np.uint32)
    data, offsets = bytes_of(texts)
    lengths = np.diff(offsets)
    with np.errstate(over="ignore"):
        for length in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == length)
            at = offsets[rows][:, None] + np.arange(length)
            result[rows] = _hashed(np.ascontiguousarray(data[at]), np.uint32(seed & 0xFFFF_FFFF))
    return result


def _hashed(rows: npt.NDArray[np.uint8], seed: np.uint32) -> Hashes:
    """Hashes of keys of one length, one key per row."""
    count, length = rows.shape
    whole = length // 4
    little_endian = np.ascontiguousarray(rows[:, : whole * 4]).view("<u4")
    words = little_endian.astype(np.uint32, copy=False).reshape(count, whole)
    p1, p2, p3, p4, p5 = _P32
    at = 0
    if length >= 16:
        starts = (seed + p1 + p2, seed + p2, seed, seed - p1)
        lanes = [np.full(count, start, dtype=np.uint32) for start in starts]
        while (at + 4) * 4 <= length:
            lanes = [_rotated32(lane + words[:, at + n] * p2, 13) * p1 for n, lane in enumerate(lanes)]
            at += 4
        h = _rotated32(lanes[0], 1) + _rotated32(lanes[1], 7) + _rotated32(lanes[2], 12) + _rotated32(lanes[3], 18)
    else:
        h = np.full(count, seed + p5, dtype=np.uint32)
    h = h + np.uint32(length)
    for n in range(at, whole):
        h = _rotated32(h + words[:, n] * p3, 17) * p4
    for n in range(whole * 4, length):
        h = _rotated32(h + rows[:, n].astype(np.uint32) * p5, 11) * p1
    h = (h ^ h >> np.uint32(15)) * p2
    h = (h ^ h >> np.uint32(13)) * p3
    return np.asarray(h ^ h >> np.uint32(16), dtype=np.uint32)


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _round64(lane: int, word: int) -> int:
    return _rotated((lane + word * _P64[1]) & _MASK64, 31) * _P64[0] & _MASK64


def _rotated(number: int, by: int) -> int:
    return (number << by | number >> 64 - by) & _MASK64


def _rotated32(numbers: Hashes, by: int) -> Hashes:
    return numbers << np.uint32(by) | numbers >> np.uint32(32 - by)
