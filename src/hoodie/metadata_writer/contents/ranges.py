"""Compares statistics with the values that are there: those of files, of partitions, and of expression indexes.

1. Bounds and counts may say more than there is, never less: a reader that goes by them must find every row.
2. What a slice may hold is what any of its files may. What is not known of one of them rules nothing out.
3. Slices that are one base file are compared by the file's footer, others by the rows a snapshot reads. Their ranges
   are kept, so that an index is asked once for all files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from hoodie.metadata import COLUMN_STATS, PARTITION_STATS, FileOf, IndexDefinition, MetadataTable, Ranges
from hoodie.metadata.column_stats import file_ranges_of_columns, partition_ranges
from hoodie.metadata.store import MetadataStore
from hoodie.metadata_writer.column_range import (
    Bound,
    ColumnRange,
    as_type,
    in_order,
    join_ranges,
    range_of_values,
    stored_bound,
)
from hoodie.metadata_writer.contents.check import SliceShown, Trouble, index_path
from hoodie.metadata_writer.file_ranges import values_at
from hoodie.metadata_writer.index_functions import IndexFunction
from hoodie.records import KEY_FIELD
from hoodie.records.columns import type_at
from hoodie.view import FileSlice

BaseRanges = Callable[[FileSlice], Sequence[ColumnRange]]
"""Ranges of the indexed columns in a slice that is one base file."""


class StatisticsCheck:
    """The comparison of `column_stats` and, if there are any, of `partition_stats`. `types` are those of the indexed
    columns (paths with dots).
    """

    def __init__(
        self, table: MetadataTable, types: Mapping[str, pa.DataType], base_ranges: BaseRanges, *, of_partitions: bool
    ) -> None:
        self._table = table
        self._types = types
        self._base_ranges = base_ranges
        self._of_partitions = of_partitions
        self._slices: dict[str, list[tuple[FileSlice, ColumnRange]]] = defaultdict(list)

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        """The indexed columns, where the rows are not those of one file."""
        if not part.logs:
            return None
        return tuple(dict.fromkeys(column.partition(".")[0] for column in self._types))

    def compare(self, shown: SliceShown) -> Iterator[Trouble]:
        """Yields no findings yet: what is said is asked for all slices at once."""
        for found in self._ranges(shown):
            actual = as_type(found, self._types[found.column])
            self._slices[found.column].append((shown.part, actual))
        yield from ()

    def finish(self) -> Iterator[Trouble]:
        """Files, and partitions, with values outside of what is said of them."""
        for column, what in _troubles(self._table.store, COLUMN_STATS, self._types, self._slices):
            yield index_path(COLUMN_STATS), f"says of column {column!r} of {what}"
        if self._of_partitions:
            yield from self._of_each_partition()

    def _of_each_partition(self) -> Iterator[Trouble]:
        names = sorted({part.partition for shown in self._slices.values() for part, _ in shown})
        asked = {column: self._types[column] for column in self._slices}
        said = partition_ranges(self._table.store, {KEY_FIELD: pa.string(), **asked}, names)
        all_rows = said[KEY_FIELD].rows.to_pylist()
        for column, shown in self._slices.items():
            own: dict[str, list[ColumnRange]] = defaultdict(list)
            for part, actual in shown:
                own[part.partition].append(actual)
            ranges = said[column]
            for at, (name, rows) in enumerate(zip(names, all_rows, strict=True)):
                # Readers believe what is said of as many rows as have a key.
                if own[name] and rows is not None and ranges.rows[at].as_py() == rows:
                    wrong = left_out(_some(ranges, at, 1), join_ranges(own[name]))
                    if wrong:
                        where = f"column {column!r} of the partition {name!r}"
                        yield index_path(PARTITION_STATS), f"says of {where} {wrong}"

    def _ranges(self, shown: SliceShown) -> Iterator[ColumnRange]:
        if not shown.part.logs:
            yield from (one for one in self._base_ranges(shown.part) if one.column in self._types)
            return
        for column in self._types:
            yield range_of_values(column, values_at(shown.rows, column))


class ExpressionRangesCheck:
    """The comparison of an expression index of ranges."""

    def __init__(
        self, table: MetadataTable, definition: IndexDefinition, function: IndexFunction, schema: pa.Schema
    ) -> None:
        self._table = table
        self._definition = definition
        self._function = function
        self._column = definition.source_fields[0]
        data_type = type_at(schema, self._column)
        self._type = None if data_type is None else function.result_of(data_type)
        self._slices: list[tuple[FileSlice, ColumnRange]] = []

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        """The column it is on."""
        del part
        return None if self._type is None else (self._column.partition(".")[0],)

    def compare(self, shown: SliceShown) -> Iterator[Trouble]:
        """Yields no findings yet: what is said is asked for all slices at once."""
        if self._type is not None:
            results = self._function.of(values_at(shown.rows, self._column))
            self._slices.append((shown.part, range_of_values(self._column, results)))
        yield from ()

    def finish(self) -> Iterator[Trouble]:
        """Files with results outside of what is said of them."""
        if self._type is not None:
            name = self._definition.name
            found = _troubles(self._table.store, name, {self._column: self._type}, {self._column: self._slices})
            yield from ((index_path(name), f"says of its results for {what}") for _, what in found)


def left_out(said: Ranges, actual: ColumnRange) -> str | None:
    """What ranges of one or several files, or of a partition, leave out of what there is; None: nothing."""
    if not actual.rows:
        return None
    data_type = said.low.type
    nulls, rows = said.nulls.to_pylist(), said.rows.to_pylist()
    if actual.nulls and all(one == 0 for one in nulls):
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
    return [stored_bound(one, data_type) for one in in_order(values).to_pylist()]


def _troubles(
    store: MetadataStore,
    index: str,
    types: Mapping[str, pa.DataType],
    shown: Mapping[str, Sequence[tuple[FileSlice, ColumnRange]]],
) -> Iterator[tuple[str, str]]:
    """By column, what an index of statistics leaves out of slices, whose ranges of the column are given."""
    files = {column: [_files(part) for part, _ in slices] for column, slices in shown.items() if slices}
    asked = [(column, [file for own in some for file in own], types[column]) for column, some in files.items()]
    for (column, _, _), said in zip(asked, file_ranges_of_columns(store, asked, index), strict=True):
        at = 0
        for (part, actual), own in zip(shown[column], files[column], strict=True):
            wrong = left_out(_some(said, at, len(own)), actual)
            at += len(own)
            if wrong:
                yield column, f"{_last(part)} {wrong}"


def _some(ranges: Ranges, start: int, count: int) -> Ranges:
    return Ranges(*(one.slice(start, count) for one in (ranges.low, ranges.high, ranges.rows, ranges.nulls)))


def _files(part: FileSlice) -> list[FileOf]:
    own = (part.base, *part.logs)
    return [FileOf(part.partition, file.path.rpartition("/")[2]) for file in own if file is not None]


def _last(part: FileSlice) -> str:
    """The newest file of a slice."""
    return [file.path for file in (part.base, *part.logs) if file is not None][-1]
