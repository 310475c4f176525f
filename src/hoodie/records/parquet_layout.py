"""Where the parts of a parquet base file lie, as its footer says, and whether files can be joined undecoded.

1. The footer is kept as Thrift, so that one that is written anew keeps what nobody here knows.
2. Files can be joined when their schemas are equal member for member and give the columns that are wanted, and when one
   library wrote them: readers judge bounds of values by its name. Codecs may differ: each column of each row group has
   its own.
3. Two-level lists are not joined: what they mean is told by footer keys of the writer, which the joined file has not.
4. What says less of its columns than it would if it was encoded anew is encoded anew (`bounds.untold`): beside row
   groups that say it, Hudi would take it for zeros, or NULL.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hoodie.records.base_file import InputStorage
from hoodie.records.bounds import untold
from hoodie.records.failures import reading
from hoodie.records.footer import BaseFooter
from hoodie.records.page_index import MAGIC, chunk_bounds
from hoodie.records.thrift import Listed, NoThrift, Struct, parse_struct

_TAIL: Final = 8
_GUESS: Final = 64 * 1024
_SCHEMA, _GROUPS, _CREATOR, _ENCRYPTION = 2, 4, 6, 8
_COLUMNS, _ROWS = 1, 3
_FILE_PATH, _META, _CRYPTO = 1, 3, 8
_TYPE, _REPETITION, _NAME, _REPEATED = 1, 3, 4, 2
_CONVERTED, _PRECISION, _LOGICAL, _DECIMAL = 6, 8, 10, 5
_MAX_GROUPS: Final = 32_767
"""The number of a row group has 16 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class ParquetLayout:
    """A parquet file: its footer as the reader sees it, and as Thrift."""

    footer: BaseFooter
    meta: Struct

    @property
    def path(self) -> str:
        return self.footer.path

    @property
    def elements(self) -> list[Struct]:
        """`SchemaElement` of all columns, root first."""
        return _list(self.meta[_SCHEMA].value)

    @property
    def groups(self) -> list[Struct]:
        """`RowGroup` of all row groups."""
        return _list(self.meta[_GROUPS].value)

    @property
    def filled(self) -> list[int]:
        """Which row groups have rows. Some writers store one without, whose pages lie nowhere."""
        return [at for at, group in enumerate(self.groups) if group[_ROWS].value]

    @property
    def data_bytes(self) -> int:
        """Stored bytes of all row groups with rows."""
        groups = self.groups
        return sum(chunk[_META].value[7].value for at in self.filled for chunk in chunks_of(groups[at]))

    @property
    def creator(self) -> bytes:
        """The library that wrote the file, without its version."""
        said = self.meta.get(_CREATOR)
        return b"" if said is None else bytes(said.value).partition(b" version ")[0]


def chunks_of(group: Struct) -> list[Struct]:
    """`ColumnChunk` of each leaf column of a row group."""
    return _list(group[_COLUMNS].value)


def load_layout(storage: InputStorage, footer: BaseFooter) -> ParquetLayout | None:
    """The layout of the file with this footer; None when it is no Parquet file, or an odd one. One read at its end, two
    of a long footer.
    """
    if footer.native is None:
        return None
    with reading(footer.path), storage.open_input(footer.path) as source:
        data = _footer_bytes(lambda start, length: source.read_at(length, start), footer.size_bytes)
    try:
        layout = ParquetLayout(footer, parse_struct(data))
        places = [chunk_bounds(chunk[_META].value) for at in layout.filled for chunk in chunks_of(layout.groups[at])]
        rows = tuple(group[_ROWS].value for group in layout.groups)
        leaves = sum(_TYPE in element for element in layout.elements)
        is_whole = all(len(MAGIC) <= start <= end <= footer.size_bytes for start, end in places)
        is_whole = is_whole and all(len(chunks_of(group)) == leaves for group in layout.groups)
        return layout if is_whole and rows == footer.rows_per_group and layout.elements else None
    except (NoThrift, KeyError, AttributeError, TypeError, IndexError):
        return None


