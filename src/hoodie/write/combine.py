"""Combine before write: of several incoming rows with one key keep one.

1. Rows compete within their partition path, or in the whole input when keys are unique in the table (global index).
2. With ordering fields the largest ordering value wins, a later row wins a tie; without them the last row wins. Rows
   that are deletes and have no ordering value go by their place in the input. Later means: later in the input.
3. The answer is positions only; rows that lost stay where they are and are never written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine, TaskId
from hoodie.index import Positions
from hoodie.records import newest
from hoodie.records.columns import column
from hoodie.records.deletion import DeleteMarker, deletion_columns, is_deleted
from hoodie.write.incoming import ARRIVAL, KEY, Incoming
from hoodie.write.incoming_keys import keys_of
from hoodie.write.plan import EMPTY


@dataclass(frozen=True, slots=True)
class CombineTask:
    """Rows that compete with each other. `ordering` names columns (maybe dotted) that decide; empty: the last wins."""

    rows: Incoming
    ordering: tuple[str, ...]
    marker: DeleteMarker | None


def plan_combine(
    incoming: Incoming, ordering: tuple[str, ...], marker: DeleteMarker | None, *, whole_input: bool
) -> tuple[CombineTask, ...]:
    """One task for each set of competing rows."""
    wanted = [KEY, *root_columns(ordering), *(deletion_columns(incoming.schema, marker) if ordering else ())]
    if ARRIVAL in incoming.schema.names:
        wanted.append(ARRIVAL)
    rows = incoming.project(list(dict.fromkeys(wanted)))
    scopes: Iterable[Incoming] = (rows,) if whole_input else rows.by_partition().values()
    return tuple(CombineTask(scope, ordering, marker) for scope in scopes)


def run_combine(tasks: tuple[CombineTask, ...], engine: Engine) -> Positions:
    """Positions to keep, ascending."""
    kept = engine.run(keep_newest, tasks, "combine")
    return np.sort(np.concatenate(kept)) if kept else EMPTY


def keep_newest(_: TaskId, task: CombineTask) -> Positions:
    """Positions of the winners among the task's rows, ascending."""
    table, positions = task.rows.load(), task.rows.positions()
    if ARRIVAL in table.schema.names:
        order = np.argsort(table.column(ARRIVAL).to_numpy(), kind="stable")
        table, positions = table.take(pa.array(order)), positions[order]
    deleted = pa.array(is_deleted(table, task.marker)) if task.ordering else None
    winners: Positions = positions[newest(table.column(KEY), ordering_values(table, task.ordering), deleted)]
    return np.sort(winners)


def ordering_values(rows: pa.Table, ordering: Sequence[str]) -> list[Any]:
    """The ordering columns of `rows`; fields of structs by their dotted names."""
    return [column(rows, name, "ordering field") for name in ordering]


def root_columns(names: Iterable[str]) -> list[str]:
    """The top-level columns that hold the (maybe dotted) fields, each once."""
    return list(dict.fromkeys(name.partition(".")[0] for name in names))


def same_keys(incoming: Incoming, of: Positions, among: Positions, *, whole_input: bool) -> Positions:
    """Those of `among` whose key is that of a row in `of` (of the same partition path, or of the whole input)."""
    if not len(of) or not len(among):
        return EMPTY
    of, among = np.sort(of), np.sort(among)
    scopes = (incoming,) if whole_input else tuple(incoming.by_partition().values())
    found = [_same_keys(scope, scope.own(of), scope.own(among)) for scope in scopes]
    return np.sort(np.concatenate(found))


def _same_keys(scope: Incoming, of: Positions, among: Positions) -> Positions:
    if not len(of) or not len(among):
        return EMPTY
    positions = scope.positions()
    wanted, others = np.isin(positions, of), np.isin(positions, among)
    keys = scope.column_table([KEY]).column(KEY).combine_chunks()
    same = pc.is_in(keys.filter(pa.array(others)), value_set=keys.filter(pa.array(wanted)))
    found: Positions = positions[others][same.to_numpy(zero_copy_only=False)]
    return found


def sorted_by_key(incoming: Incoming, kept: Positions) -> Positions:
    """`kept` (ascending) reordered: partition paths as they come, rows of one by record key."""
    pieces = []
    for rows in incoming.by_partition().values():
        keys, positions = keys_of(rows, rows.own(kept)).load()
        pieces.append(positions[pc.sort_indices(keys).to_numpy()])
    return np.concatenate(pieces) if pieces else EMPTY
