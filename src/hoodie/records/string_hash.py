"""Java's `String.hashCode` of many texts at once: what spreads keys over file groups and buckets.

1. `h = 31 * h + c` over the UTF-16 units of the text, in 32 bits that wrap.
2. All texts advance by one unit at the same time, the longest first, so that those still running lie in front.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.records.byte_columns import bytes_of

Units = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]


def java_hashes(texts: pa.StringArray) -> npt.NDArray[np.int32]:
    """`hashCode` of each text, in their order. No nulls."""
    units, offsets = _utf16(texts)
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    starts, descending = offsets[:-1][order], -lengths[order]
    hashes = np.zeros(len(lengths), dtype=np.uint32)
    for at in range(int(lengths.max(initial=0))):
        running = int(np.searchsorted(descending, -at, side="left"))
        head = hashes[:running]
        np.multiply(head, np.uint32(31), out=head)
        np.add(head, units[starts[:running] + at], out=head)
    result = np.empty(len(lengths), dtype=np.int32)
    result[order] = hashes.view(np.int32)
    return result


def _utf16(texts: pa.StringArray) -> tuple[Units, npt.NDArray[np.int64]]:
    """All units in a row, and where each text begins: the bytes themselves where all is ASCII."""
    if pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return bytes_of(texts)
    encoded = [text.encode("utf-16-le") for text in texts.to_pylist()]
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) // 2 for text in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint16), offsets
