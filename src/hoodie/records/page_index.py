"""Where the pages of a parquet file's columns lie, which rows they have and between which bounds their values are.

1. Writers may put two indexes beside a column chunk: where its pages start (offset index), and bounds for each page
   (column index). Arrow's Python reader does not tell them, so the footer is read as Thrift here.
2. Only flat columns are known: there a page's values are its rows.
3. Some pages of a chunk, its dictionary before them and a footer for just them are a parquet file of their own:
   `file_of_pages`. Any reader decodes that, whatever the codec, the encoding and the type. Gzip, the default of Hudi
   and most of the time it takes, is taken off here.
4. Whatever is missing or odd makes the chunk unknown. Then the file is read without its indexes, and damage is found by
   those who decode it.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.records import thrift
from hoodie.records.gzip_pages import PackedPage, packed_pages
from hoodie.records.thrift import Field, Listed, NoThrift, Struct, encode_struct, parse_struct

Rows = npt.NDArray[np.int64]
ReadRange = Callable[[int, int], bytes]
ReadInto = Callable[[int, memoryview], None]
"""Fills memory with the bytes of a file from a place on."""

MAGIC: Final = b"PAR1"
MAX_COLUMNS: Final = 400
"""The footer of a wider file costs more to read than its pages are worth."""

_TAIL_BYTES: Final = 8
_FRONT_BYTES: Final = 64 * 1024
_SCHEMA: Final = 2
_ROW_GROUPS: Final = 4
_INT32, _INT64, _BYTE_ARRAY = 1, 2, 6
_CODEC, _UNCOMPRESSED, _GZIP = 4, 0, 2
_STORED_TYPES: Final = {
    (_BYTE_ARRAY, 0): pa.string(),
    (_INT32, None): pa.int32(),
    (_INT32, 17): pa.int32(),
    (_INT64, None): pa.int64(),
    (_INT64, 18): pa.int64(),
}
"""By physical type and converted type (UTF8, INT_32, INT_64)."""
_OPTIONAL_OR_REQUIRED: Final = (0, 1)
_ODD: Final = (NoThrift, KeyError, AttributeError, TypeError, IndexError, ValueError)
"""What comes of fields that are missing or of another kind."""


@dataclass(frozen=True, slots=True, eq=False)
class ChunkPages:
    """The data pages of a flat column in one row group. `first_rows` has the number of rows at its end, so page n has
    the rows `[first_rows[n], first_rows[n + 1])`.
    """

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    first_rows: Rows
    dictionary: tuple[int, int] | None
    element: Struct
    column: Struct

    @property
    def meta(self) -> Struct:
        """`ColumnMetaData`."""
        found: Struct = self.column[3].value
        return found

    @property
    def is_bytes(self) -> bool:
        """Whether values are stored as bytes with their length."""
        return bool(self.meta[1].value == _BYTE_ARRAY)

    @property
    def is_optional(self) -> bool:
        """Whether there may be nulls, so that levels stand before the values of a page."""
        return bool(self.element[3].value)


@dataclass(frozen=True, slots=True)
class PageBounds:
    """Least and greatest value of each page, bytes or whole numbers as the column is stored; None for a page that has
    nothing but nulls.
    """

    lows: tuple[Any, ...]
    highs: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FileFooter:
    """The footer of a parquet file as Thrift. `flat` has the number among the leaves of columns that are neither nested
    nor repeated, `elements` what the schema says about them, `names` all columns.
    """

    size_bytes: int
    names: frozenset[str]
    flat: dict[str, int]
    elements: dict[str, Struct]
    groups: tuple[Struct, ...]

    def rows(self, group: int) -> int:
        """Rows of a row group."""
        return int(self.groups[group][3].value)

    def chunks(self, group: int) -> list[Struct]:
        """`ColumnChunk` of each leaf column of a row group."""
        found: list[Struct] = self.groups[group][1].value.values
        return found

    def stored_type(self, column: str) -> pa.DataType | None:
        """Arrow's type of a flat column of text or of plain whole numbers; None for others."""
        element = self.elements[column]
        converted = element[6].value if 6 in element else None
        if converted is None and 10 in element:  # a kind that has no older name
            return None
        return _STORED_TYPES.get((element[1].value, converted))


def ranges_of(source: Any) -> ReadRange:
    """Reads of an open file of Arrow.

    Raises:
        NoThrift: by the function that comes back, of a place outside of the file.
    """
    size_bytes = source.size()

    def read(start: int, length: int) -> bytes:
        if start < 0 or not 0 <= length <= size_bytes:
            raise NoThrift("a place outside of the file")
        data: bytes = source.read_at(length, start)
        return data

    return read


def ended(footer: bytes) -> bytes:
    """A footer, and what stands behind it at the end of a file."""
    return footer + len(footer).to_bytes(4, "little") + MAGIC


def footer_before_end(data: bytes) -> bytes:
    """The footer of a file of which these bytes are the end, or all."""
    length = int.from_bytes(data[-_TAIL_BYTES:-4], "little")
    return data[-_TAIL_BYTES - length : -_TAIL_BYTES]


