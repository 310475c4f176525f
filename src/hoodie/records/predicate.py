"""Simple conditions on columns: which rows they keep, and which row groups cannot hold such rows.

1. A `Predicate` compares one column with one value; several are joined by AND. A row is kept when all are true: a
   comparison with null is not true, as in SQL.
2. `may_match` answers False only when the statistics prove it; whatever they do not tell, it takes for possible.
3. Comparison is Arrow's: a float NaN is neither larger nor smaller than a number.

For anything richer pass a `pyarrow.compute.Expression` to the reader; evaluating one makes pyarrow import pandas,
about a second of CPU, so single conditions are worth this small language.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.records.group_stats import ColumnStats

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "in", "is null", "is not null"]


@dataclass(frozen=True, slots=True)
class Predicate:
    """`column operator value`. `value` is a Python value of the column's type, a collection for `in`, None for the
    null tests.
    """

    column: str
    operator: Operator
    value: Any = None

    def __post_init__(self) -> None:
        if self.operator not in get_args(Operator):
            raise Invalid(
                f"Operator {self.operator!r} is not known", remedy=f"Use one of {', '.join(get_args(Operator))}"
            )

    def mask(self, values: pa.Array) -> pa.Array:
        """One boolean (or null) per value.

        Raises:
            Invalid: the value cannot be compared with the column.
        """
        try:
            return self._mask(values)
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise Invalid(
                f"Column `{self.column}` ({values.type}) cannot be compared with {self.value!r}",
                remedy="Use a value of the column's type",
                column=self.column,
            ) from error

    def _mask(self, values: pa.Array) -> pa.Array:
        if self.operator == "is null":
            return values.is_null()
        if self.operator == "is not null":
            return values.is_valid()
        if self.operator == "in":
            scalars = [_scalar(value, values.type) for value in self.value if value is not None]
            wanted = [scalar.as_py() for scalar in scalars if scalar.type.equals(values.type)]
            return pc.and_(pc.is_in(values, pa.array(wanted, values.type)), values.is_valid())
        return _KERNELS[self.operator](values, _scalar(self.value, values.type))

    def may_match(self, stats: ColumnStats) -> bool:
        """Whether a row group with these statistics may hold a row for which this is true."""
        if self.operator == "is null":
            return stats.nulls is None or stats.nulls > 0
        if stats.nulls is not None and stats.nulls == stats.rows:
            return False
        if self.operator in ("is not null", "!=") or stats.low is None or stats.high is None:
            return True
        try:
            if self.operator == "in":
                return any(stats.low <= value <= stats.high for value in self.value if value is not None)
            return bool(_RANGES[self.operator](stats.low, stats.high, self.value))
        except TypeError:
            return True


def matching_rows(batch: pa.RecordBatch, predicates: Sequence[Predicate]) -> pa.RecordBatch:
    """The rows for which all predicates are true."""
    if not predicates:
        return batch
    masks = [predicate.mask(batch.column(predicate.column)) for predicate in predicates]
    keep = masks[0]
    for mask in masks[1:]:
        keep = pc.and_kleene(keep, mask)
    return batch.filter(keep)


def _scalar(value: Any, data_type: pa.DataType) -> pa.Scalar:
    """`value` in the column's type if it keeps its value there (1.5 is no long), else left to the kernel."""
    try:
        scalar = pa.scalar(value, type=data_type)
        if scalar.as_py() == value:
            return scalar
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError):
        pass
    return pa.scalar(value)


_KERNELS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

_RANGES: Final[dict[str, Callable[[Any, Any, Any], Any]]] = {
    "=": lambda low, high, value: low <= value <= high,
    "<": lambda low, high, value: low < value,
    "<=": lambda low, high, value: low <= value,
    ">": lambda low, high, value: high > value,
    ">=": lambda low, high, value: high >= value,
}
