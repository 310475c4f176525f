"""A storage in memory that lists by pages, each of which takes as long as a request to an object store.

Files whose names and sizes alone matter are added to its listings, by folder: there may be very many of them.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from hoodie.storage import FileInfo, MemoryStorage

PAGE: Final = 1000


class PagedStore:
    """`inner` in all but its listings, which show `listed` (files by the two folders at the top of their paths).

    `pages` counts what was asked; each takes `page_s` seconds of waiting.
    """

    def __init__(self, inner: MemoryStorage, page_s: float = 0.02) -> None:
        self.inner = inner
        self.page_s = page_s
        self.pages = 0
        self.listed: dict[str, list[FileInfo]] = defaultdict(list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def add(self, file: FileInfo) -> None:
        """Shows a file from now on."""
        first, second, _ = file.path.split("/", 2)
        self.listed[f"{first}/{second}"].append(file)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[FileInfo]:
        """The files that were added below one of the folders that hold them."""
        assert start_after is None
        found = self.listed.get(prefix, [])
        for at in range(0, max(len(found), 1), PAGE):
            self.pages += 1
            time.sleep(self.page_s)
            yield from found[at : at + PAGE]
