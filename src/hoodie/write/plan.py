"""What a write does to file groups: pure functions from positions, hits and sizes to the files to be written.

1. A `PlannedFile` says which incoming rows update which rows of an old base file, which are appended, which rows go.
   Whether that is done by a new base file or by a log file is one question more (`goes_to_log`).
2. Every kept incoming row ends up in at most one planned file as an insert; it may update more than one stored row when
   the table holds a key twice.
3. Nothing here reads storage or knows engines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from hoodie.index import Assignment, Positions
from hoodie.spec import PartitionWork
from hoodie.view import FileSlice
from hoodie.write.file_sizing import SizingOptions, SmallFile, plan_fills, slice_bytes

EMPTY: Positions = np.empty(0, dtype=np.int64)
UNKNOWN_ROW: Final = -1
"""Stands for the row of a base file that nobody has looked for."""


def _none() -> Positions:
    return EMPTY


@dataclass(frozen=True, slots=True)
class SliceHits:
    """Index hits in one file slice, ordered by file row. `wins` says where the incoming row beats the stored one.

    `wins` is only looked at for hits in another partition than the incoming row's own. `gone` are places of hits whose
    row was deleted in a log file, as far as that was asked.
    """

    slice: FileSlice
    rows: Positions
    positions: Positions
    wins: np.ndarray[tuple[int], np.dtype[np.bool_]]
    gone: Positions = field(default_factory=_none)

    @property
    def present(self) -> Positions:
        """Positions of the rows whose key is stored."""
        return self.stored.positions

    @property
    def stored(self) -> SliceHits:
        """The hits without those that are gone."""
        if not len(self.gone):
            return self
        kept = np.ones(len(self.rows), dtype=np.bool_)
        kept[self.gone] = False
        return SliceHits(self.slice, self.rows[kept], self.positions[kept], self.wins[kept])


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file to write: the next version of `slice`, or a new file group in `partition` when that is None.

    `drop_positions` are the incoming rows whose keys take the rows `drop_rows` away. `new_file_id` names the new group
    where the index says what it is called.
    """

    partition: str
    slice: FileSlice | None
    update_rows: Positions = field(default_factory=_none)
    update_positions: Positions = field(default_factory=_none)
    insert_positions: Positions = field(default_factory=_none)
    drop_rows: Positions = field(default_factory=_none)
    drop_positions: Positions = field(default_factory=_none)
    new_file_id: str | None = None

    @property
    def knows_rows(self) -> bool:
        """Whether every changed row is a known row of the base file."""
        return not (self.update_rows < 0).any() and not (self.drop_rows < 0).any()

    @property
    def changes(self) -> bool:
        return bool(len(self.update_rows) or len(self.insert_positions) or len(self.drop_rows))


@dataclass(frozen=True, slots=True)
class Placement:
    """Tagged rows: planned changes of existing slices and the positions still without a home, per partition."""

    files: tuple[PlannedFile, ...]
    inserts: Mapping[str, Positions]


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """Which partition path a position belongs to. `starts` ascend; partition i covers [starts[i], starts[i+1])."""

    names: tuple[str, ...]
    starts: Positions

    def owners(self, positions: Positions) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Index into `names` for each position."""
        return np.searchsorted(self.starts, positions, side="right") - 1

    def elsewhere(self, positions: Positions, partition: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Mask of the positions that do not belong to `partition`."""
        at = self.names.index(partition) if partition in self.names else -1
        away: np.ndarray[tuple[int], np.dtype[np.bool_]] = self.owners(positions) != at
        return away

    def split(self, positions: Positions) -> dict[str, Positions]:
        """Positions by partition path; partitions without any are left out. Order within a partition is kept."""
        owners = self.owners(positions)
        order = np.argsort(owners, kind="stable")
        found, starts = np.unique(owners[order], return_index=True)
        pieces = np.split(positions[order], starts[1:])
        return {self.names[number]: piece for number, piece in zip(found.tolist(), pieces, strict=False)}


def without(positions: Positions, others: Positions) -> Positions:
    """`positions` that are not in `others`, in their order."""
    return positions[~np.isin(positions, others)] if len(others) else positions


def place_upserts(
    free: Positions, hits: Sequence[SliceHits], partitions: PartitionMap, *, move_partitions: bool
) -> Placement:
    """Updates where a key was found, inserts for the rest of `free`, the rows that may be inserted.

    `move_partitions` is Hudi's `update.partition.path` of a global index: a row found in another partition is deleted
    there and inserted into its new one (when it wins); without it the row is updated where it is.
    """
    files: list[PlannedFile] = []
    with_a_place: list[Positions] = []
    for hit in hits:
        away = np.zeros(len(hit.positions), dtype=bool)
        if move_partitions:
            away = partitions.elsewhere(hit.positions, hit.slice.partition)
        here = ~away
        moved, lost = away & hit.wins, away & ~hit.wins
        files.append(
            PlannedFile(
                hit.slice.partition,
                hit.slice,
                update_rows=hit.rows[here],
                update_positions=hit.positions[here],
                drop_rows=hit.rows[moved],
                drop_positions=hit.positions[moved],
            )
        )
        with_a_place.extend((hit.positions[here], hit.positions[lost]))
    homeless = without(free, np.concatenate(with_a_place)) if with_a_place else free
    return Placement(tuple(file for file in files if file.changes), partitions.split(homeless))


