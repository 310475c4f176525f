"""Which slices of a table with a bucket index may hold some keys: those of the keys' buckets.

1. What a table remembers of its index goes before what a caller says of it.
2. A number of simple buckets that a file name disproves is not believed: nothing is left out then. Neither is one that
   a table remembers, where it also has rules for other numbers.
3. A file id that a ring names has one range of hashes for ever: any ring of the partition tells it. What no ring names
   may hold every key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.index import (
    Buckets,
    KeyParts,
    SimpleBuckets,
    ensure_one_count,
    load_count_rules,
    load_ring,
    parse_remembered_buckets,
)
from hoodie.slices import SliceRead
from hoodie.spec import TableConfig
from hoodie.storage import Storage
from hoodie.timeline import Timeline


@dataclass(frozen=True, slots=True)
class BucketHint:
    """What a caller knows of a table's bucket index, where the table does not remember it: the number of buckets of a
    simple one, and which fields are hashed when they are not all fields of the key.
    """

    count: int | None = None
    hash_fields: tuple[str, ...] = ()


def slices_of_keys(  # noqa: PLR0917
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    slices: Sequence[SliceRead],
    keys: pa.StringArray,
    hint: BucketHint,
) -> tuple[SliceRead, ...]:
    """The slices whose bucket one of the keys has, and those of which it is not known. Lists the rings of each
    partition, unless buckets are known to be simple.

    Raises:
        Unsupported: the hint has a number of buckets, and partitions have numbers of their own.
    """
    known = parse_remembered_buckets(config.raw)
    count, hashed = (hint.count, hint.hash_fields) if known is None else (known.count, known.hash_fields)
    parts = KeyParts(config.record_key_fields, hashed or config.record_key_fields)
    if not count:
        return _in_rings(storage, timeline, slices, keys, parts)
    if known is None:
        ensure_one_count(storage)
    buckets = SimpleBuckets(count, parts)
    is_disproved = any(buckets.number_of(part.file_id) is None for part in slices)
    if is_disproved or (known is not None and load_count_rules(storage)):
        return tuple(slices)
    return _in_buckets(slices, buckets, keys)


def _in_rings(
    storage: Storage, timeline: Timeline, slices: Sequence[SliceRead], keys: pa.StringArray, parts: KeyParts
) -> tuple[SliceRead, ...]:
    completed = frozenset(instant.requested for instant in timeline.completed())
    possible: list[SliceRead] = []
    for partition in sorted({part.partition for part in slices}):
        inside = [part for part in slices if part.partition == partition]
        live = frozenset(part.file_id for part in inside)
        ring = load_ring(storage, partition, completed, live, parts) if len(inside) > 1 else None
        possible += inside if ring is None else _in_buckets(inside, ring, keys)
    return tuple(possible)


def _in_buckets(slices: Sequence[SliceRead], buckets: Buckets, keys: pa.StringArray) -> tuple[SliceRead, ...]:
    possible = {None, *buckets.numbers(keys).tolist()}
    return tuple(part for part in slices if buckets.number_of(part.file_id) in possible)
