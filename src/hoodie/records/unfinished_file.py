"""A base file on its way into storage, whoever makes its bytes: it is finished once, or dropped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True)
class BaseFileStats:
    """What was written: bytes of the file, rows, and the key range of the footer (None without rows or filter)."""

    path: str
    size_bytes: int
    rows: int
    min_key: str | None
    max_key: str | None


class UnfinishedFile(ABC):
    """One base file being written. Use as a context manager: leaving it normally closes, an exception aborts."""

    _stats: BaseFileStats | None = None

    def close(self) -> BaseFileStats:
        """Finishes the file and makes it durable; what was written. Closing twice gives the same answer."""
        if self._stats is None:
            try:
                self._stats = self._finish()
            except BaseException:
                self.abort()
                raise
        return self._stats

    def abort(self) -> None:
        """Drops the file. Nothing happens after `close`."""
        if self._stats is None:
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    @abstractmethod
    def _finish(self) -> BaseFileStats:
        """Writes what is missing and makes the file durable."""

    @abstractmethod
    def _drop(self) -> None:
        """Leaves nothing of the file."""
