"""Record positions: sets of row numbers as the base64 text of a 64-bit Roaring bitmap in its portable form.

1. The i-th position, ascending, belongs to the i-th row (or delete) of the block.
2. A bitmap is a count of buckets; each bucket has the upper 32 bits of its numbers and a 32-bit bitmap. That is a list
   of containers, one for each value of the next 16 bits: sorted numbers, 8192 bytes of bits, or runs. These numbers
   are little-endian, unlike everything else in a log file.
3. Encoding chooses the containers that Hudi chooses: runs where they are smaller, then sorted numbers up to 4096 of
   them, then bits. So equal sets have equal texts.
4. A few bytes can claim billions of numbers. The count of each container stands before its bytes, so the total is
   known, and limited, before anything is allocated.

It does not know which base file the row numbers are of. Grammar and an example: `docs/format/log-files.md`.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hoodie.errors import Corrupt, Invalid
from hoodie.logs.read import damaged
from hoodie.spec import HeaderKey, LogBlock

Positions = npt.NDArray[np.uint64]

MAX_POSITIONS: Final = 1 << 26
"""Positions in one block: half a gigabyte of them."""

_PLAIN_COOKIE: Final = 0x303A
_RUN_COOKIE: Final = 0x303B
_ARRAY_LIMIT: Final = 4096
_BITS_BYTES: Final = 8192
_NO_OFFSETS_BELOW: Final = 4
_CONTAINERS: Final = 1 << 16


def read_positions(block: LogBlock) -> Positions | None:
    """Row numbers in the base file of `block.positions_instant`, ascending; None when the block has none.

    Raises:
        Corrupt: the header's text is not a bitmap.
    """
    text = block.header.get(HeaderKey.RECORD_POSITIONS)
    if text is None or block.positions_instant is None:
        return None
    try:
        return parse_positions(text)
    except Corrupt as error:
        raise damaged(block, f"has bad record positions: {error.cause}") from error


def parse_positions(text: str, limit: int = MAX_POSITIONS) -> Positions:
    """The numbers of a bitmap's text, ascending.

    Raises:
        Corrupt: not such a text, cut off, not ascending, or of more than `limit` numbers.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _corrupt(f"not base64 ({error})") from error
    reader = _Reader(data, limit)
    (buckets,) = reader.numbers("<Q")
    parts: list[Positions] = []
    last_high = -1
    for _ in range(buckets):
        (high,) = reader.numbers("<I")
        if high <= last_high:
            raise _corrupt(f"bucket {high} comes after bucket {last_high}")
        last_high = high
        parts += [part.astype(np.uint64) + np.uint64(high << 32) for part in _bitmap(reader)]
    reader.ensure_at_end()
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def encode_positions(positions: npt.ArrayLike) -> str:
    """The text for row numbers, which must ascend.

    Raises:
        Invalid: they do not ascend, or one is negative.
    """
    given = np.asarray(positions)
    if given.size and (given.dtype.kind not in "iu" or given.min() < 0):
        raise Invalid("Record positions are whole numbers from 0 up")
    numbers = given.astype(np.uint64)
    if (numbers[1:] <= numbers[:-1]).any():
        raise Invalid("Record positions must ascend, each one larger than the one before")
    buckets = _split(numbers, 32)
    body = b"".join(struct.pack("<I", high) + _encoded_bitmap(low) for high, low in buckets)
    return base64.b64encode(struct.pack("<Q", len(buckets)) + body).decode("ascii")


# Reading


class _Reader:
    """Bytes read from front to back, and how many numbers they may still give."""

    def __init__(self, data: bytes, limit: int) -> None:
        self._data = data
        self._at = 0
        self._room = limit

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        part = self._data[self._at : self._at + length]
        if len(part) < length:
            raise _corrupt(f"cut off at byte {len(self._data)}")
        self._at += length
        return part

    def numbers(self, layout: str) -> tuple[int, ...]:
        """The next numbers, laid out as `struct` says it."""
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def array(self, kind: str, count: int) -> npt.NDArray[Any]:
        """The next `count` numbers of a NumPy type."""
        return np.frombuffer(self.take(np.dtype(kind).itemsize * count), dtype=kind)

    def claim(self, count: int) -> None:
        """Note that `count` numbers are about to be made."""
        self._room -= count
        if self._room < 0:
            raise _corrupt("too many numbers")

    def ensure_at_end(self) -> None:
        if self._at != len(self._data):
            raise _corrupt(f"{len(self._data) - self._at} bytes too many")


