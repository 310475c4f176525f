"""Writes one parquet base file of row groups of others, which are copied as bytes: nothing is decoded.

1. What cannot stay is made anew: the column `_hoodie_file_name`, which has one value in a file; places of pages in
   offset indexes; the footer with Hudi's keys, schema and key range (`joined_keys`).
2. Bounds, page checksums and column indexes are copied with their columns, but for those that have no bounds in some of
   the row groups: these lose them in all (`bounds`). Checksums are compared on the way: a page whose content is damaged
   is found here, as by one who decodes, and not when the old file is gone. They do not cover the heads of pages: one
   that is damaged and still fits is copied as it is, and readers find it.
3. Bloom filters of Parquet's own are left out: the footer does not say where they lie until it is written, and no
   writer of Hudi's makes them unless told.
4. Memory holds one row group, and the indexes of all.
5. On an exception the file is aborted: storage keeps nothing of it.

Who may be copied is asked before (`parquet_layout.why_not_joined`). It does not know where files go, nor commits.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import Corrupt
from hoodie.records import thrift
from hoodie.records.base_file import InputStorage
from hoodie.records.base_file_writer import OutputStorage
from hoodie.records.bounds import half_bounded_places, without_bounds
from hoodie.records.failures import reading, writing
from hoodie.records.footer import BaseFooter, footer_of_written
from hoodie.records.joined_keys import KeyFooter
from hoodie.records.page_index import MAGIC, chunk_bounds, ended, footer_before_end
from hoodie.records.parquet_layout import ParquetLayout, chunks_of
from hoodie.records.schema import FILE_NAME_FIELD
from hoodie.records.thrift import Field, Listed, NoThrift, Struct, encode_struct, parse_struct, parse_struct_at
from hoodie.records.unfinished_file import BaseFileStats, UnfinishedFile

# Numbers of fields of FileMetaData, RowGroup, ColumnChunk, ColumnMetaData, PageHeader and PageLocation.
_NUM_ROWS, _ROW_GROUPS, _PAIRS = 3, 4, 5
_COLUMNS, _TOTAL_BYTES, _GROUP_ROWS, _ORDER, _GROUP_AT, _STORED_BYTES, _ORDINAL = 1, 2, 3, 4, 5, 6, 7
_CHUNK_AT, _META, _OFFSETS_AT, _OFFSETS_BYTES, _BOUNDS_AT, _BOUNDS_BYTES = 2, 3, 4, 5, 6, 7
_CODEC, _PATH, _BYTES, _STORED, _DATA_AT, _INDEX_AT, _DICTIONARY_AT = 4, 3, 6, 7, 9, 10, 11
_FILTER = (14, 15)
_PAGE_STORED, _PAGE_CHECKSUM = 3, 4
_LOCATIONS, _PAGE_AT = 1, 1
_NAME: Final = (FILE_NAME_FIELD.encode(),)
_ODD: Final = (NoThrift, KeyError, AttributeError, TypeError, IndexError)
_CODECS: Final = {0: "none", 1: "snappy", 2: "gzip", 6: "zstd", 7: "lz4"}
_NO_CODEC: Final = "none"

_Path = tuple[bytes, ...]
"""Names of a leaf column and of what it lies in."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A column of a row group as it lies in the new file, and its indexes, with places in the new file."""

    struct: Struct
    bounds: bytes
    offsets: bytes