def place_deletes(hits: Sequence[SliceHits]) -> Placement:
    """Every stored row whose key was found goes."""
    files = (
        PlannedFile(hit.slice.partition, hit.slice, drop_rows=hit.rows, drop_positions=hit.positions) for hit in hits
    )
    return Placement(tuple(file for file in files if file.changes), {})


def place_inserts(positions: Positions, partitions: PartitionMap, hits: Sequence[SliceHits] = ()) -> Placement:
    """All rows are new. Those whose key is gone from a slice (see `SliceHits.gone`) come back where it was."""
    files = tuple(
        PlannedFile(
            hit.slice.partition, hit.slice, update_rows=hit.rows[hit.gone], update_positions=hit.positions[hit.gone]
        )
        for hit in hits
        if len(hit.gone)
    )
    homeless = without(positions, np.concatenate([file.update_positions for file in files])) if files else positions
    return Placement(files, partitions.split(homeless))


def goes_to_log(file: PlannedFile, *, inserts_too: bool, begins: bool = False) -> bool:
    """Whether a merge-on-read table takes these changes in a log file and not in a new base file.

    Changes of stored rows do. New rows of a group only where `inserts_too`: with an index that finds keys in log files.
    A small file that is filled up is written anew, with all that changes in it. A new group begins with a base file:
    that is smaller, and some readers see no group without one. Unless groups `begin` with log files, which several
    writers can begin at once.
    """
    if file.slice is None:
        return begins and inserts_too
    return inserts_too or not len(file.insert_positions)


def plan_files(
    placement: Placement, fillable: Mapping[str, Sequence[FileSlice]], record_bytes: int, sizing: SizingOptions
) -> tuple[PlannedFile, ...]:
    """All files to write: changed slices first topped up, then small ones, then new file groups.

    `fillable` holds, per partition, the slices that may take inserts. One with changes of rows that are not known takes
    none: it could not be written anew.
    """
    changed = {(file.partition, file.slice.file_id): file for file in placement.files if file.slice is not None}
    fresh: list[PlannedFile] = []
    for partition, positions in placement.inserts.items():
        blind = {file_id for (where, file_id), file in changed.items() if where == partition and not file.knows_rows}
        slices = {one.file_id: one for one in fillable.get(partition, ()) if one.file_id not in blind}
        small = [SmallFile(one.file_id, slice_bytes(one, sizing)) for one in slices.values()]
        first = 0
        for fill in plan_fills(len(positions), small, record_bytes, sizing):
            rows = positions[first : first + fill.rows]
            first += fill.rows
            if fill.file_id is None:
                fresh.append(PlannedFile(partition, None, insert_positions=rows))
            else:
                key = (partition, fill.file_id)
                file = changed.get(key, PlannedFile(partition, slices[fill.file_id]))
                changed[key] = replace(file, insert_positions=rows)
    return (*changed.values(), *fresh)


def plan_assigned_files(
    placement: Placement, assigned: Sequence[Assignment], *, to_logs: bool
) -> tuple[PlannedFile, ...]:
    """All files to write where the index assigns new rows to file groups: changed slices, with the new rows that go
    there, and new groups.

    With `to_logs` new rows of a slice are told apart from changes of stored ones by nobody but the reader.
    """
    changed = {file.slice.group_id: file for file in placement.files if file.slice is not None}
    fresh: list[PlannedFile] = []
    for one in assigned:
        rows = one.positions
        if one.slice is None:
            fresh.append(PlannedFile(one.partition, None, insert_positions=rows, new_file_id=one.new_file_id))
            continue
        file = changed.get(one.slice.group_id, PlannedFile(one.partition, one.slice))
        if to_logs:
            unknown = np.full(len(rows), UNKNOWN_ROW, dtype=np.int64)
            file = replace(
                file,
                update_rows=np.append(file.update_rows, unknown),
                update_positions=np.append(file.update_positions, rows),
            )
        else:
            file = replace(file, insert_positions=np.append(file.insert_positions, rows))
        changed[one.slice.group_id] = file
    return (*changed.values(), *fresh)


def plan_work(files: Sequence[PlannedFile]) -> dict[str, PartitionWork]:
    """Per partition the number of inserts and the number of changed rows per slice: what the inflight file records."""
    work: dict[str, PartitionWork] = {}
    for file in files:
        before = work.get(file.partition, PartitionWork())
        updates = dict(before.updates)
        changed = len(file.update_rows) + len(file.drop_rows)
        if file.slice is not None and changed:
            updates[file.slice.file_id] = (file.slice.base_instant, changed)
        work[file.partition] = PartitionWork(before.inserts + len(file.insert_positions), updates)
    return work
