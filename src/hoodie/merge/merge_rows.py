"""Base rows and a log become the rows of a file slice.

1. Rows of the base come in their order, those with a version in the log replaced or left out; then come the rows that
   are in the log only, in the order their keys appeared there. A log on disk does this part by part.
2. A batch no key of which is in the log passes as it is. Keys of several batches are looked up together, so that the
   hash of the log's keys is built once for many. Columns nobody wants behind the merge are not put together.
3. A key that the base holds twice meets the log twice.
4. Rows of the base are never tested for deletion: whoever wrote them dropped deletes.
5. Positions that blocks of version 8 and later carry are not used: they tell the same as the keys (Hudi itself falls
   back to keys for half of the cases), and looking keys up costs less than decoding the key column does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.merge.fold import goes_by_time, says
from hoodie.merge.log_map import LogMap, LogPart
from hoodie.merge.mergers import merged_by
from hoodie.records import newer_wins
from hoodie.records.ordering import Mask, Positions

BaseRows = Callable[[], Iterable[pa.RecordBatch]]
"""Gives the rows of the base, from the start at each call, in the schema of the log map."""

ChangeKind = Literal["insert", "update", "delete"]

OUTPUT_ROWS: Final = 64 * 1024
_TOGETHER_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What a log does to some rows of one kind: row i of `before` becomes row i of `after`.

    An insert has no `before` and a delete no `after`. An update may be to equal values.
    """

    kind: ChangeKind
    before: pa.RecordBatch | None
    after: pa.RecordBatch | None


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Some rows of a slice, and how the log has changed them: `updated` of the rows, and `deleted` ones that are gone.

    `of_base`: what became of rows of the base; else rows that are in the log only. A piece may have no rows. `changes`
    are what was asked for of this row by row.
    """

    rows: pa.RecordBatch
    of_base: bool
    updated: int = 0
    deleted: int = 0
    changes: tuple[Changes, ...] = ()


def merge_rows(base: BaseRows, log: LogMap, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of the slice in `columns` of the log map's schema, which are all when it is None.

    `base` is called once, or once for each part of a log on disk.
    """
    return (piece.rows for piece in merge_pieces(base, log, columns) if piece.rows.num_rows)


def merge_pieces(
    base: BaseRows, log: LogMap, columns: Sequence[str] | None = None, *, with_changes: bool = False
) -> Iterator[Piece]:
    """The rows of the slice as `merge_rows` gives them, with what the log did to them."""
    names = log.layout.schema.names if columns is None else columns
    for part in log.parts():
        met = np.zeros(len(part.keys), dtype=np.bool_)
        for batch, places, at in _matched(base(), part):
            if not len(places):
                yield Piece(_selected(batch, names), of_base=True)
                continue
            met[at] = True
            meeting = _meet(batch, places, at, part, names)
            stored = _selected(batch, names)
            changes = _changes(stored, meeting) if with_changes else ()
            yield Piece(_applied(stored, meeting), True, len(meeting.changed), len(meeting.removed), changes)
        for rows in _batches(part, ~met & ~part.is_deleted):
            new = _selected(rows, names)
            yield Piece(new, of_base=False, changes=(Changes("insert", None, new),) if with_changes else ())


