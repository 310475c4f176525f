"""The rows of a parquet row group that meet a condition, read page by page: for looking up few rows in large files.

1. Bounds of pages tell in which rows of the group a match may be. Of the condition's columns only pages with such rows
   are decoded; of all others only pages with rows that do match.
2. It pays where values lie together (keys that ascend, say). Where bounds leave more than `MAX_SHARE` of the group,
   or its columns are nested, or there are no indexes, the answer is None: read it as a whole.
3. Bounds only rule pages out. Rows are decided by the filter itself.
4. On local files many small reads are cheap; elsewhere a group is read this way only if that takes few requests.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.records.align import align
from hoodie.records.condition import AnyOf, Comparison, Condition
from hoodie.records.file_indexes import FileIndexes, indexes_of
from hoodie.records.filter_error import filter_failed
from hoodie.records.page_index import ChunkPages, FileFooter, PagesFile, ReadInto, ReadRange, file_of_pages, ranges_of
from hoodie.records.plain_texts import PlainTexts, plain_texts

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]

MAX_SHARE: Final = 0.5
MAX_REMOTE_PAGES: Final = 4
"""Pages of one column that are read by requests of their own."""
MIN_REMOTE_BYTES: Final = 4 << 20
"""Smaller files elsewhere are read as ever: their indexes would cost more requests than they save."""
_END_BYTES: Final = 128 * 1024
_MAX_END_BYTES: Final = 8 << 20
_MAX_ROWS: Final = 1 << 24
_MIN_ROWS: Final = 10_000
"""Smaller row groups are read at once."""
_FEW_CONSTANTS: Final = 4
_AT: Final = "\x00at"


@dataclass(frozen=True, slots=True, eq=False)
class PageFilter:
    """`expression` decides on rows, `columns` are all it looks at, `condition` is what bounds can tell of it."""

    expression: pc.Expression
    columns: frozenset[str]
    condition: Condition


def open_pages(source: Any, page_filter: PageFilter, *, is_local: bool) -> PagedFile | None:
    """An open parquet file for a question to its pages; None when its footer is not understood, or very wide."""

    size_bytes = source.size()
    if not is_local and size_bytes < MIN_REMOTE_BYTES:
        return None

    def read_into(start: int, into: memoryview) -> None:
        source.seek(start)
        if source.readinto(into) < len(into):
            raise pa.ArrowInvalid(f"the file ends before byte {start + len(into)}")

    read = ranges_of(source)
    chosen = read if is_local else _remembering_end(read, size_bytes)
    indexes = indexes_of(source)
    footer = indexes.footer(chosen, size_bytes)
    return None if footer is None else PagedFile(chosen, read_into, indexes, footer, page_filter, is_local=is_local)


def _remembering_end(read: ReadRange, size_bytes: int) -> ReadRange:
    """`read` with the end of the file in memory, where footer and indexes are: one request, two for a large footer."""
    start = max(0, size_bytes - _END_BYTES)
    end = read(start, size_bytes - start)
    needed = int.from_bytes(end[-8:-4], "little") + _END_BYTES // 2
    if needed > len(end) and needed <= _MAX_END_BYTES:
        start = max(0, size_bytes - needed)
        end = read(start, size_bytes - start)

    def remembered(at: int, length: int) -> bytes:
        return end[at - start : at - start + length] if at >= start else read(at, length)

    return remembered


class PagedFile:
    """A parquet file whose pages are read one by one."""

    def __init__(
        self,
        read: ReadRange,
        read_into: ReadInto,
        indexes: FileIndexes,
        footer: FileFooter,
        page_filter: PageFilter,
        *,
        is_local: bool,
    ) -> None:
        self._read = read
        self._read_into = read_into
        self._indexes = indexes
        self._footer = footer
        self._filter = page_filter
        self._is_local = is_local
        self.group_count = len(footer.groups)

    def matching(self, group: int, wanted: pa.Schema) -> pa.Table | None:
        """The rows of a row group for which the filter is true, in the columns of `wanted`; None when reading pages
        does not pay, or is not possible.

        Raises:
            Invalid: values do not fit the types of `wanted`. Errors of Arrow for damaged pages.
        """
        found = self._candidates(group, wanted)
        present = [name for name in wanted.names if name in self._footer.names]
        return None if found is None else self._completed(group, self._filtered(*found, wanted), present, wanted)

    def located(self, group: int, column: pa.Field) -> tuple[pa.ChunkedArray, Positions] | None:
        """Where the filter asks for values of one column only: those of a row group that are one of its constants, and
        the numbers of their rows in the group, ascending. None and raises as `matching`.
        """
        found = self._candidates(group, pa.schema([column]))
        test = None if found is None else found[1].test
        return None if found is None or test is None else self._tested(found[0][column.name], test)

    def _candidates(self, group: int, wanted: pa.Schema) -> tuple[dict[str, ChunkPages], _Stretches] | None:
        """The pages of the columns that the filter looks at, and the rows that may meet it."""
        footer, page_filter = self._footer, self._filter
        present = [name for name in wanted.names if name in footer.names]
        if not page_filter.columns <= set(present) or any(name not in footer.flat for name in present):
            return None
        rows = footer.rows(group)
        if not _MIN_ROWS <= rows <= _MAX_ROWS:
            return None
        chunks = {name: self._indexes.pages(self._read, footer, group, name) for name in sorted(page_filter.columns)}
        known = {name: chunk for name, chunk in chunks.items() if chunk is not None}
        if len(known) < len(chunks):
            return None
        alike = {name for name in known if footer.stored_type(name) == wanted.field(name).type}
        possible = self._possible(page_filter.condition, group, {name: known[name] for name in alike}, wanted)
        if possible is None or possible.count > MAX_SHARE * rows or not self._pays(known.values(), possible):
            return None
        return known, possible

    def _filtered(self, chunks: Mapping[str, ChunkPages], possible: _Stretches, wanted: pa.Schema) -> pa.Table:
        """The rows that meet the filter, of those that may: the columns it looks at, and the rows' numbers."""
        columns: dict[str, Any] = {}
        if possible.test is not None:
            columns[possible.test.column], at = self._tested(chunks[possible.test.column], possible.test)
        else:
            at = possible.rows()
        columns |= {name: self._values(chunk, at) for name, chunk in chunks.items() if name not in columns}
        first = pa.schema([field for field in wanted if field.name in chunks])
        looked_at = align(pa.table({name: columns[name] for name in first.names}), first)
        numbered = looked_at.append_column(_AT, pa.array(at))
        try:
            return numbered.filter(self._filter.expression)
        except pa.ArrowException as error:
            raise filter_failed(error, "the rows") from error

    def _tested(self, chunk: ChunkPages, test: _PageTest) -> tuple[pa.ChunkedArray, Positions]:
        """The values of a column that are one of the constants, and their rows."""
        pages = np.flatnonzero([len(constants) > 0 for constants in test.constants])
        file = self._file_of(chunk, pages)
        texts = _texts_of(file, chunk, pages)
        if texts is not None:
            return _equal_texts(texts, chunk, pages, test)
        values = _decoded(file, chunk, pages)
        found = [np.zeros(0, np.int64)]
        rows = [np.zeros(0, np.int64)]
        start = 0
        for page in pages.tolist():
            first, after = int(chunk.first_rows[page]), int(chunk.first_rows[page + 1])
            places = _places_of(values.slice(start, after - first), test.constants[page])
            found.append(places + start)
            rows.append(places + first)
            start += after - first
        return values.take(pa.array(np.concatenate(found))), np.concatenate(rows)

    def _completed(self, group: int, found: pa.Table, present: list[str], wanted: pa.Schema) -> pa.Table | None:
        """The rows found, with the columns that were not looked at."""
        at = found.column(_AT).to_numpy()
        others = {}
        for name in present:
            if name not in found.column_names:
                chunk = self._indexes.pages(self._read, self._footer, group, name)
                if chunk is None or not self._pays([chunk], at):
                    return None
                others[name] = self._values(chunk, at)
        columns = {name: found.column(name) if name in found.column_names else others[name] for name in present}
        return align(pa.table(columns), wanted)

    def _pays(self, chunks: Collection[ChunkPages], rows: Positions | _Stretches) -> bool:
        if self._is_local:
            return True
        at = rows.rows() if isinstance(rows, _Stretches) else rows
        return all(len(_pages_of(chunk, at)) <= MAX_REMOTE_PAGES for chunk in chunks)

    def _possible(
        self, condition: Condition, group: int, chunks: Mapping[str, ChunkPages], schema: pa.Schema
    ) -> _Stretches | None:
        """Rows of a group that may meet the condition; None when bounds do not tell."""
        if isinstance(condition, Comparison):
            return self._between_bounds(condition, group, chunks, schema)
        parts = [self._possible(part, group, chunks, schema) for part in condition.parts]
        known = [part for part in parts if part is not None]
        if not known or (isinstance(condition, AnyOf) and len(known) < len(parts)):
            return None
        return reduce(_Stretches.either if isinstance(condition, AnyOf) else _Stretches.both, known)

    def _between_bounds(
        self, test: Comparison, group: int, chunks: Mapping[str, ChunkPages], schema: pa.Schema
    ) -> _Stretches | None:
        chunk = chunks.get(test.column)
        if chunk is None or test.function or test.operator not in ("=", "in"):
            return None
        kind, constants = schema.field(test.column).type, test.values.drop_null()
        if not constants.type.equals(kind) or not (pa.types.is_string(kind) or pa.types.is_signed_integer(kind)):
            return None
        bounds = self._indexes.bounds(self._read, chunk, group, test.column)
        if bounds is None:
            return None
        ascending = sorted((constants.cast(pa.binary()) if pa.types.is_string(kind) else constants).to_pylist())
        pairs = zip(bounds.lows, bounds.highs, strict=True)
        between = tuple(tuple(_between(ascending, *pair)) for pair in pairs)
        chosen = np.array([len(found) > 0 for found in between])
        return _Stretches(chunk.first_rows, chosen, _PageTest(test.column, between))

    def _values(self, chunk: ChunkPages, at: Positions) -> pa.ChunkedArray:
        """The values in rows `at`, which ascend."""
        pages = _pages_of(chunk, at)
        values = _decoded(self._file_of(chunk, pages), chunk, pages)
        starts = chunk.first_rows[pages]
        counts = chunk.first_rows[pages + 1] - starts
        before = np.cumsum(counts) - counts
        of_row = np.searchsorted(starts, at, side="right") - 1
        return values.take(pa.array(at - starts[of_row] + before[of_row]))

    def _file_of(self, chunk: ChunkPages, pages: Positions) -> PagesFile:
        return file_of_pages(self._read_into, chunk, pages.tolist() or [0])  # no pages: one, for the type


