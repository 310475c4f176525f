"""Where a key lives: from incoming record keys to file groups, base files and rows."""

from hoodie.index.buckets import Buckets, SimpleBuckets, ensure_one_count, load_count_rules
from hoodie.index.consistent_bucket_index import ConsistentBucketIndex
from hoodie.index.hash_ring import (
    HashNode,
    HashRing,
    encode_children,
    first_ring,
    load_ring,
    mark_committed,
    parse_children,
    store_ring,
)
from hoodie.index.hash_values import KeyParts
from hoodie.index.index_kinds import (
    has_buckets,
    parse_write_index,
    remembered_index,
    rewrite_follower,
    roll_back_indexes,
)
from hoodie.index.key_lookup import FileHits, LookupTask, StitchedRows, find_in_file
from hoodie.index.keyed_rows import HeldKeys, KeyedRows, KeySet, Positions
from hoodie.index.located_keys import LOCATIONS, located
from hoodie.index.remembered_buckets import RememberedBuckets, bucket_differences, parse_remembered_buckets
from hoodie.index.write_index import (
    Assignment,
    Candidate,
    FollowsRewrites,
    IndexedTable,
    IndexedWrite,
    IndexTraits,
    MovedFile,
    PlainIndex,
    PlainIndexedWrite,
    RollsBack,
    WriteIndex,
    WrittenGroup,
    group_by_partition,
)

__all__ = [
    "LOCATIONS",
    "Assignment",
    "Buckets",
    "Candidate",
    "ConsistentBucketIndex",
    "FileHits",
    "FollowsRewrites",
    "HashNode",
    "HashRing",
    "HeldKeys",
    "IndexTraits",
    "IndexedTable",
    "IndexedWrite",
    "KeyParts",
    "KeySet",
    "KeyedRows",
    "LookupTask",
    "MovedFile",
    "PlainIndex",
    "PlainIndexedWrite",
    "Positions",
    "RememberedBuckets",
    "RollsBack",
    "SimpleBuckets",
    "StitchedRows",
    "WriteIndex",
    "WrittenGroup",
    "bucket_differences",
    "encode_children",
    "ensure_one_count",
    "find_in_file",
    "first_ring",
    "group_by_partition",
    "has_buckets",
    "load_count_rules",
    "load_ring",
    "located",
    "mark_committed",
    "parse_children",
    "parse_remembered_buckets",
    "parse_write_index",
    "remembered_index",
    "rewrite_follower",
    "roll_back_indexes",
    "store_ring",
]
