"""The bytes of a string or binary column as numpy sees them, without a copy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def bytes_of(values: pa.StringArray | pa.BinaryArray) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The buffer, and where in it each value begins (one entry more: where the last ends). 32-bit offsets only."""
    _, offsets, data = values.buffers()
    if offsets is None or len(values) == 0:
        return np.zeros(0, dtype=np.uint8), np.zeros(len(values) + 1, dtype=np.int64)
    found = np.frombuffer(offsets, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    return np.frombuffer(data or b"", dtype=np.uint8), found.astype(np.int64)
