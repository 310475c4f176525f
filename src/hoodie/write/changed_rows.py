"""Stored rows of a base file, and what a write makes of them: which are replaced, which go, and which of their columns
are other ones then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie.index import Positions
from hoodie.records.schema import is_nested


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Rows `stored`, of which row `at[i]` gives way to row i of `fresh`, and those at `gone` go. Positions ascend."""

    stored: pa.Table
    at: Positions
    fresh: pa.Table
    gone: Positions

    def rows(self, columns: Iterable[str]) -> pa.Table:
        """These columns of what is left."""
        names = list(columns)
        rows = self.stored.select(names)
        if len(self.at):
            indices = np.arange(rows.num_rows, dtype=np.int64)
            indices[self.at] = rows.num_rows + np.arange(len(self.at), dtype=np.int64)
            rows = pa.concat_tables([rows, self.fresh.select(names)]).combine_chunks().take(pa.array(indices))
        if len(self.gone):
            keep = np.ones(rows.num_rows, dtype=bool)
            keep[self.gone] = False
            rows = rows.filter(pa.array(keep))
        return rows

    def changed_columns(self, others: Collection[str]) -> list[str]:
        """Columns besides `others` in which a row differs from the one that it gives way to, bit by bit; more than
        these where that is not looked at.
        """
        names = [name for name in self.stored.schema.names if name not in others]
        if not len(self.at):
            return []
        before = self.stored.select(names).take(pa.array(self.at))
        return [name for name in names if not _is_same(before.column(name), self.fresh.column(name))]


def _is_same(before: pa.ChunkedArray, after: pa.ChunkedArray) -> bool:
    """Whether values are the same; zeros of other signs are not. Nested values that may hold such are not looked at."""
    if pa.types.is_floating(before.type):
        bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[before.type.bit_width]
        return bool(before.combine_chunks().view(bits).equals(after.combine_chunks().view(bits)))
    if is_nested(before.type) and _has_floats(before.type):
        return False
    return bool(before.equals(after))


def _has_floats(data_type: pa.DataType) -> bool:
    if not is_nested(data_type):
        return bool(pa.types.is_floating(data_type))
    return any(_has_floats(data_type.field(at).type) for at in range(data_type.num_fields))
