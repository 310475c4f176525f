"""Curves through several whole numbers of the same number of bits. Pure, on numpy arrays.

Z-order interleaves bits. Hilbert goes by J. Skilling, "Programming the Hilbert curve" (2004).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ranks = npt.NDArray[np.uint64]


def interleaved(axes: Sequence[Ranks], bits: int) -> Ranks:
    """The lowest `bits` of the axes interleaved, the highest first; 64 bits of all axes at most."""
    keys = np.zeros(len(axes[0]), dtype=np.uint64)
    one = np.uint64(1)
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            keys = (keys << one) | ((axis >> np.uint64(bit)) & one)
    return keys


def hilbert_axes(axes: Sequence[Ranks], bits: int) -> list[Ranks]:
    """The "transposed" Hilbert index: its bits interleaved are the place on the curve."""
    x = [axis.copy() for axis in axes]
    q = 1 << (bits - 1)
    while q > 1:
        low, at = np.uint64(q - 1), np.uint64(q)
        for i in range(len(x)):
            is_set = (x[i] & at) != 0
            swap = np.where(is_set, 0, (x[0] ^ x[i]) & low)
            x[0] ^= np.where(is_set, low, swap)
            x[i] ^= swap
        q >>= 1
    for i in range(1, len(x)):
        x[i] ^= x[i - 1]
    turned = np.zeros(len(x[0]), dtype=np.uint64)
    q = 1 << (bits - 1)
    while q > 1:
        turned ^= np.where((x[-1] & np.uint64(q)) != 0, np.uint64(q - 1), np.uint64(0))
        q >>= 1
    return [axis ^ turned for axis in x]
