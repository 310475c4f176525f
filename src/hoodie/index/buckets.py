"""Bucket indexes: the bucket of a key, and with it the file group, follow from the key itself.

1. *Simple*: the number of buckets is fixed; bucket = hash of the hash fields' values modulo that number, and a file id
   begins with it, eight digits wide. Tables of ours remember the number (`remembered_buckets`); of others, who writes
   or asks must know it. Hudi 1.1 and later can have other numbers for some partitions, which are refused where the
   table stores these rules.
2. *Consistent*: a partition has ranges of hashes, each with a file group of its own (`hash_ring`).
3. A partition has at most one live file group for a bucket.

The hash is Java's `List.hashCode` of the values. Pages: docs/format/bucket-index.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Unsupported
from hoodie.index.hash_values import EVERY_PART, KeyParts, value_groups
from hoodie.records import java_hashes
from hoodie.spec import bucket_file_id
from hoodie.spec.keys import HOODIE_DIR
from hoodie.storage import Storage

COUNT_RULES_DIR: Final = f"{HOODIE_DIR}/.bucket_index/partition_bucket_index_meta/configs"

_POSITIVE: Final = np.int64(0x7FFF_FFFF)
_FIXED_UUID: Final = "00000000-0000-0000-0000-000000000000"

Numbers = npt.NDArray[np.int64]


class Buckets(Protocol):
    """The buckets of one partition, numbered from 0."""

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    def numbers(self, keys: pa.StringArray) -> Numbers:
        """The bucket of each key."""
        ...

    def number_of(self, file_id: str) -> int | None:
        """The bucket of a file group; None for a group that is none of these buckets."""
        ...

    def new_file_id(self, number: int, uuid: str) -> str:
        """The file id of a bucket that has no file group; `uuid` is a fresh one, for ids with something random."""
        ...


def load_count_rules(storage: Storage) -> list[str]:
    """Paths of the rules by which partitions have numbers of simple buckets of their own (Hudi's
    `PartitionBucketIndexHashingConfig`).
    """
    return [file.path for file in storage.list_dir(COUNT_RULES_DIR).files if file.path.endswith(".hashing_config")]


def ensure_one_count(storage: Storage) -> None:
    """Refuses tables whose partitions have numbers of simple buckets of their own.

    Raises:
        Unsupported: the table stores such rules.
    """
    rules = load_count_rules(storage)
    if rules:
        raise Unsupported(
            "Partitions of this table have bucket counts of their own, which hoodie does not know yet",
            remedy="Write it with Apache Hudi; look keys up without hoodie.bucket.index.num.buckets",
            path=rules[0],
        )


@dataclass(frozen=True, slots=True)
class SimpleBuckets:
    """A fixed number of buckets. With `fixed_ids` writers that know nothing of each other agree on file ids."""

    count: int
    parts: KeyParts = EVERY_PART
    fixed_ids: bool = False

    def numbers(self, keys: pa.StringArray) -> Numbers:
        hashes = np.empty(len(keys), dtype=np.int64)
        for group in value_groups(keys, self.parts):
            found = np.ones(len(group.rows), dtype=np.int64)
            for column in group.columns:
                found = (31 * found + _hashes(column)) & 0xFFFF_FFFF
            hashes[group.rows] = found
        return (hashes & _POSITIVE) % self.count

    def number_of(self, file_id: str) -> int | None:
        found = bucket_of_file(file_id)
        return found if found is not None and found < self.count else None

    def new_file_id(self, number: int, uuid: str) -> str:
        return bucket_file_id(number, _FIXED_UUID if self.fixed_ids else uuid)


def bucket_of_file(file_id: str) -> int | None:
    """The bucket a file id names; None for one that names none."""
    return int(file_id[:8]) if len(file_id) > 8 and file_id[:8].isascii() and file_id[:8].isdigit() else None


def _hashes(values: pa.StringArray) -> Numbers:
    hashes = java_hashes(pc.fill_null(values, "") if values.null_count else values).astype(np.int64)
    if values.null_count:
        hashes[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return hashes