def why_not_joined(layouts: Sequence[ParquetLayout], schema: pa.Schema) -> str | None:
    """Why row groups of these files cannot be copied to one file of `schema`; None when they can."""
    if sum(len(layout.groups) for layout in layouts) > _MAX_GROUPS:
        return f"there are more than {_MAX_GROUPS} row groups"
    for layout in layouts:
        if not layout.footer.schema.equals(schema):
            return f"{layout.path} has other columns than the table"
        why = why_not_copied(layout, layouts[0])
        if why is not None:
            return why
    return None


def why_not_copied(layout: ParquetLayout, like: ParquetLayout) -> str | None:
    """Why row groups of a file cannot be copied to one whose footer is `like` another; None when they can. Decimals may
    have fewer digits than there, where they have as many bytes: they are stored alike.
    """
    if not _holds(like.footer.schema, layout.footer.schema):
        return f"{layout.path} has other columns than {like.path}"
    if _stored(layout) != _stored(like):
        return f"{layout.path} and {like.path} store columns in different ways"
    if layout.creator != like.creator:
        return f"{layout.path} and {like.path} were written by different libraries"
    if _ENCRYPTION in layout.meta or any(
        _FILE_PATH in chunk or _CRYPTO in chunk for group in layout.groups for chunk in chunks_of(group)
    ):
        return f"{layout.path} is encrypted, or has its columns elsewhere"
    if any(_is_old_list(element) for element in layout.elements[1:]):
        return f"{layout.path} has lists of two levels"
    missing = untold(layout.elements, [_metas(layout.groups[at]) for at in layout.filled])
    return None if missing is None else f"{layout.path} does not say {missing}"


def _metas(group: Struct) -> list[Struct]:
    """`ColumnMetaData` of each leaf column of a row group."""
    return [chunk[_META].value for chunk in chunks_of(group)]


def _holds(wanted: pa.Schema, stored: pa.Schema) -> bool:
    """Whether all values of a file are values of `wanted`, whose columns have the same names, order and types, but for
    the precision of decimals.
    """
    if stored.equals(wanted):
        return True
    if stored.names != wanted.names:
        return False
    return all(
        field.equals(other) or (field.nullable == other.nullable and _is_widened(field.type, other.type))
        for field, other in zip(stored, wanted, strict=True)
    )


def _is_widened(stored: pa.DataType, wanted: pa.DataType) -> bool:
    if not (pa.types.is_decimal128(stored) and pa.types.is_decimal128(wanted)):
        return False
    return bool(stored.scale == wanted.scale and stored.precision <= wanted.precision)


def _stored(layout: ParquetLayout) -> list[Struct]:
    """How columns are stored: their elements without what says how many digits a decimal may have."""
    return [
        {number: field for number, field in element.items() if number not in {_PRECISION, _LOGICAL}}
        if _CONVERTED in element and element[_CONVERTED].value == _DECIMAL
        else element
        for element in layout.elements[1:]
    ]


def _is_old_list(element: Struct) -> bool:
    repetition = element.get(_REPETITION)
    return repetition is not None and repetition.value == _REPEATED and bytes(element[_NAME].value) not in _NEW_LISTS


_NEW_LISTS: Final = (b"list", b"key_value")


def _footer_bytes(read: Callable[[int, int], Any], size_bytes: int) -> bytes:
    guess = min(size_bytes, _GUESS)
    data = bytes(read(size_bytes - guess, guess))
    length = int.from_bytes(data[-_TAIL:-4], "little")
    if length + _TAIL > guess:
        data = bytes(read(max(0, size_bytes - _TAIL - length), length + _TAIL))
    return data[-_TAIL - length : -_TAIL]


def _list(listed: Listed) -> list[Struct]:
    return listed.values
