"""Delete lists of versions 1 and 2, which releases before Hudi 0.14 wrote: arrays of Java objects in Kryo's form.

1. Version 1 is an array of `HoodieKey` (partition path, record key), version 2 one of `DeleteRecord` (a key and an
   ordering value). Fields stand in the order of their names.
2. Ordering values are boxed numbers, texts, decimals, dates and timestamps. A text may be Avro's own text class, which
   every release had registered under another number: of all registered classes it alone is an ordering value.
3. Timestamps have milliseconds. `java.sql.Date` depends on the time zone of the writer, and is refused.

What is accepted here is what the classes of Hudi 0.15.0 and 1.2.0 write and read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Context, Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hoodie.errors import Corrupt, Unsupported
from hoodie.logs.kryo import Damage, KryoReader
from hoodie.logs.ordering_wrappers import Mask, UnlikeValues, join_values

JAVA_VERSIONS: Final = (1, 2)

_MODEL: Final = "org.apache.hudi.common.model."
_KEY: Final = _MODEL + "HoodieKey"
_RECORD: Final = _MODEL + "DeleteRecord"
_STRING: Final = 3
_FIRST_REGISTERED: Final = 12
_UTF8: Final = "org.apache.avro.util.Utf8"

_DECIMAL_DIGITS: Final = 38
_EXACT: Final = Context(prec=400)

_Value = tuple[pa.DataType, Any]
_Delete = tuple[str | None, str | None, _Value | None]


def parse_java_deletes(
    body: bytes, version: int, path: str, offset: int
) -> tuple[pa.StringArray, pa.StringArray, tuple[pa.Array, ...], Mask]:
    """Keys, partition paths, ordering columns and default marks (see `deletes.Deletes`) of an array of Java objects.

    `offset` is where the array starts in the file `path`.

    Raises:
        Corrupt: not such an array.
        Unsupported: an ordering value of another class, or ordering values that do not compare.
    """
    reader = KryoReader(body)
    try:
        deletes = _array(reader, _KEY if version == 1 else _RECORD)
        keys, partitions = (pa.array([delete[at] for delete in deletes], pa.string()) for at in (0, 1))
    except Damage as damage:
        raise _corrupt(f"{damage} at byte {damage.at}", path, offset) from damage
    except (UnicodeEncodeError, pa.ArrowException) as error:
        raise _corrupt(f"has a bad text: {error}", path, offset) from error
    except _Unknown as unknown:
        raise _unsupported(f"ordering values of the class {unknown}", path, offset) from unknown
    if keys.null_count:
        raise _corrupt("has a delete without key", path, offset)
    values = [None if delete[2] is None or delete[2] == (pa.int32(), 0) else delete[2] for delete in deletes]
    is_default = np.fromiter((value is None for value in values), np.bool_, len(values))
    try:
        return keys, partitions, () if is_default.all() else (_column(values),), is_default
    except UnlikeValues as unlike:
        raise _unsupported(f"ordering values that do not compare: {unlike}", path, offset) from unlike
    except pa.ArrowException as error:
        raise _unsupported(f"an ordering value out of range: {error}", path, offset) from error


class _Unknown(Exception):
    """An ordering value of a class that is not known; says which."""


def _array(reader: KryoReader, element: str) -> list[_Delete]:
    if reader.class_of() != f"[L{element};" or reader.begin() != 0:
        raise reader.damage(f"is no array of {element}")
    count = reader.unsigned() - 1
    if not 0 <= count <= reader.rest:
        raise reader.damage(f"claims {count} deletes")
    read = _key if element == _KEY else _record
    deletes = [_expected(reader, element, read) for _ in range(count)]
    if reader.rest:
        raise reader.damage(f"has {reader.rest} bytes too many")
    return deletes


def _expected(reader: KryoReader, name: str, read: Callable[[KryoReader], _Delete]) -> _Delete:
    """The next object, which must be of the class `name`."""
    if reader.class_of() != name:
        raise reader.damage(f"has no {name}")
    mark = reader.begin()
    found: Any = reader.finish(mark, read(reader)) if mark >= 0 else reader.known(mark)
    if not isinstance(found, tuple) or len(found) != 3:
        raise reader.damage(f"refers to an object that is no {name}")
    return found


def _key(reader: KryoReader) -> _Delete:
    partition = reader.marked_text()
    return reader.marked_text(), partition, None


def _record(reader: KryoReader) -> _Delete:
    key, partition, _ = _expected(reader, _KEY, _key)
    return key, partition, _ordering_value(reader)


def _ordering_value(reader: KryoReader) -> _Value | None:
    kind = reader.class_of()
    if kind is None:
        return None
    if isinstance(kind, int) and kind in _BOXED:
        arrow, read_boxed = _BOXED[kind]
        return arrow, read_boxed(reader)
    if kind == _STRING:
        text = reader.marked_text()
        return None if text is None else (pa.string(), text)
    if isinstance(kind, int) and kind >= _FIRST_REGISTERED:
        kind = _UTF8
    if not isinstance(kind, str) or kind not in _OBJECTS:
        raise _Unknown(str(kind))
    arrow, read = _OBJECTS[kind]
    mark = reader.begin()
    found: Any = reader.finish(mark, (arrow, read(reader))) if mark >= 0 else reader.known(mark)
    if not isinstance(found, tuple) or len(found) != 2 or found[0] != arrow:
        raise reader.damage("refers to an object that is no such ordering value")
    return found


def _decimal(reader: KryoReader) -> Decimal:
    unscaled = int.from_bytes(reader.take(reader.unsigned() - 1), "big", signed=True)
    scale = reader.signed()
    if abs(scale) > _DECIMAL_DIGITS or abs(unscaled) >= 10**_DECIMAL_DIGITS:
        raise _Unknown(f"java.math.BigDecimal with more than {_DECIMAL_DIGITS} digits")
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def _local_date(reader: KryoReader) -> date:
    year, (month, day) = reader.unsigned(), reader.take(2)
    try:
        return date(year, month, day)
    except (ValueError, OverflowError) as error:
        raise _Unknown(f"java.time.LocalDate in the year {year}") from error


def _utf8(reader: KryoReader) -> str:
    try:
        return reader.take(reader.unsigned() - 1).decode()
    except UnicodeDecodeError as error:
        raise reader.damage("has a text that is not UTF-8") from error


def _plain(layout: str) -> Callable[[KryoReader], Any]:
    size = struct.calcsize(layout)
    return lambda reader: struct.unpack(layout, reader.take(size))[0]


_BOXED: Final[Mapping[int, tuple[pa.DataType, Callable[[KryoReader], Any]]]] = {
    2: (pa.int32(), KryoReader.signed),
    4: (pa.float32(), _plain(">f")),
    5: (pa.bool_(), _plain(">?")),
    6: (pa.int32(), _plain(">b")),
    8: (pa.int32(), _plain(">h")),
    9: (pa.int64(), KryoReader.signed),
    10: (pa.float64(), _plain(">d")),
}
_OBJECTS: Final[Mapping[str, tuple[pa.DataType, Callable[[KryoReader], Any]]]] = {
    _UTF8: (pa.string(), _utf8),
    "java.math.BigDecimal": (pa.decimal128(_DECIMAL_DIGITS, 0), _decimal),
    "java.sql.Timestamp": (pa.timestamp("us", tz="UTC"), lambda reader: reader.plain_long() * 1000),
    "java.time.LocalDate": (pa.date32(), _local_date),
}


def _column(values: list[_Value | None]) -> pa.Array:
    """Ordering values of all deletes as one array."""
    kinds = {value[0] for value in values if value is not None}
    columns = []
    for kind in kinds:
        of_kind = [value[1] if value is not None and value[0] == kind else None for value in values]
        columns.append(pa.array(of_kind) if pa.types.is_decimal(kind) else pa.array(of_kind, kind))
    return join_values(columns, len(values))


def _corrupt(what: str, path: str, offset: int) -> Corrupt:
    return Corrupt(
        f"Delete list in Java form at byte {offset} of {path} {what}",
        remedy="Restore the file from a copy, or roll back the commit that wrote it",
        path=path,
        offset=offset,
    )


def _unsupported(what: str, path: str, offset: int) -> Unsupported:
    return Unsupported(
        f"Delete list in Java form at byte {offset} of {path} has {what}",
        remedy="Compact the table with Hudi 0.14 or later, then read it",
        path=path,
        offset=offset,
    )
