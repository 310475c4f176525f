"""The smallest and largest record key of a file, in the order Hudi's readers compare keys.

Hudi compares keys as Java strings: by UTF-16 code units. UTF-8 bytes sort the same way, except that characters beyond
U+FFFF (lead bytes F0 to F4) come before U+E000 to U+FFFF (lead bytes EE, EF). So bytes are compared after swapping
those lead bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_FIRST_ODD_LEAD: Final = 0xEE
_TO_JAVA_ORDER: Final = bytes([*range(0xEE), 0xF3, 0xF4, 0xEE, 0xEF, 0xF0, 0xF1, 0xF2, *range(0xF5, 0x100)])
_FROM_JAVA_ORDER: Final = bytes(_TO_JAVA_ORDER.index(byte) for byte in range(0x100))
_TABLE: Final = np.frombuffer(_TO_JAVA_ORDER, dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Smallest and largest key, both included."""

    low: str
    high: str

    def union(self, other: KeyRange | None) -> KeyRange:
        """The range that holds both."""
        if other is None:
            return self
        return KeyRange(min(self.low, other.low, key=java_order), max(self.high, other.high, key=java_order))

    def contains(self, key: str) -> bool:
        """Whether `key` may be in a file with this range."""
        return java_order(self.low) <= java_order(key) <= java_order(self.high)

    def mask(self, keys: pa.StringArray) -> pa.BooleanArray:
        """`contains` for every key of an array (null for null)."""
        odd = _has_odd_leads(keys) or max((self.low + self.high).encode(), default=0) >= _FIRST_ODD_LEAD
        values = _swapped(keys) if odd else keys.cast(pa.binary())
        low, high = (java_order(self.low), java_order(self.high)) if odd else (self.low.encode(), self.high.encode())
        return pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))


def key_range(keys: pa.Array | pa.ChunkedArray) -> KeyRange | None:
    """Range of the keys (nulls left out), None when there are none."""
    chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
    whole: KeyRange | None = None
    for chunk in chunks:
        part = _chunk_range(chunk)
        whole = part if whole is None else whole.union(part)
    return whole


def java_order(key: str) -> bytes:
    """Bytes that sort as Java sorts the string."""
    return key.encode("utf-8", "surrogatepass").translate(_TO_JAVA_ORDER)


def _chunk_range(keys: pa.StringArray) -> KeyRange | None:
    if len(keys) == keys.null_count:
        return None
    if not pa.types.is_string(keys.type):
        keys = keys.cast(pa.string())
    odd = _has_odd_leads(keys)
    extremes = pc.min_max(_swapped(keys) if odd else keys.cast(pa.binary()))
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    if odd:
        low, high = low.translate(_FROM_JAVA_ORDER), high.translate(_FROM_JAVA_ORDER)
    return KeyRange(low.decode(), high.decode())


def _has_odd_leads(keys: pa.StringArray) -> bool:
    _, offsets, data = keys.buffers()
    if data is None or data.size == 0:
        return False
    ends = np.frombuffer(offsets, dtype=np.int32)
    used = np.frombuffer(data, dtype=np.uint8)[ends[keys.offset] : ends[keys.offset + len(keys)]]
    return len(used) > 0 and int(used.max()) >= _FIRST_ODD_LEAD


def _swapped(keys: pa.StringArray) -> pa.Array:
    validity, offsets, data = keys.buffers()
    swapped = pa.py_buffer(_TABLE[np.frombuffer(data, dtype=np.uint8)])
    return pa.Array.from_buffers(pa.binary(), len(keys), [validity, offsets, swapped], keys.null_count, keys.offset)
