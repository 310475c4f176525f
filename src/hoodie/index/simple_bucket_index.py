"""BUCKET with engine SIMPLE: a fixed number of buckets in every partition."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.index.bucket_assignment import BucketIndexedWrite, bucket_numbers, slices_by_bucket
from hoodie.index.buckets import Buckets, SimpleBuckets, ensure_one_count
from hoodie.index.hash_values import KeyParts
from hoodie.index.keyed_rows import KeyedRows
from hoodie.index.write_index import IndexedTable, IndexTraits, PlainIndex


@dataclass(frozen=True, slots=True)
class SimpleBucketIndex(PlainIndex):
    """`count` buckets, and what of a key is hashed. With `fixed_ids` writers that do not wait for each other give a
    bucket the same file id.
    """

    traits: IndexTraits
    count: int
    parts: KeyParts
    fixed_ids: bool

    def spool_order(self) -> Buckets:
        return SimpleBuckets(self.count, self.parts)

    def begin(self, table: IndexedTable, rows: KeyedRows) -> BucketIndexedWrite:
        """Raises:
        Unsupported: partitions have numbers of buckets of their own.
        Invalid: the table has file groups that are none of these buckets. Corrupt: two of one bucket.
        """
        if not table.is_new and rows.partitions:
            ensure_one_count(table.handle.storage)
        buckets = {
            partition: SimpleBuckets(self.count, self.parts, self._has_fixed_ids(table, partition))
            for partition in rows.partitions
        }
        numbers = bucket_numbers(table, rows, buckets)
        return BucketIndexedWrite(table.handle.env, numbers, buckets, slices_by_bucket(table, buckets))

    def _has_fixed_ids(self, table: IndexedTable, partition: str) -> bool:
        """Whether new groups get the ids all writers agree on: not where replaced groups have used them up."""
        is_used_up = partition in table.replaced or any(where == partition for where, _ in table.view.replaced)
        return self.fixed_ids and not is_used_up
