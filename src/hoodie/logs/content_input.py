"""The content of a block as a file of its own, for readers that want to choose what they read.

1. Small contents are read at once; of large ones only the ranges asked for.
2. It looks like a storage with one file, because that is what the readers of base files take.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from hoodie.logs.read import RangeStorage, read_content
from hoodie.spec import LogBlock
from hoodie.storage import RangeInput

WHOLE_BYTES: Final = 4 << 20
"""Contents up to this size are read at once: a second request costs more than the bytes it saves."""


class ContentStorage:
    """`block`'s content under the name of its log file. `whole`: read all of it at the first opening."""

    def __init__(self, storage: RangeStorage, block: LogBlock, *, whole: bool) -> None:
        self._storage = storage
        self._block = block
        self._whole = whole or block.content_bytes <= WHOLE_BYTES
        self._content: bytes | None = None

    @property
    def scheme(self) -> str:
        """What readers go by: whether small reads are cheap, or ranges are to be joined."""
        return "memory" if self._whole else "ranges"

    def open_input(self, path: str) -> Any:
        """Random access to the content."""
        del path
        if not self._whole:
            return pa.PythonFile(_Ranges(self._storage, self._block), mode="r")
        return pa.BufferReader(self.content())

    def content(self) -> bytes:
        """All bytes, read once."""
        if self._content is None:
            self._content = read_content(self._storage, self._block)
        return self._content

    def read(self, start: int, length: int) -> bytes:
        """The bytes `[start, start + length)` of the content, fewer at its end."""
        if self._whole:
            return self.content()[start : start + length]
        available = max(0, min(length, self._block.content_bytes - start))
        return self._storage.read_range(self._block.path, self._block.content_start + start, available)


class _Ranges(RangeInput):
    """A content that is read range by range."""

    def __init__(self, storage: RangeStorage, block: LogBlock) -> None:
        super().__init__(block.content_bytes)
        self._content = ContentStorage(storage, block, whole=False)

    def _range(self, start: int, end: int) -> bytes:
        return self._content.read(start, end - start)