def _decoded(file: PagesFile, chunk: ChunkPages, pages: Positions) -> pa.ChunkedArray:
    """All values of the pages that are in the file."""
    reader = pa.BufferReader(file.stored)
    parquet = pq.ParquetFile(reader, coerce_int96_timestamp_unit="us", arrow_extensions_enabled=False)
    values = parquet.read(use_threads=False).column(0)
    some = pages if len(pages) else np.zeros(1, np.int64)
    rows = int((chunk.first_rows[some + 1] - chunk.first_rows[some]).sum())
    if len(values) != rows:
        raise pa.ArrowInvalid(f"pages have {len(values)} rows where their index says {rows}")
    return values if len(pages) else values.slice(0, 0)


def _texts_of(file: PagesFile, chunk: ChunkPages, pages: Positions) -> list[PlainTexts] | None:
    """The texts of each page where they can be compared as they are stored; None: Arrow must decode them."""
    if not chunk.is_bytes or not len(pages) or len(file.plain) != len(pages):
        return None
    texts = []
    for page, number in zip(file.plain, pages.tolist(), strict=True):
        if page.values != chunk.first_rows[number + 1] - chunk.first_rows[number]:
            return None
        found = plain_texts(page.content, page.values, is_optional=chunk.is_optional)
        if found is None:
            return None
        texts.append(found)
    return texts


