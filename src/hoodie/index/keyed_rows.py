"""The keys of incoming rows, as an index is asked about them: by partition path and position, loadable on a worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

Positions = np.ndarray[tuple[int], np.dtype[np.int64]]


class KeySet(Protocol):
    """Keys of incoming rows, loadable where a task runs. Pickled, it carries no more than it has to."""

    def load(self) -> tuple[pa.Array, Positions]:
        """Keys (string, no nulls) and, aligned with them, the position of the row of each, ascending."""
        ...


@dataclass(frozen=True, slots=True)
class HeldKeys:
    """Keys of some incoming rows by value. `positions` is aligned with `keys` and ascends."""

    keys: pa.Array
    positions: Positions

    def load(self) -> tuple[pa.Array, Positions]:
        return self.keys, self.positions

    def at(self, positions: Positions) -> HeldKeys:
        """The keys of some of the rows."""
        return HeldKeys(self.keys.take(pa.array(np.searchsorted(self.positions, positions))), positions)


class KeyedRows(Protocol):
    """Rows of one write, each with a key, a partition path and a position. Positions number the rows of the write by
    partition path: those of one path are consecutive.
    """

    @property
    def in_memory(self) -> bool:
        """Whether the keys can be had without reading spool files."""
        ...

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partition paths that have rows, in the order of their positions."""
        ...

    def __len__(self) -> int: ...

    def positions(self, partition: str) -> Positions:
        """Positions of the rows of a partition path, ascending."""
        ...

    def keys(self, partition: str | None = None, at: Positions | None = None) -> KeySet:
        """The keys of all rows, of those of one partition path, or of those of them at the positions `at`."""
        ...
