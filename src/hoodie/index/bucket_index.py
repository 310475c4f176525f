"""BUCKET: the index of one of the two engines, simple or consistent hashing; the one a table was made with, whatever
options say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.index.bucket_assignment import key_parts
from hoodie.index.consistent_bucket_index import ConsistentBucketIndex
from hoodie.index.hash_ring import forget_rings
from hoodie.index.index_kind import IndexKind
from hoodie.index.remembered_buckets import (
    BUCKET,
    BUCKET_COUNT,
    CONSISTENT_ENGINE,
    ENGINE,
    parse_remembered_buckets,
    planned_buckets,
)
from hoodie.index.simple_bucket_index import SimpleBucketIndex
from hoodie.index.write_index import IndexTraits
from hoodie.spec import TableConfig


def _make(traits: IndexTraits, config: Config, table: TableConfig) -> SimpleBucketIndex | ConsistentBucketIndex:
    traits = replace(traits, inserts_to_logs=True, tells_stored_keys=False, assigns_groups=True)
    buckets = parse_remembered_buckets(table.raw) or planned_buckets(config, table.record_key_fields)
    parts = key_parts(buckets, table)
    count = config.integer(BUCKET_COUNT) if buckets.count is None else buckets.count
    if buckets.engine == CONSISTENT_ENGINE:
        if not table.is_merge_on_read:
            raise Invalid(
                f"Table {table.name} is copy-on-write, and consistent hashing is for merge-on-read tables",
                remedy=f"Use {ENGINE}=SIMPLE, or make a merge-on-read table",
                key=ENGINE,
            )
        return ConsistentBucketIndex(traits, count, parts)
    has_fixed_ids = config.text("hoodie.write.concurrency.mode") == "NON_BLOCKING_CONCURRENCY_CONTROL"
    return SimpleBucketIndex(traits, count, parts, has_fixed_ids)


KINDS: Final = (IndexKind(BUCKET, _make, roll_back=forget_rings),)
