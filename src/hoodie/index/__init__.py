"""Where a key lives: from incoming record keys to file groups, base files and rows."""

from hoodie.index.buckets import Buckets, SimpleBuckets, ensure_one_count
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
from hoodie.index.index_kinds import parse_write_index, remembered_index, rewrite_follower, roll_back_indexes
from hoodie.index.key_lookup import FileHits, LookupTask, StitchedRows, find_in_file
from hoodie.index.keyed_rows import HeldKeys, KeyedRows, KeySet, Positions
from hoodie.index.located_keys import LOCATIONS, located
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
    "RollsBack",
    "SimpleBuckets",
    "StitchedRows",
    "WriteIndex",
    "WrittenGroup",
    "encode_children",
    "ensure_one_count",
    "find_in_file",
    "first_ring",
    "group_by_partition",
    "load_ring",
    "located",
    "mark_committed",
    "parse_children",
    "parse_write_index",
    "remembered_index",
    "rewrite_follower",
    "roll_back_indexes",
    "store_ring",
]
