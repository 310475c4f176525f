"""A file that is read range by range, with a position: what Python's readers take."""

from __future__ import annotations

import io
import os
from typing import Any


class RangeInput(io.RawIOBase):
    """Random access to `size_bytes` bytes. A subclass says how a range of them is read (`_range`)."""

    def __init__(self, size_bytes: int = 0) -> None:
        super().__init__()
        self._size = size_bytes
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        end = self._size if size is None or size < 0 else min(self._position + size, self._size)
        start = min(self._position, end)
        data = self._range(start, end)
        self._position = start + len(data)
        return data

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _range(self, start: int, end: int) -> bytes:
        """The bytes `[start, end)`, where `start <= end <= size_bytes`."""
        raise NotImplementedError
