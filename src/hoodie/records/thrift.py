"""Thrift's compact protocol, as much as parquet's metadata needs: structs as numbered fields, read and written.

1. Nothing is named: a struct is a dict of field numbers, each with a kind and a value; what fields mean is known by the
   caller. So a struct that is read and written again keeps what nobody knows.
2. Lists are a kind and their values. Sets look the same; maps do not occur in parquet.
3. Bytes that are no such value raise `NoThrift`: depth and counts are bounded by the bytes there are.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from hoodie.spec.avro_container import encode_varint

TRUE: Final = 1
FALSE: Final = 2
BYTE: Final = 3
I16: Final = 4
I32: Final = 5
I64: Final = 6
DOUBLE: Final = 7
BINARY: Final = 8
LIST: Final = 9
SET: Final = 10
STRUCT: Final = 12

_MAX_DEPTH: Final = 32
_LONG_LIST: Final = 15
_MAX_SHIFT: Final = 63
_DOUBLE: Final = struct.Struct("<d")


class NoThrift(ValueError):
    """The bytes are no value of the compact protocol."""


class Field(NamedTuple):
    """A value and its kind: int, bool, float, bytes, `Struct` or `Listed`."""

    kind: int
    value: Any


class Listed(NamedTuple):
    """The values of a list, all of one kind."""

    kind: int
    values: list[Any]


Struct = dict[int, Field]

_new = tuple.__new__
"""Makes a `Field` without the call in Python that its class makes."""


def parse_struct(data: bytes, last: int = 0) -> Struct:
    """The struct at the front of `data`; with `last` only its fields up to this number, as far as they are in order.

    Raises:
        NoThrift: it is none, or cut short.
    """
    return parse_struct_at(data, 0, last)[0]


def parse_struct_at(data: bytes | memoryview, at: int, last: int = 0) -> tuple[Struct, int]:
    """The struct that begins at a place of `data`, and where it ends, or where the field `last` does.

    Raises:
        NoThrift: it is none, or cut short.
    """
    try:
        return _struct(data, at, 0, last)
    except (IndexError, struct.error) as error:
        raise NoThrift("cut short") from error


def encode_struct(fields: Struct) -> bytes:
    """The bytes of a struct."""
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


def _struct(data: bytes | memoryview, at: int, depth: int, last: int = 0) -> tuple[Struct, int]:
    """A struct and where it ends. Footers have thousands of values, so numbers of one byte are read in place."""
    if depth > _MAX_DEPTH:
        raise NoThrift("too deep")
    found: Struct = {}
    number = 0
    while not last or number < last:
        head = data[at]
        at += 1
        if head == 0:
            break
        kind = head & 0x0F
        if head >> 4:
            number += head >> 4
        else:
            number, at = _signed(data, at)
        if kind in (I32, I64):
            byte = data[at]
            if byte < 0x80:
                found[number] = _new(Field, (kind, (byte >> 1) ^ -(byte & 1)))
                at += 1
                continue
        if kind in (TRUE, FALSE):
            found[number] = Field(kind, kind == TRUE)
        else:
            value, at = _value(data, at, kind, depth)
            found[number] = _new(Field, (kind, value))
    return found, at


def _value(data: bytes | memoryview, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """A value and where it ends."""
    if kind in (I16, I32, I64):
        return _signed(data, at)
    if kind == BINARY:
        length, at = _unsigned(data, at)
        if length > len(data) - at:
            raise NoThrift("cut short")
        return data[at : at + length], at + length
    if kind == STRUCT:
        return _struct(data, at, depth + 1)
    if kind in (LIST, SET):
        return _list(data, at, depth + 1)
    if kind in (BYTE, TRUE, FALSE):
        return data[at], at + 1
    if kind == DOUBLE:
        return _DOUBLE.unpack_from(data, at)[0], at + _DOUBLE.size
    raise NoThrift(f"kind {kind}")


def _list(data: bytes | memoryview, at: int, depth: int) -> tuple[Listed, int]:
    head = data[at]
    count, kind = head >> 4, head & 0x0F
    at += 1
    if count == _LONG_LIST:
        count, at = _unsigned(data, at)
    if count > len(data) - at or depth > _MAX_DEPTH:
        raise NoThrift("a list longer than its bytes")
    values = []
    for _ in range(count):
        value, at = _value(data, at, kind, depth)
        values.append(value)
    return Listed(kind, values), at


def _unsigned(data: bytes | memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift > _MAX_SHIFT:
            raise NoThrift("a number of more than 64 bits")


def _signed(data: bytes | memoryview, at: int) -> tuple[int, int]:
    number, at = _unsigned(data, at)
    return (number >> 1) ^ -(number & 1), at


def _write_struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for number, (kind, value) in sorted(fields.items()):
        step = number - last
        if 0 < step <= 15:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _write_signed(out, number)
        last = number
        if kind not in (TRUE, FALSE):
            _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in (I16, I32, I64):
        _write_signed(out, value)
    elif kind == BINARY:
        out += encode_varint(len(value))
        out += value
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind in (LIST, SET):
        count = len(value.values)
        out.append(min(count, _LONG_LIST) << 4 | value.kind)
        if count >= _LONG_LIST:
            out += encode_varint(count)
        for item in value.values:
            _write_value(out, value.kind, item)
    elif kind == DOUBLE:
        out += _DOUBLE.pack(value)
    else:
        out.append(value)


def _write_signed(out: bytearray, number: int) -> None:
    out += encode_varint((number << 1) ^ (number >> 63) if number < 0 else number << 1)
