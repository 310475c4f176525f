"""The order Java gives text, in which Hudi 1.x writes keys, where it is not that of bytes.

1. Java compares UTF-16 units. Characters beyond U+FFFF are made of units from U+D800 on, so they come before those from
   U+E000 to U+FFFF; as UTF-8 bytes they come after. All else is in one order.
2. Two keys can be in two orders only if the first characters that differ are of those two kinds. So a key with neither
   stands where bytes say; for the others both places are looked at.
3. HBase's library refuses keys that are not in the order of bytes: its files have no such places.

It does not know files.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.hfile.block_index import BlockIndex, Choice

# The first byte that UTF-8 has for U+E000; every character after it starts with this or a higher one.
_FIRST_LATE_BYTE: Final = 0xEE


def has_late_characters(keys: pa.Array) -> bool:
    """Whether a binary array has a key that might stand elsewhere than bytes say."""
    if not len(keys):
        return False
    _, offsets, data = keys.buffers()
    marks = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    text = np.frombuffer(data or b"", np.uint8)[marks[0] : marks[-1]]
    return bool((text >= _FIRST_LATE_BYTE).any())


def units_of(key: bytes) -> bytes:
    """Bytes that compare as Java compares the text of the key."""
    return key.decode("utf-8", "surrogateescape").encode("utf-16-be", "surrogatepass")


def sorted_units(keys: pa.Array) -> pa.Array:
    """The same for a binary array of keys, ascending."""
    return pa.array(sorted(units_of(key) for key in keys.to_pylist()), pa.binary())


def in_either_order(by_bytes: Choice, by_units: Choice) -> Choice:
    """Blocks that are wanted under one of the orders; `by_units` is asked about keys as `units_of` gives them."""

    def choose(index: BlockIndex) -> list[int]:
        units = BlockIndex(tuple(units_of(key) for key in index.keys), index.offsets, index.sizes)
        return sorted({*by_bytes(index), *by_units(units)})

    return choose
