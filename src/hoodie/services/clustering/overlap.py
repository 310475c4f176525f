"""How ranges of values overlap: between files, of one column or of several. Pure.

The depth at a value is the number of files whose range holds it: so many files a look-up of it has to read. Of files
that do not overlap it is one. Of several columns a file is a box, and two boxes overlap where they do in every column.

Bounds are values as files store them (`hoodie.metadata_writer.column_range`): numbers, texts, bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hoodie.metadata_writer.column_range import Bound

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Least and greatest value of a column in some rows."""

    low: Bound
    high: Bound

    def union(self, other: ValueRange) -> ValueRange:
        """The range that holds both."""
        return ValueRange(min(self.low, other.low), max(self.high, other.high))


@dataclass(frozen=True, slots=True)
class Boxes:
    """Ranges of several columns as places among all bounds of each column: one row for each file."""

    low: Places
    high: Places

    def __len__(self) -> int:
        return len(self.low)

    @property
    def middles(self) -> Places:
        """The middle of each box, in halves of places."""
        found: Places = self.low + self.high
        return found

    def overlapping(self, at: int) -> npt.NDArray[np.bool_]:
        """Which boxes overlap that at a place, itself among them."""
        found: npt.NDArray[np.bool_] = ((self.low <= self.high[at]) & (self.high >= self.low[at])).all(axis=1)
        return found


def boxes_of(ranges: Sequence[Sequence[ValueRange]]) -> Boxes:
    """The boxes of files, each of which has one range for every column."""
    columns = list(zip(*ranges, strict=True))
    low = np.zeros((len(ranges), len(columns)), dtype=np.int64)
    high = np.zeros_like(low)
    for number, column in enumerate(columns):
        bounds = sorted({one.low for one in column} | {one.high for one in column})
        place = {bound: at for at, bound in enumerate(bounds)}
        low[:, number] = [place[one.low] for one in column]
        high[:, number] = [place[one.high] for one in column]
    return Boxes(low, high)


def connected(boxes: Boxes) -> list[list[int]]:
    """The boxes in sets that overlap, maybe by way of others, each in the order of its lower bounds; sets likewise."""
    order = np.lexsort(boxes.low.T[::-1]) if len(boxes) else np.zeros(0, np.int64)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    seen = np.zeros(len(boxes), dtype=np.bool_)
    found = []
    for first in order.tolist():
        if seen[first]:
            continue
        seen[first] = True
        members, waiting = [first], [first]
        while waiting:
            near = boxes.overlapping(waiting.pop()) & ~seen
            seen |= near
            more = np.flatnonzero(near).tolist()
            members += more
            waiting += more
        found.append(sorted(members, key=lambda at: int(place[at])))
    return found


def mean_depth(ranges: Sequence[Sequence[ValueRange]]) -> float:
    """How many of the files a look-up of a value in the middle of one of them has to read, on average; 0 of no files.
    The middle is among the bounds of all files.
    """
    if not ranges:
        return 0.0
    boxes = boxes_of(ranges)
    if boxes.low.shape[1] == 1:
        middles, low, high = boxes.middles[:, 0], np.sort(2 * boxes.low[:, 0]), np.sort(2 * boxes.high[:, 0])
        begun = np.searchsorted(low, middles, side="right")
        ended = np.searchsorted(high, middles, side="left")
        return float((begun - ended).mean())
    low, high = 2 * boxes.low, 2 * boxes.high
    holding = [((low <= point) & (high >= point)).all(axis=1).sum() for point in boxes.middles]
    return float(np.mean(holding))
