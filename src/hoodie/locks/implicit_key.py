"""The name of a table's lock where options give none: a hash of the table's path, as Hudi's implicit providers make it.

XXH64 of the path's UTF-8, as 16 upper-case hex digits; the seed is a 32-bit constant of theirs whose sign was extended.
All writers must spell the path alike; `s3a:` is `s3:`.
"""

from __future__ import annotations

from typing import Final

_SEED: Final = 0xFFFFFFFFDABADABA
_MASK: Final = 0xFFFFFFFFFFFFFFFF
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5
_STRIPE: Final = 32


def implicit_key(path: str) -> str:
    """The hash of a table path."""
    if path.startswith("s3a:"):
        path = "s3:" + path.removeprefix("s3a:")
    return f"{_xxh64(path.encode()):016X}"


def _xxh64(data: bytes) -> int:
    at, size = 0, len(data)
    if size >= _STRIPE:
        lanes = [_SEED + _P1 + _P2, _SEED + _P2, _SEED, _SEED - _P1]
        while at + _STRIPE <= size:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane] & _MASK, _number(data, at, 8))
                at += 8
        found = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        found = (_SEED + _P5) & _MASK
    found = (found + size) & _MASK
    while at + 8 <= size:
        found = (_rotated(found ^ _round(0, _number(data, at, 8)), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= size:
        found = (_rotated(found ^ (_number(data, at, 4) * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        found = _rotated(found ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    found = (found ^ (found >> 33)) * _P2 & _MASK
    found = (found ^ (found >> 29)) * _P3 & _MASK
    return found ^ (found >> 32)


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _round(lane: int, number: int) -> int:
    return _rotated((lane + number * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(number: int, by: int) -> int:
    return ((number << by) | (number >> (64 - by))) & _MASK
