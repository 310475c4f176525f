"""How blocks are compressed: the codecs by their number in the trailer.

1. A block is compressed as a unit. Its size before compression is known from its header; anything else than exactly
   that many bytes is an error, found before more than one byte too many was made.
2. GZ is one gzip member and BZIP2 one bzip2 stream. ZSTD is a plain stream of frames.
3. SNAPPY and LZ4 come in Hadoop's framing: `int32 raw size`, then chunks `int32 size, bytes` until that many raw bytes
   are there; again from the start until the block is full.
4. LZO has no open decoder here and is refused. Written are GZ and NONE only: Hudi 1.x reads no others.

It does not know blocks or files: errors are `ValueError`, the caller adds the place.
"""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final

import pyarrow as pa

from hoodie.errors import Invalid, Unsupported
from hoodie.spec.gunzip import GZIP_WINDOW, gunzip, gunzip_pieces

_PIECE_BYTES: Final = 32 * 1024


class Codec(IntEnum):
    """A compression by its number in the trailer."""

    LZO = 0
    GZ = 1
    NONE = 2
    SNAPPY = 3
    LZ4 = 4
    BZIP2 = 5
    ZSTD = 6


def codec_of(number: int, path: str) -> Codec:
    """The codec with this number.

    Raises:
        Unsupported: nobody knows the number, or there is no decoder for it.
    """
    name = f"codec number {number}"
    if number in tuple(Codec):
        codec = Codec(number)
        if codec in _DECOMPRESSORS:
            return codec
        name = codec.name
    raise Unsupported(
        f"HFile {path} is compressed with {name}",
        remedy="Write it with hoodie.hfile.compression.algorithm=GZ",
        path=path,
    )


def decompress(codec: Codec, data: memoryview, size_bytes: int) -> bytes:
    """The `size_bytes` bytes that `data` holds.

    Raises:
        ValueError: `data` is damaged, or holds more or fewer bytes.
    """
    content = _DECOMPRESSORS[codec](data, size_bytes)
    if len(content) != size_bytes:
        raise ValueError(f"{len(content)} bytes came out of it instead of {size_bytes}")
    return content


def decompress_pieces(codec: Codec, data: memoryview, size_bytes: int) -> Iterator[bytes]:
    """The same from front to back, in pieces: who has seen enough need not ask for the rest (of GZ).

    Raises:
        ValueError: as `decompress`; what is wrong with the rest is not found before it is asked for.
    """
    if codec is not Codec.GZ:
        yield decompress(codec, data, size_bytes)
        return
    yield from gunzip_pieces((data[at : at + _PIECE_BYTES] for at in range(0, len(data), _PIECE_BYTES)), size_bytes)


def compress(codec: Codec, content: bytes | memoryview, level: int) -> bytes:
    """`content` as a block stores it. `level`: 1 (quick) to 9 (small), for GZ.

    Raises:
        Invalid: not GZ or NONE.
    """
    match codec:
        case Codec.GZ:
            deflater = zlib.compressobj(level, zlib.DEFLATED, GZIP_WINDOW)
            return deflater.compress(content) + deflater.flush()
        case Codec.NONE:
            return bytes(content)
        case _:
            raise Invalid(f"HFiles are not written with {codec.name}", remedy="Use GZ or NONE, which all readers know")


def _stored(data: memoryview, size_bytes: int) -> bytes:
    del size_bytes
    return bytes(data)


def _bunzip2(data: memoryview, size_bytes: int) -> bytes:
    decoder = bz2.BZ2Decompressor()
    try:
        content = decoder.decompress(data, size_bytes + 1)
    except OSError as error:
        raise ValueError(str(error)) from error
    if not decoder.eof:
        raise ValueError("the bzip2 stream goes on or is cut short")
    return content


def _unzstd(data: memoryview, size_bytes: int) -> bytes:
    try:
        with pa.CompressedInputStream(pa.py_buffer(data), "zstd") as stream:
            return bytes(stream.read(size_bytes + 1))
    except (OSError, pa.ArrowException) as error:
        raise ValueError(str(error)) from error


def _unframe(data: memoryview, size_bytes: int, unpack: Callable[[memoryview, int], bytes]) -> bytes:
    """Hadoop's block framing undone. `unpack(chunk, most)` gives a chunk's raw bytes, at most `most`."""
    parts: list[bytes] = []
    made = at = 0
    while at < len(data):
        wanted = made + int.from_bytes(data[at : at + 4], "big")
        at += 4
        if wanted > size_bytes:
            raise ValueError(f"a frame goes up to byte {wanted} of {size_bytes}")
        while made < wanted:
            length = int.from_bytes(data[at : at + 4], "big")
            at += 4
            if length == 0 or at + length > len(data):
                raise ValueError(f"a chunk of {length} bytes at {at} of {len(data)}")
            parts.append(unpack(data[at : at + length], wanted - made))
            made += len(parts[-1])
            at += length
    return b"".join(parts)


def _unsnappy(chunk: memoryview, most: int) -> bytes:
    # The raw size stands in front as a varint; pyarrow does not say how many bytes it made.
    size = shift = 0
    for byte in chunk[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if not 0 < size <= most:
        raise ValueError(f"a snappy chunk of {size} bytes where {most} are left")
    try:
        return bytes(pa.decompress(chunk, size, "snappy", asbytes=True))
    except (OSError, pa.ArrowException) as error:
        raise ValueError(str(error)) from error


def _unlz4(chunk: memoryview, most: int) -> bytes:
    # The raw size stands nowhere, so it is added up first; pyarrow does not say how many bytes it made.
    try:
        size = _lz4_raw_bytes(chunk)
        if not 0 < size <= most:
            raise ValueError(f"an lz4 chunk of {size} bytes where {most} are left")
        return bytes(pa.decompress(chunk, size, "lz4_raw", asbytes=True))
    except (IndexError, OSError, pa.ArrowException) as error:
        raise ValueError(f"a damaged lz4 chunk: {error}") from error


def _lz4_raw_bytes(chunk: memoryview) -> int:
    """The size an LZ4 block has after decompression: the literals and matches of all its sequences."""
    size = at = 0
    while True:
        token = chunk[at]
        literals, at = _lz4_length(chunk, token >> 4, at + 1)
        size += literals
        at += literals
        if at >= len(chunk):
            return size
        match, at = _lz4_length(chunk, token & 15, at + 2)
        size += match + 4


def _lz4_length(chunk: memoryview, nibble: int, at: int) -> tuple[int, int]:
    """A length that begins in a nibble and goes on in bytes from `at` when that is full; and what comes after it."""
    length = nibble
    more = nibble == 15
    while more:
        length += chunk[at]
        more = chunk[at] == 255
        at += 1
    return length, at


_DECOMPRESSORS: Final[dict[Codec, Callable[[memoryview, int], bytes]]] = {
    Codec.GZ: gunzip,
    Codec.NONE: _stored,
    Codec.SNAPPY: lambda data, size: _unframe(data, size, _unsnappy),
    Codec.LZ4: lambda data, size: _unframe(data, size, _unlz4),
    Codec.BZIP2: _bunzip2,
    Codec.ZSTD: _unzstd,
}
