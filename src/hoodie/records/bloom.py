"""The bloom filter Hudi keeps in the footer of a base file: which record keys the file may hold.

1. Bits, counters and text are those Hudi would write after adding the same keys in the same order.
2. SIMPLE has one row of bits. DYNAMIC_V0 starts a new row after `entries` keys while it has fewer than `max_entries`;
   then it goes round the rows again, and row 0 gets two keys in succession when that starts (Hudi does; readers ask
   every row).
3. `max_entries` is not stored. How far round the rows a filter was, is: the counter of the last row never stops, so
   adding to a filter read from a footer gives the bytes Hudi gives for all keys in one go.

A filter is an accumulator: `add` changes it. It does not know files. Format page: docs/format/bloom-filter.md.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.records import murmur

SIMPLE: Final = "SIMPLE"
DYNAMIC: Final = "DYNAMIC_V0"
FilterType = Literal["SIMPLE", "DYNAMIC_V0"]

DEFAULT_ENTRIES: Final = 60_000
DEFAULT_FPP: Final = 1e-9
DEFAULT_MAX_ENTRIES: Final = 100_000

_MIN_ENTRIES: Final = 256
"""Keys that the smallest filter made for a file is made for: 1 400 bytes of text with the default rate."""
_MAX_FITTED_ROWS: Final = 4
"""Rows of bits up to which a filter that was made for fewer keys than a file of today holds is continued."""

_VERSION: Final = -1
_MURMUR: Final = 1
_ROW_HEADER: Final = struct.Struct(">iibi")
_COUNTERS: Final = struct.Struct(">iii")
_CONTAINS_ROUNDS: Final = 6

Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BloomOptions:
    """What kind of filter new base files get. All of it changes bytes on storage, none of it the answers to queries.

    `filter_type` (`hoodie.bloom.index.filter.type`); `entries` (`hoodie.index.bloom.num_entries`): keys a row of bits
    is made for; `fpp` (`hoodie.index.bloom.fpp`): wanted share of false answers; `max_entries`
    (`hoodie.bloom.index.filter.dynamic.max.entries`): keys up to which a DYNAMIC_V0 filter gets new rows.

    `fitted`: a DYNAMIC_V0 filter of a file with fewer keys than `entries` is made for as many as it has (the next power
    of two), since with the default 60 000 entries a filter takes 430 kB, however few keys it holds.
    """

    filter_type: FilterType = DYNAMIC
    entries: int = DEFAULT_ENTRIES
    fpp: float = DEFAULT_FPP
    max_entries: int = DEFAULT_MAX_ENTRIES
    fitted: bool = False

    def __post_init__(self) -> None:
        if self.entries < 1 or not 0.0 < self.fpp < 1.0 or vector_size(self.entries, self.fpp) >= 2**31:
            raise Invalid(
                f"A bloom filter for {self.entries} keys with a false positive rate of {self.fpp} cannot be made",
                remedy="Set hoodie.index.bloom.num_entries to 1 or more and hoodie.index.bloom.fpp between 0 and 1",
            )

    def new_filter(self, keys: int | None = None) -> BloomFilter:
        """An empty filter of this kind for a file with so many keys; None: nobody knows how many."""
        if self.filter_type == SIMPLE:
            return BloomFilter.simple(self.entries, self.fpp)
        return BloomFilter.dynamic(self._entries_for(keys), self.fpp, self.max_entries)

    def fits(self, keys: int) -> bool:
        """Whether the filter of a file with so many keys would be smaller than that of one with more."""
        return self._entries_for(keys) < self.entries

    def is_made_like(self, text: str, keys: int) -> bool:
        """Whether a footer's filter is one these options give to a file that has so many keys now, and gets some more;
        seen from its first bytes, no decoding of the bits.
        """
        try:
            head = base64.b64decode(text[: 4 * ((_ROW_HEADER.size + _COUNTERS.size + 2) // 3)], validate=True)
            version, hashes, hash_type, size = _ROW_HEADER.unpack_from(head)
            entries = self.entries if self.filter_type == SIMPLE else _COUNTERS.unpack_from(head, _ROW_HEADER.size)[0]
        except (binascii.Error, struct.error):
            return False
        fits = self._entries_for(entries) == entries and keys <= _MAX_FITTED_ROWS * entries
        if not (entries == self.entries or fits):
            return False
        wanted = vector_size(entries, self.fpp)
        return (version, hash_type, size, hashes) == (_VERSION, _MURMUR, wanted, hash_count(wanted, entries))

    def _entries_for(self, keys: int | None) -> int:
        if keys is None or not self.fitted or self.filter_type == SIMPLE:
            return self.entries
        return min(self.entries, max(_MIN_ENTRIES, 1 << max(keys - 1, 0).bit_length()))


class BloomFilter:
    """Bits over record keys; false answers of `contains` are certain, true ones likely."""

    __slots__ = ("_entries", "_hashes", "_last_row_keys", "_max_entries", "_rows", "_type", "_vector_size")

    def __init__(
        self,
        filter_type: FilterType,
        *,
        hashes: int,
        entries: int,
        max_entries: int,
        rows: list[Bits],
        last_row_keys: int,
    ) -> None:
        """Use `simple`, `dynamic`, `from_text` or `BloomOptions.new_filter`."""
        self._type = filter_type
        self._hashes = hashes
        self._vector_size = len(rows[0])
        self._entries = entries
        self._max_entries = max_entries
        self._rows = rows
        self._last_row_keys = last_row_keys

    @classmethod
    def simple(cls, entries: int = DEFAULT_ENTRIES, fpp: float = DEFAULT_FPP) -> BloomFilter:
        """An empty SIMPLE filter."""
        return cls._empty(SIMPLE, entries, fpp, entries)

    @classmethod
    def dynamic(
        cls, entries: int = DEFAULT_ENTRIES, fpp: float = DEFAULT_FPP, max_entries: int = DEFAULT_MAX_ENTRIES
    ) -> BloomFilter:
        """An empty DYNAMIC_V0 filter."""
        return cls._empty(DYNAMIC, entries, fpp, max_entries)

    @classmethod
    def from_text(cls, text: str, type_code: str | None, max_entries: int = DEFAULT_MAX_ENTRIES) -> BloomFilter:
        """The filter a footer holds. `type_code` None means SIMPLE; `max_entries` steers keys added later.

        Raises:
            Corrupt: the text is not such a filter.
            Unsupported: another kind of filter or hash.
        """
        if type_code not in (None, SIMPLE, DYNAMIC):
            raise Unsupported(
                f"Bloom filter type {type_code} is not known", remedy="Read the file without its bloom filter"
            )
        try:
            data = base64.b64decode(text, validate=True)
            if type_code == DYNAMIC:
                return cls._from_dynamic(data, max_entries)
            bits, hashes, end = _parse_row(data, 0)
        except (binascii.Error, struct.error, ValueError) as error:
            raise Corrupt(f"Bloom filter cannot be decoded: {error}", remedy="Rewrite the file") from error
        _ensure_end(data, end)
        return cls(SIMPLE, hashes=hashes, entries=0, max_entries=0, rows=[bits], last_row_keys=0)

    @classmethod
    def _empty(cls, filter_type: FilterType, entries: int, fpp: float, max_entries: int) -> BloomFilter:
        size = vector_size(entries, fpp)
        return cls(
            filter_type,
            hashes=hash_count(size, entries),
            entries=entries,
            max_entries=max_entries,
            rows=[np.zeros(size, dtype=np.bool_)],
            last_row_keys=0,
        )

    @classmethod
    def _from_dynamic(cls, data: bytes, max_entries: int) -> BloomFilter:
        _, hashes, _ = _parse_header(data, 0)
        entries, last_row_keys, row_count = _COUNTERS.unpack_from(data, _ROW_HEADER.size)
        if row_count < 1 or entries < 1 or last_row_keys < 0:
            raise ValueError(f"{row_count} rows for {entries} keys each, {last_row_keys} in the last")
        rows: list[Bits] = []
        at = _ROW_HEADER.size + _COUNTERS.size
        for _ in range(row_count):
            bits, _, at = _parse_row(data, at)
            rows.append(bits)
        _ensure_end(data, at)
        if len({len(bits) for bits in rows}) != 1:
            raise ValueError("rows of different sizes")
        return cls(
            DYNAMIC,
            hashes=hashes,
            entries=entries,
            max_entries=max_entries,
            rows=rows,
            last_row_keys=last_row_keys,
        )

    @property
    def type_code(self) -> FilterType:
        """`SIMPLE` or `DYNAMIC_V0`."""
        return self._type

    @property
    def entries(self) -> int:
        """Keys that a row of bits is made for."""
        return self._entries

    @property
    def vector_size(self) -> int:
        """Bits of a row."""
        return self._vector_size

    @property
    def hashes(self) -> int:
        """Bits set per key."""
        return self._hashes

    @property
    def row_count(self) -> int:
        """Rows of bits."""
        return len(self._rows)

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Add record keys (string; nulls are left out). Their order matters for the bytes of a DYNAMIC_V0 filter
        only.
        """
        for chunk in _chunks(keys):
            self._add_chunk(chunk)

    def join(self, other: BloomFilter) -> None:
        """Adds all keys of another filter of this kind and size. Both have one row of bits, and together no more keys
        than it is made for: then the bits are those of adding the keys.
        """
        assert len(self._rows) == len(other._rows) == 1
        assert (self._vector_size, self._hashes) == (other._vector_size, other._hashes)
        self._rows[0] |= other._rows[0]
        self._last_row_keys += other._last_row_keys

    def fill(self, keys: int) -> None:
        """Makes it say that it may hold any key, as after adding very many: `keys` of them."""
        self._rows[-1][:] = True
        self._last_row_keys += keys

    def contains(self, keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """For each key: False means it was never added. A null gives False."""
        answers = [self._contains_chunk(chunk) for chunk in _chunks(keys, keep_nulls=True)]
        return np.concatenate(answers) if answers else np.zeros(0, dtype=np.bool_)

    def to_text(self) -> str:
        """Base64 of the filter: the value of the footer key."""
        if self._type == SIMPLE:
            parts = [_encode_row(self._rows[0], self._hashes)]
        else:
            header = _ROW_HEADER.pack(_VERSION, self._hashes, _MURMUR, self._vector_size)
            counters = _COUNTERS.pack(self._entries, self._last_row_keys, len(self._rows))
            parts = [header, counters, *(_encode_row(bits, self._hashes) for bits in self._rows)]
        return base64.b64encode(b"".join(parts)).decode("ascii")

    def _add_chunk(self, keys: pa.StringArray) -> None:
        if self._type == SIMPLE:
            self._set(self._rows[0], keys)
            return
        start = 0
        while start < len(keys):
            if self._last_row_keys < self._entries:
                count = min(len(keys) - start, self._entries - self._last_row_keys)
                self._set(self._rows[-1], keys.slice(start, count))
            elif len(self._rows) * self._entries < self._max_entries:
                self._rows.append(np.zeros(self._vector_size, dtype=np.bool_))
                self._last_row_keys = 0
                continue
            else:
                count = len(keys) - start
                self._set_round_robin(keys.slice(start))
            self._last_row_keys += count
            start += count

    def _set_round_robin(self, keys: pa.StringArray) -> None:
        """Full: the first key ever added now goes to row 0, the ones after it to rows 0, 1, ... 0, 1, ..."""
        behind = self._last_row_keys - self._entries
        rows = len(self._rows)
        turns = np.maximum(np.arange(behind, behind + len(keys)) - 1, 0) % rows
        for row in range(rows):
            self._set(self._rows[row], keys if rows == 1 else keys.filter(pa.array(turns == row)))

    def _set(self, bits: Bits, keys: pa.StringArray) -> None:
        for _, at in self._positions(keys, self._hashes):
            bits[at.ravel()] = True

    def _contains_chunk(self, keys: pa.StringArray) -> npt.NDArray[np.bool_]:
        """A few rounds for all keys, the rest only for the keys that passed: most keys of an index lookup fail at
        once.
        """
        found = np.zeros(len(keys), dtype=np.bool_)
        rounds = min(_CONTAINS_ROUNDS, self._hashes)
        for rows, at in self._positions(keys, rounds):
            found[rows] = self._all_set(at)
        if rounds < self._hashes and found.any():
            likely = np.flatnonzero(found)
            for rows, at in self._positions(keys.take(pa.array(likely)), self._hashes):
                found[likely[rows]] = self._all_set(at)
        if keys.null_count:
            found &= keys.is_valid().to_numpy(zero_copy_only=False)
        return found

    def _all_set(self, at: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        answer = self._rows[0][at].all(axis=0)
        for bits in self._rows[1:]:
            answer |= bits[at].all(axis=0)
        return np.asarray(answer)

    def _positions(
        self, keys: pa.StringArray, rounds: int
    ) -> Iterator[tuple[npt.NDArray[np.int64] | slice, npt.NDArray[np.int32]]]:
        """Per block of keys: which keys, and their bit positions (rounds x keys; reused by the next step)."""
        hashes = np.empty(0, dtype=np.uint32)
        for block in murmur.blocks(keys):
            count = rounds * len(block)
            if len(hashes) < count:
                hashes = np.empty(count, dtype=np.uint32)
                quotients = np.empty(count, dtype=np.float64)
                positions = np.empty(count, dtype=np.int32)
            murmur.chain(block, rounds, hashes[:count].reshape(rounds, len(block)))
            yield (
                block.rows,
                self._remainders(hashes[:count], quotients[:count], positions[:count]).reshape(rounds, len(block)),
            )

    def _remainders(
        self, hashes: npt.NDArray[np.uint32], quotients: npt.NDArray[np.float64], out: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """abs(h % size) of Java, where the remainder has the sign of h.

        Division of two numbers below 2^32 in float64 is exact enough: h / size is either a whole number or at least 1
        / size away from one, far more than the rounding error. Truncation to int32 then is Java's integer division.
        """
        signed = hashes.view(np.int32)
        np.divide(signed, float(self._vector_size), out=quotients)
        np.copyto(out, quotients, casting="unsafe")
        np.multiply(out, np.int32(self._vector_size), out=out)
        np.subtract(signed, out, out=out)
        return np.abs(out, out=out)


def vector_size(entries: int, fpp: float) -> int:
    """Bits for `entries` keys and the rate `fpp`, as Hudi computes them."""
    return math.ceil(entries * (-math.log(fpp) / (math.log(2) * math.log(2))))


def hash_count(size: int, entries: int) -> int:
    """Hash rounds for `size` bits and `entries` keys, as Hudi computes them."""
    return math.ceil(math.log(2) * size / entries)


def _chunks(keys: pa.Array | pa.ChunkedArray, *, keep_nulls: bool = False) -> Iterator[pa.StringArray]:
    chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
    for chunk in chunks:
        plain = chunk if pa.types.is_string(chunk.type) else chunk.cast(pa.string())
        yield plain if keep_nulls or not plain.null_count else plain.drop_null()


def _encode_row(bits: Bits, hashes: int) -> bytes:
    return _ROW_HEADER.pack(_VERSION, hashes, _MURMUR, len(bits)) + np.packbits(bits, bitorder="little").tobytes()


def _parse_header(data: bytes, at: int) -> tuple[int, int, int]:
    """Bits, hash rounds, and where the header ends."""
    version, hashes, hash_type, size = _ROW_HEADER.unpack_from(data, at)
    if version != _VERSION or hash_type != _MURMUR:
        raise Unsupported(
            f"Bloom filter of version {version} with hash type {hash_type} is not known",
            remedy="Read the file without its bloom filter",
        )
    if size < 1 or not 1 <= hashes <= 1024:
        raise ValueError(f"{size} bits, {hashes} hashes")
    return size, hashes, at + _ROW_HEADER.size


def _parse_row(data: bytes, at: int) -> tuple[Bits, int, int]:
    """The row's bits, its hash rounds, and where it ends."""
    size, hashes, start = _parse_header(data, at)
    end = start + (size + 7) // 8
    if end > len(data):
        raise ValueError(f"{len(data)} bytes, {end} needed")
    packed = np.frombuffer(data, dtype=np.uint8, count=end - start, offset=start)
    return np.unpackbits(packed, count=size, bitorder="little").view(np.bool_), hashes, end


def _ensure_end(data: bytes, end: int) -> None:
    if end != len(data):
        raise Corrupt(f"Bloom filter has {len(data) - end} bytes too many", remedy="Rewrite the file", offset=end)
