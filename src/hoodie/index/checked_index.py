"""A write index of a caller's own, whose answers are checked: where one is wrong, rows would be gone or stand twice.

What only a look at all files could tell (a slice that has a key and is not named) is not checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hoodie.errors import Invalid
from hoodie.index.buckets import Buckets
from hoodie.index.keyed_rows import KeyedRows, Positions
from hoodie.index.write_index import (
    Assignment,
    Candidate,
    IndexedTable,
    IndexedWrite,
    IndexTraits,
    RollsBack,
    WriteIndex,
    WrittenGroup,
)
from hoodie.spec import InstantTime
from hoodie.storage import Storage


@dataclass(frozen=True, slots=True)
class CheckedIndex:
    """The `WriteIndex` around another."""

    index: WriteIndex

    @property
    def traits(self) -> IndexTraits:
        """See `WriteIndex`."""
        return self.index.traits

    def spool_order(self) -> Buckets | None:
        """See `WriteIndex`."""
        return self.index.spool_order()

    def begin(self, table: IndexedTable, rows: KeyedRows) -> IndexedWrite:
        """See `WriteIndex`."""
        has_logs = table.handle.config.is_merge_on_read
        return _CheckedWrite(self.index.begin(table, rows), has_logs, self.traits.inserts_to_logs)

    def roll_back(self, storage: Storage, instant: InstantTime) -> None:
        """See `RollsBack`: nothing for an index that is none."""
        if isinstance(self.index, RollsBack):
            self.index.roll_back(storage, instant)


@dataclass(frozen=True, slots=True)
class _CheckedWrite:
    """The `IndexedWrite` around another. `has_logs`: changes of the table may lie in log files; `finds_logged`: the
    index finds keys there.
    """

    index: IndexedWrite
    has_logs: bool
    finds_logged: bool

    def tag(self, asked: KeyedRows) -> Sequence[Candidate]:
        """See `IndexedWrite`.

        Raises:
            Invalid: it vouches for some candidates only, and rows lie in log files.
        """
        candidates = self.index.tag(asked)
        vouched = sum(candidate.vouched is not None for candidate in candidates)
        if self.has_logs and 0 < vouched < len(candidates):
            raise Invalid(
                f"The index vouches for {vouched} of {len(candidates)} file slices: it finds no rows of log files",
                remedy="Mend the index: in a merge-on-read table it vouches for all candidates of a write, or for none",
            )
        return candidates

    def assign(self, inserts: Mapping[str, Positions]) -> Sequence[Assignment] | None:
        """See `IndexedWrite`.

        Raises:
            Invalid: other rows than the new ones are assigned, or some to log files in which the index finds no keys.
        """
        assigned = self.index.assign(inserts)
        if assigned is None:
            return None
        _ensure_each_once(inserts, assigned)
        stored = next((part.slice for part in assigned if part.slice is not None), None)
        if stored is not None and self.has_logs and not self.finds_logged:
            raise Invalid(
                f"The index assigns new rows to file group {stored.file_id} of a merge-on-read table. They go to a log "
                "file there, in which the index finds no keys",
                remedy="Mend the index: either its trait inserts_to_logs is true, or new rows go to new file groups",
                file_id=stored.file_id,
            )
        return assigned

    def before_write(self) -> None:
        """See `IndexedWrite`."""
        self.index.before_write()

    def before_commit(self, groups: Sequence[WrittenGroup]) -> None:
        """See `IndexedWrite`."""
        self.index.before_commit(groups)

    def withdraw(self) -> None:
        """See `IndexedWrite`."""
        self.index.withdraw()

    def after_commit(self, groups: Sequence[WrittenGroup]) -> None:
        """See `IndexedWrite`."""
        self.index.after_commit(groups)


def _ensure_each_once(inserts: Mapping[str, Positions], assigned: Sequence[Assignment]) -> None:
    said: dict[str, list[Positions]] = {}
    for part in assigned:
        said.setdefault(part.partition, []).append(part.positions)
    new, named = sum(map(len, inserts.values())), sum(len(part.positions) for part in assigned)
    is_same = new == named and all(
        len(rows) == 0 or np.array_equal(np.sort(np.concatenate(said.get(partition, [rows[:0]]))), np.sort(rows))
        for partition, rows in inserts.items()
    )
    if not is_same:
        raise Invalid(
            f"The index assigns {named} rows to file groups, but {new} are new"
            if new != named
            else "The index assigns other rows to file groups than those that are new in their partitions",
            remedy="Mend the index: WriteIndex.assign names each new row once",
        )
