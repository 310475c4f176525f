"""Which leaf columns of a base file have bounds: in all of its row groups, or in none.

1. Arrow leaves NaN out of its bounds. To Spark and Hudi it is greater than every number: who compares `x > 5` with such
   bounds loses the rows of NaN. So a leaf column with NaN has none: not in statistics, and not of pages (the column
   index).
2. Hudi joins the bounds of all row groups to column stats of the file. Of one without bounds it takes numbers for
   zeros, and texts for none: beside bounds of others that is a range which nobody knows for wrong. So there are bounds
   in all row groups or in none. Those in which all is NULL have none and hide nothing.
3. Bounds of NaN, as Hudi's own writer (parquet-mr) stores them, are none: so its readers take them. So are those of
   another width than the values of the column.
4. The number of nulls is always said: Hudi takes a chunk without statistics for one of nothing but NULL.
5. Arrow stores no text or bytes of more than 4 KiB as a bound: instead of such ones stand shorter ones, which say that
   they are none of the values. The lower is the beginning of the least value, the upper one that of the greatest with
   its last character (or byte) made greater by one. Few values end in so many of the last characters there are that
   this leaves a short bound or none: then there is none, and rule 2 holds.

Format page: docs/format/base-file.md.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.records import thrift
from hoodie.records.parquet_leaves import leaf_values, leaves_of
from hoodie.records.thrift import Field, Struct, encode_struct, parse_struct

# Numbers of fields of FileMetaData, RowGroup, ColumnChunk, ColumnMetaData, Statistics and SchemaElement.
_SCHEMA, _ROW_GROUPS, _COLUMNS, _ROWS, _META, _PATH, _VALUES, _STATISTICS = 2, 4, 1, 3, 3, 3, 5, 12
_COLUMN_INDEX, _COLUMN_INDEX_BYTES = 6, 7
_NULL_COUNT, _HIGH, _LOW, _IS_HIGH, _IS_LOW = 3, 5, 6, 7, 8
_BOUNDS, _OLD_BOUNDS = (_HIGH, _LOW), (1, 2)
_TYPE, _LENGTH, _LOGICAL, _FLOAT16 = 1, 2, 10, 15
_INT96, _BYTE_ARRAY, _FIXED = 3, 6, 7
_WIDTHS: Final = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
"""Bytes of a value by physical type. Byte arrays have any number, fixed ones what their column says."""
_FLOATS: Final = {4: struct.Struct("<f"), 5: struct.Struct("<d")}
_HALF: Final = struct.Struct("<e")
_LONG_BYTES: Final = 4096
"""Arrow stores no longer value as a bound."""
_CUT_BYTES: Final = 256
CUT_FROM_BYTES: Final = 128
"""A shorter bound is a value: one that was cut has as many bytes at least."""
_SURROGATES: Final = range(0xD800, 0xE000)
_LAST_CHARACTER: Final = 0x10FFFF


class Ends(NamedTuple):
    """Between which bounds values of a leaf column are, as they are stored; None: there is no such bound."""

    low: bytes | None
    high: bytes | None


def nan_places(rows: pa.Table) -> frozenset[int]:
    """Places, among all leaf columns, of those with NaN."""
    found: set[int] = set()
    first = 0
    for field, column in zip(rows.schema, rows.columns, strict=True):
        leaves = leaves_of(field)
        if any(pa.types.is_floating(data_type) for _, data_type in leaves):
            found |= {first + at for at, values in enumerate(leaf_values(column)) if _has_nan(values)}
        first += len(leaves)
    return frozenset(found)


def cut_bounds(rows: pa.Table) -> dict[int, Ends]:
    """Bounds that are no values, by place among all leaf columns, of those in which a text or bytes are too long to be
    a bound.
    """
    found: dict[int, Ends] = {}
    first = 0
    for field, column in zip(rows.schema, rows.columns, strict=True):
        leaves = leaves_of(field)
        if any(_is_bytes(data_type) for _, data_type in leaves):
            for place, values in enumerate(leaf_values(column), first):
                plain = _without_dictionary(values)
                if _is_bytes(plain.type) and any(_has_long(chunk) for chunk in plain.chunks):
                    found[place] = _ends(plain)
        first += len(leaves)
    return found


def half_bounded_places(elements: Sequence[Struct], groups: Sequence[Sequence[Struct]]) -> frozenset[int]:
    """Places, among all leaf columns, of those that have no bounds in one of these row groups, though it has values.
    `elements`: `SchemaElement` of all columns, root first; `groups`: `ColumnMetaData` of each leaf column.
    """
    return frozenset(
        place
        for place, leaf in enumerate(_leaves(elements))
        if any(_hides_values(leaf, group[place]) for group in groups)
    )


def untold(elements: Sequence[Struct], groups: Sequence[Sequence[Struct]]) -> str | None:
    """What these row groups do not say of a column, in words, that they would if they were encoded anew; None: they say
    all that can be said. Bounds of floats, which may be NaN, are not missed, nor those of INT96, which have no order.
    Arguments as those of `half_bounded_places`.
    """
    leaves = list(_leaves(elements))
    for group in groups:
        for leaf, meta in zip(leaves, group, strict=True):
            if _NULL_COUNT not in _said(meta):
                return f"how many values of column {_path(meta)!r} are NULL"
            if _float_of(leaf) is None and leaf[_TYPE].value != _INT96 and _hides_values(leaf, meta):
                return f"between which bounds column {_path(meta)!r} is"
    return None


def without_bounds(meta: Struct) -> Struct:
    """`ColumnMetaData` which says no more of values than how many are NULL."""
    said = _said(meta)
    nulls = {_NULL_COUNT: said[_NULL_COUNT]} if _NULL_COUNT in said else {}
    return meta | {_STATISTICS: Field(thrift.STRUCT, nulls)}


def mended_footer(footer: bytes, unbounded: Collection[int], cut: Sequence[tuple[int, Mapping[int, Ends]]]) -> bytes:
    """The footer of a file that Arrow wrote: without bounds of `unbounded` leaf columns, with those that it left out,
    and of no column in some row groups only. `cut`: what `cut_bounds` says of rows that were written together, with
    their number, in the order of the file. They make one row group, or several.
    """
    file = parse_struct(footer)
    groups = [group[_COLUMNS].value.values for group in file[_ROW_GROUPS].value.values]
    firsts = accumulate((group[_ROWS].value for group in file[_ROW_GROUPS].value.values), initial=0)
    ends = list(accumulate(count for count, _ in cut))
    for first, chunks in zip(firsts, groups, strict=False):
        for place, bounds in cut[bisect_right(ends, first)][1].items() if first < ends[-1] else ():
            chunks[place][_META] = Field(thrift.STRUCT, _with_bounds(chunks[place][_META].value, bounds))
    metas = [[chunk[_META].value for chunk in chunks] for chunks in groups]
    places = {*unbounded, *half_bounded_places(file[_SCHEMA].value.values, metas)}
    for chunks in groups:
        for place in places:
            chunk = chunks[place]
            chunk[_META] = Field(thrift.STRUCT, without_bounds(chunk[_META].value))
            chunk.pop(_COLUMN_INDEX, None)
            chunk.pop(_COLUMN_INDEX_BYTES, None)
    return encode_struct(file)


def _with_bounds(meta: Struct, bounds: Ends) -> Struct:
    """`ColumnMetaData` with bounds where it has none; they are said to be none of the values."""
    said = dict(_said(meta))
    if _NULL_COUNT in said and said[_NULL_COUNT].value == meta[_VALUES].value:
        return meta
    for number, is_value, bound in ((_HIGH, _IS_HIGH, bounds.high), (_LOW, _IS_LOW, bounds.low)):
        if number not in said and bound is not None:
            said |= {number: Field(thrift.BINARY, bound), is_value: Field(thrift.FALSE, False)}
    return meta | {_STATISTICS: Field(thrift.STRUCT, said)}


def _is_bytes(data_type: pa.DataType) -> bool:
    types = pa.types
    if types.is_dictionary(data_type):
        return _is_bytes(data_type.value_type)
    return bool(types.is_string(data_type) or types.is_binary(data_type))


def _without_dictionary(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values, each at least once."""
    if not pa.types.is_dictionary(values.type):
        return values
    return pa.chunked_array([chunk.dictionary for chunk in values.chunks], values.type.value_type)


