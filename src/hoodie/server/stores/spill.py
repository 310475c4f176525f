"""Files of kept views on disk, and as many of them in memory as may be: Hudi's `SPILLABLE_DISK`.

1. Each table has one file. Packed partitions are appended to it in no order; an index in memory says where each of them
   lies and how long it is. What was read or written last stays in memory, of all tables together up to a limit.
2. The file has no name once it is open: nobody else can open or replace it, and the system takes it back when the
   service ends, however it does. Where the file system cannot do that, it is made private and its name removed at once.
3. What was replaced stays in the file until it is more than what counts; then a new one is written. Values before it
   keep the old one.
4. Each piece has a checksum in the index.
"""

from __future__ import annotations

import os
import tempfile
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hoodie.errors import Invalid
from hoodie.server.stores.packed import PackedFiles
from hoodie.server.stores.store import Edit, StoreFailed

MIN_GARBAGE_BYTES = 16 << 20
"""Files with less that does not count are left as they are."""


class SpillStores:
    """The `Stores` on disk. `folder`: where files without a name are made; `memory_bytes`: what stays in memory.

    Raises:
        Invalid: there is no such folder.
    """

    def __init__(self, folder: str, memory_bytes: int) -> None:
        if not os.path.isdir(folder):
            raise Invalid(f"There is no folder {folder} to spill to", remedy="Make it, or name another one")
        self.folder = folder
        self._cache = _Cache(memory_bytes)

    def open(self, place: str) -> SpillStore:
        return SpillStore(self, self._cache, None, {})

    def new_file(self) -> _File:
        """An empty file. Raises `StoreFailed`."""
        try:
            return _File(self.folder)
        except OSError as error:
            raise _failed(self.folder, error) from error

    def distrust(self) -> None:
        """Has no effect: what is kept ends with the service."""

    def close(self) -> None:
        """Lets go of what is in memory; files go with the values that read them."""
        self._cache.clear()


@dataclass(frozen=True, slots=True)
class _Piece:
    """Where a packed partition lies."""

    offset: int
    length: int
    checksum: int


@dataclass(frozen=True, slots=True)
class SpillStore:
    """A `ViewStore` on disk. `file` is None while nothing was kept."""

    stores: SpillStores
    cache: _Cache
    file: _File | None
    index: Mapping[str, _Piece]
    outlives = False
    is_in_memory = False

    def partitions(self) -> tuple[str, ...]:
        return tuple(sorted(self.index))

    def has(self, partition: str) -> bool:
        return partition in self.index

    def files(self, partition: str) -> PackedFiles | None:
        piece = self.index.get(partition)
        if piece is None or self.file is None:
            return None
        key = self.file.number, piece.offset
        data = self.cache.get(key)
        if data is None:
            data = self.file.read(piece)
            self.cache.put(key, data)
        return PackedFiles(data)

    def of_group(self, partition: str, file_id: str) -> Iterable[tuple[str, int]]:
        found = self.files(partition)
        return () if found is None else found.of_group(file_id)

    def parts(self) -> Mapping[str, bytes]:
        return {}

    def changed(self, edit: Edit) -> SpillStore:
        file = self.file
        if file is None or edit.is_emptied:
            file = self.stores.new_file()
        index = {} if edit.is_emptied else dict(self.index)
        for partition in edit.dropped:
            index.pop(partition, None)
        for partition, change in edit.changes.items():
            before = self.files(partition)
            if before is None:
                raise StoreFailed(f"{partition!r} is changed and was never loaded", remedy="Report this")
            index[partition] = self._kept(file, before.changed(change).data)
        for partition, files in edit.loaded.items():
            index[partition] = self._kept(file, files.data)
        counting = sum(piece.length for piece in index.values())
        if file.size - counting > max(counting, MIN_GARBAGE_BYTES):
            file, index = self._rewritten(file, index)
        return SpillStore(self.stores, self.cache, file, index)

    def _kept(self, file: _File, data: bytes) -> _Piece:
        piece = file.append(data)
        self.cache.put((file.number, piece.offset), data)
        return piece

    def _rewritten(self, file: _File, index: Mapping[str, _Piece]) -> tuple[_File, dict[str, _Piece]]:
        new = self.stores.new_file()
        return new, {partition: new.append(file.read(piece)) for partition, piece in index.items()}


class _File:
    """A file that grows and has no name. Threads may read it while one writes."""

    _numbers = iter(range(1, 1 << 62))

    def __init__(self, folder: str) -> None:
        self.number = next(_File._numbers)
        self.size = 0
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - it lives as long as this

    def append(self, data: bytes) -> _Piece:
        piece = _Piece(self.size, len(data), zlib.crc32(data))
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(self._file.fileno(), memoryview(data)[written:], self.size + written)
        except (OSError, ValueError) as error:
            raise _failed("its file", error) from error
        self.size += len(data)
        return piece

    def read(self, piece: _Piece) -> bytes:
        data = b""
        try:
            while len(data) < piece.length:  # one call gives 2 GiB at most
                more = os.pread(self._file.fileno(), piece.length - len(data), piece.offset + len(data))
                data = data + more if data else more
                if not more:
                    break
        except (OSError, ValueError) as error:
            raise _failed("its file", error) from error
        if len(data) != piece.length or zlib.crc32(data) != piece.checksum:
            raise _failed("its file", ValueError("it is damaged"))
        return data


@dataclass(slots=True)
class _Cache:
    """What was read or written last, up to a number of bytes."""

    limit: int
    size: int = 0
    found: OrderedDict[tuple[int, int], bytes] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: tuple[int, int]) -> bytes | None:
        with self.lock:
            data = self.found.get(key)
            if data is not None:
                self.found.move_to_end(key)
            return data

    def put(self, key: tuple[int, int], data: bytes) -> None:
        with self.lock:
            self.size += len(data) - len(self.found.pop(key, b""))
            self.found[key] = data
            while self.size > self.limit and self.found:
                self.size -= len(self.found.popitem(last=False)[1])

    def clear(self) -> None:
        with self.lock:
            self.found.clear()
            self.size = 0


def _failed(what: str, error: Exception) -> StoreFailed:
    said = getattr(error, "strerror", None) or error
    return StoreFailed(
        f"The spilled view cannot use {what}: {said}",
        remedy="Free or name another hoodie.filesystem.view.spillable.dir; the view is kept in memory until then",
    )
