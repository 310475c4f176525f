"""Which of two rows with one key is newer: ordering values, vectorised.

1. `MergeRule` says where ordering values count: among the rows of one input, and against what the table holds.
2. A later row (in input order; incoming against stored) wins a tie.
3. Several ordering fields compare field by field, first difference decides.
4. Values compare as Java compares them: numbers by size, NaN above everything and equal to itself, -0.0 below 0.0, strings by
   their UTF-8 bytes, false below true.
5. A NULL ordering value is Hudi's default ordering value: the smallest of all, and equal to another NULL.

It knows neither record payloads nor files. Facts and examples: docs/format/record-keys.md, "Ordering".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MergeRule:
    """Whether the ordering value decides (`True`) or the later row always wins (`False`)."""

    ordered_in_input: bool
    ordered_against_stored: bool


EVENT_TIME = MergeRule(ordered_in_input=True, ordered_against_stored=True)
COMMIT_TIME = MergeRule(ordered_in_input=False, ordered_against_stored=False)
OVERWRITE_WITH_LATEST = MergeRule(ordered_in_input=True, ordered_against_stored=False)


def newest(keys: pa.Array | pa.ChunkedArray, ordering: Sequence[pa.Array | pa.ChunkedArray] = ()) -> Positions:
    """Positions of the rows to keep, one per distinct key, ascending.

    Without ordering columns the last row of a key is kept, else the one with the largest ordering value, the last of them
    on a tie. Cost: one hash of the keys; sorting touches only rows whose key occurs more than once.
    """
    codes, distinct = _codes(keys)
    rows = len(codes)
    if distinct == rows:
        return np.arange(rows, dtype=np.int64)
    if not ordering:
        last = np.zeros(distinct, dtype=np.int64)
        last[codes] = np.arange(rows)  # NumPy keeps the last of repeated targets
        return np.sort(last)
    repeated = np.bincount(codes, minlength=distinct)[codes] > 1
    contested = np.flatnonzero(repeated)
    ranks = [_ranks(column.take(pa.array(contested))) for column in ordering]
    order = np.lexsort((contested, *reversed(ranks), codes[contested]))
    sorted_codes = codes[contested][order]
    is_last = np.append(sorted_codes[1:] != sorted_codes[:-1], True)
    winners = contested[order[is_last]]
    kept = ~repeated
    kept[winners] = True
    return np.flatnonzero(kept)


def newer_wins(
    incoming: Sequence[pa.Array | pa.ChunkedArray], stored: Sequence[pa.Array | pa.ChunkedArray]
) -> Mask:
    """Per pair of rows, whether the incoming one replaces the stored one: its ordering is equal or larger.

    Columns are paired by position and rows by position; without columns every incoming row wins.
    """
    if not incoming:
        raise ValueError("newer_wins compares ordering columns: give at least one, or use the commit-time rule")
    wins = np.ones(len(incoming[0]), dtype=np.bool_)
    undecided = np.ones(len(incoming[0]), dtype=np.bool_)
    for new, old in zip(incoming, stored, strict=True):
        both = _ranks(pa.chunked_array([*_chunks(new), *_chunks(old)]))
        new_rank, old_rank = both[: len(new)], both[len(new) :]
        wins &= ~(undecided & (new_rank < old_rank))
        undecided &= new_rank == old_rank
    return wins


def _codes(keys: Any) -> tuple[npt.NDArray[np.int64], int]:
    """A number per key, equal where keys are equal, below the second result."""
    encoded = keys.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([], pa.string()).dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False), len(encoded.dictionary)


def _chunks(values: Any) -> list[Any]:
    return values.chunks if isinstance(values, pa.ChunkedArray) else [values]


def _ranks(values: Any) -> npt.NDArray[np.int64]:
    """Integers that compare as the values do; NULL is the smallest."""
    flat = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(flat, pa.ChunkedArray):
        flat = flat.chunk(0) if flat.num_chunks else pa.array([], flat.type)
    if pa.types.is_floating(flat.type):
        flat = _float_ranks(flat)
    ranks: npt.NDArray[np.int64] = pc.rank(flat, sort_keys="ascending", null_placement="at_start", tiebreaker="dense").to_numpy().astype(np.int64)
    return ranks


def _float_ranks(values: Any) -> Any:
    """Doubles as integers in Java's order: the sign-magnitude bits unfolded, all NaN one value on top."""
    numbers = pc.fill_null(values, 0.0).cast(pa.float64()).to_numpy(zero_copy_only=False)
    numbers = np.where(np.isnan(numbers), np.nan, numbers)
    bits = np.ascontiguousarray(numbers).view(np.int64)
    unfolded = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    return pa.array(unfolded, mask=values.is_null().to_numpy(zero_copy_only=False))
