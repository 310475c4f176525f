"""Where the rows of a write belong in a table with a bucket index, and which file groups are there for them.

1. Every incoming row has a bucket; a partition has at most one live file group for it. New rows go to the group of
   their bucket, whatever its size, or to a new group whose file id says the bucket.
2. The number of simple buckets is not stored. A file group that is none of the buckets the options speak of is refused:
   going on would store keys twice.
3. Rings of hash ranges are stored before files are written under their names. A ring whose file groups were replaced,
   or are replaced by this write, gets new names: a replaced file id never comes back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hoodie.engine import Engine, TaskId
from hoodie.errors import Corrupt, Invalid
from hoodie.index import (
    Buckets,
    HashNode,
    HashRing,
    Positions,
    SimpleBuckets,
    ensure_one_count,
    first_ring,
    load_ring,
    mark_committed,
    store_ring,
)
from hoodie.view import FileSlice, View
from hoodie.write.incoming import KEY, Incoming
from hoodie.write.job import Write
from hoodie.write.options import BucketOptions
from hoodie.write.plan import Placement, PlannedFile

_UNKNOWN = -1
_SPOOLED_RANGES = 64


@dataclass(frozen=True, slots=True, eq=False)
class BucketHomes:
    """`numbers` has the bucket of every incoming row, by position. `slices` are the live file groups by partition and
    bucket, `rings` those hash rings that have to be stored with this write.
    """

    numbers: Positions
    buckets: Mapping[str, Buckets]
    slices: Mapping[tuple[str, int], FileSlice]
    rings: tuple[HashRing, ...]

    def split(self, positions: Positions) -> dict[int, Positions]:
        """Positions of one partition by bucket, in their order."""
        numbers = self.numbers[positions]
        order = np.argsort(numbers, kind="stable")
        found, starts = np.unique(numbers[order], return_index=True)
        pieces = np.split(positions[order], starts[1:])
        return dict(zip(found.tolist(), pieces, strict=True))


@dataclass(frozen=True, slots=True)
class _NumberTask:
    rows: Incoming
    buckets: Buckets


def load_homes(write: Write, asked: BucketOptions, incoming: Incoming, view: View, engine: Engine) -> BucketHomes:
    """The homes of all incoming rows.

    Raises:
        Invalid: the table has file groups that are none of these buckets.
        Unsupported: partitions have numbers of simple buckets of their own.
        Corrupt: two live file groups for one bucket.
    """
    if not asked.consistent and write.overwritten is None:
        ensure_one_count(write.handle.storage)
    buckets: dict[str, Buckets] = {}
    rings: list[HashRing] = []
    live = view.slices_at()
    by_partition: dict[str, list[FileSlice]] = {}
    for one in live:
        by_partition.setdefault(one.partition, []).append(one)
    for partition in incoming.partitions:
        if not asked.consistent:
            buckets[partition] = SimpleBuckets(asked.count, asked.parts, _has_fixed_ids(write, asked, partition, view))
            continue
        ring, is_new = _ring(write, asked, partition, by_partition.get(partition, ()), view)
        buckets[partition] = ring
        if is_new:
            rings.append(ring)
    keys = incoming.project([KEY])
    tasks = [_NumberTask(keys.of(partition), buckets[partition]) for partition in incoming.partitions]
    found = (write.engines.local if incoming.in_memory else engine).run(_numbers, tasks, "buckets")
    numbers = np.concatenate(found) if found else np.empty(0, dtype=np.int64)
    slices: dict[tuple[str, int], FileSlice] = {}
    if write.options.replaces == "nothing":
        for partition in incoming.partitions:
            slices |= _by_number(partition, by_partition.get(partition, ()), buckets[partition])
    return BucketHomes(numbers, buckets, slices, tuple(rings))


def renewed_rings(write: Write, asked: BucketOptions, partitions: Collection[str], view: View) -> tuple[HashRing, ...]:
    """The rings of partitions whose file groups this write all replaces, with names that are free."""
    found = []
    for partition in partitions:
        ring = _load(write, asked, partition, [one for one in view.slices_at() if one.partition == partition])
        if ring is not None:
            found.append(_renewed(write, ring, frozenset(range(ring.count))))
    return tuple(found)


def spool_buckets(asked: BucketOptions) -> Buckets:
    """How rows of the input lie apart before anybody knows their partitions' rings: by simple bucket, or by range of
    hashes.
    """
    if not asked.consistent:
        return SimpleBuckets(asked.count, asked.parts)
    return first_ring("", max(asked.count, _SPOOLED_RANGES), asked.parts)


def store_rings(write: Write, rings: Sequence[HashRing]) -> None:
    """Store rings before anything is written under their names. One of this write's instant counts once it completed.

    Nothing for a table that takes the place of another one, whose rings are still there.
    """
    for ring in rings if write.overwritten is None else ():
        store_ring(write.handle.storage, ring)


def settle_rings(write: Write, rings: Sequence[HashRing]) -> None:
    """Mark the rings of this write, which has completed: the timeline will not know of it for ever."""
    for ring in rings:
        if write.overwritten is not None:
            store_ring(write.handle.storage, ring)
        elif ring.instant == write.instant:
            mark_committed(write.handle.storage, ring.partition, ring.instant)


def plan_bucket_files(
    placement: Placement, homes: BucketHomes, uuids: Sequence[str], *, to_logs: bool
) -> tuple[PlannedFile, ...]:
    """All files to write: changed slices, with the new rows of their buckets, and groups for buckets that had none.

    With `to_logs` new rows of a bucket are told apart from changes of stored ones by nobody but the reader. `uuids` has
    a fresh one for every new group there may be.
    """
    changed = {file.slice.group_id: file for file in placement.files if file.slice is not None}
    fresh: list[PlannedFile] = []
    for partition, positions in placement.inserts.items():
        for number, rows in homes.split(positions).items():
            one = homes.slices.get((partition, number))
            if one is None:
                file_id = homes.buckets[partition].new_file_id(number, uuids[len(fresh)])
                fresh.append(PlannedFile(partition, None, insert_positions=rows, new_file_id=file_id))
                continue
            file = changed.get(one.group_id, PlannedFile(partition, one))
            if to_logs:
                file = replace(
                    file,
                    update_rows=np.append(file.update_rows, np.full(len(rows), _UNKNOWN, dtype=np.int64)),
                    update_positions=np.append(file.update_positions, rows),
                )
            else:
                file = replace(file, insert_positions=rows)
            changed[one.group_id] = file
    return (*changed.values(), *fresh)


def _numbers(_: TaskId, task: _NumberTask) -> Positions:
    keys = task.rows.column_table([KEY]).column(KEY)
    flat = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    return task.buckets.numbers(flat)


def _by_number(partition: str, slices: Sequence[FileSlice], buckets: Buckets) -> dict[tuple[str, int], FileSlice]:
    found: dict[tuple[str, int], FileSlice] = {}
    for one in slices:
        number = buckets.number_of(one.file_id)
        if number is None:
            raise Invalid(
                f"File group {one.file_id} of partition {partition!r} is none of the {buckets.count} buckets of the "
                "index",
                remedy="Write with the index the table was made with; a bucket index keeps engine and "
                "hoodie.bucket.index.num.buckets for ever",
                file_id=one.file_id,
            )
        if (partition, number) in found:
            raise Corrupt(
                f"Partition {partition!r} has two file groups of bucket {number}: {one.file_id} and "
                f"{found[partition, number].file_id}",
                remedy="Rewrite the partition (insert_overwrite)",
                path=one.paths[0],
            )
        found[partition, number] = one
    return found


def _ring(
    write: Write, asked: BucketOptions, partition: str, live: Sequence[FileSlice], view: View
) -> tuple[HashRing, bool]:
    """The ring of a partition, and whether it is to be stored."""
    ring = None if write.overwritten is not None else _load(write, asked, partition, live)
    if ring is None:
        return first_ring(partition, asked.count, asked.parts), True
    if write.options.replaces != "nothing":
        gone = frozenset(range(ring.count))
    else:
        gone = frozenset(n for n in range(ring.count) if view.is_replaced((partition, ring.file_id(n))))
    return (_renewed(write, ring, gone), True) if gone else (ring, False)


def _has_fixed_ids(write: Write, asked: BucketOptions, partition: str, view: View) -> bool:
    """Whether new groups get the ids all writers agree on: not where groups were replaced, whose ids are used up."""
    return (
        asked.fixed_ids
        and write.options.replaces == "nothing"
        and not any(where == partition for where, _ in view.replaced)
    )


def _load(write: Write, asked: BucketOptions, partition: str, live: Sequence[FileSlice]) -> HashRing | None:
    completed = frozenset(one.requested for one in write.timeline.completed())
    return load_ring(write.handle.storage, partition, completed, {one.file_id for one in live}, asked.parts)


def _renewed(write: Write, ring: HashRing, numbers: Collection[int]) -> HashRing:
    children = [HashNode(ring.nodes[n].value, write.handle.env.uuid(), "REPLACE") for n in sorted(numbers)]
    return ring.with_children(children, write.instant)
