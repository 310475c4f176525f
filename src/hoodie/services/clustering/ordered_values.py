"""Values of a column as others that Arrow ranks in the order in which rows are sorted. Pure.

NULL first, NaN last, -0.0 and 0.0 alike.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


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


def is_text(kind: pa.DataType) -> bool:
    """Whether values are texts, of characters or of bytes, which compare by their bytes."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )
