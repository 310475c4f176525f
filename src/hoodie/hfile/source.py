"""The bytes of a file in ranges: the end of it at once, the rest when it is asked for.

1. What the first read has is not read again.
2. Blocks that lie close together are read in one go, unless that is more than `_READ_BYTES`.

It does not know what the bytes mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from hoodie.hfile.block_index import BlockIndex
from hoodie.hfile.cursor import corrupt

ReadRange: TypeAlias = Callable[[int, int], bytes]
"""`read(start, length)`: bytes of the HFile, whose start is 0; fewer where it ends earlier."""

_TAIL_BYTES: Final = 128 * 1024
_READ_BYTES: Final = 4 * 1024 * 1024
_GAP_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The bytes of the file. `tail` are those from `tail_at` on, read already; `start` is where the HFile lies."""

    range: ReadRange
    path: str
    start: int
    tail_at: int
    tail: bytes

    def at(self, offset: int) -> int:
        """Where an offset of the HFile lies in its file."""
        return self.start + offset

    def read(self, offset: int, length: int) -> bytes:
        """Exactly these bytes.

        Raises:
            Corrupt: the file ends before.
        """
        if offset >= self.tail_at:
            data = self.tail[offset - self.tail_at : offset - self.tail_at + length]
        else:
            data = self.range(offset, length)
        if len(data) != length:
            raise corrupt(self.path, self.at(offset), f"{length} bytes wanted, {len(data)} are there")
        return data


def open_source(read: ReadRange, size_bytes: int, path: str, start: int) -> Source:
    """The bytes of a file of `size_bytes`, after one read of its end.

    Raises:
        Corrupt: fewer bytes are there.
    """
    tail_at = max(0, size_bytes - _TAIL_BYTES)
    tail = read(tail_at, size_bytes - tail_at)
    if len(tail) != size_bytes - tail_at:
        raise corrupt(path, start + tail_at, f"{size_bytes - tail_at} bytes wanted, {len(tail)} are there")
    return Source(read, path, start, tail_at, tail)


def read_together(index: BlockIndex) -> Iterator[tuple[int, int]]:
    """Ranges of positions of the index whose blocks are read in one go."""
    first = 0
    for at in range(1, len(index) + 1):
        if at < len(index):
            gap = index.offsets[at] - index.offsets[at - 1] - index.sizes[at - 1]
            length = index.offsets[at] + index.sizes[at] - index.offsets[first]
            if gap <= _GAP_BYTES and length <= _READ_BYTES:
                continue
        yield first, at
        first = at