def read_file_footer(read: ReadRange, size_bytes: int, max_columns: int | None = MAX_COLUMNS) -> FileFooter | None:
    """The footer of a file of which `read(start, length)` gives bytes; None when it is of no use here, or has more
    columns.
    """
    if size_bytes < _TAIL_BYTES:
        return None
    tail = read(size_bytes - _TAIL_BYTES, _TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length + 2 * _TAIL_BYTES > size_bytes:
        return None
    start = size_bytes - _TAIL_BYTES - length
    try:
        # Key-value pairs, the large part of a footer with a bloom filter, come last and are not looked at.
        front = read(start, min(length, _FRONT_BYTES))
        if max_columns is not None and len(parse_struct(front, _SCHEMA)[_SCHEMA].value.values) > max_columns:
            return None
        try:
            footer = parse_struct(front, _ROW_GROUPS)
        except NoThrift:
            footer = parse_struct(read(start, length), _ROW_GROUPS)
        elements = footer[2].value.values
        groups = tuple(footer[4].value.values)
        names, flat = _columns(elements)
        if sum(group[3].value for group in groups) != footer[3].value:
            return None
    except _ODD:
        return None
    return FileFooter(
        size_bytes, names, {name: at for name, (at, _) in flat.items()}, {n: e for n, (_, e) in flat.items()}, groups
    )


def read_chunk_pages(read: ReadRange, footer: FileFooter, group: int, column: str) -> ChunkPages | None:
    """The pages of a column in a row group; None when the file does not say, or the column is not flat."""
    if column not in footer.flat:
        return None
    try:
        return _chunk_pages(read, footer, group, column)
    except _ODD:
        return None


def read_page_bounds(read: ReadRange, chunk: ChunkPages) -> PageBounds | None:
    """Bounds of the values in each page of a chunk; None when the file does not say."""
    column, kind = chunk.column, chunk.meta[1].value
    if not {6, 7} <= column.keys() or kind not in (_INT32, _INT64, _BYTE_ARRAY):
        return None
    try:
        index = parse_struct(read(column[6].value, column[7].value))
        empty, lows, highs = (index[number].value.values for number in (1, 2, 3))
    except _ODD:
        return None
    if not len(empty) == len(lows) == len(highs) == len(chunk.offsets):
        return None

    def values(stored: list[bytes]) -> tuple[Any, ...]:
        pairs = zip(stored, empty, strict=True)
        return tuple(
            None if none == thrift.TRUE else value if kind == _BYTE_ARRAY else _number(value) for value, none in pairs
        )

    return PageBounds(values(lows), values(highs))


class PlainPage(NamedTuple):
    """A data page in encoding PLAIN without its compression: levels, then values."""

    content: memoryview
    values: int


class PagesFile(NamedTuple):
    """A parquet file of some pages. `plain` has those pages again where all of them are in encoding PLAIN, and were
    taken out of their compression here; it is empty otherwise.
    """

    stored: pa.Buffer
    plain: tuple[PlainPage, ...] = ()


def file_of_pages(read_into: ReadInto, chunk: ChunkPages, pages: Sequence[int]) -> PagesFile:
    """A parquet file with one column and one row group that has only these pages of a chunk, in ascending order."""
    runs = [
        (chunk.offsets[first], chunk.offsets[last] + chunk.sizes[last] - chunk.offsets[first])
        for first, last in _runs(chunk, pages)
    ]
    rows = int(sum(chunk.first_rows[at + 1] - chunk.first_rows[at] for at in pages))
    if chunk.dictionary is not None:
        runs.insert(0, chunk.dictionary)
    dictionary_bytes = 0 if chunk.dictionary is None else chunk.dictionary[1]
    codec: int = chunk.meta[_CODEC].value
    stored_bytes = sum(length for _, length in runs)
    end = _end(chunk, rows, codec, dictionary_bytes, stored_bytes - dictionary_bytes)
    made = pa.allocate_buffer(len(MAGIC) + stored_bytes + len(end))
    into = memoryview(made).cast("B")
    into[: len(MAGIC)] = MAGIC
    into[len(MAGIC) + stored_bytes :] = end
    place = len(MAGIC)
    for start, length in runs:
        read_into(start, into[place : place + length])
        place += length
    if codec == _GZIP:
        pages = into[len(MAGIC) : place]
        dictionary, data = packed_pages(pages[:dictionary_bytes]), packed_pages(pages[dictionary_bytes:])
        if dictionary is not None and data is not None:
            with suppress(ValueError):  # damage: Arrow says what is wrong
                return _unpacked_file(chunk, rows, dictionary, data)
    return PagesFile(made)


def _unpacked_file(
    chunk: ChunkPages, rows: int, dictionary: Sequence[PackedPage], data: Sequence[PackedPage]
) -> PagesFile:
    """The file without compression, in memory of Arrow's pool, which is used again and again; page by page for that
    reason too.
    """
    dictionary_bytes, data_bytes = (sum(page.size_bytes for page in some) for some in (dictionary, data))
    end = _end(chunk, rows, _UNCOMPRESSED, dictionary_bytes, data_bytes)
    made = pa.allocate_buffer(len(MAGIC) + dictionary_bytes + data_bytes + len(end))
    into = memoryview(made).cast("B")
    into[: len(MAGIC)] = MAGIC
    place = len(MAGIC)
    plain = []
    for page in (*dictionary, *data):
        whole = into[place : place + page.size_bytes]
        page.unpack_into(whole)
        place += page.size_bytes
        if page.plain_values:
            plain.append(PlainPage(whole[len(page.header) :], page.plain_values))
    into[place:] = end
    return PagesFile(made, tuple(plain) if len(plain) == len(data) else ())


def _end(chunk: ChunkPages, rows: int, codec: int, dictionary_bytes: int, data_bytes: int) -> bytes:
    """What comes after the pages."""
    return ended(_footer_of_pages(chunk, rows, codec, dictionary_bytes, dictionary_bytes + data_bytes))


def _footer_of_pages(chunk: ChunkPages, rows: int, codec: int, dictionary_bytes: int, data_bytes: int) -> bytes:
    where = {9: len(MAGIC) + dictionary_bytes} | ({11: len(MAGIC)} if dictionary_bytes else {})
    counts = {5: rows, 6: max(data_bytes, chunk.meta[6].value), 7: data_bytes}
    meta = {number: field for number, field in chunk.meta.items() if number in (1, 2, 3)}
    meta |= {number: Field(thrift.I64, value) for number, value in (counts | where).items()}
    meta[_CODEC] = Field(thrift.I32, codec)
    column = {2: Field(thrift.I64, 0), 3: Field(thrift.STRUCT, meta)}
    group = {
        1: Field(thrift.LIST, Listed(thrift.STRUCT, [column])),
        2: Field(thrift.I64, data_bytes),
        3: Field(thrift.I64, rows),
    }
    root = {4: Field(thrift.BINARY, b"schema"), 5: Field(thrift.I32, 1)}
    return encode_struct(
        {
            1: Field(thrift.I32, 1),
            2: Field(thrift.LIST, Listed(thrift.STRUCT, [root, chunk.element])),
            3: Field(thrift.I64, rows),
            4: Field(thrift.LIST, Listed(thrift.STRUCT, [group])),
        }
    )


def _runs(chunk: ChunkPages, pages: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of pages that lie one behind the other."""
    runs: list[tuple[int, int]] = []
    for at in pages:
        if runs and chunk.offsets[runs[-1][1]] + chunk.sizes[runs[-1][1]] == chunk.offsets[at]:
            runs[-1] = (runs[-1][0], at)
        else:
            runs.append((at, at))
    return runs


def _columns(elements: list[Struct]) -> tuple[frozenset[str], dict[str, tuple[int, Struct]]]:
    """All columns, and of those that are neither nested nor repeated number among the leaves and schema element."""
    names = []
    found: dict[str, tuple[int, Struct]] = {}
    leaf, inside = 0, 0
    for element in elements[1:]:
        children = element[5].value if 5 in element else 0
        if inside == 0:
            names.append(element[4].value.decode())
            if not children and element[3].value in _OPTIONAL_OR_REQUIRED:
                found[names[-1]] = (leaf, element)
        leaf += not children
        inside += children - (inside > 0)
    if len(set(names)) < len(names):
        raise ValueError("two columns of one name")
    return frozenset(names), found


def _chunk_pages(read: ReadRange, footer: FileFooter, group_number: int, name: str) -> ChunkPages | None:
    column = footer.chunks(group_number)[footer.flat[name]]
    if not {3, 4, 5} <= column.keys() or 1 in column or 8 in column:
        return None
    meta = column[3].value
    locations = parse_struct(read(column[4].value, column[5].value))[1].value.values
    offsets = tuple(location[1].value for location in locations)
    sizes = tuple(location[2].value for location in locations)
    first_rows = np.array([*(location[3].value for location in locations), footer.rows(group_number)], np.int64)
    start, end = chunk_bounds(meta)
    if not offsets or first_rows[0] or (np.diff(first_rows) <= 0).any():
        return None
    if offsets[0] < start or end > footer.size_bytes or any(size <= 0 for size in sizes):
        return None
    if any(offset + size > after for offset, size, after in zip(offsets, sizes, (*offsets[1:], end), strict=True)):
        return None
    dictionary = (start, offsets[0] - start) if offsets[0] > start else None
    return ChunkPages(offsets, sizes, first_rows, dictionary, footer.elements[name], column)


def chunk_bounds(meta: Struct) -> tuple[int, int]:
    """Where the pages of a chunk begin and end in the file, by its `ColumnMetaData`."""
    start = meta[9].value
    if 11 in meta and 0 < meta[11].value < start:
        start = meta[11].value
    return start, start + meta[7].value


def _number(stored: bytes) -> int:
    return int.from_bytes(stored, "little", signed=True)
