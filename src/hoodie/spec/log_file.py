"""A log file cut into blocks: frames only, by few reads, with damaged spans found as Hudi finds them.

1. Every block starts with the magic. A frame is sound when (a) it ends inside the file, (b) the length at its end
   agrees with the length at its start, and (c) the end of the file or the next magic follows it.
2. What is not sound is damaged up to the next magic in the bytes after its own magic, or to the end of the file: one
   block of kind CORRUPT. An append that was cut off leaves that, at the end or before what another writer appended.
3. Up to five bytes after the last block are a magic that was cut off: damaged too, and no harm to the block before.
4. Damage *inside* a sound frame (a header that runs out of it, a kind nobody writes) is not what a torn append leaves:
   rows would be lost without a word, so it is an error.
5. Contents are not read. A window of 64 KiB covers the end of one block with the start of the next: a file costs about
   one read more than it has large blocks. Of a file that fits into one window everything is kept.

It takes a function for ranged reads, not a storage. Grammar and an example: `docs/format/log-files.md`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from hoodie.errors import Corrupt
from hoodie.spec.log_block import (
    FRAME_START_BYTES,
    LENGTH_BYTES,
    MAGIC,
    MAX_HEADER_BYTES,
    MAX_HEADER_ENTRIES,
    MIN_LENGTH,
    BlockKind,
    LogBlock,
    parse_header,
    parse_kind,
    unsupported_version,
)

ReadRange = Callable[[int, int], bytes]
"""The bytes `[start, start + length)` of a file, fewer where it ends earlier."""

WINDOW_BYTES: Final = 64 << 10
SCAN_BYTES: Final = 1 << 20

MAX_DAMAGED_SPANS: Final = 10_000
"""Damaged spans in one file before it is given up: torn appends leave a few, random bytes any number."""

_FOOTER_END_BYTES: Final = 4 + LENGTH_BYTES


def parse_log_file(read: ReadRange, size_bytes: int, path: str) -> tuple[LogBlock, ...]:
    """Blocks of a file in file order, damaged spans among them; together they cover the file.

    `size_bytes` bounds what is read. A file that is shorter counts as cut off where it ends.

    Raises:
        Corrupt: the file does not start with a block, a sound frame holds nonsense, or damage is everywhere.
        Unsupported: a block of another format version, or with a kind or header key of a later release.
    """
    file = _File(read, size_bytes, path)
    if size_bytes >= len(MAGIC) and file.at(0, len(MAGIC)) not in (MAGIC, b""):
        raise file.damaged(0, "does not start with a log block")
    blocks: list[LogBlock] = []
    damaged = start = 0
    while start < size_bytes:
        block = file.block(start)
        if block is None:
            damaged += 1
            if damaged > MAX_DAMAGED_SPANS:
                raise file.damaged(start, f"has more than {MAX_DAMAGED_SPANS} damaged spans")
            end = file.next_magic(start + len(MAGIC))
            block = LogBlock(path, start, end - start, BlockKind.CORRUPT)
        blocks.append(block)
        start = block.end
    return tuple(blocks)


class _File:
    """A file seen through the two windows that were used last."""

    def __init__(self, read: ReadRange, size_bytes: int, path: str) -> None:
        self._read = read
        self._size = size_bytes
        self._path = path
        self._windows: list[tuple[int, bytes]] = []
        self._schemas: dict[bytes, str] = {}

    def at(self, start: int, length: int) -> bytes:
        """`length` bytes from `start`, fewer at the end of the file."""
        first, data = self._window(start, length, WINDOW_BYTES)
        return data[start - first : start - first + length]

    def next_magic(self, start: int) -> int:
        """Offset of the first magic at or after `start`; the end of the file when there is none."""
        while start < self._size:
            first, data = self._window(start, len(MAGIC), SCAN_BYTES)
            found = data.find(MAGIC, start - first)
            if found >= 0:
                return first + found
            # A magic may lie across the edge of two windows: they overlap by all but one of its bytes.
            following = first + len(data) - len(MAGIC) + 1
            if following <= start:
                break
            start = following
        return self._size

    def block(self, start: int) -> LogBlock | None:
        """The block that starts there, None when its frame is not sound.

        Raises:
            Corrupt: the frame is sound and holds nonsense.
            Unsupported: something newer, or the format before frames had an end.
        """
        front = self.at(start, FRAME_START_BYTES)
        if len(front) < FRAME_START_BYTES or front[: len(MAGIC)] != MAGIC:
            return None
        (length,) = struct.unpack_from(">q", front, len(MAGIC))
        end = start + FRAME_START_BYTES + length
        if length < LENGTH_BYTES or end > self._size:
            return None
        if not self._is_closed(end, length):
            self._ensure_not_version_0(start, end)
            return None
        if length < MIN_LENGTH:
            raise self.damaged(start, f"has a block of {length} bytes at {start}, too short for its frame")
        return self._parsed(start, end)

    def damaged(self, offset: int, what: str) -> Corrupt:
        return Corrupt(
            f"Log file {self._path} {what}",
            remedy="Restore the file from a copy, or roll back the commit that wrote it",
            path=self._path,
            offset=offset,
        )

    def _window(self, start: int, length: int, window_bytes: int) -> tuple[int, bytes]:
        """A window with those bytes, as many of them as the file has."""
        end = min(start + length, self._size)
        for at, window in enumerate(self._windows):
            first, data = window
            if first <= start and end <= first + len(data):
                if at:
                    self._windows.reverse()
                return window
        wanted = min(max(length, window_bytes), self._size - start)
        window = start, self._read(start, wanted) if wanted > 0 else b""
        self._windows = [window, *self._windows[:1]]
        return window

    def _is_closed(self, end: int, length: int) -> bool:
        """Whether the length stands at the end of the frame again, and the file or another block follows it."""
        # A window here also has the end of the footer, which is asked for when the frame is sound.
        self._window(end - _FOOTER_END_BYTES, _FOOTER_END_BYTES + FRAME_START_BYTES, WINDOW_BYTES)
        closing = self.at(end - LENGTH_BYTES, LENGTH_BYTES)
        if len(closing) < LENGTH_BYTES or int.from_bytes(closing, "big", signed=True) != length + len(MAGIC):
            return False
        return self._is_followed(end)

    def _is_followed(self, end: int) -> bool:
        following = self.at(end, len(MAGIC))
        return following == MAGIC or len(following) < len(MAGIC)

    def _ensure_not_version_0(self, start: int, end: int) -> None:
        """Blocks before version 1 have no length at their end. Torn ones of version 1 still say their version."""
        version = self.at(start + FRAME_START_BYTES, 4)
        if version == bytes(4) and self._is_followed(end):
            raise unsupported_version(0, self._path, start)

    def _parsed(self, start: int, end: int) -> LogBlock:
        """The block of a sound frame."""
        at = start + FRAME_START_BYTES
        version, number = struct.unpack(">ii", self._exactly(at, 8, start))
        kind = parse_kind(version, number, self._path, start)
        entries, at = self._entries(at + 8, end - LENGTH_BYTES - 4 - LENGTH_BYTES, start)
        header = parse_header(entries, self._path, start, self._schemas)
        (content_bytes,) = struct.unpack(">q", self._exactly(at, LENGTH_BYTES, start))
        content_start = at + LENGTH_BYTES
        if not 0 <= content_bytes <= end - _FOOTER_END_BYTES - content_start:
            raise self.damaged(start, f"has a block at {start} whose content of {content_bytes} bytes leaves it")
        _, at = self._entries(content_start + content_bytes, end - LENGTH_BYTES, start)
        if at != end - LENGTH_BYTES:
            raise self.damaged(start, f"has a block at {start} with {end - LENGTH_BYTES - at} bytes after its footer")
        content = self._exactly(content_start, content_bytes, start) if self._size <= WINDOW_BYTES else None
        return LogBlock(self._path, start, end - start, kind, header, content_start, content_bytes, content)

    def _entries(self, at: int, end: int, start: int) -> tuple[list[tuple[int, bytes]], int]:
        """Numbers and texts of the map at `at`, which must end at or before `end`; and where it ends."""
        (count,) = struct.unpack(">i", self._exactly(at, 4, start))
        at += 4
        if not 0 <= count <= MAX_HEADER_ENTRIES:
            raise self.damaged(start, f"has a block at {start} with {count} header entries")
        entries = []
        bound = min(end, at + MAX_HEADER_BYTES)
        for _ in range(count):
            number, length = struct.unpack(">ii", self._exactly(at, 8, start))
            at += 8
            if not 0 <= length <= bound - at:
                raise self.damaged(start, f"has a block at {start} with a header text of {length} bytes")
            entries.append((number, self._exactly(at, length, start)))
            at += length
        if at > end:
            raise self.damaged(start, f"has a block at {start} whose header leaves it")
        return entries, at

    def _exactly(self, at: int, length: int, start: int) -> bytes:
        data = self.at(at, length)
        if len(data) < length:
            raise self.damaged(start, f"ends inside the block at {start}")
        return data
