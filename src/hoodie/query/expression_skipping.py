"""Slices that an Arrow expression rules out, by the value ranges of their files.

1. For each slice the ranges of its columns are stated, and Arrow tells whether anything is left (`stated_bounds`).
2. What a slice may hold lies between the least and the greatest value of all its files, or is null.
3. Nothing is stated of floating point columns: NaN is outside of every range. Nor of columns that any file of the slice
   has no statistics of.

Loads `pyarrow.dataset`; conditions in SQL do without (`filters.conditions`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.metadata import COLUMN_STATS, FileOf, MetadataTable, Ranges
from hoodie.records.stated_bounds import parts_that_may_match, stated_bounds
from hoodie.slices import SliceRead

MAX_SLICES = 20_000


def slices_that_may_match(
    metadata: MetadataTable, slices: Sequence[SliceRead], expression: pc.Expression, columns: pa.Schema
) -> list[SliceRead]:
    """The slices for which the expression may be true, in their order. `columns`: those it looks at whose values stand
    in files under their names.

    Raises:
        Corrupt: the metadata table is damaged.
    """
    if not metadata.has(COLUMN_STATS) or not 1 < len(slices) <= MAX_SLICES:
        return list(slices)
    files = [_files(part) for part in slices]
    known = {
        field.name: metadata.ranges(field.name, [file for part in files for file in part], field.type)
        for field in columns
        if not (pa.types.is_floating(field.type) or pa.types.is_nested(field.type) or pa.types.is_binary(field.type))
    }
    if not known:
        return list(slices)
    stated = []
    at = 0
    for part in files:
        told = (_statement(name, found, at, len(part)) for name, found in known.items())
        stated.append([stated_range for stated_range in told if stated_range is not None])
        at += len(part)
    numbers = parts_that_may_match(expression, columns, stated)
    return [part for number, part in enumerate(slices) if number in numbers]


def _statement(name: str, ranges: Ranges, start: int, count: int) -> pc.Expression | None:
    """What is true of a column in every row of `count` files; None when that is not known."""
    low, high = ranges.low.slice(start, count), ranges.high.slice(start, count)
    rows, nulls = ranges.rows.slice(start, count), ranges.nulls.slice(start, count)
    if rows.null_count or nulls.null_count:
        return None
    has_values = pc.less(nulls, rows)
    low, high = low.filter(has_values), high.filter(has_values)
    if low.null_count or high.null_count:
        return None
    if not len(low):
        return pc.field(name).is_null()
    try:
        least, greatest = pc.min(low), pc.max(high)
    except pa.ArrowNotImplementedError:  # values of this type have no order
        return None
    return stated_bounds(name, least, greatest, has_nulls=pc.any(pc.greater(nulls, 0)).as_py())


def _files(part: SliceRead) -> list[FileOf]:
    bases = [] if part.base is None else [part.base.name.text]
    return [FileOf(part.partition, name) for name in (*bases, *(log.name.text for log in part.logs))]
