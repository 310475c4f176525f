"""Aggregates over the rows a worker reads, batch by batch: few rows cross to the JVM, and Spark joins them.

1. What comes out is *partial*: for each batch a row for each group, with its part of a sum or count and its least or
   greatest value. Spark aggregates these rows again, and the outcome is what it would have made of all rows.
2. It is exact or it is not done. Numbers are whole ones, or decimals of up to 18 digits with sums, differences and
   products of them. No floating point: its sums depend on their order, and its NaN and -0.0 have rules of their own.
3. Spark wants each partial sum of decimals to fit into the type of what is summed, so a partial row stands for as many
   rows as surely fit; in the worst case for one.
4. Groups and extremes of text go by bytes, as in Spark. NULL is a group of its own and no value.
5. Without groups there is at least one row: the count of no rows is 0, while Spark's sum of no counts is NULL.

It knows pyarrow and NumPy; what of a query may come here is decided in `pushed_aggregate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.spark.unscaled import LONG_DIGITS, Longs, decimals, digits_of

Mask = npt.NDArray[np.bool_]

MAX_DIGITS: Final = 38
_MAX_LONG: Final = (1 << 63) - 1
_BYTES: Final = 256
_MAX_CELLS: Final = 1 << 16
"""Groups are counted in an array up to so many possible ones, and sorted beyond."""


@dataclass(frozen=True, slots=True)
class Column:
    """The value of a top-level column."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A decimal: its digits as a whole number, and its type."""

    digits: int
    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The sum, difference or product of two decimals, in the type that Spark gives it."""

    operator: Literal["+", "-", "*"]
    left: Expression
    right: Expression


Expression = Column | Constant | Arithmetic


@dataclass(frozen=True, slots=True)
class Measure:
    """One aggregate. `count` without `of` counts rows, with it values."""

    kind: Literal["count", "sum", "min", "max"]
    of: Expression | None = None


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Measures for each combination of the values of some columns."""

    groups: tuple[str, ...]
    measures: tuple[Measure, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it looks at, each once."""
        operands = (measure.of for measure in self.measures if measure.of is not None)
        return tuple(dict.fromkeys((*self.groups, *chain.from_iterable(map(columns_of, operands)))))


class Inexact(Exception):
    """What is asked cannot be promised to be what Spark would give."""


def columns_of(expression: Expression) -> tuple[str, ...]:
    """Names of the columns in an expression."""
    match expression:
        case Column(name):
            return (name,)
        case Arithmetic(_, left, right):
            return (*columns_of(left), *columns_of(right))
    return ()


def aggregated_schema(aggregation: Aggregation, schema: pa.Schema) -> pa.Schema:
    """The columns of partial rows: groups, then measures. `schema` is that of the rows.

    Raises:
        Inexact: for one of the groups or measures nothing can be promised.
    """
    if any(not _is_comparable(schema.field(name).type) for name in aggregation.groups):
        raise Inexact
    kinds = [schema.field(name).type for name in aggregation.groups]
    kinds += [_measured_type(measure, schema) for measure in aggregation.measures]
    return pa.schema([pa.field(f"_{at}", kind) for at, kind in enumerate(kinds)])


def decimal_type(expression: Expression, schema: pa.Schema) -> pa.Decimal128Type:
    """The type Spark gives a decimal expression.

    Raises:
        Inexact: it is no decimal, one of its parts has more than 18 digits, or it may lose digits.
    """
    match expression:
        case Column(name):
            kind = schema.field(name).type
            if not pa.types.is_decimal128(kind) or kind.precision > LONG_DIGITS:
                raise Inexact
            return kind
        case Constant(_, precision, scale):
            return pa.decimal128(precision, scale)
    left, right = (decimal_type(side, schema) for side in (expression.left, expression.right))
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale) + scale + 1
    if expression.operator == "*":
        scale, digits = left.scale + right.scale, left.precision + right.precision + 1
    if digits > MAX_DIGITS or scale < 0:
        raise Inexact
    return pa.decimal128(digits, scale)


def aggregated(
    batches: Iterable[pa.RecordBatch], aggregation: Aggregation, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Partial rows, in `aggregated_schema`, of batches that have the columns of the aggregation in `schema`."""
    made = aggregated_schema(aggregation, schema)
    if not aggregation.groups:
        nothing = [0 if measure.kind == "count" else None for measure in aggregation.measures]
        columns = [pa.array([value], field.type) for value, field in zip(nothing, made, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=made)
    for batch in batches:
        if batch.num_rows:
            yield _partial(_Rows(batch, schema), aggregation, made)


# --- one batch -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Values:
    """Whole numbers, of which those of valid rows count; they are between -`bound` and `bound`. Others are 0."""

    numbers: Longs
    valid: Mask | None
    bound: int
    scale: int = 0


class _TooLarge(Exception):
    """The numbers of a batch may leave 64 bits."""


class _Rows:
    """A batch whose columns are made numbers at most once."""

    def __init__(self, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        self.batch = batch
        self.count: int = batch.num_rows
        self.schema = schema
        self._known: dict[Expression, _Values] = {}

    def values(self, expression: Expression) -> _Values:
        found = self._known.get(expression)
        if found is None:
            found = self._known[expression] = self._computed(expression)
        return found

    def column(self, name: str) -> pa.Array:
        return self.batch.column(self.batch.schema.get_field_index(name))

    def _computed(self, expression: Expression) -> _Values:
        match expression:
            case Column(name):
                return _numbers(self.column(name))
            case Constant(digits, _, scale):
                return _Values(np.full(1, digits, np.int64), None, abs(digits), scale)
        left, right = self.values(expression.left), self.values(expression.right)
        return _combined(expression.operator, left, right)


def _combined(operator: str, left: _Values, right: _Values) -> _Values:
    if operator == "*":
        scale, bound = left.scale + right.scale, _within(left.bound * right.bound)
        numbers = left.numbers * right.numbers
    else:
        scale = max(left.scale, right.scale)
        left, right = _rescaled(left, scale), _rescaled(right, scale)
        bound = _within(left.bound + right.bound)
        numbers = left.numbers + right.numbers if operator == "+" else left.numbers - right.numbers
    masks = [side.valid for side in (left, right) if side.valid is not None]
    if not masks:
        return _Values(numbers, None, bound, scale)
    valid = np.logical_and.reduce(masks)
    return _Values(np.where(valid, numbers, 0), valid, bound, scale)


def _within(bound: int) -> int:
    if bound > _MAX_LONG:
        raise _TooLarge
    return bound


def _rescaled(values: _Values, scale: int) -> _Values:
    if values.scale == scale:
        return values
    factor = 10 ** (scale - values.scale)
    return _Values(values.numbers * _within(factor), values.valid, _within(values.bound * factor), scale)


def _numbers(column: pa.Array) -> _Values:
    """A column of integers, dates, timestamps or short decimals as whole numbers."""
    scale = 0
    if pa.types.is_decimal128(column.type):
        scale = column.type.scale
        numbers = digits_of(column)
    else:
        plain = {32: pa.int32(), 64: pa.int64()}.get(column.type.bit_width)
        whole = column.view(plain) if pa.types.is_temporal(column.type) and plain is not None else column
        filled = whole if whole.null_count == 0 else pc.fill_null(whole, 0)
        numbers = filled.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    valid = None
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        numbers = np.where(valid, numbers, 0)
    bound = max(abs(int(numbers.max())), abs(int(numbers.min())))
    return _Values(numbers, valid, bound, scale)


def _partial(rows: _Rows, aggregation: Aggregation, made: pa.Schema) -> pa.RecordBatch:
    pairs = list(zip(aggregation.measures, made.types[len(aggregation.groups) :], strict=True))
    try:
        rows_each = min((_rows_that_fit(rows, *pair) for pair in pairs), default=rows.count)
    except _TooLarge:
        rows_each = 1
    if rows_each < 2:
        return _row_by_row(rows, aggregation, made)
    groups = _grouped([rows.column(name) for name in aggregation.groups], rows.count, rows_each)
    measured = [_measured(rows, groups, *pair) for pair in pairs]
    return pa.RecordBatch.from_arrays([*groups.keys, *measured], schema=made)


def _rows_that_fit(rows: _Rows, measure: Measure, kind: pa.DataType) -> int:
    """How many rows a partial sum may stand for."""
    if measure.kind != "sum" or measure.of is None:
        return rows.count
    limit = _MAX_LONG
    if pa.types.is_decimal128(kind):
        limit = min(limit, 10 ** int(kind.precision) - 1)
    bound = rows.values(measure.of).bound
    return rows.count if bound == 0 else min(rows.count, limit // bound)


def _row_by_row(rows: _Rows, aggregation: Aggregation, made: pa.Schema) -> pa.RecordBatch:
    """Each row as a group of its own."""
    columns = [rows.column(name) for name in aggregation.groups]
    pairs = zip(aggregation.measures, made.types[len(columns) :], strict=True)
    return pa.RecordBatch.from_arrays([*columns, *(_alone(rows, *pair) for pair in pairs)], schema=made)


def _alone(rows: _Rows, measure: Measure, kind: pa.DataType) -> pa.Array:
    if measure.of is None:
        return pa.array(np.ones(rows.count, np.int64))
    value = _arrow(rows, measure.of)
    if isinstance(value, pa.Scalar):
        value = pa.repeat(value, rows.count)
    return value.is_valid().cast(kind) if measure.kind == "count" else value.cast(kind)


def _arrow(rows: _Rows, expression: Expression) -> Any:
    """The expression by Arrow's decimals, whose results have Spark's types."""
    match expression:
        case Column(name):
            return rows.column(name)
        case Constant(digits, precision, scale):
            return decimals(np.full(1, digits, np.int64), None, pa.decimal128(precision, scale))[0]
    function = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[expression.operator]
    return function(_arrow(rows, expression.left), _arrow(rows, expression.right))


# --- groups ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Groups:
    """`of_row`: which group each row is in; `keys` are the values of the groups, a column each."""

    of_row: npt.NDArray[np.intp]
    count: int
    keys: tuple[pa.Array, ...]

    @cached_property
    def sizes(self) -> Longs:
        """How many rows each group has."""
        return np.bincount(self.of_row, minlength=self.count).astype(np.int64)


def _grouped(columns: Sequence[pa.Array], rows: int, rows_each: int) -> _Groups:
    """Rows by equal values, and in stretches of `rows_each` rows."""
    parts = [_encoded(column) for column in columns]
    codes, cells = np.zeros(rows, np.int64), 1
    if rows_each < rows:
        codes, cells = np.arange(rows) // rows_each, -(-rows // rows_each)
    for part, values in parts:
        codes, cells = codes * len(values) + part, cells * len(values)
        if cells > _MAX_CELLS:
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
            cells = int(codes.max()) + 1
    first = np.full(cells, -1, np.int64)
    first[codes[::-1]] = np.arange(rows)[::-1]
    present = np.flatnonzero(first >= 0)
    place = np.zeros(cells, np.intp)
    place[present] = np.arange(len(present))
    at = first[present]
    return _Groups(place[codes], len(present), tuple(values.take(pa.array(part[at])) for part, values in parts))


def _encoded(column: pa.Array) -> tuple[Longs, pa.Array]:
    """A number for each row that is equal for equal values, and the values by number; NULL is a value here."""
    letters = _letters(column)
    if letters is not None:
        present = np.flatnonzero(np.bincount(letters, minlength=_BYTES))
        numbers = np.zeros(_BYTES, np.int64)
        numbers[present] = np.arange(len(present))
        return numbers[letters], pa.array([chr(byte) for byte in present.tolist()], column.type)
    coded = column.dictionary_encode(null_encoding="encode")
    return coded.indices.to_numpy().astype(np.int64), coded.dictionary


def _letters(column: pa.Array) -> npt.NDArray[np.uint8] | None:
    """The bytes of texts of one byte each, which flags and states often are; None for others."""
    if not pa.types.is_string(column.type) or column.null_count:
        return None
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    if ends[-1] - ends[0] != len(column) or (np.diff(ends) != 1).any():
        return None
    return np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]


# --- measures --------------------------------------------------------------------------------------------------------


def _measured(rows: _Rows, groups: _Groups, measure: Measure, kind: pa.DataType) -> pa.Array:
    if measure.kind == "count":
        return pa.array(_counts(groups, _valid(rows, measure)))
    if measure.of is None:
        raise ValueError("only a count is of no value")
    if measure.kind == "sum":
        values = rows.values(measure.of)
        sums = np.zeros(groups.count, np.int64)
        np.add.at(sums, groups.of_row, values.numbers)
        return _typed(sums, _counts(groups, values.valid) > 0, kind)
    column = rows.column(columns_of(measure.of)[0])
    if pa.types.is_string(kind):
        indices, texts = _encoded(column)
        order = pc.sort_indices(texts).to_numpy()
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        valid = None if column.null_count == 0 else column.is_valid().to_numpy(zero_copy_only=False)
        best, known = _extremes(groups, _Values(rank[indices], valid, 0), measure.kind)
        return texts.take(pa.array(order[np.where(known, best, 0)], mask=~known))
    best, known = _extremes(groups, rows.values(measure.of), measure.kind)
    return _typed(best, known, kind)


def _valid(rows: _Rows, measure: Measure) -> Mask | None:
    if measure.of is None:
        return None
    columns = [rows.column(name) for name in columns_of(measure.of)]
    masks = [one.is_valid().to_numpy(zero_copy_only=False) for one in columns if one.null_count]
    return np.logical_and.reduce(masks) if masks else None


def _counts(groups: _Groups, valid: Mask | None) -> Longs:
    if valid is None:
        return groups.sizes
    return np.bincount(groups.of_row[valid], minlength=groups.count).astype(np.int64)


def _extremes(groups: _Groups, values: _Values, kind: str) -> tuple[Longs, Mask]:
    """The least or greatest number of each group, and whether it has any."""
    lowest, highest = -_MAX_LONG - 1, _MAX_LONG
    found = np.full(groups.count, highest if kind == "min" else lowest, np.int64)
    of_row, numbers = groups.of_row, values.numbers
    if values.valid is not None:
        of_row, numbers = of_row[values.valid], numbers[values.valid]
    (np.minimum if kind == "min" else np.maximum).at(found, of_row, numbers)
    return found, _counts(groups, values.valid) > 0


def _typed(numbers: Longs, known: Mask, kind: pa.DataType) -> pa.Array:
    """Whole numbers in the type they stand for, NULL where nothing is known."""
    missing = None if known.all() else ~known
    if pa.types.is_decimal128(kind):
        return decimals(numbers, None if missing is None else pa.array(known).buffers()[1], kind)
    if missing is not None:
        numbers = np.where(missing, 0, numbers)
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(numbers, mask=missing).cast(width).view(kind)
    return pa.array(numbers, mask=missing).cast(kind)


# --- types -----------------------------------------------------------------------------------------------------------


def _measured_type(measure: Measure, schema: pa.Schema) -> pa.DataType:
    if measure.of is None or measure.kind == "count":
        if measure.kind != "count" or not (measure.of is None or isinstance(measure.of, Column)):
            raise Inexact
        return pa.int64()
    if isinstance(measure.of, Column):
        kind = schema.field(measure.of.name).type
        if measure.kind != "sum":
            if pa.types.is_boolean(kind) or not _is_comparable(kind):
                raise Inexact
            return kind
        if pa.types.is_integer(kind):
            return pa.int64()
    if measure.kind != "sum" or not columns_of(measure.of):
        raise Inexact
    return decimal_type(measure.of, schema)


def _is_comparable(kind: pa.DataType) -> bool:
    """Whether values are grouped and ordered the same way here and in Spark."""
    if pa.types.is_decimal128(kind):
        return bool(kind.precision <= LONG_DIGITS)
    plain = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_string, pa.types.is_date32, pa.types.is_timestamp)
    return any(fits(kind) for fits in plain)
