"""Places on Z-order and Hilbert curves as Hudi computes them: by the bits of values, or by bounds of a sample. Pure.

1. DIRECT, Z-order: each value becomes eight bytes that compare as Hudi says, and bits are interleaved, the first of
   each column first. 32-bit numbers fill the low half only, 0.0 comes before all negative numbers, a text counts by
   its first eight bytes, shorter ones moved to the right, a decimal by the lowest 64 bits of its whole part. NULL is
   the greatest value, or an empty text.
2. DIRECT, Hilbert: each value becomes a 64-bit number of which the curve takes the lower 63 bits, so that negative
   numbers come after positive ones. Floats are their IEEE bits.
3. SAMPLE: a value becomes the number of bounds below it. Hudi draws rows at random; here the bounds are those of evenly
   spaced rows, so the outcome is the same each time. Bounds of a shorter column are spread over those of the longest.
4. Columns go in the order of a Java hash map of their positions in the schema, whatever order they were named in.

Readers depend on no order: these are for who wants files laid out as Hudi lays them out. `tests/unit/services` has
orders that Hudi 1.2.0 computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Unsupported
from hoodie.services.clustering.curves import hilbert_axes
from hoodie.services.clustering.ordered_values import is_text

Words = npt.NDArray[np.uint64]

_SIGN: Final = np.uint64(1 << 63)
_LONG_MAX: Final = (1 << 63) - 1
_HILBERT_BITS: Final = 63
_SAMPLED_BITS: Final = 32
_DAY_MS: Final = 86_400_000
_MILLIS: Final = {"s": (1_000, 1), "ms": (1, 1), "us": (1, 1_000), "ns": (1, 1_000_000)}
_MAP_CAPACITY: Final = 16
_DECIMAL128_DIGITS: Final = 38
_NULLS: Final = {pa.int8(): 127, pa.int16(): 32767, pa.int32(): (1 << 31) - 1}
_FLOAT_MAX: Final = {pa.float32(): float(np.finfo(np.float32).max), pa.float64(): float(np.finfo(np.float64).max)}


def in_hudis_order(names: Sequence[str], schema: Sequence[str]) -> tuple[str, ...]:
    """The columns as Hudi takes them: it keeps them in a hash map by their positions in the schema."""
    places = {name: schema.index(name) for name in names}
    capacity = _MAP_CAPACITY
    while len(places) * 4 > capacity * 3:
        capacity *= 2
    return tuple(sorted(places, key=lambda name: places[name] % capacity))


def direct_positions(
    columns: Sequence[pa.ChunkedArray], names: Sequence[str], *, hilbert: bool
) -> npt.NDArray[np.int64]:
    """The places of the rows in the order of a curve by the bits of their values.

    Raises:
        Unsupported: Hudi puts no values of such a type on a curve.
    """
    if hilbert:
        axes = [_hilbert_number(one, name) & ~_SIGN for one, name in zip(columns, names, strict=True)]
        words = _words(hilbert_axes(axes, _HILBERT_BITS), _HILBERT_BITS)
    else:
        words = _words([_bytes(one, name) for one, name in zip(columns, names, strict=True)], 64)
    return np.lexsort(words[::-1])


def sampled_words(
    columns: Sequence[pa.ChunkedArray], names: Sequence[str], sampled: Sequence[pa.ChunkedArray], *, hilbert: bool
) -> list[Words]:
    """Where the rows are on the curve by bounds of `sampled` rows, as words of 64 bits, the highest first.

    Raises:
        Unsupported: Hudi puts no values of such a type on a curve.
    """
    compared = [
        _comparable(pa.chunked_array([*few.chunks, *all_.chunks], few.type), name)
        for few, all_, name in zip(sampled, columns, names, strict=True)
    ]
    bounds = [np.unique(values[: len(few)]) for values, few in zip(compared, sampled, strict=True)]
    longest = max(len(one) for one in bounds)
    axes = []
    for column, values, own in zip(columns, compared, bounds, strict=True):
        ranks = np.searchsorted(own, values[len(values) - len(column) :], side="left").astype(np.uint64)
        ranks[column.is_null().to_numpy()] = len(own) + 1
        axes.append(ranks * np.uint64(max(1, longest // max(1, len(own)))))
    return _words(hilbert_axes(axes, _SAMPLED_BITS), _SAMPLED_BITS) if hilbert else _words(axes, 64)


def _comparable(column: pa.ChunkedArray, name: str) -> npt.NDArray[np.generic]:
    """Values as a sample compares them; NULLs are some value, and are told by the column."""
    kind = column.type
    if is_text(kind):
        ranks = pc.rank(column, sort_keys="ascending", tiebreaker="dense")
        found: npt.NDArray[np.generic] = ranks.to_numpy(zero_copy_only=False).astype(np.int64)
        return found
    return _number(column, name).view(np.int64)


def _bytes(column: pa.ChunkedArray, name: str) -> Words:
    """Eight bytes for each value, as big-endian numbers."""
    kind = column.type
    if pa.types.is_floating(kind):
        raw = _number(column, name)
        numbers = raw.view(np.float64)
        return np.where(numbers > 0, raw ^ _SIGN, np.where(numbers < 0, ~raw, raw))
    raw = _number(column, name)
    if kind in (pa.int16(), pa.int32()):
        return (raw ^ np.uint64(1 << 31)) & np.uint64((1 << 32) - 1)
    if pa.types.is_boolean(kind):
        return np.minimum(raw, np.uint64(1)) ^ np.uint64(1 << 31)
    if kind == pa.int8() or is_text(kind):
        return raw
    return raw ^ _SIGN


def _hilbert_number(column: pa.ChunkedArray, name: str) -> Words:
    """A 64-bit number for each value, of NULL the greatest one."""
    found = _number(column, name)
    if not column.null_count or pa.types.is_boolean(column.type):
        return found
    return np.where(column.is_null().to_numpy(), np.uint64(_LONG_MAX), found)


def _number(column: pa.ChunkedArray, name: str) -> Words:
    """A 64-bit number for each value."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _number(column.cast(kind.value_type), name)
    if is_text(kind):
        return _first_bytes(column)
    if pa.types.is_boolean(kind):
        return np.where(pc.fill_null(column, False).to_numpy(), np.uint64(_LONG_MAX), np.uint64(0))
    if kind in _FLOAT_MAX:
        numbers = pc.fill_null(column.cast(pa.float64()), _FLOAT_MAX[kind]).to_numpy().copy()
        return np.asarray(numbers.view(np.uint64))
    if kind == pa.int8():
        return np.asarray(pc.fill_null(column, 127).to_numpy().astype(np.uint8).astype(np.uint64))
    if pa.types.is_timestamp(kind):
        return _whole(column.cast(pa.int64()), _LONG_MAX, *_MILLIS[kind.unit])
    if kind == pa.date32():
        return _whole(column.cast(pa.int32()).cast(pa.int64()), _LONG_MAX, _DAY_MS)
    if pa.types.is_decimal(kind):
        return _whole(_low_words(column), _LONG_MAX)
    if pa.types.is_signed_integer(kind):
        return _whole(column.cast(pa.int64()), _NULLS.get(kind, _LONG_MAX))
    raise Unsupported(
        f"Hudi puts no column of type {kind} on a curve ({name})",
        remedy="Leave hoodie.layout.optimize.curve.build.method out, or sort by numbers, text, dates or times",
    )


