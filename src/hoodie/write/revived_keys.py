"""Which deleted keys a write has brought back in log files, for the rule that looks at compactions beside it
(`hoodie.transaction.revived_keys`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hoodie.engine import Engine
from hoodie.index import Positions
from hoodie.transaction import NoneRevived
from hoodie.view import FileSlice, GroupId
from hoodie.write.file_task import FileTask
from hoodie.write.incoming import KEY, Incoming
from hoodie.write.job import Write
from hoodie.write.log_task import LogTask
from hoodie.write.plan import PlannedFile
from hoodie.write.resolved_hits import ResolveTask, find_merged, merging_of
from hoodie.write.skeletons import stitched_rows

_KEYS_TOLD = 10


@dataclass(frozen=True, slots=True)
class Appended:
    """Base rows of a slice with log files that a write has updated in its log, and the rows' incoming `positions`."""

    slice: FileSlice
    rows: Positions
    positions: Positions


@dataclass(frozen=True, slots=True, eq=False)
class RevivedHere:
    """A `RevivedKeys`: asks the logs of the slices that the write has appended to."""

    write: Write
    incoming: Incoming
    appended: Mapping[GroupId, Appended]
    engine: Engine

    def __call__(self, groups: Collection[GroupId]) -> Mapping[GroupId, Sequence[str]]:
        """Up to ten keys of each group. Reads their base rows and logs."""
        write, asked = self.write, [self.appended[group] for group in sorted(groups)]
        if write.table_schema is None:
            return {}
        merging = merging_of(write, write.table_schema, ())
        tasks = [
            ResolveTask(write.handle.storage, one.slice, one.rows, merging, stitched_rows(write, one.slice))
            for one in asked
        ]
        states = self.engine.run(find_merged, tasks, "index")
        dead = {one.slice.group_id: one.positions[~state.alive] for one, state in zip(asked, states, strict=True)}
        return {group: self._keys(positions) for group, positions in dead.items() if len(positions)}

    def _keys(self, positions: Positions) -> list[str]:
        some = positions[:_KEYS_TOLD]
        rows = self.incoming.holding(some).project([KEY]).select(some).load()
        return [str(key) for key in rows.column(KEY).to_pylist()]


def without_revived_keys(
    write: Write,
    incoming: Incoming,
    files: Sequence[PlannedFile],
    tasks: Sequence[FileTask | LogTask],
    engine: Engine,
) -> Write:
    """The write with a rule that also looks for revived keys, where it may have any; `tasks` are those of the files."""
    appended: dict[GroupId, Appended] = {}
    for file, task in zip(files, tasks, strict=True):
        one, known = file.slice, file.update_rows >= 0
        if isinstance(task, LogTask) and one is not None and one.base is not None and one.logs and known.any():
            rows, positions = file.update_rows[known], file.update_positions[known]
            order = np.argsort(rows, kind="stable")
            appended[one.group_id] = Appended(one, rows[order], positions[order])
    if not appended:
        return write
    revived = RevivedHere(write, incoming, appended, engine)
    return replace(write, rule=NoneRevived(write.rule, frozenset(appended), revived))
