"""Base files that are asked for several things, one after the other, and opened once.

A footer, then key columns, then rows: each would open the file again, which on an object store is a round trip. So
would a write the files that its look-up has just opened: `OpenInputs` hands them on, within one process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

from hoodie.records.base_file import InputStorage, read_footer
from hoodie.records.footer import BaseFooter

_MAX_KEPT: Final = 64
"""Files that stay open at most: far below what a process may open, and no more than a block of each in memory."""


@contextmanager
def opened_once(storage: InputStorage, at_hand: OpenInputs | None = None) -> Iterator[OneInput]:
    """Inside the block, `storage` with each file opened once; what was opened is closed at its end. Files that are in
    `at_hand` are taken from there, open as they are.

    For one thread: readers of one file share where they are in it.
    """
    once = OneInput(storage, at_hand)
    try:
        yield once
    finally:
        once.close()


class OpenInputs:
    """Open base files on their way from one task to a later one of the same process. Threads may share it: a file
    belongs to whoever has taken it. As a context manager it closes what nobody took.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, tuple[Any, BaseFooter]] = {}

    def put(self, path: str, file: Any, footer: BaseFooter) -> bool:
        """Whether the open file is kept now; False where there are enough, and it stays the caller's."""
        with self._lock:
            if len(self._files) >= _MAX_KEPT or path in self._files:
                return False
            self._files[path] = (file, footer)
            return True

    def take(self, path: str) -> tuple[Any, BaseFooter] | None:
        """The open file and its footer, which are the caller's from now on; None where it is not kept."""
        with self._lock:
            return self._files.pop(path, None)

    def __enter__(self) -> OpenInputs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left, self._files = self._files, {}
        for file, _ in left.values():
            file.close()


class OneInput:
    """An input storage that keeps what it has opened."""

    def __init__(self, storage: InputStorage, at_hand: OpenInputs | None = None) -> None:
        self._storage = storage
        self._at_hand = at_hand
        self._open: dict[str, Any] = {}
        self._footers: dict[str, BaseFooter] = {}

    @property
    def scheme(self) -> str:
        return self._storage.scheme

    def open_input(self, path: str) -> _Shared:
        """The open file. Raises: Missing: there is none."""
        if not self._has(path):
            self._open[path] = self._storage.open_input(path)
        return _Shared(self._open[path])

    def footer(self, path: str) -> BaseFooter:
        """The footer of a base file, read once. Raises as `read_footer`."""
        if not (self._has(path) and path in self._footers):
            self._footers[path] = read_footer(self, path)
        return self._footers[path]

    def keep(self, path: str) -> None:
        """Leaves the file, whose footer was read, open for who takes it next; nothing happens without."""
        if self._at_hand is None or path not in self._open or path not in self._footers:
            return
        if self._at_hand.put(path, self._open[path], self._footers[path]):
            del self._open[path]

    def close(self) -> None:
        """Closes what was opened."""
        opened, self._open = self._open, {}
        for file in opened.values():
            file.close()

    def _has(self, path: str) -> bool:
        """Whether the file is open, here or until now among the open ones."""
        found = None if self._at_hand is None or path in self._open else self._at_hand.take(path)
        if found is not None:
            self._open[path], self._footers[path] = found
        return path in self._open


class _Shared:
    """A file that its reader does not close."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __enter__(self) -> Any:
        return self._file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return
