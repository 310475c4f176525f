"""Reading small values from front to back, never beyond the end: what indexes, file info and trailer are made of.

1. All fixed-width integers are big-endian and signed.
2. Two variable-length integers occur: protobuf's (seven bits a byte, lowest first) and Hadoop's (a length byte).
3. Running over the end is `Corrupt` with the path and the place of the piece being read.

It does not know what the values mean.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from hoodie.errors import Corrupt
from hoodie.spec.avro_container import encode_varint

PLACE_BYTES: Final = 12

_PLACE: Final = struct.Struct(">qi")

_REMEDY = "It is damaged or was cut short: restore it from a copy, or roll back the commit that wrote it"


def corrupt(path: str, offset: int, what: str) -> Corrupt:
    """The error for damaged bytes at `offset` of the file at `path`."""
    return Corrupt(f"HFile {path}, offset {offset}: {what}", remedy=_REMEDY, path=path, offset=offset)


class Cursor:
    """A position in bytes that only moves forward. `offset` is where the bytes lie in the file, for errors."""

    __slots__ = ("_at", "_data", "_offset", "_path")

    def __init__(self, data: bytes, path: str, offset: int) -> None:
        self._data = data
        self._at = 0
        self._path = path
        self._offset = offset

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        end = self._at + length
        if length < 0 or end > len(self._data):
            raise corrupt(self._path, self._offset, f"{length} bytes wanted at {self._at} of {len(self._data)}")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def integer(self, length: int) -> int:
        """A big-endian signed integer of `length` bytes."""
        return int.from_bytes(self.take(length), "big", signed=True)

    def block_place(self) -> tuple[int, int]:
        """Offset and size of a block: eight and four bytes."""
        offset, size = _PLACE.unpack(self.take(PLACE_BYTES))
        return offset, size

    def protobuf_varint(self) -> int:
        """An unsigned integer of at most 64 bits."""
        number = 0
        for shift in range(0, 64, 7):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number & 0xFFFF_FFFF_FFFF_FFFF
        raise corrupt(self._path, self._offset, "a number is longer than 64 bits")

    def hadoop_vint(self) -> int:
        """A signed integer of at most 64 bits."""
        byte = self.take(1)[0]
        if byte < 0x80:
            return byte
        first = byte - 0x100
        if first >= -112:
            return first
        negative = first < -120
        number = int.from_bytes(self.take((-120 if negative else -112) - first), "big")
        return ~number if negative else number

    def protobuf_fields(self) -> Iterator[tuple[int, int | bytes]]:
        """Field numbers and values up to the end: integers, and bytes for everything that has a length or a width."""
        while not self.at_end:
            tag = self.protobuf_varint()
            match tag & 7:
                case 0:
                    yield tag >> 3, self.protobuf_varint()
                case 1:
                    yield tag >> 3, self.take(8)
                case 2:
                    yield tag >> 3, self.take(self.protobuf_varint())
                case 5:
                    yield tag >> 3, self.take(4)
                case other:
                    raise corrupt(self._path, self._offset, f"unknown protobuf wire type {other}")


def encode_protobuf_varint(number: int) -> bytes:
    """Protobuf's form of an integer; a negative one as its 64-bit two's complement."""
    return encode_varint(number & 0xFFFF_FFFF_FFFF_FFFF)


def encode_protobuf_field(field: int, value: int | bytes) -> bytes:
    """One field of a protobuf message: an integer as a varint, bytes with their length."""
    if isinstance(value, int):
        return encode_protobuf_varint(field << 3) + encode_protobuf_varint(value)
    return encode_protobuf_varint(field << 3 | 2) + encode_protobuf_varint(len(value)) + value


def encode_hadoop_vint(number: int) -> bytes:
    """Hadoop's form of an integer that is not negative."""
    if number <= 127:
        return bytes([number])
    length = (number.bit_length() + 7) // 8
    return (-112 - length).to_bytes(1, "big", signed=True) + number.to_bytes(length, "big")
