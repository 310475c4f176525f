"""One block: a header of 33 bytes, compressed content, checksums.

1. The header says how long the block is on storage (with checksums), how long the compressed content is, and how long
   it is before compression. All three are checked before anything is decompressed, and content is bounded: by
   `MAX_BLOCK_BYTES` for entries and meta data, by `MAX_INDEX_BYTES` for the rest.
2. Content ends at the uncompressed size. (Hudi's own reader takes off the size of the checksums once more and so loses
   entries at the end of large blocks; a block with one checksum of four bytes loses nothing, so that is what we write.)
3. Checksums are not verified, as in Hudi: the gzip stream has one of its own. We write type 0 (none) and zeros.

It does not know what content means. Layout: docs/format/hfile.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hoodie.hfile.codec import Codec, compress, decompress, decompress_pieces
from hoodie.hfile.cursor import corrupt

DATA: Final = b"DATABLK*"
META: Final = b"METABLKc"
ROOT_INDEX: Final = b"IDXROOT2"
INTERMEDIATE_INDEX: Final = b"IDXINTE2"
LEAF_INDEX: Final = b"IDXLEAF2"
FILE_INFO: Final = b"FILEINF2"

HEADER_BYTES: Final = 33
MAX_BLOCK_BYTES: Final = 256 * 1024 * 1024
MAX_INDEX_BYTES: Final = 64 * 1024 * 1024

_HEADER: Final = struct.Struct(">8siiqBii")
_NO_CHECKSUM: Final = 0
_CHECKSUM_BYTES: Final = 4
# One checksum covers this many bytes: more than any block has, so there is one.
_BYTES_PER_CHECKSUM: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """Kind of a block and its sizes in bytes: on storage, up to the end of the compressed content (both with the
    header), and of the content.
    """

    magic: bytes
    stored_bytes: int
    data_bytes: int
    content_bytes: int


def parse_header(data: memoryview, path: str, offset: int) -> BlockHeader:
    """The header at the front of `data`, which lies at `offset` of the file.

    Raises:
        Corrupt: cut short, or its sizes contradict each other or are out of bounds.
    """
    if len(data) < HEADER_BYTES:
        raise corrupt(path, offset, f"a block header of {HEADER_BYTES} bytes is cut short to {len(data)}")
    magic, rest_bytes, content_bytes, _, _, _, data_bytes = _HEADER.unpack_from(data)
    stored_bytes = rest_bytes + HEADER_BYTES
    limit_bytes = MAX_BLOCK_BYTES if magic in (DATA, META) else MAX_INDEX_BYTES
    if not HEADER_BYTES <= data_bytes <= stored_bytes or not 0 <= content_bytes <= limit_bytes:
        raise corrupt(path, offset, f"a block of {stored_bytes} bytes with {data_bytes} of data, {content_bytes} raw")
    return BlockHeader(magic, stored_bytes, data_bytes, content_bytes)


def parse_block(data: memoryview, magic: bytes, codec: Codec, path: str, offset: int) -> tuple[bytes, int]:
    """Content of the block at the front of `data`, and how many bytes the block takes there.

    Raises:
        Corrupt: another kind of block than `magic`, cut short, or damaged.
    """
    header = _expected_header(data, magic, path, offset)
    try:
        content = decompress(codec, data[HEADER_BYTES : header.data_bytes], header.content_bytes)
    except ValueError as error:
        raise corrupt(path, offset, f"a block's content is damaged: {error}") from error
    return content, header.stored_bytes


def iter_block(data: memoryview, magic: bytes, codec: Codec, path: str, offset: int) -> Iterator[bytes]:
    """Content of the same block in pieces. What is behind the last piece that was asked for is not looked at.

    Raises:
        Corrupt: as `parse_block`.
    """
    header = _expected_header(data, magic, path, offset)
    try:
        yield from decompress_pieces(codec, data[HEADER_BYTES : header.data_bytes], header.content_bytes)
    except ValueError as error:
        raise corrupt(path, offset, f"a block's content is damaged: {error}") from error


def encode_block(magic: bytes, content: bytes | memoryview, codec: Codec, level: int, previous: int = -1) -> bytes:
    """A block; `previous` is the offset of the block of the same kind before it, -1 for the first."""
    packed = compress(codec, content, level)
    data_bytes = HEADER_BYTES + len(packed)
    checksums = bytes(_CHECKSUM_BYTES)
    rest_bytes = len(packed) + len(checksums)
    header = _HEADER.pack(magic, rest_bytes, len(content), previous, _NO_CHECKSUM, _BYTES_PER_CHECKSUM, data_bytes)
    return header + packed + checksums


def _expected_header(data: memoryview, magic: bytes, path: str, offset: int) -> BlockHeader:
    header = parse_header(data, path, offset)
    if header.magic != magic:
        raise corrupt(path, offset, f"a block starts with {header.magic!r} instead of {magic!r}")
    if header.stored_bytes > len(data):
        raise corrupt(path, offset, f"a block of {header.stored_bytes} bytes is cut short to {len(data)}")
    return header
