"""What a clustering is worth to look-ups: how many files one value of a column is in, before and afterwards. Pure.

1. A look-up reads the files whose range holds the value, and those whose range nobody knows. It is asked about a
   value in the middle of each of the files there are, so parts of the range with many files count as often.
2. Afterwards a group's files lie side by side where its rows are sorted by the column first: one of them holds the
   value. On a curve through k columns a value is in the (k-1)/k-th power of the files; where the column does not count,
   in all of them.

An estimate: values need not spread evenly over their range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hoodie.services.clustering.overlap import ValueRange, boxes_of
from hoodie.services.clustering.plan_strategy import GroupOfSlices, RangesOf
from hoodie.spec import Curve, SortOrder
from hoodie.view import FileSlice

Reads = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LookUpGain:
    """How many of the table's `files` a look-up of one value of `column` reads now, and afterwards of how many."""

    column: str
    files: int
    reads: float
    files_after: int
    reads_after: float


def look_up_gain(
    column: str,
    slices: Sequence[FileSlice],
    groups: Sequence[GroupOfSlices],
    ranges: RangesOf,
) -> LookUpGain:
    """The gain of rewriting `groups`, which are some of the `slices`. `ranges` has the column where it is known."""
    known = {part.group_id: ranges[part.group_id][column] for part in slices if column in ranges.get(part.group_id, {})}
    grouped = [[known[part.group_id] for part in group.slices if part.group_id in known] for group in groups]
    moved = {part.group_id for group in groups for part in group.slices}
    staying = [one for group_id, one in known.items() if group_id not in moved]
    unknown = len(slices) - len(known)
    unknown_staying = sum(part.group_id not in moved and part.group_id not in known for part in slices)
    outputs = [group.outputs for group in groups]
    touched = [_touched(column, group.outputs, group.order) for group in groups]
    whole = [
        _joined(one) if len(one) == len(group.slices) else None for one, group in zip(grouped, groups, strict=True)
    ]
    now = _reads(list(known.values()), list(known.values()), [1.0] * len(known)) + unknown
    certain = [(one, count) for one, count in zip(whole, touched, strict=True) if one is not None]
    after = _reads(
        list(known.values()),
        [*staying, *(one for one, _ in certain)],
        [*([1.0] * len(staying)), *(count for _, count in certain)],
    )
    after = after + unknown_staying + sum(count for one, count in zip(whole, touched, strict=True) if one is None)
    return LookUpGain(
        column,
        len(slices),
        float(now.mean()) if len(now) else float(unknown),
        len(slices) - len(moved) + sum(outputs),
        float(after.mean()) if len(after) else float(unknown_staying + sum(touched)),
    )


def _touched(column: str, outputs: int, order: SortOrder | None) -> float:
    """How many of a group's new files a value of the column is in."""
    if order is None or column not in order.columns:
        return float(outputs)
    if order.curve is Curve.LINEAR or len(order.columns) == 1:
        return 1.0 if order.columns[0] == column else float(outputs)
    return max(1.0, float(outputs ** ((len(order.columns) - 1) / len(order.columns))))


def _joined(ranges: Sequence[ValueRange]) -> ValueRange:
    found = ranges[0]
    for one in ranges[1:]:
        found = found.union(one)
    return found


def _reads(points: Sequence[ValueRange], held: Sequence[ValueRange], weights: Sequence[float]) -> Reads:
    """For the middle of each of `points` the weights of those ranges that hold it, added up."""
    if not points:
        return np.zeros(0)
    boxes = boxes_of([[one] for one in (*points, *held)])
    asked = np.sort(boxes.middles[: len(points), 0])
    low, high = 2 * boxes.low[len(points) :, 0], 2 * boxes.high[len(points) :, 0]
    change = np.zeros(len(asked) + 1)
    np.add.at(change, np.searchsorted(asked, low, side="left"), weights)
    np.subtract.at(change, np.searchsorted(asked, high, side="right"), weights)
    found: Reads = np.cumsum(change)[:-1]
    return found
