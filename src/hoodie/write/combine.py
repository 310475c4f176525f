"""Combine before write: of several incoming rows with one key keep one.

1. Rows compete within their partition path, or in the whole input when keys are unique in the table (global index).
2. With ordering fields the largest ordering value wins, a later row wins a tie; without them the last row wins.
3. The answer is positions only; rows that lost stay where they are and are never written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie.engine import Engine, TaskId
from hoodie.index import Positions
from hoodie.records import newest
from hoodie.write.incoming import KEY, Incoming


@dataclass(frozen=True, slots=True)
class CombineTask:
    """Rows that compete with each other. `ordering` names columns that decide; empty: the last row wins."""

    rows: Incoming
    ordering: tuple[str, ...]


def plan_combine(incoming: Incoming, ordering: tuple[str, ...], *, whole_input: bool) -> tuple[CombineTask, ...]:
    """One task for each set of competing rows."""
    scopes: Iterable[Incoming] = (incoming,) if whole_input else (incoming.of(name) for name in incoming.partitions)
    return tuple(CombineTask(scope, ordering) for scope in scopes)


def run_combine(tasks: tuple[CombineTask, ...], engine: Engine) -> Positions:
    """Positions to keep, ascending."""
    kept = engine.run(keep_newest, tasks, "combine")
    return np.sort(np.concatenate(kept)) if kept else np.empty(0, dtype=np.int64)


def keep_newest(_: TaskId, task: CombineTask) -> Positions:
    """Positions of the winners among the task's rows, ascending."""
    table = task.rows.column_table(list(dict.fromkeys([KEY, *task.ordering])))
    winners = newest(table.column(KEY), [table.column(name) for name in task.ordering])
    return task.rows.positions()[winners]


@dataclass(frozen=True, slots=True)
class KeptKeys:
    """Keys of the kept rows among `rows`: the `KeySet` an index lookup takes along. `kept` is ascending."""

    rows: Incoming
    kept: Positions

    def load(self) -> tuple[pa.Array, Positions]:
        keys = self.rows.column_table([KEY]).column(KEY).combine_chunks()
        if isinstance(keys, pa.ChunkedArray):
            keys = pa.concat_arrays(keys.chunks) if keys.num_chunks else pa.array([], pa.string())
        if len(self.kept) == self.rows.rows:
            return keys, self.kept
        # Positions of `rows` ascend, so a kept position is found by binary search.
        return keys.take(pa.array(np.searchsorted(self.rows.positions(), self.kept))), self.kept