def _whole(column: pa.ChunkedArray, missing: int, times: int = 1, over: int = 1) -> Words:
    """64-bit numbers `times` and then divided by so much, `missing` in the place of NULL."""
    known = pc.fill_null(column, 0).to_numpy() * times // over
    return np.where(column.is_null().to_numpy(), missing, known).astype(np.int64).view(np.uint64)


def _low_words(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The whole parts of decimals in 64 bits, the higher ones left out: Java's `BigDecimal.longValue`."""
    kind = column.type
    digits = max(1, kind.precision - kind.scale)
    whole = pa.decimal128(digits) if digits <= _DECIMAL128_DIGITS else pa.decimal256(digits)
    words_each = whole.byte_width // 8
    found = []
    for one in column.cast(options=pc.CastOptions(whole, allow_decimal_truncate=True)).chunks:
        words = np.frombuffer(one.buffers()[1], "<i8")[one.offset * words_each :: words_each]
        found.append(pa.array(words[: len(one)], mask=one.is_null().to_numpy(zero_copy_only=False)))
    return pa.chunked_array(found, pa.int64())


def _first_bytes(column: pa.ChunkedArray) -> Words:
    """The first eight bytes of each text; of a shorter one all, at the right."""
    texts = pc.fill_null(pc.binary_slice(column.cast(pa.binary()), 0, 8), b"")
    zeros = pc.binary_repeat(b"\0", pc.subtract(8, pc.binary_length(texts)))
    padded = pc.binary_join_element_wise(zeros, texts, b"")
    words = [np.frombuffer(one.buffers()[2], ">u8", len(one)) for one in padded.chunks if len(one)]
    return np.concatenate(words).astype(np.uint64) if words else np.zeros(0, np.uint64)


def _words(axes: Sequence[Words], bits: int) -> list[Words]:
    """The lowest `bits` of the axes, interleaved from the highest on, as words of 64 bits."""
    rows = len(axes[0])
    words = [np.zeros(rows, np.uint64) for _ in range(-(-len(axes) * bits // 64))]
    at = 0
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            words[at // 64] |= ((axis >> np.uint64(bit)) & np.uint64(1)) << np.uint64(63 - at % 64)
            at += 1
    return words