def _bitmap(reader: _Reader) -> list[npt.NDArray[np.uint32]]:
    """Numbers of a 32-bit bitmap, one ascending array for each container."""
    (cookie,) = reader.numbers("<I")
    if cookie == _PLAIN_COOKIE:
        (count,) = reader.numbers("<I")
        has_runs = np.zeros(count if count <= _CONTAINERS else 0, dtype=np.bool_)
    elif cookie & 0xFFFF == _RUN_COOKIE:
        count = (cookie >> 16) + 1
        flags = reader.array("u1", (count + 7) // 8)
        has_runs = np.unpackbits(flags, bitorder="little", count=count).astype(np.bool_)
    else:
        raise _corrupt(f"cookie {cookie:#x}")
    if count > _CONTAINERS:
        raise _corrupt(f"{count} containers")
    facts = reader.array("<u2", 2 * count).astype(np.int64)
    keys, counts = facts[::2], facts[1::2] + 1
    if (keys[1:] <= keys[:-1]).any():
        raise _corrupt("containers do not ascend")
    reader.claim(int(counts.sum()))
    if cookie == _PLAIN_COOKIE or count >= _NO_OFFSETS_BELOW:
        reader.take(4 * count)  # offsets of the containers, which follow each other anyway
    return [
        _container(reader, int(size), bool(runs)).astype(np.uint32) + np.uint32(key << 16)
        for key, size, runs in zip(keys.tolist(), counts.tolist(), has_runs.tolist(), strict=True)
    ]


def _container(reader: _Reader, count: int, has_runs: bool) -> npt.NDArray[Any]:
    """The 16-bit numbers of one container, of which there must be `count`."""
    if has_runs:
        found = _from_runs(reader, count)
    elif count <= _ARRAY_LIMIT:
        found = reader.array("<u2", count)
    else:
        found = np.flatnonzero(np.unpackbits(reader.array("u1", _BITS_BYTES), bitorder="little"))
    if len(found) != count or (found[1:] <= found[:-1]).any():
        raise _corrupt("a container's numbers are not those it claims")
    return found


def _from_runs(reader: _Reader, count: int) -> npt.NDArray[Any]:
    """Numbers of runs (first number, further numbers)."""
    (runs,) = reader.numbers("<H")
    pairs = reader.array("<u2", 2 * runs).astype(np.int64)
    starts, lengths = pairs[::2], pairs[1::2] + 1
    if int(lengths.sum()) != count or (starts + lengths > _CONTAINERS).any():
        raise _corrupt("a container's runs are not what it claims")
    before = np.cumsum(lengths) - lengths
    found: npt.NDArray[np.int64] = np.arange(count, dtype=np.int64) + np.repeat(starts - before, lengths)
    return found


# Writing


def _split(numbers: npt.NDArray[Any], bits: int) -> list[tuple[int, npt.NDArray[Any]]]:
    """Ascending numbers by what stands above the lowest `bits`: (upper part, lower parts), ascending."""
    if not len(numbers):
        return []
    high = numbers >> np.uint64(bits)
    low = numbers & np.uint64((1 << bits) - 1)
    starts = np.flatnonzero(np.append(True, high[1:] != high[:-1]))
    return list(zip(high[starts].tolist(), np.split(low, starts[1:]), strict=True))


def _encoded_bitmap(numbers: npt.NDArray[Any]) -> bytes:
    containers = [(key, low, _encoded_container(low)) for key, low in _split(numbers, 16)]
    count = len(containers)
    runs = [is_run for _, _, (is_run, _) in containers]
    facts = b"".join(struct.pack("<HH", key, len(low) - 1) for key, low, _ in containers)
    if any(runs):
        flags = np.packbits(np.array(runs), bitorder="little").tobytes()
        front = struct.pack("<I", _RUN_COOKIE | (count - 1) << 16) + flags + facts
    else:
        front = struct.pack("<II", _PLAIN_COOKIE, count) + facts
    bodies = [body for _, _, (_, body) in containers]
    if not any(runs) or count >= _NO_OFFSETS_BELOW:
        sizes = np.array([len(front) + 4 * count, *(len(body) for body in bodies[:-1])])
        front += np.cumsum(sizes).astype("<u4").tobytes()
    return front + b"".join(bodies)


def _encoded_container(low: npt.NDArray[Any]) -> tuple[bool, bytes]:
    """Whether it has runs, and its bytes."""
    numbers = low.astype("<u2")
    breaks = np.flatnonzero(np.diff(low.astype(np.int64)) != 1) + 1
    starts = np.concatenate([[0], breaks])
    ends = np.append(breaks, len(low)) - 1
    if 2 + 4 * len(starts) < min(2 * len(low), _BITS_BYTES):
        pairs = np.stack([numbers[starts], (ends - starts).astype("<u2")], axis=1)
        return True, struct.pack("<H", len(starts)) + pairs.tobytes()
    if len(low) <= _ARRAY_LIMIT:
        return False, numbers.tobytes()
    bits = np.zeros(_CONTAINERS, dtype=np.uint8)
    bits[numbers] = 1
    return False, np.packbits(bits, bitorder="little").tobytes()


def _corrupt(what: str) -> Corrupt:
    return Corrupt(f"Not a bitmap of record positions: {what}")
