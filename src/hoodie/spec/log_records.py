"""The content of Avro and change-data blocks: rows one after the other, each with its length.

1. Content is a version number, the count of rows, then for each row its length and its bare Avro binary.
2. The version is written as 3 and means nothing: readers go by the schema in the block's header.
3. Lengths chain the rows, so finding them is one pass over the lengths. What the rows say is not looked at.

Files of version 6 timelines archive their instants in such blocks, so this module knows no Arrow. Grammar and an
example: `docs/format/log-files.md`.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator
from itertools import pairwise

from hoodie.errors import Corrupt

RECORD_CONTENT_VERSION = 3
RECORD_LENGTH_BYTES = 4
"""Bytes before each row."""

_START = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")


def parse_record_marks(content: bytes, path: str, offset: int) -> array[int]:
    """Where each row's length stands in `content`, and last where the rows end: one number more than there are rows.

    Row i is `content[marks[i] + RECORD_LENGTH_BYTES : marks[i + 1]]`. Numbers are signed, of 64 bits. `offset` is where
    the content starts in the file `path`.

    Raises:
        Corrupt: a row leaves the content, or the rows do not fill it.
    """
    if len(content) < _START.size:
        raise _damaged("is too short for a row count", path, offset)
    _, count = _START.unpack_from(content)
    if not 0 <= count <= (len(content) - _START.size) // RECORD_LENGTH_BYTES:
        raise _damaged(f"claims {count} rows in {len(content)} bytes", path, offset)
    at = _START.size
    marks = array("q", (at,))
    mark, unpack = marks.append, _LENGTH.unpack_from
    try:
        for _ in range(count):
            (length,) = unpack(content, at)
            if length < 0:
                break
            at += RECORD_LENGTH_BYTES + length
            mark(at)
    except struct.error as error:
        raise _damaged(f"ends inside row {len(marks) - 1} of {count}", path, offset + marks[-1]) from error
    if len(marks) != count + 1 or at != len(content):
        raise _damaged(f"has {count} rows in {len(content)} bytes, row {len(marks) - 1} does not fit", path, offset)
    return marks


def iter_records(content: bytes, path: str, offset: int) -> Iterator[bytes]:
    """The rows in `content`, each its bare Avro binary.

    Raises:
        Corrupt: as `parse_record_marks`, before the first row is given.
    """
    marks = parse_record_marks(content, path, offset)
    return (content[start + RECORD_LENGTH_BYTES : end] for start, end in pairwise(marks))


def encode_records(records: Iterable[bytes]) -> bytes:
    """Content with these rows (bare Avro binary each)."""
    parts = [part for record in records for part in (_LENGTH.pack(len(record)), record)]
    return _START.pack(RECORD_CONTENT_VERSION, len(parts) // 2) + b"".join(parts)


def _damaged(what: str, path: str, offset: int) -> Corrupt:
    return Corrupt(
        f"Content of the log block at byte {offset} of {path} {what}",
        remedy="Restore the file from a copy, or roll back the commit that wrote it",
        path=path,
        offset=offset,
    )
