"""Where a key lives: from incoming record keys to file groups, base files and rows."""

from hoodie.index.buckets import Buckets, SimpleBuckets, ensure_one_count
from hoodie.index.hash_ring import (
    HashNode,
    HashRing,
    encode_children,
    first_ring,
    forget_rings,
    load_ring,
    mark_committed,
    parse_children,
    store_ring,
)
from hoodie.index.hash_values import KeyParts
from hoodie.index.kind import IndexKind, parse_index_kind
from hoodie.index.lookup import FileHits, KeySet, LookupTask, Positions, StitchedRows, find_in_file

__all__ = [
    "Buckets",
    "FileHits",
    "HashNode",
    "HashRing",
    "IndexKind",
    "KeyParts",
    "KeySet",
    "LookupTask",
    "Positions",
    "SimpleBuckets",
    "StitchedRows",
    "encode_children",
    "ensure_one_count",
    "find_in_file",
    "first_ring",
    "forget_rings",
    "load_ring",
    "mark_committed",
    "parse_children",
    "parse_index_kind",
    "store_ring",
]