class RowGroupCopy(UnfinishedFile):
    """One base file being made of row groups. Use as a context manager: leaving it normally closes, an exception
    aborts.
    """

    def __init__(
        self,
        storage: OutputStorage,
        path: str,
        like: ParquetLayout,
        file_name: str | None,
        keys: Callable[[], KeyFooter],
    ) -> None:
        """Opens `path` for row groups of files that can be joined with `like`. `file_name`: what the rows say they lie
        in; None leaves that as it is. `keys`: Hudi's keys of the footer, and the key range of all rows;
        asked for when all are copied.
        """
        self._path = path
        self._like = like
        self._file_name = None if file_name is None else _NameColumn(file_name, _is_nullable(like))
        self._keys_of_all = keys
        self._groups: list[tuple[Struct, list[_Chunk]]] = []
        self._rows = 0
        self._footer_bytes = b""
        self._sink = storage.open_output(path)
        self._at = 0
        try:
            self._write(MAGIC)
        except BaseException:
            self.abort()
            raise

    def copy(self, storage: InputStorage, layout: ParquetLayout, groups: Collection[int] | None = None) -> None:
        """Appends row groups of a file, all of them by default. Those without rows are left out.

        Raises:
            Corrupt: the file is damaged. Missing: it is gone. Unavailable: a storage failed.
        """
        self._append_groups(storage, layout, [at for at in layout.filled if groups is None or at in groups], {})

    def copy_with(
        self, storage: InputStorage, layout: ParquetLayout, group: int, other: InputStorage, columns: ParquetLayout
    ) -> None:
        """Appends a row group of a file with all `columns` of another one in place of its own: as many rows, in one row
        group, that can be joined with it but for columns it has not.

        Raises:
            Corrupt: the file is damaged. Missing: it is gone. Unavailable: a storage failed.
        """
        (changed,) = columns.groups
        if changed[_GROUP_ROWS].value != layout.groups[group][_GROUP_ROWS].value:
            raise AssertionError("columns of a row group have as many rows as it has")
        with reading(columns.path), other.open_input(columns.path) as source:
            made = _made_chunks(source, changed)
        self._append_groups(storage, layout, [group], made)

    def footer(self) -> BaseFooter:
        """The footer of the file, which is closed: what reading it would give."""
        stats = self.close()
        native = pq.read_metadata(pa.BufferReader(MAGIC + ended(self._footer_bytes)))
        return footer_of_written(self._path, stats.size_bytes, native, self._keys.values)

    @cached_property
    def _keys(self) -> KeyFooter:
        return self._keys_of_all()

    def _drop(self) -> None:
        self._sink.abort()

    def _append_groups(
        self, storage: InputStorage, layout: ParquetLayout, taken: Sequence[int], made: Mapping[_Path, _MadeChunk]
    ) -> None:
        with reading(layout.path), storage.open_input(layout.path) as source:
            try:
                self._copy(source, layout, taken, made)
            except _ODD as error:
                raise _damaged(layout.path, "its footer, indexes and pages do not fit together") from error

    def _copy(
        self, source: Any, layout: ParquetLayout, taken: Sequence[int], changed: Mapping[_Path, _MadeChunk]
    ) -> None:
        indexes = _Indexes(source, [chunk for at in taken for chunk in chunks_of(layout.groups[at])])
        for at in taken:
            group = layout.groups[at]
            places = [chunk_bounds(chunk[_META].value) for chunk in chunks_of(group)]
            first, last = min(start for start, _ in places), max(end for _, end in places)
            data = memoryview(source.read_at(last - first, first))
            if len(data) < last - first:
                raise _damaged(layout.path, "it was cut short")
            group_at, chunks = self._at, []
            for chunk, (start, end) in zip(chunks_of(group), places, strict=True):
                made = changed.get(_path_of(chunk))
                if self._file_name is not None and _path_of(chunk) == _NAME:
                    codec = _CODECS.get(chunk[_META].value[_CODEC].value, _NO_CODEC)
                    made = self._file_name.chunk(group[_GROUP_ROWS].value, codec)
                if made is not None:
                    chunks.append(self._append(made.struct, made.data, made.bounds, made.offsets))
                else:
                    pages = data[start - first : end - first]
                    _ensure_undamaged(pages, layout.path)
                    chunks.append(self._append(chunk, pages, *indexes.of(chunk)))
            self._groups.append((_with_place(group, group_at, len(self._groups), chunks), chunks))
            self._rows += group[_GROUP_ROWS].value

    def _append(self, chunk: Struct, pages: memoryview | bytes, bounds: bytes, offsets: Struct | None) -> _Chunk:
        """Writes the pages of a column; the chunk as it is in the new file."""
        meta: Struct = chunk[_META].value
        shift = self._at - chunk_bounds(meta)[0]
        self._write(pages)
        moved = {number: field for number, field in meta.items() if number not in _FILTER}
        for number in (_DATA_AT, _INDEX_AT, _DICTIONARY_AT):
            # A dictionary at 0 is none: some writers say so.
            if number in moved and moved[number].value:
                moved[number] = Field(thrift.I64, moved[number].value + shift)
        found = {number: field for number, field in chunk.items() if number in (_CHUNK_AT, _META)}
        if found[_CHUNK_AT].value:
            found[_CHUNK_AT] = Field(thrift.I64, found[_CHUNK_AT].value + shift)
        return _Chunk(found | {_META: Field(thrift.STRUCT, moved)}, bounds, _shifted(offsets, shift))

    def _finish(self) -> BaseFileStats:
        with writing(self._path):
            metas = [[chunk.struct[_META].value for chunk in chunks] for _, chunks in self._groups]
            unbounded = half_bounded_places(self._like.elements, metas)
            for _, chunks in self._groups:
                for place, chunk in enumerate(chunks):
                    if place in unbounded:
                        chunk.struct[_META] = Field(thrift.STRUCT, without_bounds(chunk.struct[_META].value))
                    else:
                        self._index(chunk.struct, chunk.bounds, _BOUNDS_AT, _BOUNDS_BYTES)
            for _, chunks in self._groups:
                for chunk in chunks:
                    self._index(chunk.struct, chunk.offsets, _OFFSETS_AT, _OFFSETS_BYTES)
            self._footer_bytes = encode_struct(self._meta())
            self._write(ended(self._footer_bytes))
            self._sink.close()
        found = self._keys.range
        low, high = (None, None) if found is None else (found.low, found.high)
        return BaseFileStats(self._path, self._at, self._rows, low, high)

    def _index(self, chunk: Struct, data: bytes, at: int, size: int) -> None:
        if data:
            chunk[at], chunk[size] = Field(thrift.I64, self._at), Field(thrift.I32, len(data))
            self._write(data)

    def _meta(self) -> Struct:
        pairs = [
            {1: Field(thrift.BINARY, name.encode()), 2: Field(thrift.BINARY, value.encode())}
            for name, value in self._keys.values.items()
        ]
        return self._like.meta | {
            _NUM_ROWS: Field(thrift.I64, self._rows),
            _ROW_GROUPS: Field(thrift.LIST, Listed(thrift.STRUCT, [group for group, _ in self._groups])),
            _PAIRS: Field(thrift.LIST, Listed(thrift.STRUCT, pairs)),
        }

    def _write(self, data: memoryview | bytes) -> None:
        with writing(self._path):
            self._sink.write(data)
        self._at += len(data)


