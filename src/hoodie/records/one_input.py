"""Base files that are asked for several things, one after the other, and opened once.

A footer, then key columns, then rows: each would open the file again, which on an object store is a round trip.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from hoodie.records.base_file_reader import InputStorage


@contextmanager
def opened_once(storage: InputStorage) -> Iterator[OneInput]:
    """Inside the block, `storage` with each file opened once; what was opened is closed at its end.

    For one thread: readers of one file share where they are in it.
    """
    once = OneInput(storage)
    try:
        yield once
    finally:
        once.close()


class OneInput:
    """An input storage that keeps what it has opened."""

    def __init__(self, storage: InputStorage) -> None:
        self._storage = storage
        self._open: dict[str, Any] = {}

    @property
    def scheme(self) -> str:
        return self._storage.scheme

    def open_input(self, path: str) -> _Shared:
        """The open file. Raises: Missing: there is none."""
        if path not in self._open:
            self._open[path] = self._storage.open_input(path)
        return _Shared(self._open[path])

    def close(self) -> None:
        """Closes what was opened."""
        opened, self._open = self._open, {}
        for file in opened.values():
            file.close()


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
