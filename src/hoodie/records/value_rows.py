"""Where a column of a base file has one of some values: finds the rows of few keys without reading all keys.

1. Row groups and pages are not read when their bounds rule the values out. That pays where values lie together, as
   ascending keys do; where they lie anywhere, the column is read as a whole.
2. Bounds only rule out: the answer is that of comparing every value.
3. Where many values are asked for, hardly a page can be left out between the least and the greatest of them: bounds
   tell of row groups that lie outside of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.records.align import align
from hoodie.records.base_file import InputStorage, ParquetRows, opened_base_file
from hoodie.records.base_file_reader import selected_columns
from hoodie.records.condition import Comparison
from hoodie.records.footer import BaseFooter

Positions = npt.NDArray[np.int64]

_ROWS_PER_VALUE: Final = 200
"""Bounds of pages are looked at where the file has at least so many rows for each value."""
_BATCH_ROWS: Final = 64 * 1024


def rows_with_values(
    storage: InputStorage, path: str, column: str, values: pa.Array, *, footer: BaseFooter
) -> tuple[Positions, Positions]:
    """The rows of the file, ascending, in which a top-level column has one of `values`, and for each of them the place
    of its value among these. `values` are of the column's type; none is null or there twice.

    Raises:
        Invalid: the file has no such column.
        Corrupt: what was read of the file is damaged.
        Unsupported: by its name a Lance file.
    """
    with opened_base_file(storage, path, footer) as file:
        looked_at = selected_columns(file.schema, [column], path)
        if not isinstance(file, ParquetRows):
            return places_of_values(align(file.read([column]), looked_at).column(0), values)
        if len(values) * _ROWS_PER_VALUE > footer.rows:
            return _between(file, looked_at, values, footer)
        found = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        first = 0
        for group, count in enumerate(footer.rows_per_group):
            some = values.filter(file.within_bounds(group, looked_at.field(0), values))
            if len(some):
                found += [(rows + first, places) for rows, places in _in_group(file, group, looked_at, some, values)]
            first += count
    rows, places = zip(*found, strict=True)
    return np.concatenate(rows), np.concatenate(places)


def _between(
    file: ParquetRows, looked_at: pa.Schema, values: pa.Array, footer: BaseFooter
) -> tuple[Positions, Positions]:
    """As `rows_with_values`, of which every row group is read that may have a value between the least and the greatest
    of `values`.
    """
    ends = pc.min_max(values)
    stored, groups = file.read_between(looked_at.field(0), ends["min"], ends["max"])
    if not groups:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    table = pa.Table.from_arrays([stored], names=looked_at.names)
    rows, places = places_of_values(align(table, looked_at).column(0), values)
    counts = np.array(footer.rows_per_group, dtype=np.int64)
    firsts, read = np.cumsum(counts) - counts, counts[groups]
    moved = np.repeat(firsts[groups] - (np.cumsum(read) - read), read)
    return rows + moved[rows], places


def _in_group(
    file: ParquetRows, group: int, looked_at: pa.Schema, some: pa.Array, values: pa.Array
) -> Iterator[tuple[Positions, Positions]]:
    """Rows of a row group with one of `some`, counted from its first, and the places of their values in `values`."""
    name = looked_at.names[0]
    pages = file.paged(pc.field(name).isin(some), [name], Comparison(name, "in", some))
    found = None if pages is None else pages.located(group, looked_at.field(0))
    if found is not None:
        stored, rows = found
        yield rows, places_of_values(stored, values)[1]
        return
    start = 0
    for batch in file.stream([name], [group], _BATCH_ROWS):
        rows, places = places_of_values(align(batch, looked_at).column(0), values)
        yield rows + start, places
        start += batch.num_rows


def places_of_values(stored: pa.Array | pa.ChunkedArray, values: pa.Array) -> tuple[Positions, Positions]:
    """The rows at which one of `values` is stored, ascending, and for each the place of its value among these."""
    found = pc.index_in(stored, value_set=values)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False)).astype(np.int64)
    return rows, found.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
