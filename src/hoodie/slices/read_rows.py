"""The rows of one piece of a plan, in the result's columns. This is what runs on a worker.

1. A row counts when its commit time does and the filter is true for it.
2. Of a slice that is one base file, what can be decided without partition columns is decided while the file is read, so
   row groups are skipped by statistics; the rest is decided once partition columns are there.
3. Where log files are merged only conditions on the key are decided before: a version of a row that does not match may
   replace one that does.
4. Memory: of a base file one batch, and what the parquet reader holds of one row group; of log files see `merge`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Missing, Unavailable
from hoodie.filters.row_filter import Conjunct, both, matching
from hoodie.records import COMMIT_TIME_FIELD
from hoodie.slices.base_rows import iter_base
from hoodie.slices.change_rows import change_rows
from hoodie.slices.merged_rows import EarlyConditions, MergedSlices
from hoodie.slices.row_plan import RowPlan
from hoodie.slices.slice_read import ChangeRead, FileRead, SliceRead
from hoodie.storage import Storage


def read_rows(storage: Storage, rows: RowPlan, file: FileRead) -> Iterator[pa.RecordBatch]:
    """The rows of a slice, or of changes, in `rows.schema`, empty batches left out. A slice's rows come in the order of
    its base file, then those that are in log files only.

    Raises:
        Corrupt: a file is damaged. Unavailable: one was taken away since it was planned (`is_gone`).
    """
    try:
        yield from _changes(storage, rows, file) if isinstance(file, ChangeRead) else _rows(storage, rows, file)
    except Missing as error:
        path = error.facts.get("path") or file.path
        raise Unavailable(
            f"File {path} of commit {file.instant} is gone: it was cleaned or moved, or its commit undone, after the "
            "read began",
            remedy="Read again; for long reads let cleaning retain more. `hoodie validate` names files that are lost",
            path=path,
            gone=True,
        ) from error


def is_gone(error: Unavailable) -> bool:
    """Whether the error is that of `read_rows` for a file that was taken away."""
    return bool(error.facts.get("gone"))


def _changes(storage: Storage, rows: RowPlan, change: ChangeRead) -> Iterator[pa.RecordBatch]:
    images = rows.images
    if images is None or images.merge is None:
        raise ValueError("a plan of changes says how images are read")
    condition = None if rows.filter is None else rows.filter.expression
    slices = MergedSlices(storage, images.merge, images.needed, images.ids, images.batch_rows)
    for found in change_rows(storage, change, slices, lambda part: _rows(storage, images, part)):
        for at in range(0, found.num_rows, rows.batch_rows):
            yield from _result(found.slice(at, rows.batch_rows).select(rows.needed.names), rows, condition)


def _rows(storage: Storage, rows: RowPlan, part: SliceRead) -> Iterator[pa.RecordBatch]:
    given = {name: value for name, value in part.partition_values if rows.needed.get_field_index(name) >= 0}
    stored = pa.schema([field for field in rows.needed if field.name not in given])
    conditions = _conditions(rows, stored)
    if part.logs:
        if rows.merge is None:
            raise ValueError("a plan with log files says how they are merged")
        slices = MergedSlices(storage, rows.merge, stored, rows.ids, rows.batch_rows)
        batches = slices.rows(part, EarlyConditions(conditions.on_keys, conditions.on_times, conditions.early))
    else:
        batches = iter_base(storage, part, stored, rows.ids, batch_rows=rows.batch_rows, condition=conditions.early)
    late = conditions.everything if part.logs else conditions.late
    for batch in batches:
        yield from _result(_completed(batch, rows.needed, given), rows, late)


def _result(batch: pa.RecordBatch, rows: RowPlan, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
    found = batch if condition is None else _matching(batch, condition)
    if found.num_rows:
        yield found.select(rows.schema.names)


@dataclass(frozen=True, slots=True, eq=False)
class _Conditions:
    """`early` looks at stored columns only, `on_keys` at columns that are the same in all versions of a row; `late` is
    the whole filter when something is left to decide after `early`, `everything` what has to hold after all.
    """

    early: Conjunct | None
    on_keys: Conjunct | None
    on_times: Conjunct | None
    late: pc.Expression | None
    everything: pc.Expression | None


def _conditions(rows: RowPlan, stored: pa.Schema) -> _Conditions:
    times = None
    if rows.commit_times is not None:
        times = Conjunct(rows.commit_times.expression, frozenset({COMMIT_TIME_FIELD}))
    if rows.filter is None:
        return _Conditions(times, None, times, None, None if times is None else times.expression)
    is_decided = all(part.columns and part.columns <= set(stored.names) for part in rows.filter.conjuncts)
    whole = rows.filter.expression
    return _Conditions(
        early=both(times, rows.filter.part_over(stored.names)),
        on_keys=rows.filter.part_over(rows.key_columns & set(stored.names)),
        on_times=times,
        late=None if is_decided else whole,
        everything=whole if times is None else times.expression & whole,
    )


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
        matches = matching(pa.Table.from_batches([batch]), condition)
        return next(iter(matches.combine_chunks().to_batches()), batch.slice(0, 0)).select([])
    matches = matching(pa.Table.from_batches([batch]), condition).combine_chunks()
    return next(iter(matches.to_batches()), batch.slice(0, 0))
