"""Slices that an Arrow expression rules out, by the value ranges of their files.

1. Arrow cannot be asked what an expression says, but it can simplify one by what is known to be true: that is how its
   own datasets leave out files. For each slice the ranges of its columns are stated, and Arrow tells whether anything
   is left.
2. What a slice may hold lies between the least and the greatest value of all its files, or is null.
3. Nothing is stated of floating point columns: NaN is outside of every range. Nor of columns that any file of the slice
   has no statistics of.

Loads `pyarrow.dataset`; conditions in SQL do without (`read.filter_condition`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pa_fs

from hoodie.metadata import COLUMN_STATS, FileOf, MetadataTable, Ranges
from hoodie.read.slice_read import SliceRead

MOST_SLICES = 20_000


def slices_that_may_match(
    metadata: MetadataTable, slices: Sequence[SliceRead], expression: pc.Expression, columns: pa.Schema
) -> list[SliceRead]:
    """The slices for which the expression may be true, in their order. `columns`: those it looks at whose values stand
    in files under their names.

    Raises:
        Corrupt: the metadata table is damaged.
    """
    if not metadata.has(COLUMN_STATS) or not 1 < len(slices) <= MOST_SLICES:
        return list(slices)
    files = [_files(part) for part in slices]
    known = {
        field.name: metadata.ranges(field.name, [one for part in files for one in part], field.type)
        for field in columns
        if not (pa.types.is_floating(field.type) or pa.types.is_nested(field.type) or pa.types.is_binary(field.type))
    }
    if not known:
        return list(slices)
    form, nowhere = ds.ParquetFileFormat(), pa_fs.LocalFileSystem()
    fragments = []
    at = 0
    for number, part in enumerate(files):
        stated = [one for name, found in known.items() if (one := _statement(name, found, at, len(part))) is not None]
        at += len(part)
        told = functools.reduce(operator.and_, stated) if stated else None
        fragments.append(form.make_fragment(str(number), nowhere, partition_expression=told))
    dataset = ds.FileSystemDataset(fragments, columns, form, nowhere)
    kept = {int(fragment.path) for fragment in dataset.get_fragments(filter=expression)}
    return [part for number, part in enumerate(slices) if number in kept]


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
    column = pc.field(name)
    if not len(low):
        return column.is_null()
    try:
        above, below = column >= pc.min(low), column <= pc.max(high)
    except pa.ArrowNotImplementedError:
        return None
    if pc.any(pc.greater(nulls, 0)).as_py():  # said of each bound: Arrow understands it in this form only
        above, below = above | column.is_null(), below | column.is_null()
    return above & below


def _files(part: SliceRead) -> list[FileOf]:
    bases = [] if part.base is None else [part.base.name.text]
    return [FileOf(part.partition, name) for name in (*bases, *(log.name.text for log in part.logs))]
