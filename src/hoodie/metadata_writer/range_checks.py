"""Compares statistics with the values that are there: those of files, of partitions, and of expression indexes.

1. Bounds and counts may say more than there is, never less: a reader that goes by them must find every row.
2. What a slice may hold is what any of its files may. What is not known of one of them rules nothing out.
3. Slices that are one base file are compared by the file's footer, others by the rows a snapshot reads. Their ranges
   are kept, so that an index is asked once for all files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

import pyarrow as pa

from hoodie.metadata import FileOf, Ranges
from hoodie.metadata.column_stats import file_ranges_of_columns
from hoodie.metadata.store import MetadataStore
from hoodie.metadata_writer.column_range import Bound, ColumnRange, as_type, in_order, range_of_values, stored_bound
from hoodie.metadata_writer.file_ranges import values_at
from hoodie.metadata_writer.index_check import SliceShown
from hoodie.view import FileSlice, GroupId

BaseRanges = Callable[[FileSlice], Sequence[ColumnRange]]
"""Ranges of the indexed columns in a slice that is one base file."""


class SliceRanges:
    """Ranges of indexed columns in the slices that were shown, by column. `types` are those of the columns (paths with
    dots). A slice that is shown by several checks is looked at once.
    """

    def __init__(self, types: Mapping[str, pa.DataType], base_ranges: BaseRanges) -> None:
        self.types = types
        self.by_column: dict[str, list[tuple[FileSlice, ColumnRange]]] = defaultdict(list)
        self._base_ranges = base_ranges
        self._seen: set[GroupId] = set()

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        """The top-level columns to show of a slice; None where the footer of its base file says enough."""
        if not part.logs:
            return None
        return tuple(dict.fromkeys(column.partition(".")[0] for column in self.types))

    def add(self, shown: SliceShown) -> None:
        """Adds the ranges of a slice, if they are not there."""
        if shown.part.group_id not in self._seen:
            self._seen.add(shown.part.group_id)
            for found in self._ranges(shown):
                self.by_column[found.column].append((shown.part, as_type(found, self.types[found.column])))

    def _ranges(self, shown: SliceShown) -> Iterator[ColumnRange]:
        if not shown.part.logs:
            yield from (found for found in self._base_ranges(shown.part) if found.column in self.types)
            return
        for column in self.types:
            yield range_of_values(column, values_at(shown.rows, column))


def left_out(said: Ranges, actual: ColumnRange) -> str | None:
    """What ranges of one or several files, or of a partition, leave out of what there is; None: nothing."""
    if not actual.rows:
        return None
    data_type = said.low.type
    nulls, rows = said.nulls.to_pylist(), said.rows.to_pylist()
    if actual.nulls and all(count == 0 for count in nulls):
        return f"that it has no NULL; it has {actual.nulls:,}"
    if actual.nulls == actual.rows or actual.low is None or actual.high is None:
        return None
    lows, highs = _bounds(said.low, data_type), _bounds(said.high, data_type)
    known = [at for at in range(len(lows)) if not (lows[at] is None and nulls[at] == rows[at] and rows[at] is not None)]
    if not known:
        return "that it has no values; it has some"
    least, greatest = [lows[at] for at in known], [highs[at] for at in known]
    if None not in least and _lowest(least) > actual.low:  # type: ignore[operator]
        return f"that it begins at {_lowest(least)!r}; it begins at {actual.low!r}"
    is_float = pa.types.is_floating(data_type)  # whose greatest values nobody believes
    if not is_float and None not in greatest and max(greatest) < actual.high:  # type: ignore[operator,type-var]
        return f"that it ends at {max(greatest)!r}; it ends at {actual.high!r}"  # type: ignore[type-var]
    return None


def _lowest(bounds: Sequence[Bound | None]) -> Bound:
    return min(bounds)  # type: ignore[type-var,return-value]


def _bounds(values: pa.Array, data_type: pa.DataType) -> list[Bound | None]:
    return [stored_bound(value, data_type) for value in in_order(values).to_pylist()]


def range_troubles(
    store: MetadataStore,
    index: str,
    types: Mapping[str, pa.DataType],
    shown: Mapping[str, Sequence[tuple[FileSlice, ColumnRange]]],
) -> Iterator[tuple[str, str]]:
    """By column, what an index of statistics leaves out of slices, whose ranges of the column are given."""
    files = {column: [_files(part) for part, _ in slices] for column, slices in shown.items() if slices}
    wanted = [(column, list(chain.from_iterable(groups)), types[column]) for column, groups in files.items()]
    found = file_ranges_of_columns(store, wanted, index, in_doubt=True)
    for (column, _, _), said in zip(wanted, found, strict=True):
        at = 0
        for (part, actual), of_slice in zip(shown[column], files[column], strict=True):
            wrong = left_out(rows_of(said, at, len(of_slice)), actual)
            at += len(of_slice)
            if wrong:
                yield column, f"{_last(part)} {wrong}"


def rows_of(ranges: Ranges, start: int, count: int) -> Ranges:
    """Some of the ranges, `count` from `start` on."""
    return Ranges(*(array.slice(start, count) for array in (ranges.low, ranges.high, ranges.rows, ranges.nulls)))


def _files(part: FileSlice) -> list[FileOf]:
    files = (part.base, *part.logs)
    return [FileOf(part.partition, file.path.rpartition("/")[2]) for file in files if file is not None]


def _last(part: FileSlice) -> str:
    """The newest file of a slice."""
    return [file.path for file in (part.base, *part.logs) if file is not None][-1]
