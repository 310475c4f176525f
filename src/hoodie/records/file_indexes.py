"""Footer and page indexes of a parquet file, parsed when they are first needed and kept for the next question.

Looking up keys again and again asks the same files. A local file is known again by its inode, size and time of change,
so that one which was written anew is read anew. Files elsewhere are not: there the request costs, not the parsing.
"""

from __future__ import annotations

import functools
import io
import os
from typing import Any, Final

from hoodie.records.page_index import (
    ChunkPages,
    FileFooter,
    PageBounds,
    ReadRange,
    read_chunk_pages,
    read_file_footer,
    read_page_bounds,
)

_MOST_FILES: Final = 256
_MOST_CHUNKS: Final = 512
"""Of files with larger footers nothing is kept: these have up to some hundred KB in memory."""


class FileIndexes:
    """What is known of one file. `read` gives bytes of it."""

    def __init__(self) -> None:
        self._footer: FileFooter | None = None
        self._pages: dict[tuple[int, str], ChunkPages | None] = {}
        self._bounds: dict[tuple[int, str], PageBounds | None] = {}

    def footer(self, read: ReadRange, size_bytes: int) -> FileFooter | None:
        """The file's footer; None when it is of no use."""
        if self._footer is not None:
            return self._footer
        footer = read_file_footer(read, size_bytes)
        if footer is not None and len(footer.groups) * len(footer.names) <= _MOST_CHUNKS:
            self._footer = footer
        return footer

    def pages(self, read: ReadRange, footer: FileFooter, group: int, column: str) -> ChunkPages | None:
        """The pages of a column in a row group; None when the file does not say."""
        place = group, column
        if place not in self._pages:
            found = read_chunk_pages(read, footer, group, column)
            if self._footer is None:
                return found
            self._pages[place] = found
        return self._pages[place]

    def bounds(self, read: ReadRange, chunk: ChunkPages, group: int, column: str) -> PageBounds | None:
        """Bounds of the values in each of these pages; None when the file does not say."""
        place = group, column
        if place not in self._bounds:
            found = read_page_bounds(read, chunk)
            if self._footer is None:
                return found
            self._bounds[place] = found
        return self._bounds[place]


def indexes_of(source: Any) -> FileIndexes:
    """What is known of an open file, which is nothing for files that are not local."""
    try:
        found = os.fstat(source.fileno())
    except (AttributeError, io.UnsupportedOperation, OSError):
        return FileIndexes()
    return _known((found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns))


@functools.lru_cache(maxsize=_MOST_FILES)
def _known(_: tuple[int, ...]) -> FileIndexes:
    return FileIndexes()
