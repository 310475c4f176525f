"""The order of rows along sort columns: one after the other, or on a curve through all of them. Pure, on Arrow columns.

1. Every column becomes ranks: whole numbers that compare as its values do, NULL first, NaN last, -0.0 and 0.0 alike.
   Linear order goes by these.
2. For a curve a rank counts the rows below a value, and is scaled to the same number of bits for each column. Values
   that occur often take as much of the curve as they have rows, so skewed columns and columns of different types weigh
   the same. Hudi by default takes bits of the values themselves (`hudi_curves`): readers depend on neither.
3. The sort is stable: the same rows in the same order give the same outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid, Unsupported
from hoodie.services.clustering.curves import Ranks, hilbert_axes, interleaved
from hoodie.spec import Curve, SortOrder

_KEY_BITS: Final = 63
_RANK_BITS: Final = 20
"""A million steps for each column are more than there are files and row groups to tell apart."""


def ensure_sortable(schema: pa.Schema, order: SortOrder) -> None:
    """Checks that rows of `schema` can be sorted so: what is found out here is not found out by an executor.

    Raises:
        Invalid: there is no such column. Unsupported: its values have no order, or a curve of too many columns.
    """
    for name in order.columns:
        if name not in schema.names:
            raise Invalid(
                f"There is no column {name} to sort by",
                remedy=f"The table has {', '.join(one for one in schema.names if not one.startswith('_hoodie_'))}",
                column=name,
            )
    empty = [pa.chunked_array([], type=schema.field(name).type) for name in order.columns]
    sorted_positions(empty, order.columns, order.curve)


def sorted_positions(columns: Sequence[pa.ChunkedArray], names: Sequence[str], curve: Curve) -> npt.NDArray[np.int64]:
    """The places of the rows in their order; `columns` are the sort columns, at least one, all of the same length.

    Raises:
        Unsupported: values of a column have no order (lists, structs, maps), or a curve of too many columns.
    """
    if curve is Curve.LINEAR or len(columns) == 1:
        ranks = [value_ranks(column, name, "dense") for column, name in zip(columns, names, strict=True)]
        return np.lexsort(ranks[::-1])
    bits = curve_bits(len(columns))
    below = [value_ranks(one, name, "min") for one, name in zip(columns, names, strict=True)]
    scaled = [scaled_ranks(one, int(one.max(initial=1)), bits) for one in below]
    return np.argsort(curve_word(scaled, curve, bits), kind="stable")


def curve_bits(columns: int) -> int:
    """The bits of each column's ranks on a curve through so many.

    Raises:
        Unsupported: a curve of too many columns.
    """
    bits = min(_RANK_BITS, _KEY_BITS // columns)
    if bits < 2:
        raise Unsupported(f"A curve through {columns} columns", remedy="Name fewer sort columns")
    return bits


def scaled_ranks(ranks: Ranks, most: int, bits: int) -> Ranks:
    """Ranks, of which the greatest of all rows is `most`, as numbers of so many bits."""
    return (ranks.astype(np.float64) * (((1 << bits) - 1) / most)).astype(np.uint64)


def curve_word(scaled: Sequence[Ranks], curve: Curve, bits: int) -> Ranks:
    """Where rows of these scaled ranks are on a curve."""
    return interleaved(hilbert_axes(scaled, bits) if curve is Curve.HILBERT else scaled, bits)


def value_ranks(column: pa.ChunkedArray, name: str, tiebreaker: str) -> Ranks:
    """Numbers that compare as the values of a column do, 0 for NULL: dense ones, or ("min") how many rows are below,
    and one.

    Raises:
        Unsupported: its values have no order.
    """
    try:
        ranked = pc.rank(ordered_values(column), sort_keys="ascending", tiebreaker=tiebreaker)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise Unsupported(
            f"Rows cannot be sorted by column {name} of type {column.type}",
            remedy="Sort by columns of numbers, text, dates or times",
        ) from None
    found: Ranks = ranked.to_numpy(zero_copy_only=False).astype(np.uint64)
    if column.null_count:  # ranked behind all others
        below = column.null_count if tiebreaker == "min" else 0
        return np.where(column.is_null().to_numpy(), np.uint64(0), found + np.uint64(below))
    return found


def ordered_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as values that Arrow ranks in the wanted order."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return ordered_values(column.cast(kind.value_type))
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8())
    if not pa.types.is_floating(kind):
        return column
    values = column.cast(pa.float64())
    numbers = pc.fill_null(values, 0.0).to_numpy() + 0.0  # -0.0 becomes 0.0
    bits = np.where(np.isnan(numbers), np.float64("nan"), numbers).view(np.int64)
    whole = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    whole = np.where(np.isnan(numbers), np.iinfo(np.int64).max, whole)
    missing = values.is_null().to_numpy()
    return pa.chunked_array([pa.array(whole, mask=missing)])
