"""Names and sizes of the files of a partition in one piece of bytes: some ninety for a file, and no object.

1. Files are sorted by name, which is the order of their bytes in UTF-8. So those of one file group lie together: log
   files before all base files, since their names begin with a dot.
2. The bytes are, in the byte order of the machine: the number of files (int64), sizes (int64 each), where each name
   begins and the last one ends (int32), names. Arrow arrays are made of them without a copy.
3. Which kind a file is says its name; what commits say of the bytes of a log file is not kept.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import pyarrow as pa

from hoodie.errors import Unsupported
from hoodie.view import BaseFile, LogFile, PartitionFiles

_COUNT = struct.Struct("=q")
_BEGIN = struct.Struct("=i")
_MAX_NAMES = (1 << 31) - 1
_Pieces = list[bytes]
_PASS = "surrogatepass"
"""A local file may have a name that is no text."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """What became of the files of a partition: names with sizes that came or have another size, names that went."""

    added: Mapping[str, int] = field(default_factory=dict)
    removed: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class PackedFiles:
    """The files of a partition, packed."""

    data: bytes

    def __len__(self) -> int:
        return int(_COUNT.unpack_from(self.data)[0])

    def names(self) -> pa.StringArray:
        """The names, sorted."""
        count = len(self)
        buffer = pa.py_buffer(self.data)
        begin = _COUNT.size + 8 * count
        ends = buffer.slice(begin, 4 * (count + 1))
        return pa.StringArray.from_buffers(count, ends, buffer.slice(begin + 4 * (count + 1)))

    def sizes(self) -> pa.Int64Array:
        """The sizes in bytes, in the order of the names."""
        count = len(self)
        return pa.Int64Array.from_buffers(
            pa.int64(), count, [None, pa.py_buffer(self.data).slice(_COUNT.size, 8 * count)]
        )

    def items(self) -> Iterator[tuple[str, int]]:
        """Names and sizes."""
        return self._items(0, len(self))

    def of_group(self, file_id: str) -> Iterator[tuple[str, int]]:
        """Names and sizes of the files of one file group. Looks at some twenty names, whatever the number of files."""
        search = _Search(self.data)
        for begin in (f".{file_id}", file_id):
            first, end = search.place(_bytes(f"{begin}_")), search.place(_bytes(f"{begin}`"))  # the sign after _
            yield from self._items(first, end)

    def changed(self, change: FileChange) -> PackedFiles:
        """The files after a change. What lies between two changed names is copied as it is."""
        search = _Search(self.data)
        added = {_bytes(name): size for name, size in change.added.items()}
        sizes, begins, names = _Pieces(), _Pieces(), _Pieces()
        at = moved = count = 0
        for name in (*sorted({*added, *map(_bytes, change.removed)}), None):
            place = search.count if name is None else search.place(name)
            first, end = search.ends[at], search.ends[place]
            sizes.append(self.data[_COUNT.size + 8 * at : _COUNT.size + 8 * place])
            begins.append(search.begins(at, place, moved))
            names.append(self.data[search.names + first : search.names + end])
            count += place - at
            if name in added:
                sizes.append(_COUNT.pack(added[name]))
                begins.append(_BEGIN.pack(end + moved))
                names.append(name)
                moved += len(name)
                count += 1
            at = place
            if name is not None and search.is_at(place, name):
                at += 1
                moved -= len(name)
        return _packed(count, sizes, begins, names)

    def _items(self, first: int, end: int) -> Iterator[tuple[str, int]]:
        search = _Search(self.data)
        ends = search.ends[first : end + 1].tolist()
        sizes = np.frombuffer(self.data, np.int64, end - first, _COUNT.size + 8 * first)
        for place, size in enumerate(sizes.tolist()):
            piece = self.data[search.names + ends[place] : search.names + ends[place + 1]]
            yield piece.decode("utf-8", _PASS), size


class _Search:
    """Parts of packed files, and where a name stands in them."""

    __slots__ = ("count", "data", "ends", "names")

    def __init__(self, data: bytes) -> None:
        (self.count,) = _COUNT.unpack_from(data)
        self.data = data
        self.names = _COUNT.size + 12 * self.count + 4
        # Of single numbers a view of memory gives twice as many in a second as an array does.
        self.ends = memoryview(data)[_COUNT.size + 8 * self.count : self.names].cast("i")

    def begins(self, first: int, end: int, moved: int) -> bytes:
        """Where the names from `first` to `end` begin, packed, once they lie so many bytes later."""
        ends = self.ends[first:end]
        return (np.frombuffer(ends, np.int32) + np.int32(moved)).tobytes() if moved and first < end else ends.tobytes()

    def place(self, name: bytes) -> int:
        """How many names are less."""
        data, ends, names = self.data, self.ends, self.names
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if data[names + ends[middle] : names + ends[middle + 1]] < name:
                low = middle + 1
            else:
                high = middle
        return low

    def is_at(self, place: int, name: bytes) -> bool:
        return place < self.count and self._name(place) == name

    def _name(self, place: int) -> bytes:
        return self.data[self.names + self.ends[place] : self.names + self.ends[place + 1]]


def pack(files: Iterable[tuple[str, int]]) -> PackedFiles:
    """Files, given as names and sizes in any order."""
    found = sorted((_bytes(name), size) for name, size in files)
    ends = np.fromiter(accumulate((len(name) for name, _ in found), initial=0), np.int64, len(found) + 1)
    sizes = np.fromiter((size for _, size in found), np.int64, len(found))
    begins = ends[:-1].astype(np.int32).tobytes()
    return _packed(len(found), [sizes.tobytes()], [begins], [name for name, _ in found])


def pack_partition(files: PartitionFiles) -> PackedFiles:
    """All files of a partition, also those of changed data."""
    everything: Iterable[BaseFile | LogFile] = (*files.everything, *files.changes)
    return pack((file.path.rpartition("/")[2], file.size_bytes) for file in everything)


def _packed(count: int, sizes: _Pieces, begins: _Pieces, names: _Pieces) -> PackedFiles:
    length = sum(map(len, names))
    if length > _MAX_NAMES:
        raise Unsupported("A partition has names of more than 2 GiB", remedy="Cluster the table into fewer files")
    return PackedFiles(b"".join((_COUNT.pack(count), *sizes, *begins, _BEGIN.pack(length), *names)))


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", _PASS)


EMPTY = pack(())
"""No files."""