def _has_long(values: pa.Array) -> bool:
    """Whether a value is too long to be a bound. Where all are short few offsets are looked at: between those that are
    some values apart there are not so many bytes.
    """
    if not len(values):
        return False
    ends: npt.NDArray[np.int32] = np.frombuffer(values.buffers()[1], np.int32)[values.offset :][: len(values) + 1]
    total = int(ends[-1]) - int(ends[0])
    if total <= _LONG_BYTES:
        return False
    step = max(1, len(values) * _LONG_BYTES // (2 * total))
    few = np.append(ends[::step], ends[-1])
    return bool((np.diff(few) > _LONG_BYTES).any() and (np.diff(ends) > _LONG_BYTES).any())


def _ends(values: pa.ChunkedArray) -> Ends:
    """Bounds of texts or bytes, cut where they are long."""
    found = pc.min_max(values)
    is_text = pa.types.is_string(values.type)
    low, high = (found[end].as_buffer() for end in ("min", "max"))
    if low is None or high is None:
        return Ends(None, None)
    return Ends(_cut_low(low.to_pybytes(), is_text), _cut_high(high.to_pybytes(), is_text))


def _cut_low(value: bytes, is_text: bool) -> bytes | None:
    """The value, or as much of its beginning as a bound may have."""
    return value if len(value) <= _LONG_BYTES else _beginning(value, is_text)


def _cut_high(value: bytes, is_text: bool) -> bytes | None:
    """The value, or what is greater than all that begin as it does; None: it would be short."""
    if len(value) <= _LONG_BYTES:
        return value
    beginning = _beginning(value, is_text)
    if beginning is None:
        return None
    found = _next_text(beginning.decode()) if is_text else _next_bytes(beginning)
    return found if len(found) >= CUT_FROM_BYTES else None


def _beginning(value: bytes, is_text: bool) -> bytes | None:
    """As many whole characters, or bytes, as a bound may have; None: these are no characters."""
    if not is_text:
        return value[:_CUT_BYTES]
    try:
        value[:_CUT_BYTES].decode()
    except UnicodeDecodeError as error:
        return value[: error.start] if error.start > _CUT_BYTES - 4 else None
    return value[:_CUT_BYTES]


def _next_text(text: str) -> bytes:
    """The text with its last character made the next one; those that have none are left out."""
    rest = text.rstrip(chr(_LAST_CHARACTER))
    if not rest:
        return b""
    code = ord(rest[-1]) + 1
    return (rest[:-1] + chr(_SURROGATES.stop if code in _SURROGATES else code)).encode()


def _next_bytes(value: bytes) -> bytes:
    """The same of bytes."""
    rest = value.rstrip(b"\xff")
    return rest[:-1] + bytes([rest[-1] + 1]) if rest else b""


def _has_nan(values: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py() is True


def _leaves(elements: Sequence[Struct]) -> Iterator[Struct]:
    return (element for element in elements if _TYPE in element)


def _said(meta: Struct) -> Struct:
    """`Statistics` of a chunk; without fields where there are none."""
    found: Struct = meta[_STATISTICS].value if _STATISTICS in meta else {}
    return found


def _path(meta: Struct) -> str:
    return b".".join(meta[_PATH].value.values).decode(errors="replace")


def _hides_values(leaf: Struct, meta: Struct) -> bool:
    """Whether a chunk has values between no bounds. Readers look at the old ones where there are no new ones, and at
    those of numbers alone: in which order others are was not said.
    """
    said = _said(meta)
    is_number = leaf[_TYPE].value not in {_INT96, _BYTE_ARRAY, _FIXED}
    for ends in (_BOUNDS, _OLD_BOUNDS) if is_number else (_BOUNDS,):
        if all(end in said for end in ends):
            return any(_is_no_bound(leaf, said[end].value) for end in ends)
    return _NULL_COUNT not in said or said[_NULL_COUNT].value != meta[_VALUES].value


def _is_no_bound(leaf: Struct, stored: bytes) -> bool:
    width = leaf[_LENGTH].value if leaf[_TYPE].value == _FIXED else _WIDTHS.get(leaf[_TYPE].value, len(stored))
    number = _float_of(leaf)
    return len(stored) != width or (number is not None and math.isnan(number.unpack(stored)[0]))


def _float_of(leaf: Struct) -> struct.Struct | None:
    """How a leaf column of floating point numbers stores one; None for a column of others."""
    if _LOGICAL in leaf and _FLOAT16 in leaf[_LOGICAL].value:
        return _HALF
    return _FLOATS.get(leaf[_TYPE].value)
