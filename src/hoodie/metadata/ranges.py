"""Value ranges of one column in many files, and which of the files may hold a value that passes a test.

1. A null bound is not known. Unknown means possible, never impossible.
2. `nulls == rows` says that no value is there at all; only `is null` can be true then.
3. No upper bound of floating point numbers is believed: NaN is greater than every number and in no statistics.
4. Bounds need not be values that occur: they may be wider than the values, never narrower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.records.condition import Comparison

Mask = npt.NDArray[np.bool_]

_MAX_SINGLE_VALUES: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """For each file least and greatest value, number of rows and of nulls; null where it is not known."""

    low: pa.Array
    high: pa.Array
    rows: pa.Array
    nulls: pa.Array

    def __len__(self) -> int:
        return len(self.low)

    def may_pass(self, test: Comparison) -> Mask:
        """Which files may hold a row for which the test is true. Values that do not compare rule nothing out."""
        if test.operator == "is null":
            return _mask(pc.not_equal(self.nulls, 0), unknown=True)
        # Hudi's expression indexes count values without nulls: there both counts may be equal and values be there.
        has_values = ~_mask(pc.equal(self.nulls, self.rows), unknown=False) | _mask(self.low.is_valid(), unknown=False)
        if test.operator == "is not null":
            return has_values
        try:
            return has_values & self._may_compare(test)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            return has_values

    def _may_compare(self, test: Comparison) -> Mask:
        if test.values.null_count == len(test.values):
            return np.zeros(len(self), dtype=np.bool_)  # a comparison with NULL is never true
        if pa.types.is_floating(test.values.type) and pc.any(pc.is_nan(test.values)).as_py():
            return np.ones(len(self), dtype=np.bool_)
        if test.operator == "in":
            return self._may_be_in(test.values.drop_null())
        if test.operator == "starts with":
            return self._may_start_with(test.values[0].as_py())
        return _COMPARISONS[test.operator](self, test.values[0])

    def _may_be_in(self, values: pa.Array) -> Mask:
        if len(values) <= _MAX_SINGLE_VALUES:
            return np.asarray(np.logical_or.reduce([_may_equal(self, value) for value in values]))
        ends = pc.min_max(values)
        return _reaches_down(self, ends["max"], pc.less_equal) & _reaches_up(self, ends["min"], pc.greater_equal)

    def _may_start_with(self, prefix: str) -> Mask:
        heads = pc.utf8_slice_codeunits(self.low, 0, len(prefix))
        return _mask(pc.less_equal(heads, prefix), unknown=True) & _mask(
            pc.greater_equal(self.high, prefix), unknown=True
        )


def _may_equal(ranges: Ranges, value: pa.Scalar) -> Mask:
    below = _mask(pc.less_equal(ranges.low, value), unknown=True)
    return below & _mask(pc.greater_equal(ranges.high, value), unknown=True)


def _may_differ(ranges: Ranges, value: pa.Scalar) -> Mask:
    if pa.types.is_floating(ranges.low.type):
        return np.ones(len(ranges), dtype=np.bool_)
    same = pc.and_(pc.equal(ranges.low, value), pc.equal(ranges.high, value))
    return ~_mask(same, unknown=False)


def _reaches_down(ranges: Ranges, value: pa.Scalar, compare: Callable[[Any, Any], Any]) -> Mask:
    """Whether the least value is small enough."""
    return _mask(compare(ranges.low, value), unknown=True)


def _reaches_up(ranges: Ranges, value: pa.Scalar, compare: Callable[[Any, Any], Any]) -> Mask:
    """Whether the greatest value is large enough."""
    if pa.types.is_floating(ranges.high.type):
        return np.ones(len(ranges), dtype=np.bool_)
    return _mask(compare(ranges.high, value), unknown=True)


_COMPARISONS: Final[Mapping[str, Callable[[Ranges, pa.Scalar], Mask]]] = {
    "=": _may_equal,
    "!=": _may_differ,
    "<": lambda ranges, value: _reaches_down(ranges, value, pc.less),
    "<=": lambda ranges, value: _reaches_down(ranges, value, pc.less_equal),
    ">": lambda ranges, value: _reaches_up(ranges, value, pc.greater),
    ">=": lambda ranges, value: _reaches_up(ranges, value, pc.greater_equal),
}


def _mask(answer: pa.Array, *, unknown: bool) -> Mask:
    return np.asarray(pc.fill_null(answer, unknown).to_numpy(zero_copy_only=False))
