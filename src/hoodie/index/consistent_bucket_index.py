"""BUCKET with engine CONSISTENT_HASHING: ranges of hashes, which a table stores as one ring for each partition.

1. Rings are stored before files are written under their names. A ring whose file groups were replaced, or are replaced
   by this write, gets new names: a replaced file id never comes back.
2. The first ring of a partition is the same whoever makes it. A later one has the instant of its write and does not
   count until that has completed; then it is marked, since a timeline does not know of an instant for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hoodie.index.bucket_assignment import BucketIndexedWrite, bucket_numbers, slices_by_bucket
from hoodie.index.buckets import Buckets
from hoodie.index.hash_ring import HashNode, HashRing, first_ring, load_ring, mark_committed, store_ring
from hoodie.index.hash_values import KeyParts
from hoodie.index.keyed_rows import KeyedRows
from hoodie.index.write_index import IndexedTable, IndexTraits, PlainIndex, WrittenGroup

_SPOOLED_RANGES: Final = 64


@dataclass(frozen=True, slots=True)
class ConsistentBucketIndex(PlainIndex):
    """`count` ranges for the first ring of a partition, and what of a key is hashed."""

    traits: IndexTraits
    count: int
    parts: KeyParts

    def spool_order(self) -> Buckets:
        # Nobody knows the rings of the partitions yet: rows of a range lie together.
        return first_ring("", max(self.count, _SPOOLED_RANGES), self.parts)

    def begin(self, table: IndexedTable, rows: KeyedRows) -> ConsistentBucketIndexedWrite:
        """Raises:
        Invalid: the table has file groups that are of no ring. Corrupt: two of one bucket, or a damaged ring.
        """
        buckets: dict[str, Buckets] = {}
        new_rings: list[HashRing] = []
        for partition in rows.partitions:
            ring, is_new = self._ring(table, partition)
            buckets[partition] = ring
            if is_new:
                new_rings.append(ring)
        new_rings.extend(self._emptied(table, table.replaced.difference(rows.partitions)))
        numbers = bucket_numbers(table, rows, buckets)
        slices = slices_by_bucket(table, buckets)
        return ConsistentBucketIndexedWrite(table.handle.env, numbers, buckets, slices, table, tuple(new_rings))

    def _ring(self, table: IndexedTable, partition: str) -> tuple[HashRing, bool]:
        """The ring of a partition that gets rows, and whether it is to be stored."""
        ring = None if table.is_new else self._load(table, partition)
        if ring is None:
            return first_ring(partition, self.count, self.parts), True
        is_emptied = partition in table.replaced
        numbers = [
            number
            for number in range(ring.count)
            if is_emptied or table.view.is_replaced((partition, ring.file_id(number)))
        ]
        return (_renewed(table, ring, numbers), True) if numbers else (ring, False)

    def _emptied(self, table: IndexedTable, partitions: Collection[str]) -> Iterator[HashRing]:
        """The rings of partitions that lose all their file groups, with names that are free."""
        for partition in sorted(partitions):
            ring = self._load(table, partition)
            if ring is not None:
                yield _renewed(table, ring, range(ring.count))

    def _load(self, table: IndexedTable, partition: str) -> HashRing | None:
        completed = frozenset(instant.requested for instant in table.timeline.completed())
        live = {piece.file_id for piece in table.slices_of.get(partition, ())}
        return load_ring(table.handle.storage, partition, completed, live, self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class ConsistentBucketIndexedWrite(BucketIndexedWrite):
    """A `ConsistentBucketIndex` at work. `rings` have to be stored with this write."""

    table: IndexedTable
    rings: tuple[HashRing, ...]

    def before_write(self) -> None:
        """Stores the rings, which is nothing for a table that takes the place of another one: that one's are still
        there.
        """
        if not self.table.is_new:
            for ring in self.rings:
                store_ring(self.table.handle.storage, ring)

    def after_commit(self, groups: Sequence[WrittenGroup]) -> None:
        """Marks the rings of this write; stores those of a table that has taken the place of another one."""
        del groups
        storage = self.table.handle.storage
        for ring in self.rings:
            if self.table.is_new:
                store_ring(storage, ring)
            elif ring.instant == self.table.instant:
                mark_committed(storage, ring.partition, ring.instant)


def _renewed(table: IndexedTable, ring: HashRing, numbers: Collection[int]) -> HashRing:
    children = [HashNode(ring.nodes[n].value, table.handle.env.uuid(), "REPLACE") for n in sorted(numbers)]
    return ring.with_children(children, table.instant)
