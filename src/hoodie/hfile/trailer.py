"""The last 4096 bytes of a file: where the rest is, how much of it, and how it is compressed.

1. `TRABLK"$`, a protobuf message with its length in front, zeros, and four bytes of version: minor, then major as three
   bytes. Only major version 3 is read and written.
2. Counts and offsets are checked against the file's size before anybody uses them.
3. A message without a codec means no compression. A file with encryption is refused.

Example: docs/format/hfile.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hoodie.errors import Unsupported
from hoodie.hfile.block import HEADER_BYTES
from hoodie.hfile.codec import Codec, codec_of
from hoodie.hfile.cursor import Cursor, corrupt, encode_protobuf_field, encode_protobuf_varint

TRAILER_BYTES: Final = 4096
MAX_INDEX_LEVELS: Final = 8

_MAGIC: Final = b'TRABLK"$'
_MAJOR_VERSION: Final = 3
_MINOR_VERSION: Final = 3
_COMPARATOR: Final = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"


@dataclass(frozen=True, slots=True)
class Trailer:
    """Offsets from the start of the file, sizes before compression, and counts.

    `load_on_open_offset`: where the root index stands, followed by the meta index. `data_index_count`: entries of the
    root index, which are data blocks when `index_levels` is 1. `first_data_offset` is -1 in a file without entries.
    """

    file_info_offset: int
    load_on_open_offset: int
    data_index_bytes: int
    total_bytes: int
    data_index_count: int
    meta_index_count: int
    entry_count: int
    index_levels: int
    first_data_offset: int
    last_data_offset: int
    codec: Codec


def parse_trailer(data: bytes, size_bytes: int, path: str, offset: int) -> Trailer:
    """The trailer of a file of `size_bytes`; `data` is the last 4096 of them, `offset` where they lie.

    Raises:
        Corrupt: not a trailer, or one that cannot be true for a file of this size.
        Unsupported: another major version, an unknown codec, or encryption.
    """
    cursor = Cursor(data, path, offset)
    if cursor.take(len(_MAGIC)) != _MAGIC:
        raise corrupt(path, offset, "no HFile trailer here")
    major = int.from_bytes(data[-3:], "big")
    if major != _MAJOR_VERSION:
        raise Unsupported(f"HFile {path} has major version {major}", remedy="Only version 3 is known", path=path)
    message = cursor.take(cursor.protobuf_varint())
    fields = dict(Cursor(message, path, offset).protobuf_fields())
    if fields.get(13):
        raise Unsupported(f"HFile {path} is encrypted", remedy="Write it without encryption", path=path)

    def number(field: int, default: int = 0) -> int:
        value = fields.get(field, default)
        if not isinstance(value, int):
            raise corrupt(path, offset, f"field {field} of the trailer is no number")
        return value - (1 << 64) if value >> 63 else value

    trailer = Trailer(
        file_info_offset=number(1),
        load_on_open_offset=number(2),
        data_index_bytes=number(3),
        total_bytes=number(4),
        data_index_count=number(5),
        meta_index_count=number(6),
        entry_count=number(7),
        index_levels=number(8, 1),
        first_data_offset=number(9, -1),
        last_data_offset=number(10, -1),
        codec=codec_of(number(12, Codec.NONE), path),
    )
    if not _is_possible(trailer, size_bytes - TRAILER_BYTES):
        raise corrupt(path, offset, f"the trailer cannot be true for {size_bytes} bytes: {trailer}")
    return trailer


def encode_trailer(trailer: Trailer) -> bytes:
    """The 4096 bytes."""
    values: tuple[tuple[int, int | bytes], ...] = (
        (1, trailer.file_info_offset),
        (2, trailer.load_on_open_offset),
        (3, trailer.data_index_bytes),
        (4, trailer.total_bytes),
        (5, trailer.data_index_count),
        (6, trailer.meta_index_count),
        (7, trailer.entry_count),
        (8, trailer.index_levels),
        (9, trailer.first_data_offset),
        (10, trailer.last_data_offset),
        (11, _COMPARATOR),
        (12, trailer.codec),
    )
    message = b"".join(encode_protobuf_field(field, value) for field, value in values)
    front = _MAGIC + encode_protobuf_varint(len(message)) + message
    version = bytes([_MINOR_VERSION]) + _MAJOR_VERSION.to_bytes(3, "big")
    return front.ljust(TRAILER_BYTES - len(version), b"\0") + version


def _is_possible(trailer: Trailer, end: int) -> bool:
    # An index has an entry for each block; how many entries a block has can only be counted.
    counts = (trailer.data_index_count, trailer.meta_index_count, trailer.entry_count)
    return (
        max(trailer.data_index_count, trailer.meta_index_count) * HEADER_BYTES <= trailer.load_on_open_offset
        and 0 <= trailer.load_on_open_offset <= trailer.file_info_offset < end
        and all(0 <= count < 1 << 40 for count in counts)
        and 0 <= trailer.index_levels <= MAX_INDEX_LEVELS
    )
