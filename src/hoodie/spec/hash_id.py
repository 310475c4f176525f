"""xxHash of one text, and Hudi's `HashID` by it.

1. These are the published functions, little-endian, and give the same numbers on every machine.
2. `HashID` has one seed, a 32-bit number with a sign: for 64 bits it is the same with the sign in front.
3. The same hash of many texts at once is `hoodie.records.xxhash32`.
"""

from __future__ import annotations

import struct
from typing import Final, Literal

_MASK64: Final = 0xFFFF_FFFF_FFFF_FFFF
_P64: Final = (
    0x9E37_79B1_85EB_CA87,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0x85EB_CA77_C2B2_AE63,
    0x27D4_EB2F_1656_67C5,
)
_MASK32: Final = 0xFFFF_FFFF
_P32: Final = (0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D, 0x27D4_EB2F, 0x1656_67B1)
HASH_ID_SEED: Final = 0xDABA_DABA
_SEEDS: Final = {32: HASH_ID_SEED, 64: 0xFFFF_FFFF_0000_0000 | HASH_ID_SEED}


def hash_id(text: str, bits: Literal[32, 64]) -> int:
    """Hudi's `HashID.hash(text, BITS_32 | BITS_64)` as a number."""
    data = text.encode()
    return xxhash64(data, _SEEDS[64]) if bits == 64 else one_xxhash32(data, _SEEDS[32])


def one_xxhash32(data: bytes, seed: int = 0) -> int:
    """The 32-bit hash of `data`, 0 to 2**32 - 1."""
    p1, p2, p3, p4, p5 = _P32
    length, at = len(data), 0
    if length >= 16:
        a, b, c, d = seed + p1 + p2 & _MASK32, seed + p2 & _MASK32, seed, seed - p1 & _MASK32
        for w, x, y, z in struct.iter_unpack("<4I", data[: length & ~15]):
            a, b, c, d = a + w * p2 & _MASK32, b + x * p2 & _MASK32, c + y * p2 & _MASK32, d + z * p2 & _MASK32
            a, b = (a << 13 | a >> 19) * p1 & _MASK32, (b << 13 | b >> 19) * p1 & _MASK32
            c, d = (c << 13 | c >> 19) * p1 & _MASK32, (d << 13 | d >> 19) * p1 & _MASK32
        h = _rotated32(a, 1) + _rotated32(b, 7) + _rotated32(c, 12) + _rotated32(d, 18)
        at = length & ~15
    else:
        h = seed + p5
    h = h + length & _MASK32
    while at + 4 <= length:
        h = _rotated32(h + _word(data, at, 4) * p3 & _MASK32, 17) * p4 & _MASK32
        at += 4
    for byte in data[at:]:
        h = _rotated32(h + byte * p5 & _MASK32, 11) * p1 & _MASK32
    h = (h ^ h >> 15) * p2 & _MASK32
    h = (h ^ h >> 13) * p3 & _MASK32
    return h ^ h >> 16


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


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _round64(lane: int, word: int) -> int:
    return _rotated((lane + word * _P64[1]) & _MASK64, 31) * _P64[0] & _MASK64


def _rotated(number: int, by: int) -> int:
    return (number << by | number >> 64 - by) & _MASK64


def _rotated32(number: int, by: int) -> int:
    return (number << by | number >> 32 - by) & _MASK32
