"""The order of rows along sort columns, one after the other. Pure, on Arrow columns.

1. Every column becomes ranks: whole numbers that compare as its values do, NULL first, NaN last, -0.0 and 0.0 alike.
   Where 64-bit numbers tell values apart they are sorted by these (`value_numbers`), and only texts whose numbers are
   the same are compared.
2. The sort is stable: the same rows in the same order give the same outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Unsupported
from hoodie.services.clustering.curves import Ranks
from hoodie.services.clustering.ordered_values import is_text, ordered_values
from hoodie.services.clustering.value_numbers import value_numbers

Places = npt.NDArray[np.int64]
_Marks = npt.NDArray[np.bool_]

_WORD_BITS: Final = 64


def sorted_positions(columns: Sequence[pa.ChunkedArray], names: Sequence[str]) -> Places:
    """The places of the rows in their order; `columns` are the sort columns, at least one, all of the same length.

    Raises:
        Unsupported: values of a column have no order (lists, structs, maps).
    """
    if len(columns) == 1:
        return _in_order(columns[0], names[0])[0]
    return places_by([dense_ranks(column, name) for column, name in zip(columns, names, strict=True)])


def places_by(numbers: Sequence[Ranks]) -> Places:
    """The places of the rows in the order of numbers, the first for each row first, and otherwise as they come."""
    rows = len(numbers[0])
    if rows < 2:
        return np.arange(rows)
    lowest = [int(one.min()) for one in numbers]
    bits = [(int(one.max()) - low).bit_length() for one, low in zip(numbers, lowest, strict=True)]
    place_bits = (rows - 1).bit_length()
    if sum(bits) + place_bits > _WORD_BITS:
        return np.lexsort(numbers[::-1])
    # All of it in one number, with the place at the end: no two are equal, and numpy sorts numbers fastest.
    words = np.zeros(rows, np.uint64)
    for one, low, wide in zip(numbers, lowest, bits, strict=True):
        words = (words << np.uint64(wide)) | (one - np.uint64(low))
    words = (words << np.uint64(place_bits)) | np.arange(rows, dtype=np.uint64)
    words.sort()
    return (words & np.uint64((1 << place_bits) - 1)).astype(np.int64)


def dense_ranks(column: pa.ChunkedArray, name: str) -> Ranks:
    """Numbers that compare as the values of a column do, without gaps, 0 for NULL.

    Raises:
        Unsupported: its values have no order.
    """
    places, is_next = _in_order(column, name)
    ranks = np.zeros(len(column), np.uint64)
    ranks[places[column.null_count :]] = np.cumsum(is_next)
    return ranks


def _in_order(column: pa.ChunkedArray, name: str) -> tuple[Places, _Marks]:
    """The places of the values of a column in their order, NULL first; and for each that is not NULL, in that order,
    whether it is greater than the one before it.

    Raises:
        Unsupported: the values have no order.
    """
    present = column.drop_null() if column.null_count else column
    try:
        places, is_next = _present_in_order(ordered_values(present))
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise Unsupported(
            f"Rows cannot be sorted by column {name} of type {column.type}",
            remedy="Sort by columns of numbers, text, dates or times",
        ) from None
    if not column.null_count:
        return places, is_next
    is_null = column.is_null().to_numpy()
    return np.concatenate([np.flatnonzero(is_null), np.flatnonzero(~is_null)[places]]), is_next


def _present_in_order(values: pa.ChunkedArray) -> tuple[Places, _Marks]:
    """What `_in_order` gives of values without NULL."""
    numbers = value_numbers(values)
    if numbers is None:
        ranks = pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy(zero_copy_only=False)
        places = np.argsort(ranks, kind="stable")
        return places, _steps(ranks[places])
    places = np.argsort(numbers, kind="stable")
    is_next = _steps(numbers[places])
    if is_text(values.type):
        _tell_apart(values, places, is_next)
    return places, is_next


def _steps(numbers: npt.NDArray[Any]) -> _Marks:
    """Whether each of some numbers in order is greater than the one before it; the first is."""
    return np.concatenate([np.ones(min(1, len(numbers)), np.bool_), numbers[1:] != numbers[:-1]])


def _tell_apart(texts: pa.ChunkedArray, places: Places, is_next: _Marks) -> None:
    """Puts `places` of texts that are in the order of their numbers in that of all their bytes, and marks what is
    greater then.
    """
    whole = texts.combine_chunks()
    alike = np.flatnonzero(~is_next)
    differ = pc.not_equal(whole.take(pa.array(places[alike - 1])), whole.take(pa.array(places[alike])))
    unlike = alike[differ.to_numpy(zero_copy_only=False)]
    if not len(unlike):
        return
    runs = np.cumsum(is_next)
    mixed = np.flatnonzero(np.isin(runs, runs[unlike]))
    ranks = pc.rank(whole.take(pa.array(places[mixed])), tiebreaker="dense").to_numpy(zero_copy_only=False)
    by_rank = np.argsort(ranks, kind="stable")
    places[mixed] = places[mixed][by_rank]
    is_next[mixed] = _steps(ranks[by_rank])
