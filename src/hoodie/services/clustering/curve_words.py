"""Where rows are on a curve through several columns, by a sample of all rows. Pure, on Arrow columns.

1. Ranks among the sample (`sampled_ranks`) are scaled to the same number of bits for each column. Values that occur
   often take as much of the curve as they have rows: skewed columns and columns of different types weigh the same.
2. Hudi by default takes bits of the values themselves, or bounds of a sample (`hudi_curves`). Readers depend on none.
3. A row's words depend on itself and the sample alone, so rows are sorted by them some at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.errors import Unsupported
from hoodie.services.clustering.curves import Ranks, hilbert_axes, interleaved
from hoodie.services.clustering.hudi_curves import sampled_words
from hoodie.services.clustering.positions import Places, places_by
from hoodie.services.clustering.sampled_ranks import SAMPLED_ROWS, SampledRanks, cut_texts, sampling_step
from hoodie.spec import Curve, CurveMethod, SortOrder

_ROWS: Final = 1 << 16
"""Rows that are looked at together: what is made on the way to words stays small."""

_KEY_BITS: Final = 63
_RANK_BITS: Final = 17
"""Ranks of a sample have no more."""


class CurveWords:
    """The words of 64 bits for rows on the curve of `order`, which sort as they do, by `sample`."""

    def __init__(self, order: SortOrder, sample: Sequence[pa.ChunkedArray]) -> None:
        """`sample`: the sort columns of some rows (`curve_sample_rows`).

        Raises:
            Unsupported: values of a column have no order, or a curve of too many columns.
        """
        self._order = order
        self._sample = sample
        self._is_hilbert = order.curve is Curve.HILBERT
        self._bits = 0
        self._ranks: list[SampledRanks] = []
        self._by_rank: list[Ranks] = []
        if order.method is CurveMethod.RANK:
            self._bits = curve_bits(len(order.columns))
            self._ranks = [SampledRanks(one, name) for one, name in zip(sample, order.columns, strict=True)]
            self._by_rank = [self._of_ranks(place, one.most) for place, one in enumerate(self._ranks)]

    def of(self, columns: Sequence[pa.ChunkedArray]) -> list[Ranks]:
        """The words of rows with these sort columns, the highest first."""
        if not self._ranks:
            cut = [cut_texts(one) for one in columns]
            return sampled_words(cut, self._order.columns, self._sample, hilbert=self._is_hilbert)
        axes = [
            by_rank[ranks.of(column)]
            for column, ranks, by_rank in zip(columns, self._ranks, self._by_rank, strict=True)
        ]
        if self._is_hilbert:
            return [interleaved(hilbert_axes(axes, self._bits), self._bits)]
        return [np.bitwise_or.reduce(axes)]

    def _of_ranks(self, place: int, most: int) -> Ranks:
        """What each rank of the column at `place` is on its axis; for Z-order, its bits at their places in the word."""
        scaled = (np.arange(most + 1) * (((1 << self._bits) - 1) / most)).astype(np.uint64)
        if self._is_hilbert:
            return scaled
        axes = [np.zeros(most + 1, np.uint64)] * len(self._order.columns)
        axes[place] = scaled
        return interleaved(axes, self._bits)


def curve_bits(columns: int) -> int:
    """The bits of each column's ranks on a curve through so many.

    Raises:
        Unsupported: a curve of too many columns.
    """
    bits = min(_RANK_BITS, _KEY_BITS // columns)
    if bits < 2:
        raise Unsupported(f"A curve through {columns} columns", remedy="Name fewer sort columns")
    return bits


def curve_sample_rows(order: SortOrder) -> int:
    """How many rows a sample for a curve has at most."""
    return SAMPLED_ROWS if order.method is CurveMethod.RANK else order.sample_size


def curve_positions(columns: Sequence[pa.ChunkedArray], order: SortOrder) -> Places:
    """The places of the rows on a curve; `columns` are those of `order`, of all rows.

    Raises:
        Unsupported: values of a column have no order, or a curve of too many columns.
    """
    rows = len(columns[0])
    sampled = pa.array(np.arange(0, rows, sampling_step(rows, curve_sample_rows(order))))
    curve = CurveWords(order, [cut_texts(one.take(sampled)) for one in columns])
    at_once = _ROWS if order.method is CurveMethod.RANK else max(1, rows)
    pieces = [curve.of([one.slice(at, at_once) for one in columns]) for at in range(0, max(1, rows), at_once)]
    return places_by([np.concatenate(words) for words in zip(*pieces, strict=True)])
