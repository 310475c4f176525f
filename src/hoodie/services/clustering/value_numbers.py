"""Numbers of 64 bits that stand in the order of values: where two differ, so do their values, in the same way. Pure.

1. Whole numbers, dates, times and floats are told apart by them, 64-bit ones wholly.
2. Of a text they say eight bytes, behind those that all texts of a sample begin with. A text that does not begin so
   comes before all others or behind them.
3. NULL has the least number, which some value may have, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.services.clustering.ordered_values import is_text, ordered_values

Numbers = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]
Numbering = Callable[[pa.ChunkedArray], Numbers]

_SIGN: Final = np.uint64(1 << 63)
_MOST: Final = np.uint64((1 << 64) - 1)
_BYTES: Final = 8


class NumberedValues:
    """Some values by their `numbers`, which are in order: others are looked up among them."""

    def __init__(self, values: pa.ChunkedArray, numbering: Numbering) -> None:
        self.numbers = np.sort(numbering(values))
        self._numbering = numbering

    def counted(self, column: pa.ChunkedArray) -> tuple[Places, Places]:
        """For each value of a column how many have lesser numbers, and how many no greater ones."""
        asked = self._numbering(column)
        below = np.searchsorted(self.numbers, asked, side="left")
        return below, np.searchsorted(self.numbers, asked, side="right")

    def below(self, column: pa.ChunkedArray) -> Places:
        """For each value of a column how many have lesser numbers."""
        return np.searchsorted(self.numbers, self._numbering(column), side="left")


def numbered_values(values: pa.ChunkedArray) -> NumberedValues | None:
    """The values by their numbers; None where those of their type have none."""
    numbering = _numbering(values)
    return None if numbering is None else NumberedValues(values, numbering)


def value_numbers(values: pa.ChunkedArray) -> Numbers | None:
    """The number of each value; None where those of their type have none."""
    numbering = _numbering(values)
    return None if numbering is None else numbering(values)


def _numbering(sample: pa.ChunkedArray) -> Numbering | None:
    """What gives the numbers of a column, most of whose values are like some of the sample."""
    kind = sample.type
    if pa.types.is_dictionary(kind):
        plain = _numbering(sample.cast(kind.value_type))
        return None if plain is None else lambda column: plain(column.cast(kind.value_type))
    if is_text(kind):
        ends = pc.min_max(sample.cast(_as_bytes(kind)))
        return _TextNumbers(_beginning_of(ends["min"].as_py() or b"", ends["max"].as_py() or b""))
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return _whole_numbers if is_number or pa.types.is_temporal(kind) else None


def _beginning_of(first: bytes, last: bytes) -> bytes:
    """What both begin with."""
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    return first[:same]


def _whole_numbers(column: pa.ChunkedArray) -> Numbers:
    return _joined(_whole_number(one) for one in ordered_values(column).chunks)


def _whole_number(values: pa.Array) -> Numbers:
    kind = values.type
    if pa.types.is_temporal(kind):
        values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    is_unsigned = pa.types.is_unsigned_integer(values.type)
    least = 0 if is_unsigned else np.iinfo(np.int64).min
    whole = values.cast(pa.uint64() if is_unsigned else pa.int64())
    numbers: Numbers = pc.fill_null(whole, least).to_numpy(zero_copy_only=False).view(np.uint64)
    return numbers if is_unsigned else numbers ^ _SIGN


class _TextNumbers:
    """The numbers of texts, most of which begin with `beginning`."""

    def __init__(self, beginning: bytes) -> None:
        self._beginning = beginning

    def __call__(self, column: pa.ChunkedArray) -> Numbers:
        return _joined(self._of(one) for one in column.cast(_as_bytes(column.type)).chunks)

    def _of(self, texts: pa.Array) -> Numbers:
        if not len(texts):
            return np.zeros(0, np.uint64)
        _, ends, data = texts.buffers()
        kind = np.int64 if pa.types.is_large_binary(texts.type) else np.int32
        bounds = np.frombuffer(ends, kind)[texts.offset : texts.offset + len(texts) + 1]
        known = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
        padded = np.concatenate([known, np.zeros(_BYTES, np.uint8)])
        at_each = np.ndarray((len(padded) - _BYTES + 1,), ">u8", padded, 0, (1,))
        begins = bounds[:-1] - bounds[0] + len(self._beginning)
        said = np.clip(bounds[1:] - bounds[0] - begins, 0, _BYTES)
        unsaid = (8 * (_BYTES - said)).astype(np.uint64)
        numbers = at_each[np.minimum(begins, len(at_each) - 1)].astype(np.uint64)
        numbers = np.where(said > 0, numbers >> unsaid << unsaid, np.uint64(0))
        if self._beginning:
            begins_so = pc.fill_null(pc.starts_with(texts, self._beginning), True)
            if begins_so.false_count:
                is_less = pc.fill_null(pc.less(texts, pa.scalar(self._beginning, texts.type)), True)
                apart = np.where(is_less.to_numpy(zero_copy_only=False), np.uint64(0), _MOST)
                numbers = np.where(begins_so.to_numpy(zero_copy_only=False), numbers, apart)
        if texts.null_count:
            numbers = np.where(texts.is_null().to_numpy(zero_copy_only=False), np.uint64(0), numbers)
        return numbers


def _as_bytes(kind: pa.DataType) -> pa.DataType:
    return pa.large_binary() if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) else pa.binary()


def _joined(numbers: Iterator[Numbers]) -> Numbers:
    found: Sequence[Numbers] = list(numbers)
    return np.concatenate(found) if found else np.zeros(0, np.uint64)
