"""The rows of one file of a plan, in the result's columns. This is what runs on a worker.

1. A row counts when its commit time does and the filter is true for it.
2. What can be decided without partition columns is decided while the file is read, so row groups are skipped by
   statistics; the rest is decided once partition columns are there.
3. Memory: one batch, and what the parquet reader holds of one row group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Corrupt, Missing
from hoodie.read.read_plan import FileRead, RowPlan
from hoodie.read.row_filter import all_of, matching
from hoodie.records import iter_batches, read_footer
from hoodie.storage import Storage


def read_rows(storage: Storage, rows: RowPlan, file: FileRead) -> Iterator[pa.RecordBatch]:
    """The rows of `file` in `rows.schema`, in file order, empty batches left out.

    Raises:
        Corrupt: the file is damaged or gone.
    """
    try:
        yield from _rows(storage, rows, file)
    except Missing as error:
        raise Corrupt(
            f"Base file {file.path} of commit {file.instant} is gone",
            remedy="It was cleaned while it was read: read again; otherwise restore it from a copy",
            path=file.path,
        ) from error


def _rows(storage: Storage, rows: RowPlan, file: FileRead) -> Iterator[pa.RecordBatch]:
    given = {name: value for name, value in file.partition_values if rows.needed.get_field_index(name) >= 0}
    stored = pa.schema([field for field in rows.needed if field.name not in given])
    conditions = _conditions(rows, stored)
    if not stored.names:
        batches = _counted(read_footer(storage, file.path).rows, rows.batch_rows)
    else:
        batches = iter_batches(storage, file.path, schema=stored, filter=conditions.early, batch_rows=rows.batch_rows)
    for batch in batches:
        found = _completed(batch, rows.needed, given)
        if conditions.late is not None:
            found = _matching(found, conditions.late)
        if found.num_rows:
            yield found.select(rows.schema.names)


@dataclass(frozen=True, slots=True, eq=False)
class _Conditions:
    """`early` looks at stored columns only; `late` is the whole filter when something is left to decide."""

    early: pc.Expression | None
    late: pc.Expression | None


def _conditions(rows: RowPlan, stored: pa.Schema) -> _Conditions:
    early = [] if rows.commit_times is None else [rows.commit_times.expression]
    late = None
    if rows.filter is not None:
        decidable = rows.filter.decidable_with(stored.names)
        if decidable is not None:
            early.append(decidable)
        if not all(part.columns and part.columns <= set(stored.names) for part in rows.filter.conjuncts):
            late = rows.filter.expression
    return _Conditions(all_of(early) if early else None, late)


def _counted(count: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Batches without columns: when all that is asked is how many rows there are."""
    for at in range(0, count, batch_rows):
        rows = min(batch_rows, count - at)
        yield pa.RecordBatch.from_arrays([pa.nulls(rows)], ["_"]).select([])


def _completed(batch: pa.RecordBatch, needed: pa.Schema, given: dict[str, Any]) -> pa.RecordBatch:
    """The batch with its partition columns, in the order of `needed`."""
    if not given:
        return batch
    columns = [
        pa.repeat(pa.scalar(given[field.name], field.type), batch.num_rows)
        if field.name in given
        else batch.column(field.name)
        for field in needed
    ]
    return pa.RecordBatch.from_arrays(columns, schema=needed)


def _matching(batch: pa.RecordBatch, condition: pc.Expression) -> pa.RecordBatch:
    if not batch.schema.names:  # a constant condition over a count
        batch = pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows)], ["_"])
        kept = matching(pa.Table.from_batches([batch]), condition)
        return next(iter(kept.combine_chunks().to_batches()), batch.slice(0, 0)).select([])
    kept = matching(pa.Table.from_batches([batch]), condition).combine_chunks()
    return next(iter(kept.to_batches()), batch.slice(0, 0))