def merge_changes(base: BaseRows, log: LogMap) -> Iterator[Changes]:
    """What the log does to the rows of `base`: updates and deletes in base order, then inserts.

    Deletes of keys the base does not have, and versions that lose against the base row, are no changes.
    """
    for part in log.parts():
        met = np.zeros(len(part.keys), dtype=np.bool_)
        for batch, places, at in _matched(base(), part):
            met[at] = True
            yield from _changes(batch, _meet(batch, places, at, part, batch.schema.names))
        for rows in _batches(part, ~met & ~part.is_deleted):
            yield Changes("insert", None, rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Meeting:
    """The outcome for a base batch: places of rows that go, and of rows that become the rows of `after`."""

    removed: Positions
    changed: Positions
    after: pa.RecordBatch


def _changes(batch: pa.RecordBatch, meeting: _Meeting) -> tuple[Changes, ...]:
    """What a meeting makes of rows of a base batch."""
    found: list[Changes] = []
    if len(meeting.changed):
        found.append(Changes("update", batch.take(pa.array(meeting.changed)), meeting.after))
    if len(meeting.removed):
        found.append(Changes("delete", batch.take(pa.array(meeting.removed)), None))
    return tuple(found)


def _matched(batches: Iterable[pa.RecordBatch], part: LogPart) -> Iterator[tuple[pa.RecordBatch, Positions, Positions]]:
    """Each batch of the part's base rows, with the places of rows that are in the log and where they are there."""
    key = part.versions.layout.key
    mine = (part.base_rows(batch) for batch in batches)
    if not len(part.keys):
        nowhere = np.empty(0, dtype=np.int64)
        yield from ((batch, nowhere, nowhere) for batch in mine if batch.num_rows)
        return
    for together in _groups(mine, len(part.keys)):
        keys = pa.chunked_array([batch.column(key) for batch in together])
        found: Positions = pc.fill_null(pc.index_in(keys, value_set=part.keys), -1).to_numpy()
        start = 0
        for batch in together:
            at = found[start : start + batch.num_rows]
            start += batch.num_rows
            places = np.flatnonzero(at >= 0)
            yield batch, places, at[places]


def _groups(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[list[pa.RecordBatch]]:
    """Batches in groups of at least `rows` rows, if they do not get too big."""
    group: list[pa.RecordBatch] = []
    held_rows = held_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        group.append(batch)
        held_rows += batch.num_rows
        held_bytes += batch.nbytes
        if held_rows >= rows or held_bytes >= _TOGETHER_BYTES:
            yield group
            group, held_rows, held_bytes = [], 0, 0
    if group:
        yield group


def _meet(batch: pa.RecordBatch, places: Positions, at: Positions, part: LogPart, names: Sequence[str]) -> _Meeting:
    """What becomes of the rows of `batch` at `places`, whose versions in the log are at `at`. Rows have `names`."""
    layout = part.versions.layout
    rules = layout.rules
    wins = _log_wins(batch, places, at, part)
    deletes = part.is_deleted[at]
    by_pair = rules.custom is not None or rules.against_base.fill is not None or part.versions.has_partial_rows
    changes = ~deletes if by_pair else ~deletes & wins
    removed, changed, source = places[deletes & wins], places[changes], at[changes]
    if not by_pair or not len(changed):
        return _Meeting(removed, changed, _selected(part.rows, names).take(pa.array(source)))
    newer, older = part.rows.take(pa.array(source)), batch.take(pa.array(changed))
    if rules.custom is None:
        return _Meeting(removed, changed, _selected(_filled(older, newer, wins[changes], source, part), names))
    merged = merged_by(rules.custom, pa.Table.from_batches([older]), pa.Table.from_batches([newer]), layout.key)
    gone = layout.marked_deleted(merged)
    rows_after = _one_batch(merged.filter(pa.array(~gone)), batch.schema)
    return _Meeting(np.union1d(removed, changed[gone]), changed[~gone], _selected(rows_after, names))


def _log_wins(batch: pa.RecordBatch, places: Positions, at: Positions, part: LogPart) -> Mask:
    """Per pair, whether the log's version is the higher one."""
    layout = part.versions.layout
    if not (layout.rules.against_base.ordered and layout.ordering):
        return np.ones(len(at), dtype=np.bool_)
    here, there = pa.array(places), pa.array(at)
    stored = [values.take(here) for values in layout.ordering_of(batch)]
    incoming = [values.take(there) for values in part.versions.ordering]
    return newer_wins(incoming, stored) | goes_by_time(part.versions, at)


def _filled(
    older: pa.RecordBatch, newer: pa.RecordBatch, newer_is_higher: Mask, at: Positions, part: LogPart
) -> pa.RecordBatch:
    """Column by column the value of the higher row where it says something, else that of the other."""
    rules = part.versions.layout.rules
    columns = []
    for name, old, new in zip(older.schema.names, older.columns, newer.columns, strict=True):
        if part.versions.has_partial_rows:
            lacking = part.folded.lacking.get(name)
            new_says = np.ones(len(at), dtype=np.bool_) if lacking is None else ~lacking[at]
            old_says = np.ones(len(at), dtype=np.bool_)
        else:
            new_says, old_says = (says(side, rules.against_base.fill, rules.unavailable_value) for side in (new, old))
        from_new = np.where(newer_is_higher, new_says, ~old_says)
        columns.append(new if from_new.all() else _chosen(from_new, new, old))
    return pa.RecordBatch.from_arrays(columns, schema=older.schema)


def _chosen(first: Mask, preferred: pa.Array, other: pa.Array) -> pa.Array:
    """`preferred` where `first`, else `other`, row by row."""
    places = np.arange(len(first))
    return pa.concat_arrays([preferred, other]).take(pa.array(np.where(first, places, places + len(first))))


def _applied(batch: pa.RecordBatch, meeting: _Meeting) -> pa.RecordBatch:
    """`batch` after the meeting."""
    if not len(meeting.changed) and not len(meeting.removed):
        return batch
    if len(meeting.changed) + len(meeting.removed) == batch.num_rows:
        return meeting.after
    order = np.arange(batch.num_rows)
    order[meeting.changed] = np.arange(batch.num_rows, batch.num_rows + len(meeting.changed))
    places = pa.array(np.delete(order, meeting.removed))
    pairs = zip(batch.columns, meeting.after.columns, strict=True)
    columns = [pa.concat_arrays([stored, merged]).take(places) for stored, merged in pairs]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _selected(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    return batch if batch.schema.names == list(names) else batch.select(names)


def _batches(part: LogPart, chosen: Mask) -> Iterator[pa.RecordBatch]:
    """Rows of the part, some at a time."""
    at = np.flatnonzero(chosen)
    for start in range(0, len(at), OUTPUT_ROWS):
        yield part.rows.take(pa.array(at[start : start + OUTPUT_ROWS]))


def _one_batch(rows: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([values.combine_chunks() for values in rows.columns], schema=schema)
