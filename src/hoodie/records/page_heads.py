"""Whether the pages of parquet columns lie where the footer says, by the heads of the pages alone.

A page says in its head how many bytes are stored of it. Arrow's buffered reader takes that memory before it reads, so
one damaged head costs up to 2 GiB. A reader that has the whole chunk in memory takes nothing for it.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from hoodie.records.page_index import FileFooter, chunk_bounds
from hoodie.records.thrift import NoThrift, parse_struct_at

_PATH: Final = 3
_STORED_SIZE: Final = 3
_HEAD_BYTES: Final = 256
_LONG_HEAD_BYTES: Final = 64 * 1024
"""A head may hold the least and the greatest value of its page."""


class StoredChunk(NamedTuple):
    """Where the pages of one leaf column in one row group lie in the file."""

    start: int
    size_bytes: int


def stored_chunks(footer: FileFooter, group: int, columns: Collection[str]) -> list[StoredChunk] | None:
    """The chunks of top-level columns in a row group: one for each leaf column. None when the footer is odd."""
    wanted = {name.encode() for name in columns}
    try:
        found = [chunk[3].value for chunk in footer.chunks(group)]
        bounds = [chunk_bounds(meta) for meta in found if meta[_PATH].value.values[0] in wanted]
    except (KeyError, AttributeError, TypeError, IndexError):
        return None
    if not all(0 <= start <= end <= footer.size_bytes for start, end in bounds):
        return None
    return [StoredChunk(start, end - start) for start, end in bounds]


def pages_fit(source: Any, chunk: StoredChunk) -> bool:
    """Whether the pages of the chunk fill it, one behind the other. `source` is read once for each of them.

    False is no proof of damage: some writers count a chunk's bytes wrong (PARQUET-816).
    """
    at, end = chunk.start, chunk.start + chunk.size_bytes
    while at < end:
        size = _page_bytes(source, at, end, _HEAD_BYTES) or _page_bytes(source, at, end, _LONG_HEAD_BYTES)
        if size is None:
            return False
        at += size
    return at == end


def _page_bytes(source: Any, at: int, end: int, max_bytes: int) -> int | None:
    """The bytes of a page, head and content, if its head has no more than `max_bytes`."""
    try:
        head, length = parse_struct_at(source.read_at(min(end - at, max_bytes), at), 0)
        stored = head[_STORED_SIZE].value
    except (NoThrift, KeyError):
        return None
    return length + stored if isinstance(stored, int) and stored >= 0 else None
