"""xxHash of many keys at once, as consistent hashing and storage layouts use it: keys of one byte length share every
step. The hash of one text is in `hoodie.spec.hash_id`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.records.byte_columns import bytes_of

_P32: Final = tuple(np.uint32(p) for p in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1))

Hashes = npt.NDArray[np.uint32]


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


def _rotated32(numbers: Hashes, by: int) -> Hashes:
    return numbers << np.uint32(by) | numbers >> np.uint32(32 - by)
