"""A folder of a storage as a storage of its own: how a table that lies inside another one is opened.

1. Every path is put below the folder before the outer storage sees it, and taken out again of what it lists. The outer
   storage checks it as always, so no path leaves the folder.
2. All promises of the contract are those of the outer storage.
3. It has no locks of its own: whoever writes the inner table holds the table around it, whose fences are asked.

It does not know what lies in the folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from hoodie.storage.contract import FileInfo, Listing, OutputFile, Storage, checked_path
from hoodie.storage.fence import Fence, HasFences, with_fence


@runtime_checkable
class StandsAround(Protocol):
    """A storage whose locks are those of another: the one around an inner table, that of the table path."""

    @property
    def outer(self) -> Storage: ...


@dataclass(frozen=True, slots=True)
class NestedStorage:
    """What lies below `folder` of `outer`."""

    outer: Storage
    folder: str

    def __post_init__(self) -> None:
        checked_path(self.folder)

    @property
    def fences(self) -> tuple[Fence, ...]:
        return self.outer.fences if isinstance(self.outer, HasFences) else ()

    def with_fence(self, fence: Fence) -> NestedStorage:
        return replace(self, outer=with_fence(self.outer, fence))

    @property
    def uri(self) -> str:
        return f"{self.outer.uri}/{self.folder}"

    @property
    def scheme(self) -> str:
        return self.outer.scheme

    def absolute(self, path: str) -> str:
        return self.outer.absolute(self._below(path))

    def list_dir(self, path: str) -> Listing:
        found = self.outer.list_dir(self._below(path))
        return Listing(
            tuple(self._inside(file) for file in found.files),
            tuple(folder[len(self.folder) + 1 :] for folder in found.dirs),
        )

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[FileInfo]:
        after = None if start_after is None else f"{self.folder}/{start_after}"
        return (self._inside(file) for file in self.outer.list(self._below(prefix), start_after=after))

    def head(self, path: str) -> FileInfo:
        return self._inside(self.outer.head(self._file(path)))

    def read(self, path: str) -> bytes:
        return self.outer.read(self._file(path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self.outer.read_range(self._file(path), start, length)

    def create(self, path: str, data: bytes) -> None:
        self.outer.create(self._file(path), data)

    def put(self, path: str, data: bytes) -> None:
        self.outer.put(self._file(path), data)

    def delete(self, path: str) -> bool:
        return self.outer.delete(self._file(path))

    def delete_dir(self, path: str) -> int:
        return self.outer.delete_dir(self._below(path))

    def open_input(self, path: str) -> Any:
        return self.outer.open_input(self._file(path))

    def open_output(self, path: str) -> OutputFile:
        return self.outer.open_output(self._file(path))

    def _below(self, path: str) -> str:
        return f"{self.folder}/{checked_path(path)}" if path else self.folder

    def _file(self, path: str) -> str:
        return f"{self.folder}/{checked_path(path)}"

    def _inside(self, file: FileInfo) -> FileInfo:
        return FileInfo(file.path[len(self.folder) + 1 :], file.size_bytes, file.modified_ms)
