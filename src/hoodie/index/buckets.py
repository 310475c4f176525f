"""Bucket indexes: the bucket of a key, and with it the file group, follow from the key itself.

1. *Simple*: the number of buckets is fixed; bucket = hash of the hash fields' values modulo that number, and a file id
   begins with it, eight digits wide. The table does not store the number: who writes or asks must know it.
2. *Consistent*: a partition has ranges of hashes, each with a file group of its own; they stand in JSON files below
   `.hoodie/.bucket_index`, the newest one of a completed resize counts.
3. The values hashed are those of the key fields, taken from the record key: of `a:1,b:2` the parts behind the colons,
   of any other key all of it. Hash fields other than all key fields are not known here.

Hashes are Java's `List.hashCode` of the values, and xxHash of their joined text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import Corrupt
from hoodie.records.string_hash import java_hashes
from hoodie.records.xxhash import xxhash32
from hoodie.spec.keys import HOODIE_DIR
from hoodie.storage import Storage

CONSISTENT_DIR = f"{HOODIE_DIR}/.bucket_index/consistent_hashing_metadata"
FIRST_HASHING = "00000000000000"

_HASHING_FILE = re.compile(r"([0-9]+)\.hashing_meta")
_POSITIVE = np.int64(0x7FFF_FFFF)
_PART = re.compile(r",?([^,:]+):")

Buckets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HashRanges:
    """The file groups of one partition: hashes up to `ends[i]` belong to the group whose file id begins with
    `prefixes[i]`; those above the last to the first.
    """

    ends: tuple[int, ...]
    prefixes: tuple[str, ...]

    def prefixes_of(self, keys: pa.StringArray) -> frozenset[str]:
        """How the file ids begin that may hold these keys."""
        joined = pa.array(["".join(hash_values(key)) for key in keys.to_pylist()], pa.string())
        hashes = xxhash32(joined).astype(np.int64) & _POSITIVE
        places = np.searchsorted(np.array(self.ends, dtype=np.int64), hashes, side="left") % len(self.ends)
        return frozenset(self.prefixes[place] for place in np.unique(places).tolist())


def simple_buckets(keys: pa.StringArray, count: int) -> Buckets:
    """The bucket of each key, 0 to `count` - 1."""
    values = [hash_values(key) for key in keys.to_pylist()]
    hashes = np.ones(len(values), dtype=np.int64)
    for at in range(max((len(parts) for parts in values), default=0)):
        has = np.array([len(parts) > at for parts in values])
        texts = pa.array([parts[at] for parts in values if len(parts) > at], pa.string())
        hashes[has] = (31 * hashes[has] + java_hashes(texts).astype(np.int64)) & 0xFFFF_FFFF
    return (hashes & _POSITIVE) % count


def bucket_of_file(file_id: str) -> int | None:
    """The bucket a file id names; None for one that names none."""
    return int(file_id[:8]) if len(file_id) > 8 and file_id[:8].isascii() and file_id[:8].isdigit() else None


def hash_values(key: str) -> list[str]:
    """The values in a record key, as Hudi takes them apart: a value may hold commas, a name neither comma nor colon."""
    if "," not in key or ":" not in key:
        return [key]
    found = list(_PART.finditer(key))
    ends = [*(one.start() for one in found[1:]), len(key)]
    return [key[one.end() : end] for one, end in zip(found, ends, strict=True)]


def load_hash_ranges(storage: Storage, partition: str) -> HashRanges | None:
    """The ranges of a partition with consistent hashing; None for one without.

    Raises:
        Corrupt: the newest file of them is damaged.
    """
    folder = f"{CONSISTENT_DIR}/{partition}" if partition else CONSISTENT_DIR
    names = [file.path.rpartition("/")[2] for file in storage.list_dir(folder).files]
    found = {match[1] for name in names if (match := _HASHING_FILE.fullmatch(name))}
    # A resize counts when it is marked as committed; unmarked ones are not settled.
    settled = {instant for instant in found if instant == FIRST_HASHING or f"{instant}.commit" in names}
    if not found or settled != found:
        return None
    path = f"{folder}/{max(settled)}.hashing_meta"
    try:
        nodes = sorted((int(one["value"]), str(one["fileIdPrefix"])) for one in json.loads(storage.read(path))["nodes"])
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"{path} is no hashing metadata", remedy="Restore the file from a copy", path=path) from error
    if not nodes:
        raise Corrupt(f"{path} has no ranges", remedy="Restore the file from a copy", path=path)
    return HashRanges(tuple(value for value, _ in nodes), tuple(prefix for _, prefix in nodes))
