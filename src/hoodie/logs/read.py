"""Blocks of a log file on storage, and the bytes of their contents.

1. Finding blocks reads frames only (`hoodie.spec.log_file`); a content is read when somebody asks for it.
2. Small files are read at once, and their blocks keep their contents.
3. A content is at most 2 GiB, the limit of the writers' own integers. Damage cannot ask for more than the file has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol

from hoodie.errors import Corrupt
from hoodie.spec import BlockKind, LogBlock, parse_log_file

MAX_CONTENT_BYTES: Final = (1 << 31) - 1


class RangeStorage(Protocol):
    """What is needed of a storage to read ranges."""

    def read_range(self, path: str, start: int, length: int) -> bytes: ...


def read_blocks(storage: RangeStorage, path: str, size_bytes: int) -> tuple[LogBlock, ...]:
    """Blocks of a file in file order. Damaged and cut off ones have the kind `CORRUPT`; contents are not read.

    `size_bytes` is the size to read up to: what was appended since the file was listed does not count.

    Raises:
        Corrupt: not a log file, or damaged in a way that no torn append leaves.
        Unsupported: a block of a later or very old release.
        Missing: no such file.
    """
    return parse_log_file(partial(storage.read_range, path), size_bytes, path)


def read_content(storage: RangeStorage, block: LogBlock) -> bytes:
    """All bytes of a block's content.

    Raises:
        Corrupt: larger than 2 GiB, or the file has become shorter.
    """
    if block.content_bytes > MAX_CONTENT_BYTES:
        raise damaged(block, f"holds {block.content_bytes} bytes, more than 2 GiB")
    if block.content is not None:
        return block.content
    content = storage.read_range(block.path, block.content_start, block.content_bytes)
    if len(content) != block.content_bytes:
        raise damaged(block, f"holds {block.content_bytes} bytes, and {len(content)} are left in the file")
    return content


def damaged(block: LogBlock, what: str) -> Corrupt:
    """The error for a block whose content is not what it should be; `what` continues "Log block ..."."""
    return Corrupt(
        f"{block.kind.name} block at byte {block.start} of {block.path} {what}",
        remedy="Restore the file from a copy, or roll back the commit that wrote it",
        path=block.path,
        offset=block.content_start,
    )


def cut_off(path: str, size_bytes: int, committed_bytes: int) -> Corrupt:
    """The error for a log file that is shorter than what was committed."""
    return Corrupt(
        f"Log file {path} has {size_bytes} bytes of the {committed_bytes} that were committed: rows are lost",
        remedy="Restore the file from a copy, or restore the table to an instant before it was written",
        path=path,
        offset=size_bytes,
    )


def ensure_sound(blocks: Sequence[LogBlock], committed_bytes: int) -> None:
    """Checks that the blocks of a file that are not damaged have as many bytes as were committed. Others are what
    writers left that died.

    Raises:
        Corrupt: they have fewer.
    """
    first = next((block for block in blocks if block.kind is BlockKind.CORRUPT), None)
    sound = sum(block.size_bytes for block in blocks if block.kind is not BlockKind.CORRUPT)
    if first is not None and sound < committed_bytes:
        raise Corrupt(
            f"Log file {first.path} is damaged at byte {first.start} ({first.size_bytes} bytes): rows are lost",
            remedy="Restore the file from a copy, or restore the table to an instant before it was written",
            path=first.path,
            offset=first.start,
        )