def _equal_texts(
    texts: list[PlainTexts], chunk: ChunkPages, pages: Positions, test: _PageTest
) -> tuple[pa.ChunkedArray, Positions]:
    """The texts that are one of the constants, and their rows."""
    values, rows = [], []
    for page, number in zip(texts, pages.tolist(), strict=True):
        places = page.places_of(test.constants[number])
        values.append(page.take(places))
        rows.append(places + chunk.first_rows[number])
    return pa.chunked_array(values), np.concatenate(rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Stretches:
    """Rows in stretches that start at `marks`, the last of which is the number of rows; `chosen` has one for each.
    `test` is there where it is the one that chose them, by the pages of its column.
    """

    marks: Positions
    chosen: Mask
    test: _PageTest | None = None

    @property
    def count(self) -> int:
        """How many rows are chosen."""
        return int(np.diff(self.marks)[self.chosen].sum())

    def rows(self) -> Positions:
        """The chosen rows, ascending."""
        pairs = zip(self.marks[:-1][self.chosen], self.marks[1:][self.chosen], strict=True)
        return np.concatenate([np.zeros(0, np.int64), *(np.arange(*pair) for pair in pairs)])

    def both(self, other: _Stretches) -> _Stretches:
        """The rows chosen in both."""
        marks, ours, theirs = self._cut_like(other)
        return _Stretches(marks, ours & theirs)

    def either(self, other: _Stretches) -> _Stretches:
        """The rows chosen in one of them."""
        marks, ours, theirs = self._cut_like(other)
        return _Stretches(marks, ours | theirs)

    def _cut_like(self, other: _Stretches) -> tuple[Positions, Mask, Mask]:
        marks = np.union1d(self.marks, other.marks)
        ours, theirs = (
            side.chosen[np.searchsorted(side.marks, marks[:-1], side="right") - 1] for side in (self, other)
        )
        return marks, ours, theirs


@dataclass(frozen=True, slots=True, eq=False)
class _PageTest:
    """A column is one of some constants; of each page only some of these come into question."""

    column: str
    constants: tuple[tuple[Any, ...], ...]


def _places_of(values: pa.ChunkedArray, constants: tuple[Any, ...]) -> Positions:
    """Where the values are one of the constants. Comparing with a few of these is cheaper than hashing the values."""
    wanted = pa.array(constants)
    if not wanted.type.equals(values.type):
        wanted = wanted.cast(values.type)
    if len(wanted) > _FEW_CONSTANTS:
        mask = pc.is_in(values, value_set=wanted)
    else:
        mask = reduce(pc.or_, (pc.equal(values, value) for value in wanted))
    places: Positions = pc.indices_nonzero(mask).to_numpy().astype(np.int64)
    return places


def _pages_of(chunk: ChunkPages, at: Positions) -> Positions:
    """The pages with these rows, which ascend."""
    ends = np.searchsorted(at, chunk.first_rows)
    return np.flatnonzero(np.diff(ends))


def _between(ascending: list[Any], low: Any, high: Any) -> list[Any]:
    """The values between the bounds."""
    if low is None or high is None:
        return []
    return ascending[bisect_left(ascending, low) : bisect_right(ascending, high)]
