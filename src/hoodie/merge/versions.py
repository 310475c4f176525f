"""Versions of records: the rows and deletes of a log, one table row for each, in the order they were written.

1. A version is a row of a data block or an entry of a delete block. Both are rows of one table (`Versions`), so that
   all of them can be joined, taken and stored alike: the columns of the merge, then marks.
2. Marks: flags, which columns a partial row has, and the ordering values. A delete entry has its key and is NULL
   elsewhere.
3. Once a block with partial rows has been seen, pairs with a version at or after it merge by the columns rows have, and
   no longer by the table's `fill`: so does Hudi.
4. The ordering value of a delete entry is cast to the type of the ordering column. One that cannot be (a number against
   text) counts as no value: Hudi lets such a delete win.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.merge.rules import MergeRules
from hoodie.records import KEY_FIELD
from hoodie.records.align import widened
from hoodie.records.columns import column, has_column
from hoodie.records.deletion import is_deleted, is_deleting_operation
from hoodie.records.ordering import Mask, Positions, goes_by_time

Flags = npt.NDArray[np.uint8]

DELETE: Final = 1
BY_TIME: Final = 2
"""A delete without ordering value: it beats what is older and is beaten by what is newer."""
LISTED: Final = 4
"""A delete of a delete block (not a row marked as deleted)."""
BY_COLUMNS: Final = 8
"""At or after the first block with partial rows."""

_FLAGS: Final = "\x00flags"
_HAS: Final = "\x00has"
_ORDERING: Final = "\x00ordering"

ColumnSet = frozenset[str] | None
"""The columns a row has; None: all."""


@dataclass(frozen=True, slots=True, eq=False)
class LogRows:
    """The rows of one data block, in the types of the merge's schema. `columns`: the names its rows have, for a block
    of partial rows; columns of the schema that `rows` lacks are NULL.
    """

    rows: pa.Table
    columns: frozenset[str] | None = None


class Deletes(Protocol):
    """The entries of one delete block (`hoodie.logs.Deletes` is one)."""

    @property
    def keys(self) -> pa.StringArray: ...

    @property
    def ordering(self) -> tuple[pa.Array, ...]:
        """One array for each ordering field of the table; none when all entries go by time."""
        ...

    @property
    def is_default(self) -> Mask:
        """Entries without ordering value."""
        ...


LogEntry = LogRows | Deletes


@dataclass(frozen=True, eq=False)
class Layout:
    """What versions of a slice have in common. `schema`: the columns of the merge, with `key` among them."""

    schema: pa.Schema
    rules: MergeRules
    key: str = KEY_FIELD

    @cached_property
    def ordering(self) -> tuple[tuple[int, str, pa.DataType], ...]:
        """Position, name and type of the ordering fields that rows have; none when the rules do not compare."""
        if not self.rules.is_ordered:
            return ()
        empty = self.schema.empty_table()
        return tuple(
            (at, name, column(empty, name).type)
            for at, name in enumerate(self.rules.ordering_fields)
            if has_column(self.schema, name)
        )

    @cached_property
    def with_marks(self) -> pa.Schema:
        """The schema of `Versions.table`. Everything is nullable: delete entries have no values."""
        marks = [pa.field(_FLAGS, pa.uint8()), pa.field(_HAS, pa.int16())]
        ordering = [pa.field(f"{_ORDERING}{at}", kind) for at, _, kind in self.ordering]
        return pa.schema([*(pa.field(field.name, field.type) for field in self.schema), *marks, *ordering])

    def of_rows(self, rows: pa.Table, has: int = 0, flags: int = 0) -> pa.Table:
        """Rows of a data block as versions. `has` is the number of their column set."""
        deleted = self.marked_deleted(rows)
        ordering = self.ordering_of(rows)
        marks = np.full(rows.num_rows, flags, dtype=np.uint8)
        if deleted.any():
            marks[deleted] |= DELETE
            marks[goes_by_time(ordering, pa.array(deleted))] |= BY_TIME
        values = [
            rows.column(field.name) if field.name in rows.schema.names else pa.nulls(rows.num_rows, field.type)
            for field in self.schema
        ]
        return self._versions(values, marks, has, ordering)

    def of_deletes(self, deletes: Deletes, flags: int = 0) -> pa.Table:
        """Entries of a delete block as versions."""
        count = len(deletes.keys)
        by_time = np.array(deletes.is_default, dtype=np.bool_)
        ordering = []
        for at, _, kind in self.ordering:
            values = _as(deletes.ordering[at], kind) if at < len(deletes.ordering) else None
            by_time |= values is None
            ordering.append(pa.nulls(count, kind) if values is None else values)
        if not ordering:
            by_time[:] = True
        marks = np.full(count, flags | DELETE | LISTED, dtype=np.uint8)
        marks[by_time] |= BY_TIME
        values = [
            deletes.keys.cast(field.type) if field.name == self.key else pa.nulls(count, field.type)
            for field in self.schema
        ]
        return self._versions(values, marks, 0, ordering)

    def marked_deleted(self, rows: pa.Table) -> Mask:
        """Which rows say of themselves that they are deletes."""
        return is_deleted(rows, self.rules.marker) | is_deleting_operation(rows)

    def ordering_of(self, rows: pa.Table | pa.RecordBatch) -> list[Any]:
        """The ordering values of rows, NULL for a field that these rows lack."""
        return [
            column(rows, name) if has_column(rows.schema, name) else pa.nulls(rows.num_rows, kind)
            for _, name, kind in self.ordering
        ]

    def _versions(self, values: list[Any], marks: Flags, has: int, ordering: Sequence[Any]) -> pa.Table:
        sets = np.full(len(marks), has, dtype=np.int16)
        return pa.Table.from_arrays([*values, pa.array(marks), pa.array(sets), *ordering], schema=self.with_marks)


@dataclass(frozen=True, eq=False)
class Versions:
    """Versions in merge order. `column_sets`: what the numbers in the table's marks stand for; the first is None."""

    layout: Layout
    table: pa.Table
    column_sets: tuple[ColumnSet, ...] = (None,)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def keys(self) -> pa.Array:
        return self.table.column(self.layout.key).combine_chunks()

    @cached_property
    def flags(self) -> Flags:
        flags: Flags = self.table.column(_FLAGS).to_numpy()
        return flags

    @cached_property
    def ordering(self) -> tuple[pa.Array, ...]:
        """One array for each ordering field of the layout."""
        return tuple(self.table.column(f"{_ORDERING}{at}").combine_chunks() for at, _, _ in self.layout.ordering)

    @property
    def is_listed(self) -> Mask:
        """Which versions are entries of a delete block."""
        listed: Mask = np.not_equal(self.flags & LISTED, 0)
        return listed

    @property
    def goes_by_time(self) -> Mask:
        """Which versions are deletes without ordering value."""
        by_time: Mask = np.not_equal(self.flags & BY_TIME, 0)
        return by_time

    @property
    def has_partial_rows(self) -> bool:
        return len(self.column_sets) > 1

    def has(self, name: str) -> Mask:
        """Per version, whether its row has the column."""
        of_set = np.array([names is None or name in names for names in self.column_sets], dtype=np.bool_)
        sets: npt.NDArray[np.int16] = self.table.column(_HAS).to_numpy()
        return of_set[sets]

    def rows(self) -> pa.Table:
        """The versions without marks, in the schema of the layout."""
        schema = self.layout.schema
        return pa.Table.from_arrays([self.table.column(name) for name in schema.names], schema=schema)

    def take(self, at: Positions) -> Versions:
        """The versions at these positions, in this order."""
        if len(at) == len(self) and np.array_equal(at, np.arange(len(at))):
            return self
        chosen = pa.array(at)
        columns = [values.combine_chunks().take(chosen) for values in self.table.columns]
        return replace(self, table=pa.Table.from_arrays(columns, schema=self.table.schema))

    def and_then(self, newer: pa.Table) -> Versions:
        """These versions, followed by newer ones of the same layout."""
        return replace(self, table=pa.concat_tables([self.table, newer]))


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Ordering values in the type they are compared in, None if they do not compare with it."""
    if values.type.equals(kind):
        return values
    if not (_is_number(values.type) and _is_number(kind)) and not pa.types.is_null(values.type):
        return None
    try:
        return widened(values, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_temporal(kind))
