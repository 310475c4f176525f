"""Many Avro values read in step: one position for each row, and every read moves them all.

1. Rows are read in a `Chunk`: a copy of their bytes with room on both sides, so that eight bytes can be loaded around
   any position of a row. It is small enough to stay in the processor's cache while all columns go over it.
2. A position never passes the end of its row. Lengths and counts are compared with the bytes that are left before
   anything moves or is allocated. What does not fit raises `Damage`.
3. Whole numbers are decoded from eight bytes at once: the lowest byte without the continuation bit is found by
   arithmetic, and the groups of seven bits are pushed together in three steps.

It does not know schemas (`avro_decode.py`) nor why rows are read.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Positions = npt.NDArray[np.int64]
Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Octets = npt.NDArray[np.uint8]

MAX_EMPTY_ITEMS: Final = 1 << 20
"""How many items of no bytes (nulls, empty records) the arrays of a chunk may have together."""

TOO_LONG_RUN: Final = "has a byte string that is longer than the row"
TOO_LONG_ARRAY: Final = "has an array that is longer than the row"
TOO_LONG_NUMBER: Final = "has a number of more than 64 bits"
TOO_MANY_EMPTY: Final = f"has arrays of more than {MAX_EMPTY_ITEMS} empty items"
NO_BRANCH: Final = "has a union branch that its schema does not have"
NO_SYMBOL: Final = "has a symbol that its schema does not have"

_MARGIN: Final = 16
_INT_MIN: Final = -(1 << 31)
_INT_MAX: Final = (1 << 31) - 1

_CONTINUES: Final = np.uint64(0x8080_8080_8080_8080)
_PAYLOAD: Final = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
_EACH: Final = np.uint64(0x0101_0101_0101_0101)
_ONE: Final = np.uint64(1)
# Groups of seven bits become groups of 14, 28 and 56: (what stays, what moves, by how much).
_FOLDS: Final = (
    (np.uint64(0x007F_007F_007F_007F), np.uint64(0x7F00_7F00_7F00_7F00), np.uint64(1)),
    (np.uint64(0x0000_3FFF_0000_3FFF), np.uint64(0x3FFF_0000_3FFF_0000), np.uint64(2)),
    (np.uint64(0x0000_0000_0FFF_FFFF), np.uint64(0x0FFF_FFFF_0000_0000), np.uint64(4)),
)
_SHORT: Final = np.array([(code >> 1) ^ -(code & 1) for code in range(0x80)], dtype=np.int64)


class Damage(Exception):
    """A row is not what its schema says; `at` is a position in the chunk."""

    def __init__(self, at: int, cause: str) -> None:
        super().__init__(cause)
        self.at = at
        self.cause = cause


def cut_off(at: int) -> Damage:
    """A row that stops at `at` although its value goes on."""
    return Damage(at, "ends in the middle of a value")


class Chunk:
    """A copy of the bytes `start` to `stop` of a buffer, with room around. Positions count from `first`."""

    __slots__ = ("_loads", "_text", "buffer", "data")

    first: Final = _MARGIN

    def __init__(self, source: Octets, start: int, stop: int) -> None:
        size = stop - start
        words = np.zeros((size + 2 * _MARGIN + 7) // 8, dtype="<u8")
        self.data: Octets = words.view(np.uint8)
        self.data[_MARGIN : _MARGIN + size] = source[start:stop]
        self.buffer = pa.py_buffer(self.data)
        # Eight bytes from every position on; NumPy reads unaligned elements.
        self._loads: Words = np.ndarray((self.data.size - 7,), dtype="<u8", buffer=self.data, strides=(1,))
        self._text: bytes | None = None

    def words(self, at: Positions) -> Words:
        """The eight bytes from each position, little-endian."""
        loaded: Words = self._loads[at]
        return loaded

    def as_bytes(self) -> bytes:
        """The whole chunk, for reading byte by byte. Copied once."""
        if self._text is None:
            self._text = self.data.tobytes()
        return self._text


class Cursor:
    """Positions `at` of some rows in a chunk and where each row stops. Reading moves `at` in place."""

    __slots__ = ("at", "chunk", "stop")

    def __init__(self, chunk: Chunk, at: Positions, stop: Positions) -> None:
        self.chunk = chunk
        self.at = at
        self.stop = stop

    def __len__(self) -> int:
        return len(self.at)

    def pick(self, rows: Positions) -> Cursor:
        """A cursor of its own over some of the rows."""
        return Cursor(self.chunk, self.at[rows], self.stop[rows])

    def put(self, rows: Positions, picked: Cursor) -> None:
        """Takes over where `picked`, a cursor over `rows`, has come to."""
        self.at[rows] = picked.at

    def ahead(self, count: int) -> Cursor:
        """The first `count` rows; moving them moves them here."""
        return Cursor(self.chunk, self.at[:count], self.stop[:count])

    def move(self, size_bytes: int) -> None:
        """Passes over as many bytes in every row."""
        if size_bytes > self.chunk.data.size:
            raise cut_off(int(self.stop[0]))
        self.at += size_bytes
        self._ensure_inside()

    def octets(self) -> Octets:
        """One byte of every row."""
        found: Octets = self.chunk.data[self.at]
        self.move(1)
        return found

    def longs(self) -> Longs:
        """One whole number of every row."""
        first = self.chunk.data[self.at]
        if first.max() < 0x80:
            self.move(1)
            short: Longs = _SHORT[first]
            return short
        word = self.chunk.words(self.at)
        ends = ~word & _CONTINUES
        last = ends & (~ends + _ONE)  # lowest byte that ends the number; 0 if none of the eight does
        below = last - _ONE
        length = ((below & _EACH) * _EACH) >> np.uint64(56)
        bits = word & (last | below) & _PAYLOAD
        for stay, push, by in _FOLDS:
            bits = (bits & stay) | ((bits & push) >> by)
        longer = np.flatnonzero(last == 0)
        if len(longer):
            self._finish(longer, bits, length)
        self.at += length.view(np.int64)
        self._ensure_inside()
        return (bits >> _ONE).view(np.int64) ^ -((bits & _ONE).view(np.int64))

    def ints(self) -> npt.NDArray[np.int32]:
        """One whole number of 32 bits of every row."""
        numbers = self.longs()
        self._refuse((numbers < _INT_MIN) | (numbers > _INT_MAX), "has a number of more than 32 bits")
        return numbers.astype(np.int32)

    def codes(self, count: int, cause: str) -> Longs:
        """One number from 0 to `count` - 1 of every row; `cause` is what another one means."""
        codes = self.longs()
        if codes.min() < 0 or codes.max() >= count:
            self._refuse((codes < 0) | (codes >= count), cause)
        return codes

    def booleans(self) -> npt.NDArray[np.bool_]:
        """One truth value of every row."""
        values = self.octets()
        if values.max() > 1:
            self._refuse(values > 1, "has a truth value that is neither 0 nor 1")
        return values.view(np.bool_)

    def doubles(self) -> npt.NDArray[np.float64]:
        """One double of every row."""
        word = self.chunk.words(self.at)
        self.move(8)
        return word.view(np.float64)

    def floats(self) -> npt.NDArray[np.float32]:
        """One float of every row."""
        word = self.chunk.words(self.at)
        self.move(4)
        return word.astype(np.uint32).view(np.float32)

    def runs(self) -> tuple[Positions, Positions]:
        """Starts and ends of one byte string with its length in front, of every row."""
        sizes = self.longs()
        self._ensure_left(sizes, TOO_LONG_RUN)
        starts = self.at.copy()
        self.at += sizes
        return starts, self.at.copy()

    def fixed(self, size_bytes: int) -> tuple[Positions, Positions]:
        """Starts and ends of as many bytes of every row."""
        starts = self.at.copy()
        self.move(size_bytes)
        return starts, self.at.copy()

    def item_counts(self, min_bytes: int) -> Longs:
        """Items of the next block of an array, of every row; 0 ends the array.

        A negative number says that the bytes of the block follow. They are not needed and not looked at: who reads
        goes by the items, as Avro's own readers do.
        """
        counts = self.longs()
        sized = np.flatnonzero(counts < 0)
        if len(sized):
            part = self.pick(sized)
            part.longs()
            self.put(sized, part)
            counts[sized] = -counts[sized]
        self._ensure_left(counts, TOO_LONG_ARRAY, max(min_bytes, 1), min_bytes == 0)
        return counts

    def _ensure_left(self, counts: Longs, cause: str, each: int = 1, are_empty: bool = False) -> None:
        """Negative counts are huge when seen as unsigned."""
        if are_empty:
            if counts.view(np.uint64).max() > MAX_EMPTY_ITEMS or counts.sum() > MAX_EMPTY_ITEMS:
                self._refuse(counts.view(np.uint64) > 0, TOO_MANY_EMPTY)
            return
        left = self.stop - self.at
        self._refuse(counts.view(np.uint64) > (left if each == 1 else left // each).view(np.uint64), cause)

    def _ensure_inside(self) -> None:
        beyond = self.at > self.stop
        if beyond.any():
            raise cut_off(int(self.stop[int(beyond.argmax())]))

    def _refuse(self, wrong: npt.NDArray[np.bool_], cause: str) -> None:
        if wrong.any():
            raise Damage(int(self.at[int(wrong.argmax())]), cause)

    def _finish(self, rows: Positions, bits: Words, length: Words) -> None:
        """The ninth and tenth byte of numbers that have them."""
        ninth = self.chunk.data[self.at[rows] + 8].astype(np.uint64)
        tenth = self.chunk.data[self.at[rows] + 9].astype(np.uint64)
        has_tenth = ninth >= 0x80
        wrong = has_tenth & (tenth > 1)
        if wrong.any():
            raise Damage(int(self.at[rows[int(wrong.argmax())]]), TOO_LONG_NUMBER)
        top = np.where(has_tenth, tenth << np.uint64(63), np.uint64(0))
        bits[rows] |= ((ninth & np.uint64(0x7F)) << np.uint64(56)) | top
        length[rows] = np.where(has_tenth, np.uint64(10), np.uint64(9))


def bytes_of(chunk: Chunk, starts: Positions, ends: Positions) -> pa.BinaryArray:
    """The byte strings between positions, copied; both ascend, and no string starts before the one ahead has ended.

    Offsets [start, end, start, end ...] make a binary array of the strings and the gaps between them; taking every
    other element copies the strings without a loop in Python.
    """
    count = len(starts)
    bounds = np.empty(2 * count, dtype=np.int32)
    bounds[0::2] = starts
    bounds[1::2] = ends
    buffers = [None, pa.py_buffer(bounds), chunk.buffer]
    with_gaps: Any = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers, 0)
    return pc.take(with_gaps, pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)), boundscheck=False)
