"""Keys of the rows of a write, as its index is asked about them: all rows, or one of each key.

Keys of rows in memory are held by value; those of spooled rows are read where they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie.index import HeldKeys, KeySet, Positions
from hoodie.write.incoming import KEY, Incoming
from hoodie.write.plan import EMPTY, PartitionMap


@dataclass(frozen=True, slots=True)
class SpooledKeys:
    """Keys of the `kept` rows among `rows`, read where they are needed. `kept` ascends; None: of all rows."""

    rows: Incoming
    kept: Positions | None

    def load(self) -> tuple[pa.Array, Positions]:
        keys = self.rows.column_table([KEY]).column(KEY).combine_chunks()
        if self.kept is None:
            return keys, self.rows.positions()
        if len(self.kept) == self.rows.rows:
            return keys, self.kept
        # Positions of `rows` ascend, so a kept position is found by binary search.
        return keys.take(pa.array(np.searchsorted(self.rows.positions(), self.kept))), self.kept


def keys_of(rows: Incoming, kept: Positions | None) -> KeySet:
    """The keys of the `kept` rows among `rows`, in a form that carries no more than them to a worker."""
    spooled = SpooledKeys(rows.project([KEY]), kept)
    return HeldKeys(*spooled.load()) if rows.in_memory else spooled


@dataclass(frozen=True, slots=True, eq=False)
class IncomingKeys:
    """The keys of rows of `incoming`, as `KeyedRows`: of those at `chosen`, which ascend, or of all. Both are cut by
    partition path.
    """

    incoming: Incoming
    rows_of: Mapping[str, Incoming]
    chosen: Mapping[str, Positions] | None = None

    @property
    def in_memory(self) -> bool:
        return self.incoming.in_memory

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(self.rows_of if self.chosen is None else self.chosen)

    def __len__(self) -> int:
        return self.incoming.rows if self.chosen is None else sum(len(at) for at in self.chosen.values())

    def positions(self, partition: str) -> Positions:
        return self.rows_of[partition].positions() if self.chosen is None else self.chosen[partition]

    def keys(self, partition: str | None = None, at: Positions | None = None) -> KeySet:
        rows = self.incoming if partition is None else self.rows_of[partition]
        if at is not None:
            return keys_of(rows.holding(at), at)
        if self.chosen is None:
            return keys_of(rows, None)
        return keys_of(rows, _joined(self.chosen) if partition is None else self.chosen[partition])


def every_key(incoming: Incoming) -> IncomingKeys:
    """The keys of all rows."""
    return IncomingKeys(incoming, incoming.by_partition())


def load_keys(incoming: Incoming, partition: str | None) -> pa.Array | None:
    """The keys of the rows of a partition, or of all; None where there are none."""
    rows = incoming if partition is None else incoming.of(partition)
    return keys_of(rows, None).load()[0] if rows.parts else None


def _joined(chosen: Mapping[str, Positions]) -> Positions:
    return np.concatenate([EMPTY, *chosen.values()])


def partition_map(incoming: Incoming) -> PartitionMap:
    """Which partition path each position belongs to."""
    starts: dict[str, int] = {}
    for part in incoming.parts:
        starts.setdefault(part.partition, part.offset)
    return PartitionMap(tuple(starts), np.array(list(starts.values()), dtype=np.int64))


def chosen_keys(incoming: Incoming, partitions: PartitionMap, chosen: Positions) -> IncomingKeys:
    """The keys of the rows at the positions `chosen`, which ascend."""
    return IncomingKeys(incoming, incoming.by_partition(), partitions.split(chosen))