class _Indexes:
    """Column and offset indexes of chunks of one file, which lie together: read at once."""

    def __init__(self, source: Any, chunks: Sequence[Struct]) -> None:
        places = [
            place for chunk in chunks for place in (_place(chunk, _BOUNDS_AT), _place(chunk, _OFFSETS_AT)) if place
        ]
        self._first = min((start for start, _ in places), default=0)
        last = max((start + length for start, length in places), default=0)
        self._data = bytes(source.read_at(last - self._first, self._first)) if places else b""

    def of(self, chunk: Struct) -> tuple[bytes, Struct | None]:
        """Column index and offset index of a chunk; empty and None where it has none."""
        offsets = self._bytes(_place(chunk, _OFFSETS_AT))
        return self._bytes(_place(chunk, _BOUNDS_AT)), parse_struct(offsets) if offsets else None

    def _bytes(self, place: tuple[int, int] | None) -> bytes:
        if place is None:
            return b""
        start = place[0] - self._first
        found = self._data[start : start + place[1]]
        if len(found) < place[1]:
            raise NoThrift("an index behind the end of the file")
        return found


@dataclass(frozen=True, slots=True)
class _MadeChunk:
    struct: Struct
    data: memoryview
    bounds: bytes
    offsets: Struct | None


class _NameColumn:
    """The column with the file's name, for row groups of any number of rows."""

    def __init__(self, text: str, is_nullable: bool) -> None:
        self._text = text
        self._is_nullable = is_nullable
        self._made: dict[tuple[int, str], _MadeChunk] = {}

    def chunk(self, rows: int, codec: str) -> _MadeChunk:
        """The column for so many rows, as Arrow writes it."""
        found = self._made.get((rows, codec))
        if found is None:
            found = self._made[rows, codec] = self._written(rows, codec)
        return found

    def _written(self, rows: int, codec: str) -> _MadeChunk:
        names = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([self._text]))
        schema = pa.schema([pa.field(FILE_NAME_FIELD, names.type, nullable=self._is_nullable)])
        out = io.BytesIO()
        with pq.ParquetWriter(
            out,
            schema,
            compression=codec,
            use_dictionary=True,
            write_page_index=True,
            write_page_checksum=True,
            store_schema=False,
        ) as writer:
            writer.write_table(pa.Table.from_arrays([names], schema=schema), row_group_size=max(1, rows))
        data = out.getvalue()
        (group,) = parse_struct(footer_before_end(data))[_ROW_GROUPS].value.values
        return _made_chunks(pa.BufferReader(data), group)[_NAME]


