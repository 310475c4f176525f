"""What a file says about itself: names and values, `PBUF` and a protobuf message of pairs.

1. Names are text, values bytes whose form depends on the name.
2. HBase writes the names in order, Hudi's own writer in any order; we write them in order.

It does not check values, except those that decide whether entries can be read (`ensure_plain_entries`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.errors import Unsupported
from hoodie.hfile.cursor import Cursor, corrupt, encode_protobuf_field, encode_protobuf_varint

SCHEMA: Final = "schema"
LAST_KEY: Final = "hfile.LASTKEY"
AVG_KEY_BYTES: Final = "hfile.AVG_KEY_LEN"
AVG_VALUE_BYTES: Final = "hfile.AVG_VALUE_LEN"
CREATED: Final = "hfile.CREATE_TIME_TS"
ENTRY_VERSION: Final = "KEY_VALUE_VERSION"
MAX_MEMSTORE_TIME: Final = "MAX_MEMSTORE_TS_KEY"
MIN_RECORD_KEY: Final = "minRecordKey"
MAX_RECORD_KEY: Final = "maxRecordKey"
BLOOM_TYPE: Final = "bloomFilterTypeCode"

_MAGIC: Final = b"PBUF"
_TAGS: Final = "hfile.MAX_TAGS_LEN"
_ENCODING: Final = "DATA_BLOCK_ENCODING"


def parse_file_info(content: bytes, path: str, offset: int) -> Mapping[str, bytes]:
    """The pairs. Of a name that occurs twice the last one counts.

    Raises:
        Corrupt: it is not of this form.
    """
    cursor = Cursor(content, path, offset)
    if cursor.take(len(_MAGIC)) != _MAGIC:
        raise corrupt(path, offset, "the file info does not start with PBUF")
    message = cursor.take(cursor.protobuf_varint())
    pairs: dict[str, bytes] = {}
    for field, pair in Cursor(message, path, offset).protobuf_fields():
        if field != 1 or isinstance(pair, int):
            raise corrupt(path, offset, f"the file info has a field {field}")
        parts = dict(Cursor(pair, path, offset).protobuf_fields())
        name, value = parts.get(1, b""), parts.get(2, b"")
        if isinstance(name, int) or isinstance(value, int):
            raise corrupt(path, offset, "the file info has a pair of other things than bytes")
        pairs[name.decode(errors="replace")] = value
    return pairs


def encode_file_info(pairs: Mapping[str, bytes]) -> bytes:
    """The content of the block."""
    message = b"".join(
        encode_protobuf_field(1, encode_protobuf_field(1, name.encode()) + encode_protobuf_field(2, pairs[name]))
        for name in sorted(pairs)
    )
    return _MAGIC + encode_protobuf_varint(len(message)) + message


def ensure_plain_entries(info: Mapping[str, bytes], path: str) -> None:
    """Checks that entries have the one form Hudi writes.

    Raises:
        Unsupported: entries have tags, an encoding, versions of their own, or no version byte.
    """
    odd = {
        _TAGS: _TAGS in info,
        _ENCODING: info.get(_ENCODING, b"NONE") != b"NONE",
        ENTRY_VERSION: int.from_bytes(info.get(ENTRY_VERSION, b""), "big") != 1,
        MAX_MEMSTORE_TIME: int.from_bytes(info.get(MAX_MEMSTORE_TIME, b""), "big") != 0,
    }
    for name in (name for name, is_odd in odd.items() if is_odd):
        raise Unsupported(
            f"HFile {path} has entries of a form that Hudi does not write: {name} is {info.get(name)!r}",
            remedy="Write it with Hudi",
            path=path,
        )
