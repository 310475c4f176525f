"""Footer and page indexes of a parquet file, parsed when they are first needed and kept for the next question.

Looking up keys again and again asks the same files. A local file is known again by its inode, size and time of change,
so that one which was written anew is read anew. Files elsewhere are not: there the request costs, not the parsing.
"""

from __future__ import annotations

import functools
import io
import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

from hoodie.records.page_index import (
    ChunkPages,
    FileFooter,
    PageBounds,
    ReadRange,
    read_chunk_pages,
    read_file_footer,
    read_page_bounds,
)

_Place = tuple[int, str]
_Found = TypeVar("_Found")

_MAX_FILES: Final = 256
_MAX_CHUNKS: Final = 512
"""Of files with larger footers nothing is kept: these take up to about 2 MB of memory."""


class FileIndexes:
    """What is known of one file. `read` gives bytes of it."""

    def __init__(self) -> None:
        self._footer: FileFooter | None = None
        self._pages: dict[_Place, ChunkPages | None] = {}
        self._bounds: dict[_Place, PageBounds | None] = {}

    @property
    def known_footer(self) -> FileFooter | None:
        """The file's footer, if it was asked for before and kept."""
        return self._footer

    def footer(self, read: ReadRange, size_bytes: int) -> FileFooter | None:
        """The file's footer; None when it is of no use."""
        if self._footer is not None:
            return self._footer
        footer = read_file_footer(read, size_bytes)
        if footer is not None and len(footer.groups) * len(footer.names) <= _MAX_CHUNKS:
            self._footer = footer
        return footer

    def pages(self, read: ReadRange, footer: FileFooter, group: int, column: str) -> ChunkPages | None:
        """The pages of a column in a row group; None when the file does not say."""
        return self._known(self._pages, (group, column), lambda: read_chunk_pages(read, footer, group, column))

    def bounds(self, read: ReadRange, chunk: ChunkPages, group: int, column: str) -> PageBounds | None:
        """Bounds of the values in each of these pages; None when the file does not say."""
        return self._known(self._bounds, (group, column), lambda: read_page_bounds(read, chunk))

    def _known(
        self, found_before: dict[_Place, _Found | None], place: _Place, load: Callable[[], _Found | None]
    ) -> _Found | None:
        if place in found_before:
            return found_before[place]
        found = load()
        if self._footer is not None:
            found_before[place] = found
        return found


def indexes_of(source: Any) -> FileIndexes:
    """What is known of an open file, which is nothing for files that are not local."""
    try:
        found = os.fstat(source.fileno())
    except (AttributeError, io.UnsupportedOperation, OSError):
        return FileIndexes()
    return _known((found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns))


@functools.lru_cache(maxsize=_MAX_FILES)
def _known(_: tuple[int, ...]) -> FileIndexes:
    return FileIndexes()
