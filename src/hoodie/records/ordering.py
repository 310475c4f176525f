"""Which of two rows with one key is newer: ordering values, vectorised.

1. `MergeRule` says where ordering values count: among the rows of one input, and against what the table holds.
2. A later row (in input order; incoming against stored) wins a tie.
3. Several ordering fields compare field by field, the first difference decides.
4. Values compare as Java compares them: numbers by size, NaN above everything and equal to itself, -0.0 below 0.0,
   strings by their UTF-8 bytes, false below true.
5. A NULL ordering value is smaller than any other and equal to another NULL.
6. A delete without ordering value (NULL, or the int 0 that is Hudi's default) goes by time: it beats what is older and
   is beaten by what is newer. Rows of a delete operation always win and need no call here.

It knows neither record payloads nor files. What Hudi was seen to do: docs/format/record-keys.md, "Ordering".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Column = Any  # pa.Array or pa.ChunkedArray

INT64_MAX = np.int64(0x7FFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True, slots=True)
class MergeRule:
    """Whether the ordering value decides (`True`) or the later row always wins (`False`)."""

    ordered_in_input: bool
    ordered_against_stored: bool


EVENT_TIME = MergeRule(ordered_in_input=True, ordered_against_stored=True)
COMMIT_TIME = MergeRule(ordered_in_input=False, ordered_against_stored=False)
# Version 6's default payload as Hudi 0.15 treats it.
OVERWRITE_WITH_LATEST = MergeRule(ordered_in_input=True, ordered_against_stored=False)


def newest(keys: Column, ordering: Sequence[Column] = (), deleted: Column | None = None) -> Positions:
    """Positions of the rows to keep, one per distinct key, ascending.

    Without ordering columns the last row of a key is kept, else the one with the largest ordering value, the last of
    them on a tie. `deleted` is the boolean column that marks rows as deletes (NULL: no delete). `keys` holds no NULL.

    Cost: one hash of the keys; only rows whose key occurs more than once are compared.
    """
    flat = _flat(keys)
    rows = len(flat)
    grouped = (
        pa.table({"key": flat, "row": np.arange(rows, dtype=np.int64)})
        .group_by("key", use_threads=False)
        .aggregate([("row", "max"), ("row", "count")])
    )
    if len(grouped) == rows:
        return np.arange(rows, dtype=np.int64)
    last: Positions = grouped.column("row_max").to_numpy()
    if not ordering:
        return np.sort(last)
    often = (grouped.column("row_count").to_numpy()) > 1
    contested = np.flatnonzero(pc.is_in(flat, grouped.column("key").filter(pa.array(often))))
    chosen = pa.array(contested)
    winners = contested[
        _winners(
            flat.take(chosen),
            [_flat(column).take(chosen) for column in ordering],
            None if deleted is None else _flat(deleted).take(chosen),
        )
    ]
    return np.sort(np.concatenate([last[~often], winners]))


def newer_wins(incoming: Sequence[Column], stored: Sequence[Column], deleted: Column | None = None) -> Mask:
    """Per pair of rows, whether the incoming one replaces the stored one: its ordering is equal or larger.

    Columns are paired by position, and rows by position. Without columns every incoming row wins. `deleted` marks
    incoming rows that are deletes (NULL: no delete).
    """
    if not incoming:
        raise ValueError("newer_wins compares ordering columns: under the commit-time rule there is nothing to ask")
    rows = len(incoming[0])
    wins = np.ones(rows, dtype=np.bool_)
    undecided = np.ones(rows, dtype=np.bool_)
    for new, old in zip(incoming, stored, strict=True):
        less, equal = _compared(_flat(new), _flat(old))
        wins &= ~(undecided & less)
        undecided &= equal
    if deleted is not None:
        wins |= goes_by_time(incoming, deleted)
    return wins


def goes_by_time(ordering: Sequence[Column], deleted: Column) -> Mask:
    """Deletes whose ordering value is the default: NULL throughout, or a single int column's 0. Without ordering
    columns all deletes.
    """
    default = np.ones(len(deleted), dtype=np.bool_)
    for column in map(_flat, ordering):
        missing = column.is_null().to_numpy(zero_copy_only=False)
        if len(ordering) == 1 and pa.types.is_int32(column.type):
            missing = missing | pc.fill_null(pc.equal(column, 0), True).to_numpy(zero_copy_only=False)
        default &= missing
    is_delete: Mask = pc.fill_null(_flat(deleted), False).to_numpy(zero_copy_only=False)
    return is_delete & default


def greatest(codes: Positions, ordering: Sequence[pa.Array], above: Sequence[Mask] = ()) -> Positions:
    """Of the rows with one code the position of that with the greatest ordering values, the last of them on a tie.

    The answer is ordered by code. `above` are masks that count more than ordering values, the last one most.
    """
    # lexsort is stable, so rows that are equal in all of these stay in input order and the later one ends up last.
    sort_keys = [rank for column in reversed(ordering) for rank in reversed(_ranks(column))]
    order = np.lexsort((*sort_keys, *above, codes))
    ends = np.append(codes[order][1:] != codes[order][:-1], True)
    winners: Positions = order[ends] if len(order) else order
    return winners


def _winners(keys: pa.Array, ordering: list[pa.Array], deleted: pa.Array | None) -> Positions:
    """Positions of the winning rows, one per key. Every row has a rival, so this is small against the input."""
    codes = keys.dictionary_encode().indices.to_numpy()
    positions = np.arange(len(codes), dtype=np.int64)
    # A delete that goes by time ends what was before it: rows older than the last of them do not count, and it itself
    # counts least. `era` is the position of that delete, or -1.
    in_play = np.ones(len(codes), dtype=np.bool_)
    lowest = np.zeros(len(codes), dtype=np.bool_)
    if deleted is not None:
        lowest = goes_by_time(ordering, deleted)
        if lowest.any():
            era = np.full(codes.max() + 1, -1, dtype=np.int64)
            era[codes[lowest]] = positions[lowest]  # NumPy keeps the last of repeated targets
            in_play = positions >= era[codes]
    return greatest(codes, ordering, (~lowest, in_play) if lowest.any() else ())


def _compared(new: pa.Array, old: pa.Array) -> tuple[Mask, Mask]:
    """Whether new < old, and whether new = old."""
    if pa.types.is_floating(new.type) or pa.types.is_floating(old.type):
        new, old = (_float_order(values.cast(pa.float64())) for values in (new, old))
    less = pc.fill_null(pc.less(new, old), False).to_numpy(zero_copy_only=False)
    equal = pc.fill_null(pc.equal(new, old), False).to_numpy(zero_copy_only=False)
    if new.null_count or old.null_count:
        new_missing, old_missing = (values.is_null().to_numpy(zero_copy_only=False) for values in (new, old))
        less = less | (new_missing & ~old_missing)
        equal = equal | (new_missing & old_missing)
    return less, equal


def _ranks(values: pa.Array) -> tuple[npt.NDArray[Any], ...]:
    """Integer columns that, compared one after the other, order the values."""
    if pa.types.is_floating(values.type):
        values = _float_order(values.cast(pa.float64()))
    if not (pa.types.is_integer(values.type) and values.type != pa.uint64()):
        distinct = values.dictionary_encode()
        order = pc.sort_indices(distinct.dictionary).to_numpy()
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        values = pa.array(place).take(distinct.indices)
    if not values.null_count:
        return (values.to_numpy(zero_copy_only=False),)
    return values.is_valid().to_numpy(zero_copy_only=False), pc.fill_null(values, 0).to_numpy(zero_copy_only=False)


def _float_order(values: pa.Array) -> pa.Array:
    """Doubles as integers in Java's order: the sign-magnitude bits unfolded, all NaN one value on top."""
    numbers = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    unfolded = np.where(bits < 0, bits ^ INT64_MAX, bits)
    return pa.array(unfolded, mask=values.is_null().to_numpy(zero_copy_only=False))


def _flat(values: Column) -> pa.Array:
    """One array, dictionary packing undone."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = values.chunk(0) if values.num_chunks else pa.array([], values.type)
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
