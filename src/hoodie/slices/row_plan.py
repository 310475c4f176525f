"""What is done with the rows of every slice of a plan, as a value that travels to workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.filters import RowFilter
from hoodie.records import COMMIT_TIME_FIELD, ColumnIds
from hoodie.slices.merge_plan import MergePlan
from hoodie.spec import InstantTime

READ_BATCH_ROWS: Final = 65_536
"""The most rows of one batch of a read, unless its options say otherwise."""


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """Which values of `_hoodie_commit_time` count: the given ones, and where `below` is set those in (`above`,
    `below`), commits that are archived and not known one by one.
    """

    times: frozenset[InstantTime]
    above: InstantTime = ""
    below: InstantTime | None = None

    @property
    def expression(self) -> pc.Expression:
        """The rows that count."""
        column = pc.field(COMMIT_TIME_FIELD)
        listed = column.isin(pa.array(sorted(self.times), pa.string()))
        if self.below is None:
            return listed
        return listed | ((column > self.above) & (column < self.below))

    @property
    def sql(self) -> str:
        """The same as a Spark SQL condition."""
        column = f"`{COMMIT_TIME_FIELD}`"
        listed = f"{column} IN ({', '.join(repr(time) for time in sorted(self.times))})" if self.times else "false"
        if self.below is None:
            return listed
        return f"({listed} OR ({column} > '{self.above}' AND {column} < '{self.below}'))"


@dataclass(frozen=True, slots=True, eq=False)
class RowPlan:
    """What is done with the rows of every slice. `schema` is the result's; `needed` has the columns that must be known
    for it, in the result's types: those of the result and those the conditions look at.

    `key_columns` have the same values in all versions of a row, so conditions on them can be decided before merging.
    `ids` is there where files cannot be read by column name. `merge` is there when a slice has log files, `images` in
    queries of changes: how the rows of a slice are read that become images.
    """

    schema: pa.Schema
    needed: pa.Schema
    filter: RowFilter | None
    commit_times: CommitTimes | None
    batch_rows: int
    key_columns: frozenset[str] = frozenset()
    ids: ColumnIds | None = None
    merge: MergePlan | None = None
    images: RowPlan | None = None
