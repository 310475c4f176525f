"""Keys of metadata records: short hashes of names, and the two texts a secondary key is made of.

1. Columns and partitions are named by xxHash64 (with a seed of Hudi's own), files by MD5, both in standard base64. A
   key of several parts is their texts in a row, so keys of one column, or of one partition of it, have one beginning.
2. The table's root as a partition is `.` in keys; everywhere else here it is `""`.
3. In a secondary key `\\` stands before `\\`, `$` and NUL; the first bare `$` ends the value. A NULL value is one bare
   NUL.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Corrupt
from hoodie.metadata.partitions import ROOT_PARTITION
from hoodie.spec.hash_id import hash_id

ALL_PARTITIONS: Final = "__all_partitions__"
EXPRESSION_PARTITION_STATS: Final = "__partition_stat__"
HASH_CHARS: Final = 12

_NULL: Final = "\0"
_SEPARATOR: Final = "$"
_TO_ESCAPE: Final = r"([\\$\x00])"
_ESCAPED: Final = re.compile(r"([\\$\x00])")
_UNESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_SECONDARY: Final = re.compile(r"((?:[^\\$]|\\.)*)\$(.*)", re.DOTALL)


@functools.lru_cache(maxsize=100_000)
def name_hash(name: str) -> str:
    """The 12 characters that stand for a column or partition in keys."""
    return base64.b64encode(hash_id(name, 64).to_bytes(8, "big")).decode("ascii")


def partition_hash(partition: str) -> str:
    """The 12 characters that stand for a partition path."""
    return name_hash(partition or ROOT_PARTITION)


def file_hash(name: str) -> str:
    """The 24 characters that stand for a file name."""
    return base64.b64encode(hashlib.md5(name.encode(), usedforsecurity=False).digest()).decode("ascii")


def files_key(partition: str) -> str:
    """The key of a partition's files."""
    return partition or ROOT_PARTITION


def partition_of(files_key: str) -> str:
    """The partition path that a key of `files`, or a name in its list of partitions, stands for."""
    return "" if files_key == ROOT_PARTITION else files_key


def column_stats_key(column: str, partition: str, file_name: str) -> str:
    """The key of a column's statistics in one file."""
    return name_hash(column) + partition_hash(partition) + file_hash(file_name)


def partition_stats_key(column: str, partition: str) -> str:
    """The key of a column's statistics in one partition."""
    return name_hash(column) + partition_hash(partition)


def bloom_filter_key(partition: str, file_name: str) -> str:
    """The key of a base file's bloom filter."""
    return partition_hash(partition) + file_hash(file_name)


def secondary_prefix(value: str | None) -> str:
    """What keys of a secondary index begin with for a value (its text): the value, escaped, and `$`."""
    return f"{_NULL if value is None else _escape(value)}$"


def secondary_key(value: str | None, record_key: str) -> str:
    """The key of one row in a secondary index."""
    return secondary_prefix(value) + _escape(record_key)


def secondary_keys(values: pa.Array, record_keys: pa.Array) -> pa.Array:
    """The keys of many rows in a secondary index: `secondary_key` of texts (null: NULL) and record keys."""
    escaped, rows = (pc.replace_substring_regex(texts, _TO_ESCAPE, r"\\\1") for texts in (values, record_keys))
    return pc.binary_join_element_wise(pc.fill_null(escaped, _NULL), rows, _SEPARATOR)


def parse_secondary_key(key: str, path: str) -> tuple[str | None, str]:
    """Value and record key of a key in a secondary index.

    Raises:
        Corrupt: there is no bare `$` in it.
    """
    match = _SECONDARY.fullmatch(key)
    if match is None:
        raise Corrupt(
            f"{path} has a key without its separator: {key[:100]!r}",
            remedy="Drop the index and build it again",
            path=path,
        )
    value = None if match[1] == _NULL else _UNESCAPED.sub(r"\1", match[1])
    return value, _UNESCAPED.sub(r"\1", match[2])


def _escape(text: str) -> str:
    return _ESCAPED.sub(r"\\\1", text)
