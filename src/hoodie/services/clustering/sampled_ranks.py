"""Ranks of values among those of evenly spaced rows. Pure, on Arrow columns.

1. The rank of a value counts the rows of the sample below it, and one; NULL comes first. So a value that occurs often
   takes as many ranks as it has rows, and values that are near each other may have the same.
2. Text counts by its first 64 bytes. Where the numbers of `value_numbers` tell the sample's values apart, values are
   looked up by these, else they are ranked together with some of the sample.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.services.clustering.ordered_values import is_text
from hoodie.services.clustering.positions import Places, dense_ranks
from hoodie.services.clustering.value_numbers import numbered_values

SAMPLED_ROWS: Final = 1 << 16
"""Ranks are those among this many rows at most, and at least half of it where there are more."""

_TEXT_BYTES: Final = 64
_TOLD_APART: Final = 0.9
_BOUNDS: Final = 1 << 13
"""Values are ranked together with so many of the sample: each batch is sorted with them."""


def sampling_step(rows: int, most: int) -> int:
    """Each how many rows one is taken, if `most` are wanted: a power of two, so that a sample that has become too large
    needs half of its rows only.
    """
    step = 1
    while -(-rows // step) > most:
        step *= 2
    return step


def cut_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with as much of texts as counts."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return cut_texts(column.cast(kind.value_type))
    if not is_text(kind):
        return column
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    return pc.binary_slice(column.cast(pa.large_binary() if is_large else pa.binary()), 0, _TEXT_BYTES)


class SampledRanks:
    """The ranks of values among those of a sample, of which `most` is the greatest."""

    def __init__(self, sample: pa.ChunkedArray, name: str) -> None:
        """`sample`: with texts that are cut.

        Raises:
            Unsupported: values have no order.
        """
        present = sample.drop_null()
        ranks = dense_ranks(present, name)
        places = np.argsort(ranks, kind="stable")
        numbered = numbered_values(present)
        if numbered is not None and len(np.unique(numbered.numbers)) < _TOLD_APART * int(ranks.max(initial=0)):
            numbered = None
        self._name = name
        self._nulls = sample.null_count
        self._numbered = numbered
        self._each = -(-len(present) // _BOUNDS)
        self._bounds = present.take(pa.array(places[:: max(1, self._each)]))
        below = self._below(present.take(pa.array(places[-1:])))
        self.most = 1 + sample.null_count + int(below[0]) if len(below) else 1

    def of(self, column: pa.ChunkedArray) -> Places:
        """The rank of each value; of one behind the sample's, that of its last."""
        ranks: Places = np.minimum(self._below(column) + (1 + self._nulls), self.most)
        if column.null_count:
            ranks[column.is_null().to_numpy()] = 0
        return ranks

    def _below(self, column: pa.ChunkedArray) -> Places:
        """How many rows of the sample are below each value."""
        if self._numbered is not None:
            return self._numbered.below(column)
        compared = pa.chunked_array([*self._bounds.chunks, *cut_texts(column).chunks], self._bounds.type)
        ranks = dense_ranks(compared, self._name)
        bounds = len(self._bounds)
        return np.searchsorted(ranks[:bounds], ranks[bounds:], side="left") * self._each
