"""Indexes: for each block below, the key it starts with and where it is.

1. An index key is not above the first key of its block and not below the last key of the block before. It need not
   occur in the file (HBase shortens keys).
2. Index keys of entries have their length in two bytes in front; what follows the key is not looked at, since Hudi's
   own writer leaves it out. Index keys of meta blocks are plain names.
3. The root gives each key its length as a Hadoop integer, its count of entries stands in the trailer. Blocks below the
   root have the count and the offsets of all entries in front, and no lengths.
4. Blocks of an index lie one after the other and do not overlap; an index that says otherwise is damaged. So whatever
   an index says, nothing is read twice.

It reads nothing: what is wanted comes out as positions. Layout: docs/format/hfile.md.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pyarrow as pa

from hoodie.hfile.block import HEADER_BYTES
from hoodie.hfile.cursor import PLACE_BYTES, Cursor, corrupt, encode_hadoop_vint

Choice = Callable[["BlockIndex"], list[int]]
"""Which blocks of an index are wanted, by position, ascending."""

# What follows the key itself: no column family, timestamp Long.MAX, type 4 (put).
KEY_SUFFIX: Final = b"\0" + b"\x7f" + b"\xff" * 7 + b"\x04"
_PREFIX_BYTES: Final = 2
_MIN_ENTRY_BYTES: Final = 13


@dataclass(frozen=True, slots=True)
class BlockIndex:
    """Per block: its index key, its offset and its size on storage."""

    keys: tuple[bytes, ...]
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, positions: Sequence[int]) -> BlockIndex:
        """The index of these blocks only."""
        return BlockIndex(
            tuple(self.keys[at] for at in positions),
            tuple(self.offsets[at] for at in positions),
            tuple(self.sizes[at] for at in positions),
        )


def parse_root_index(content: bytes, count: int, path: str, offset: int, *, is_meta: bool = False) -> BlockIndex:
    """The `count` entries at the front of a root index; what follows them (HBase's middle key) is left alone.

    Raises:
        Corrupt: cut short, or an entry makes no sense.
    """
    if count * (_MIN_ENTRY_BYTES - is_meta) > len(content):
        raise corrupt(path, offset, f"an index of {len(content)} bytes cannot have {count} entries")
    cursor = Cursor(content, path, offset)
    keys, offsets, sizes = [], [], []
    for _ in range(count):
        start, size = cursor.block_place()
        key = cursor.take(cursor.hadoop_vint())
        offsets.append(start)
        sizes.append(size)
        keys.append(key if is_meta else _row(key, path, offset))
    return BlockIndex(tuple(keys), tuple(offsets), tuple(sizes))


def parse_lower_index(content: bytes, path: str, offset: int) -> BlockIndex:
    """The entries of an intermediate or leaf index block.

    Raises:
        Corrupt: cut short, or an entry makes no sense.
    """
    cursor = Cursor(content, path, offset)
    count = cursor.integer(4)
    if not 0 <= count * _MIN_ENTRY_BYTES <= len(content):
        raise corrupt(path, offset, f"an index of {len(content)} bytes cannot have {count} entries")
    starts = [cursor.integer(4) for _ in range(count + 1)]
    keys, offsets, sizes = [], [], []
    for relative, end in pairwise(starts):
        start, size = cursor.block_place()
        offsets.append(start)
        sizes.append(size)
        keys.append(_row(cursor.take(end - relative - PLACE_BYTES), path, offset))
    return BlockIndex(tuple(keys), tuple(offsets), tuple(sizes))


def join_indexes(parts: Sequence[BlockIndex]) -> BlockIndex:
    """One index of the blocks of several, in their order."""
    return BlockIndex(
        tuple(key for part in parts for key in part.keys),
        tuple(offset for part in parts for offset in part.offsets),
        tuple(size for part in parts for size in part.sizes),
    )


def ensure_in_order(index: BlockIndex, end: int, path: str, offset: int) -> None:
    """Checks that the blocks lie one after the other before `end`.

    Raises:
        Corrupt: one is out of bounds or overlaps the one before it; `offset` is where the index stands.
    """
    free = 0
    for start, size in zip(index.offsets, index.sizes, strict=True):
        if start < free or size < HEADER_BYTES or start + size > end:
            raise corrupt(path, offset, f"an index names a block of {size} bytes at {start}, outside {free} to {end}")
        free = start + size


def encode_index_entry(key: bytes, offset: int, size_bytes: int) -> bytes:
    """One entry of a root index; for entries, `key` is the full key (`full_key`)."""
    return offset.to_bytes(8, "big") + size_bytes.to_bytes(4, "big") + encode_hadoop_vint(len(key)) + key


def full_key(row: bytes) -> bytes:
    """A key in the long form entries have, which every reader takes in indexes as well."""
    return len(row).to_bytes(_PREFIX_BYTES, "big") + row + KEY_SUFFIX


def row_of_key(key: bytes) -> bytes | None:
    """The key proper in a long or short form; None when it is neither."""
    if len(key) < _PREFIX_BYTES:
        return None
    length = key[0] << 8 | key[1]
    row = key[_PREFIX_BYTES : _PREFIX_BYTES + length]
    return row if length == len(row) else None


def all_blocks(index: BlockIndex) -> list[int]:
    """Every block."""
    return list(range(len(index)))


def blocks_with_keys(keys: pa.Array) -> Choice:
    """Blocks that may hold one of the keys, which are binary, ascending and distinct.

    Cost: two binary searches for every block that is wanted.
    """

    def choose(index: BlockIndex) -> list[int]:
        chosen: list[int] = []
        at = 0
        while at < len(keys) and len(index):
            key = keys[at].as_py()
            # Equal keys may reach into the block before the one that starts with them.
            first = max(bisect_left(index.keys, key) - 1, 0)
            last = bisect_right(index.keys, key) - 1
            chosen.extend(block for block in range(first, last + 1) if not chosen or block > chosen[-1])
            if last + 1 == len(index):
                break
            at = keys_below(keys, index.keys[last + 1], at + 1)
        return chosen

    return choose


def blocks_with_prefixes(prefixes: Sequence[bytes]) -> Choice:
    """Blocks that may hold a key that starts with one of the prefixes, which are ascending."""

    def choose(index: BlockIndex) -> list[int]:
        chosen: list[int] = []
        for prefix in prefixes if len(index) else ():
            beyond = _successor(prefix)
            first = max(bisect_left(index.keys, prefix) - 1, 0)
            last = len(index) if beyond is None else bisect_left(index.keys, beyond)
            chosen.extend(range(max(first, chosen[-1] + 1 if chosen else 0), last))
        return chosen

    return choose


def keys_below(keys: pa.Array, bound: bytes, start: int = 0) -> int:
    """How many of the ascending binary keys are below `bound`; at least `start` are known to be."""
    return bisect_left(range(len(keys)), bound, start, key=lambda at: keys[at].as_py())


def _successor(prefix: bytes) -> bytes | None:
    """The smallest key above all keys with this prefix; None when there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _row(key: bytes, path: str, offset: int) -> bytes:
    row = row_of_key(key)
    if row is None:
        raise corrupt(path, offset, f"an index has a key of {len(key)} bytes that is none")
    return row
