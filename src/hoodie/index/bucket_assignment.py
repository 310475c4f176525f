"""Assignment of rows to buckets: the file group of a key follows from the key, so nothing is searched.

1. Every incoming row has a bucket; a partition has at most one live file group for it. New rows go to the group of
   their bucket, whatever its size, or to a new group whose file id says the bucket.
2. A file group that is none of the buckets the options speak of is refused: going on would store keys twice.
3. It is certain of the group, not of the key: whether log files have a key it does not tell.

It is what both bucket indexes (`simple_bucket_index`, `consistent_bucket_index`) have in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hoodie.engine import TaskId
from hoodie.env import Env
from hoodie.errors import Corrupt, Invalid
from hoodie.index.buckets import Buckets
from hoodie.index.hash_values import KeyParts
from hoodie.index.keyed_rows import HeldKeys, KeyedRows, KeySet, Positions
from hoodie.index.remembered_buckets import BUCKET_COUNT, HASH_FIELD, RememberedBuckets
from hoodie.index.write_index import Assignment, Candidate, IndexedTable, PlainIndexedWrite
from hoodie.spec import TableConfig
from hoodie.view import FileSlice


@dataclass(frozen=True, slots=True, eq=False)
class BucketIndexedWrite(PlainIndexedWrite):
    """A bucket index at work. `numbers` has the bucket of every incoming row, by position; `slices` are the live file
    groups by partition and bucket.
    """

    env: Env
    numbers: Positions
    buckets: Mapping[str, Buckets]
    slices: Mapping[tuple[str, int], FileSlice]

    def tag(self, asked: KeyedRows) -> list[Candidate]:
        found: list[Candidate] = []
        for partition in asked.partitions:
            held = HeldKeys(*asked.keys(partition).load()) if asked.in_memory else None
            for number, wanted in self._by_bucket(asked.positions(partition)).items():
                piece = self.slices.get((partition, number))
                if piece is not None:
                    keys: KeySet = asked.keys(partition, wanted) if held is None else held.at(wanted)
                    found.append(Candidate(piece, keys, wanted))
        return found

    def assign(self, inserts: Mapping[str, Positions]) -> list[Assignment]:
        found: list[Assignment] = []
        for partition, positions in inserts.items():
            for number, rows in self._by_bucket(positions).items():
                piece = self.slices.get((partition, number))
                named = None if piece else self.buckets[partition].new_file_id(number, self.env.uuid())
                found.append(Assignment(partition, rows, piece, named))
        return found

    def _by_bucket(self, positions: Positions) -> dict[int, Positions]:
        """Positions of one partition by bucket, in their order."""
        numbers = self.numbers[positions]
        order = np.argsort(numbers, kind="stable")
        found, starts = np.unique(numbers[order], return_index=True)
        return dict(zip(found.tolist(), np.split(positions[order], starts[1:]), strict=True))


def key_parts(asked: RememberedBuckets, table: TableConfig) -> KeyParts:
    """Which fields of the key are hashed.

    Raises:
        Invalid: the key has no fields, or not those.
    """
    fields = table.record_key_fields
    if not fields:
        raise Invalid(
            f"Table {table.name} makes its keys automatically, so no bucket can be found again",
            remedy="Make the table with hoodie.datasource.write.recordkey.field, or leave hoodie.index.type out",
        )
    strange = [name for name in asked.hash_fields if name not in fields]
    if strange:
        raise Invalid(
            f"{HASH_FIELD} names {', '.join(strange)}, which the record key does not have",
            remedy=f"Use some of {', '.join(fields)}",
            key=HASH_FIELD,
        )
    return KeyParts(fields, asked.hash_fields)


def bucket_numbers(table: IndexedTable, rows: KeyedRows, buckets: Mapping[str, Buckets]) -> Positions:
    """The bucket of every row, by position."""
    tasks = [_NumberTask(rows.keys(partition), buckets[partition]) for partition in rows.partitions]
    found = (table.local if rows.in_memory else table.spread).run(_numbers, tasks, "buckets")
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def slices_by_bucket(table: IndexedTable, buckets: Mapping[str, Buckets]) -> dict[tuple[str, int], FileSlice]:
    """The live file groups that are not replaced, by partition and bucket.

    Raises:
        Invalid: one is none of the buckets. Corrupt: two are of the same bucket.
    """
    found: dict[tuple[str, int], FileSlice] = {}
    for piece in table.slices:
        partition = piece.partition
        if partition not in buckets or partition in table.replaced:
            continue
        number = buckets[partition].number_of(piece.file_id)
        if number is None:
            raise Invalid(
                f"File group {piece.file_id} of partition {partition!r} is none of the {buckets[partition].count} "
                "buckets of the index",
                remedy="Write with the index the table was made with; a bucket index keeps engine and "
                f"{BUCKET_COUNT} for ever",
                file_id=piece.file_id,
            )
        if (partition, number) in found:
            raise Corrupt(
                f"Partition {partition!r} has two file groups of bucket {number}: {piece.file_id} and "
                f"{found[partition, number].file_id}",
                remedy="Rewrite the partition (insert_overwrite)",
                path=piece.paths[0],
            )
        found[partition, number] = piece
    return found


@dataclass(frozen=True, slots=True)
class _NumberTask:
    keys: KeySet
    buckets: Buckets


def _numbers(_: TaskId, task: _NumberTask) -> Positions:
    return task.buckets.numbers(task.keys.load()[0])
