"""Decimals of at most 18 digits as longs and back, without an object for each value."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Longs = npt.NDArray[np.int64]

LONG_DIGITS: Final = 18
"""A decimal with more digits does not fit."""


def digits_of(column: pa.Array) -> Longs:
    """The unscaled values of such decimals: the lower half of each sixteen bytes. Anything where a value is NULL."""
    start, end = 2 * column.offset, 2 * (column.offset + len(column))
    return np.frombuffer(column.buffers()[1], np.int64)[start:end:2]


def decimals(digits: Longs, present: pa.Buffer | None, kind: pa.Decimal128Type) -> pa.Array:
    """Decimals with these unscaled values: each long with its sign above it. `present`: bits of those not NULL."""
    both = np.empty((len(digits), 2), np.int64)
    both[:, 0] = digits
    np.right_shift(digits, 63, out=both[:, 1])
    return pa.Array.from_buffers(kind, len(digits), [present, pa.py_buffer(both)])
