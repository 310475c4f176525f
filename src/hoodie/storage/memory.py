"""Bytes in this process, for tests and small throw-away tables: `memory://name`.

1. All `MemoryStorage` objects of one name in one process share their files; a pickled copy finds them by name.
2. One lock per name makes every call atomic; "durable" means here: until the process ends or `forget` is called.
3. Modification times come from `Env`, so tests steer them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hoodie.env import Env, SystemEnv
from hoodie.errors import Conflict, Invalid, Missing
from hoodie.storage.contract import FileInfo, Listing, OutputFile, checked_path, checked_range, crc_sibling


@dataclass(frozen=True, slots=True)
class _File:
    data: bytes
    modified_ms: int


@dataclass(slots=True)
class _Store:
    files: dict[str, _File] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)


_STORES: dict[str, _Store] = {}
_STORES_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class MemoryStorage:
    """Storage of the files kept under `name` in this process."""

    name: str
    env: Env = field(default_factory=SystemEnv, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name or self.name.startswith("/") or self.name.endswith("/") or "//" in self.name:
            raise Invalid(f"{self.name!r} is not a name for a memory storage", remedy="Use memory://name")

    @property
    def uri(self) -> str:
        return f"memory://{self.name}"

    @property
    def scheme(self) -> str:
        return "memory"

    def absolute(self, path: str) -> str:
        return f"{self.uri}/{checked_path(path)}" if path else self.uri

    def list_dir(self, path: str) -> Listing:
        start = _folder(path)
        files: list[FileInfo] = []
        dirs: dict[str, None] = {}
        for info in self.list(path):
            child, slash, _ = info.path[len(start) :].partition("/")
            if slash:
                dirs[start + child] = None
            else:
                files.append(info)
        return Listing(tuple(files), tuple(sorted(dirs)))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[FileInfo]:
        start = _folder(prefix)
        after = start_after or ""
        with self._store.lock:
            found = [
                (path, file) for path, file in self._store.files.items() if path.startswith(start) and path > after
            ]
        for path, file in sorted(found, key=lambda item: item[0]):
            yield FileInfo(path, len(file.data), file.modified_ms)

    def head(self, path: str) -> FileInfo:
        file = self._file(path)
        return FileInfo(path, len(file.data), file.modified_ms)

    def read(self, path: str) -> bytes:
        return self._file(path).data

    def read_range(self, path: str, start: int, length: int) -> bytes:
        checked_range(path, start, length)
        return self._file(path).data[start : start + length]

    def create(self, path: str, data: bytes) -> None:
        with self._store.lock:
            if checked_path(path) in self._store.files:
                raise Conflict(f"{self.absolute(path)} exists already", path=path)
            self.put(path, data)

    def put(self, path: str, data: bytes) -> None:
        file = _File(bytes(data), int(self.env.now().timestamp() * 1000))
        with self._store.lock:
            self._store.files.pop(crc_sibling(checked_path(path)), None)
            self._store.files[path] = file

    def delete(self, path: str) -> bool:
        with self._store.lock:
            self._store.files.pop(crc_sibling(checked_path(path)), None)
            return self._store.files.pop(path, None) is not None

    def delete_dir(self, path: str) -> int:
        start = _folder(path)
        with self._store.lock:
            doomed = [name for name in self._store.files if name.startswith(start)]
            for name in doomed:
                del self._store.files[name]
        return len(doomed)

    def open_input(self, path: str) -> Any:
        import pyarrow as pa  # noqa: PLC0415 - see LocalStorage.open_input

        return pa.BufferReader(self.read(path))

    def open_output(self, path: str) -> MemoryOutput:
        return MemoryOutput(self, checked_path(path))

    def forget(self) -> None:
        """Drop all files of this name."""
        with _STORES_LOCK:
            _STORES.pop(self.name, None)

    @property
    def _store(self) -> _Store:
        with _STORES_LOCK:
            return _STORES.setdefault(self.name, _Store())

    def _file(self, path: str) -> _File:
        with self._store.lock:
            file = self._store.files.get(checked_path(path))
        if file is None:
            raise Missing(f"{self.absolute(path)} does not exist", path=path)
        return file


class MemoryOutput(OutputFile):
    """A data file of a `MemoryStorage`; it appears at `close`."""

    closed = False

    def __init__(self, storage: MemoryStorage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._parts: list[bytes] = []
        self._size_bytes = 0

    def write(self, data: Any, /) -> int:
        if self.closed:
            raise ValueError("write to a closed file")
        part = memoryview(data).tobytes()
        self._parts.append(part)
        self._size_bytes += len(part)
        return len(part)

    def tell(self) -> int:
        return self._size_bytes

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._storage.put(self._path, b"".join(self._parts))
            self._parts.clear()

    def abort(self) -> None:
        self.closed = True
        self._parts.clear()


def _folder(path: str) -> str:
    """What the paths of all files below `path` start with."""
    return f"{checked_path(path, root_allowed=True)}/" if path else ""
