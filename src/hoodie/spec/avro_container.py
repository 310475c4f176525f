"""Avro object container files with one record, in the exact form Hudi gives them.

1. The header has one metadata entry, `avro.schema`. Hudi writes no `avro.codec`, so none is written here.
2. One block with one record, uncompressed, then the sync marker. The marker is the MD5 of the record, so equal
   values give equal bytes.
3. Reading goes by the schema in the file, within the limits of `avro_limits`. Of compressed blocks only deflated ones
   are read, which Hudi does not write either, and they may become `MAX_INFLATED_BYTES` large.

It does not know which schema an action uses. A worked example with offsets: `docs/format/commit-metadata.md`.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Mapping
from functools import cache
from itertools import islice
from typing import Any

import fastavro

from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.spec.avro_limits import ensure_values_take_bytes
from hoodie.spec.avro_schemas import AvroGeneration, AvroSchema, schema

MAGIC = b"Obj\x01"
MAX_INFLATED_BYTES = 64 << 20
"""Size of a deflated block that is read."""


def is_container(data: bytes) -> bool:
    """Whether the bytes start like an Avro object container file."""
    return data[: len(MAGIC)] == MAGIC


def encode_container(name: str, record: Mapping[str, Any], generation: AvroGeneration = "1.x") -> bytes:
    """A container file holding `record` under the schema `name`. Absent optional fields take their defaults.

    Raises:
        Invalid: the record does not fit the schema.
    """
    wanted = schema(name, generation)
    body = encode_record(wanted, record)
    header = io.BytesIO()
    for part in (b"avro.schema", wanted.text.encode()):
        header.write(encode_long(len(part)) + part)
    sync = hashlib.md5(body, usedforsecurity=False).digest()
    block = encode_long(1) + encode_long(len(body)) + body
    return MAGIC + encode_long(1) + header.getvalue() + encode_long(0) + sync + block + sync


def encode_record(wanted: AvroSchema, record: Mapping[str, Any]) -> bytes:
    """The bare Avro binary of `record`, without a container.

    Raises:
        Invalid: the record does not fit the schema.
    """
    buffer = io.BytesIO()
    try:
        fastavro.schemaless_writer(buffer, _parsed(wanted.text), record)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise Invalid(f"Record does not fit the Avro schema {wanted.name}: {error}", schema=wanted.name) from error
    return buffer.getvalue()


def parse_container(data: bytes, path: str) -> tuple[str, dict[str, Any]]:
    """Bare record name and the one record of a container file.

    Raises:
        Corrupt: not a container file, cut off, damaged, or without exactly one record.
        Unsupported: compressed in a way that Hudi does not use.
    """
    if not is_container(data):
        raise Corrupt(f"{path} is not an Avro container file", remedy=_REMEDY, path=path, offset=0)
    try:
        stream = io.BytesIO(data)
        reader = fastavro.reader(stream)
        writer_schema: Any = reader.writer_schema
        ensure_values_take_bytes(writer_schema)
        codec = str(reader.metadata.get("avro.codec", "null"))
        if codec == "deflate":
            _ensure_moderate(data, stream.tell())
        elif codec != "null":
            raise Unsupported(
                f"{path} is compressed with {codec[:40]!r}",
                remedy="Write it without compression, as Hudi does",
                path=path,
            )
        records = list(islice(reader, 2))
        name = str(writer_schema["name"]).rpartition(".")[2]
    except Unsupported:
        raise
    except Exception as error:  # fastavro raises many kinds on damaged bytes
        raise Corrupt(f"{path} is a damaged Avro file: {error}", remedy=_REMEDY, path=path) from error
    if len(records) != 1 or not isinstance(records[0], dict):
        raise Corrupt(f"{path} does not hold one record", remedy=_REMEDY, path=path)
    return name, records[0]


def encode_long(number: int) -> bytes:
    """Avro's variable-length zig-zag form of an integer."""
    return encode_varint((number << 1) ^ (number >> 63))


def encode_varint(number: int) -> bytes:
    """A number that is not negative in groups of seven bits, the lowest first: what Avro, Thrift and Protobuf share."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append((number & 0x7F) | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _ensure_moderate(data: bytes, at: int) -> None:
    """Checks that no block from `at` on becomes too large once it is inflated."""
    while at < len(data):
        _, at = _parse_long(data, at)
        size, at = _parse_long(data, at)
        if not 0 <= size <= len(data) - at:
            raise ValueError(f"a block of {size} bytes at {at}")
        inflated = zlib.decompressobj(-15).decompress(data[at : at + size], MAX_INFLATED_BYTES + 1)
        if len(inflated) > MAX_INFLATED_BYTES:
            raise ValueError(f"the block at {at} has more than {MAX_INFLATED_BYTES} bytes")
        at += size + _SYNC_BYTES


def _parse_long(data: bytes, at: int) -> tuple[int, int]:
    """A number in Avro's form, and where it ends."""
    number = shift = 0
    while shift < 64:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
    raise ValueError(f"a number at {at} has too many bytes")


_SYNC_BYTES = 16
_REMEDY = "Restore the file from a copy, or roll the instant back"


@cache
def _parsed(text: str) -> Any:
    return fastavro.parse_schema(json.loads(text))