def _made_chunks(source: Any, group: Struct) -> dict[_Path, _MadeChunk]:
    """All columns of a row group of a file that was made here."""
    indexes, made = _Indexes(source, chunks_of(group)), {}
    for chunk in chunks_of(group):
        start, end = chunk_bounds(chunk[_META].value)
        made[_path_of(chunk)] = _MadeChunk(chunk, memoryview(source.read_at(end - start, start)), *indexes.of(chunk))
    return made


def _path_of(chunk: Struct) -> _Path:
    return tuple(chunk[_META].value[_PATH].value.values)


def _with_place(group: Struct, at: int, ordinal: int, chunks: Sequence[_Chunk]) -> Struct:
    """The row group as the new footer has it. Its chunks are shared: they learn where their indexes lie. In which order
    its rows are is not said: columns may have changed.
    """
    group = {number: field for number, field in group.items() if number != _ORDER}
    metas = [chunk.struct[_META].value for chunk in chunks]
    stored = sum(meta[_STORED].value for meta in metas)
    return group | {
        _COLUMNS: Field(thrift.LIST, Listed(thrift.STRUCT, [chunk.struct for chunk in chunks])),
        _TOTAL_BYTES: Field(thrift.I64, sum(meta[_BYTES].value for meta in metas)),
        _STORED_BYTES: Field(thrift.I64, stored),
        _GROUP_AT: Field(thrift.I64, at),
        _ORDINAL: Field(thrift.I16, ordinal),
    }


def _shifted(offsets: Struct | None, shift: int) -> bytes:
    """The offset index of pages that have moved."""
    if offsets is None:
        return b""
    places = [
        location | {_PAGE_AT: Field(thrift.I64, location[_PAGE_AT].value + shift)}
        for location in offsets[_LOCATIONS].value.values
    ]
    return encode_struct(offsets | {_LOCATIONS: Field(thrift.LIST, Listed(thrift.STRUCT, places))})


def _place(chunk: Struct, at: int) -> tuple[int, int] | None:
    if at not in chunk or at + 1 not in chunk:
        return None
    return chunk[at].value, chunk[at + 1].value


def _ensure_undamaged(pages: memoryview, path: str) -> None:
    """Checks that pages fill their column, and have their checksums, where they have one."""
    at = 0
    while at < len(pages):
        head, start = parse_struct_at(pages, at)
        at = start + head[_PAGE_STORED].value
        if not start <= at <= len(pages):
            raise NoThrift("a page that does not fit")
        if _PAGE_CHECKSUM in head and zlib.crc32(pages[start:at]) != head[_PAGE_CHECKSUM].value & 0xFFFFFFFF:
            raise _damaged(path, "a page has another checksum than its head says")


def _is_nullable(layout: ParquetLayout) -> bool:
    for element in layout.elements[1:]:
        if element[4].value == _NAME:
            return bool(element[3].value == 1)
    return True


def _damaged(path: str, why: str) -> Corrupt:
    return Corrupt(
        f"Base file {path} cannot be copied: {why}",
        remedy="Restore it from a copy, or roll back the commit that wrote it",
        path=path,
    )
