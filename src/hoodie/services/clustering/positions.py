"""The order of rows along sort columns, one after the other. Pure, on Arrow columns.

1. Every column becomes ranks: whole numbers that compare as its values do, NULL first, NaN last, -0.0 and 0.0 alike.
2. The sort is stable: the same rows in the same order give the same outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Unsupported
from hoodie.services.clustering.curves import Ranks
from hoodie.services.clustering.ordered_values import ordered_values

Places = npt.NDArray[np.int64]

_WORD_BITS: Final = 64


def sorted_positions(columns: Sequence[pa.ChunkedArray], names: Sequence[str]) -> Places:
    """The places of the rows in their order; `columns` are the sort columns, at least one, all of the same length.

    Raises:
        Unsupported: values of a column have no order (lists, structs, maps).
    """
    return places_by([dense_ranks(column, name) for column, name in zip(columns, names, strict=True)])


def places_by(numbers: Sequence[Ranks]) -> Places:
    """The places of the rows in the order of numbers, the first for each row first, and otherwise as they come."""
    rows = len(numbers[0])
    if rows < 2:
        return np.arange(rows)
    lowest = [int(one.min()) for one in numbers]
    bits = [(int(one.max()) - low).bit_length() for one, low in zip(numbers, lowest, strict=True)]
    place_bits = (rows - 1).bit_length()
    if sum(bits) + place_bits > _WORD_BITS:
        return np.lexsort(numbers[::-1])
    # All of it in one number, with the place at the end: no two are equal, and numpy sorts numbers fastest.
    words = np.zeros(rows, np.uint64)
    for one, low, wide in zip(numbers, lowest, bits, strict=True):
        words = (words << np.uint64(wide)) | (one - np.uint64(low))
    words = (words << np.uint64(place_bits)) | np.arange(rows, dtype=np.uint64)
    words.sort()
    return (words & np.uint64((1 << place_bits) - 1)).astype(np.int64)


def dense_ranks(column: pa.ChunkedArray, name: str) -> Ranks:
    """Numbers that compare as the values of a column do, without gaps, 0 for NULL.

    Raises:
        Unsupported: its values have no order.
    """
    try:
        ranked = pc.rank(ordered_values(column), sort_keys="ascending", tiebreaker="dense")
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise Unsupported(
            f"Rows cannot be sorted by column {name} of type {column.type}",
            remedy="Sort by columns of numbers, text, dates or times",
        ) from None
    found: Ranks = ranked.to_numpy(zero_copy_only=False).astype(np.uint64)
    return np.where(column.is_null().to_numpy(), np.uint64(0), found) if column.null_count else found
