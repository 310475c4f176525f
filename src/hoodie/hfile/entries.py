"""Entries of data blocks: keys and values, found without making an object of each.

An entry is `int32 key length, int32 value length, key, value, 0`; its key is `int16 length, the key proper, suffix`.

1. Where an entry starts is only known from the one before it. Where all entries of a block have the same two lengths
   their places are computed, and the computation is checked at every one of them; else one short loop walks the block.
2. Everything else is done for all entries at once: lengths, bounds, copies.
3. The last entry ends where its block ends, and a key lies within its entry: then every place is within the bytes.
4. Duplicates and disorder are no error here: entries come as they stand.

It knows neither indexes nor Avro. Layout: docs/format/hfile.md.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.hfile.cursor import corrupt

Places: TypeAlias = npt.NDArray[np.int64]
Entry: TypeAlias = tuple[bytes, bytes]

MAX_KEY_BYTES: Final = 0x7FFF
MAX_JOINED_BYTES: Final = 0x7FFF_FFFF
LENGTHS_BYTES: Final = 8
KEY_PREFIX_BYTES: Final = 2

_ODD: Final = "an entry of this block, or soon after it, is not of the known form"
_UNEVEN: Final = "the entries of a block do not end where it ends"
_LENGTHS: Final = struct.Struct(">II")
_AROUND_BYTES: Final = LENGTHS_BYTES + 1  # both lengths in front, the version byte behind


@dataclass(frozen=True, slots=True, eq=False)
class KeyValues:
    """Entries in the order of their file: `keys` is a binary array; the value of entry `i` is
    `data[starts[i]:ends[i]]`, and values lie in `data` in the order of entries.

    An Avro value of Hudi has an empty field `key`: its text is the entry's key.
    """

    keys: pa.Array
    data: pa.Buffer
    starts: Places
    ends: Places

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def values(self) -> pa.Array:
        """The values as a binary array (a copy)."""
        return _pieces(self.data, self.starts, self.ends)

    def kept(self, keep: pa.Array) -> KeyValues:
        """The entries for which the boolean array is true, with no byte of the others."""
        places = np.flatnonzero(keep.to_numpy(zero_copy_only=False))
        values = _pieces(self.data, self.starts[places], self.ends[places])
        return _of_arrays(self.keys.take(pa.array(places)), values)


def no_entries() -> KeyValues:
    """Not one entry."""
    return KeyValues(pa.array([], pa.binary()), pa.py_buffer(b""), np.empty(0, np.int64), np.empty(0, np.int64))


def join_entries(parts: Sequence[KeyValues]) -> KeyValues:
    """The entries of all parts, one after the other.

    Raises:
        Invalid: more than 2 GiB.
    """
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return no_entries()
    _ensure_joinable(sum(len(part.data) for part in parts))
    keys, values = (pa.concat_arrays(arrays) for arrays in zip(*((p.keys, p.values) for p in parts), strict=True))
    return _of_arrays(keys, values)


def entries_of(found: Sequence[Entry]) -> KeyValues:
    """Entries that were found one by one.

    Raises:
        Invalid: more than 2 GiB.
    """
    if not found:
        return no_entries()
    _ensure_joinable(sum(len(value) for _, value in found))
    keys, values = (pa.array([entry[part] for entry in found], pa.binary()) for part in (0, 1))
    return _of_arrays(keys, values)


def parse_entries(blocks: Sequence[tuple[int, bytes]], path: str) -> KeyValues:
    """The entries of data blocks, given by offset and content.

    Raises:
        Corrupt: an entry does not fit; the offset is that of its block.
    """
    data = blocks[0][1] if len(blocks) == 1 else b"".join(content for _, content in blocks)
    found: list[Places] = []
    at = 0
    for offset, content in blocks:
        starts = _entry_starts(data, at, at + len(content))
        at += len(content)
        if starts is None:
            raise corrupt(path, offset, _UNEVEN)
        found.append(starts)
    if not at:
        return no_entries()
    starts = np.concatenate(found)
    return _entries(data, starts, np.append(starts[1:], at), path, blocks[0][0])


def seek_entries(pieces: Iterable[bytes], keys: Sequence[bytes], path: str, offset: int) -> list[Entry]:
    """The entries of one block whose key is one of a few ascending keys. The block's content comes in pieces; no more
    of them are taken once a key is above the last one.

    Raises:
        Corrupt: an entry does not fit; entries that are not asked for are looked at no closer than needed.
    """
    data = bytearray()
    starts = array("q")
    at = 0
    for piece in pieces:
        data += piece
        at = _walk(data, at, len(data), starts)
        if starts and _key_at(data, starts[-1]) > keys[-1]:
            break
    else:
        if at != len(data):
            raise corrupt(path, offset, _UNEVEN)
    starts.append(at)
    found: list[Entry] = []
    for key in keys:
        place = bisect_left(starts, key, 0, len(starts) - 1, key=partial(_key_at, data))
        while place < len(starts) - 1 and _key_at(data, starts[place]) == key:
            found.append((key, _value_at(data, starts[place], starts[place + 1], path, offset)))
            place += 1
    return found


def _entries(data: bytes, starts: Places, beyond: Places, path: str, offset: int) -> KeyValues:
    """The entries that lie between these places."""
    bounds = _bounds(np.frombuffer(data, np.uint8), starts, beyond)
    if bounds is None:
        raise corrupt(path, offset, _ODD)
    key_ends, value_starts = bounds
    whole = pa.py_buffer(data)
    return KeyValues(
        _pieces(whole, starts + (LENGTHS_BYTES + KEY_PREFIX_BYTES), key_ends), whole, value_starts, beyond - 1
    )


def _entry_starts(data: bytes, start: int, end: int) -> Places | None:
    """Where the entries between two places start; None when the last does not end at `end`."""
    if end - start < _AROUND_BYTES:
        return None if end > start else np.empty(0, np.int64)
    even = _even_starts(data, start, end)
    if even is not None:
        return even
    starts = array("q")
    return np.frombuffer(starts, np.int64) if _walk(data, start, end, starts) == end else None


def _walk(data: bytes | bytearray, start: int, end: int, starts: array[int]) -> int:
    """Adds to `starts` where each entry that ends before or at `end` starts, and gives where the last of them ends."""
    lengths_at = _LENGTHS.unpack_from
    remember = starts.append
    at = start
    last = end - _AROUND_BYTES
    while at <= last:
        key, value = lengths_at(data, at)
        beyond = at + key + value + _AROUND_BYTES
        if beyond > end:
            break
        remember(at)
        at = beyond
    return at


def _key_at(data: bytearray, start: int) -> bytes:
    """The key of the entry that starts there."""
    at = start + LENGTHS_BYTES + KEY_PREFIX_BYTES
    return bytes(data[at : at + int.from_bytes(data[at - KEY_PREFIX_BYTES : at], "big")])


def _value_at(data: bytearray, start: int, beyond: int, path: str, offset: int) -> bytes:
    """The value of the entry between two places, once its form is sure."""
    length, _ = _LENGTHS.unpack_from(data, start)
    key = int.from_bytes(data[start + LENGTHS_BYTES : start + LENGTHS_BYTES + KEY_PREFIX_BYTES], "big")
    if key > MAX_KEY_BYTES or key + KEY_PREFIX_BYTES > length or data[beyond - 1]:
        raise corrupt(path, offset, _ODD)
    return bytes(data[start + LENGTHS_BYTES + length : beyond - 1])


def _even_starts(data: bytes, start: int, end: int) -> Places | None:
    """The same where all entries have the lengths of the first; None when they have not."""
    stride = sum(_LENGTHS.unpack_from(data, start)) + _AROUND_BYTES
    count, rest = divmod(end - start, stride)
    if rest:
        return None
    table = np.frombuffer(data, np.uint8, count * stride, start).reshape(count, stride)
    if (table[:, :LENGTHS_BYTES] != table[0, :LENGTHS_BYTES]).any():
        return None
    return np.arange(start, end, stride, dtype=np.int64)


def _bounds(data: npt.NDArray[np.uint8], starts: Places, beyond: Places) -> tuple[Places, Places] | None:
    """Where keys end and values start; None when an entry has no room for its key or another version than 0."""
    lengths = _integers(data, starts, 4)
    if lengths.min() < KEY_PREFIX_BYTES:
        return None
    rows = _integers(data, starts + LENGTHS_BYTES, 2)
    if rows.max() > MAX_KEY_BYTES or (rows + KEY_PREFIX_BYTES > lengths).any() or data[beyond - 1].any():
        return None
    return starts + (LENGTHS_BYTES + KEY_PREFIX_BYTES) + rows, starts + LENGTHS_BYTES + lengths


def _integers(data: npt.NDArray[np.uint8], starts: Places, width: int) -> Places:
    """Big-endian unsigned integers at these places."""
    number = data[starts].astype(np.int64)
    for byte in range(1, width):
        number = (number << 8) | data[starts + byte]
    return number


def _pieces(data: pa.Buffer, starts: Places, ends: Places) -> pa.Array:
    """Pieces of the bytes as a binary array. Starts and ends ascend and do not overlap.

    The pieces and the gaps between them are one array over the bytes, of which Arrow copies every second element.
    """
    if not len(starts):
        return pa.array([], pa.binary())
    marks = np.empty(2 * len(starts), np.int32)
    marks[0::2] = starts
    marks[1::2] = ends
    buffers = [None, pa.py_buffer(marks), data]
    whole = pa.Array.from_buffers(pa.binary(), len(marks) - 1, buffers)
    return whole.take(pa.array(np.arange(0, len(marks), 2)))


def _ensure_joinable(size_bytes: int) -> None:
    if size_bytes > MAX_JOINED_BYTES:
        raise Invalid("The entries asked for take more than 2 GiB", remedy="Ask for fewer keys at a time, or scan")


def _of_arrays(keys: pa.Array, values: pa.Array) -> KeyValues:
    """Entries of two binary arrays without a second copy."""
    _, offsets, data = values.buffers()
    marks = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return KeyValues(keys, data if data is not None else pa.py_buffer(b""), marks[:-1], marks[1:])
