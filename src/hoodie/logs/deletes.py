"""Delete blocks: keys that are gone, each with the ordering value its delete has.

1. Content is a version number, the length of what follows, and one Avro record that lists all deletes.
2. Version 3 is the one of all releases from 0.14 on. Versions 1 and 2 hold Java objects (`java_deletes`); they are read
   and not written.
3. A delete without ordering value, or with the int 0, has none: it goes by time ("default"). A long 0 is a value.
4. How ordering values are stored is `ordering_wrappers`.

It does not know what a delete does to a row. Grammar and an example: `docs/format/log-files.md`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.logs.delete_schema import DELETE, DELETE_LIST, DELETE_LIST_SCHEMA
from hoodie.logs.java_deletes import JAVA_VERSIONS, parse_java_deletes
from hoodie.logs.ordering_wrappers import Mask, UnlikeValues, unwrap, wrap
from hoodie.logs.read import RangeStorage, read_content
from hoodie.records import RowBytes, decode_rows, encode_rows
from hoodie.spec import BlockKind, LogBlock

CONTENT_VERSION: Final = 3

_START: Final = struct.Struct(">ii")


@dataclass(frozen=True, slots=True, eq=False)
class Deletes:
    """Deletes of one block, in its order: the i-th entries of all arrays belong together.

    `keys` has no nulls. `partitions` are partition paths. `ordering` has one array for each ordering field, null where
    `is_default`, and no array at all when every delete goes by time.
    """

    keys: pa.StringArray
    partitions: pa.StringArray
    ordering: tuple[pa.Array, ...]
    is_default: Mask

    def __len__(self) -> int:
        return len(self.keys)


def read_deletes(storage: RangeStorage, block: LogBlock) -> Deletes:
    """The deletes of a block of kind DELETE.

    Raises:
        Corrupt: the content is damaged.
        Unsupported: ordering values that do not compare, or of a Java class that is not known.
    """
    if block.kind is not BlockKind.DELETE:
        raise Invalid(f"A block of kind {block.kind.name} holds no deletes", path=block.path)
    return parse_deletes(read_content(storage, block), block.path, block.content_start)


def parse_deletes(content: bytes, path: str, offset: int) -> Deletes:
    """The deletes in the content of a block, which starts at `offset` in the file `path`.

    Raises:
        Corrupt: the content is damaged.
        Unsupported: ordering values that do not compare, or of a Java class that is not known.
    """
    if len(content) < _START.size:
        raise _corrupt("is too short for a length", path, offset)
    version, length = _START.unpack_from(content)
    if version not in (CONTENT_VERSION, *JAVA_VERSIONS) or length != len(content) - _START.size:
        raise _corrupt(f"has version {version} and {length} of {len(content) - _START.size} bytes", path, offset)
    if version in JAVA_VERSIONS:
        return Deletes(*parse_java_deletes(content[_START.size :], version, path, offset + _START.size))
    record = RowBytes(content, np.array([_START.size]), np.array([len(content)]))
    lists = decode_rows(record, DELETE_LIST_SCHEMA, path=path, offset=offset).column(0).combine_chunks()
    keys, partitions, wrapped = lists.flatten().flatten()
    if keys.null_count:
        raise _corrupt("has deletes without key", path, offset)
    try:
        ordering, is_default = unwrap(wrapped)
    except UnlikeValues as unlike:
        raise Unsupported(
            f"Delete block with its content at byte {offset} of {path} has ordering values that do not compare: "
            f"{unlike}",
            remedy="Compact the table with the release that wrote it",
            path=path,
            offset=offset,
        ) from unlike
    return Deletes(keys, partitions, ordering, is_default)


def encode_deletes(deletes: Deletes, *, several_fields: bool = True) -> bytes:
    """Content with these deletes. Those that go by time get the int 0.

    `several_fields`: whether readers know arrays of ordering values, which those of version 6 tables do not.

    Raises:
        Invalid: an ordering value has a type that has no wrapper, or does not fit it.
        Unsupported: several ordering fields where readers know one.
    """
    if len(deletes.ordering) > 1 and not several_fields:
        raise Unsupported(
            "Deletes of tables before version 8 have one ordering value", remedy="Upgrade the table first"
        )
    columns = [deletes.keys, deletes.partitions, wrap(deletes.ordering, deletes.is_default)]
    items = pa.StructArray.from_arrays(columns, fields=list(DELETE))
    lists = pa.ListArray.from_arrays(pa.array([0, len(items)], pa.int32()), items, type=DELETE_LIST)
    body = encode_rows(pa.table({"deleteRecordList": lists}), DELETE_LIST_SCHEMA).data
    return _START.pack(CONTENT_VERSION, len(body)) + bytes(body)


def _corrupt(what: str, path: str, offset: int) -> Corrupt:
    return Corrupt(
        f"Delete block with its content at byte {offset} of {path} {what}",
        remedy="Restore the file from a copy, or roll back the commit that wrote it",
        path=path,
        offset=offset,
    )
