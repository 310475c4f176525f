"""What Spark asks of an aggregate that could be computed where the rows are read, as a value; or that it cannot be.

1. Spark offers an aggregate through the DataSource V2 interfaces, as trees of columns, constants and functions without
   types. Types come from the table, and only what is exact is taken (`partial_aggregate`).
2. An average comes twice: as itself, and then as a sum and a count, which Spark divides as it always does. That gives
   the same digits for decimals of at least 12 digits only: for shorter ones Spark's own average goes by way of doubles,
   as it does for whole numbers.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from hoodie.spark.partial_aggregate import (
    Aggregation,
    Arithmetic,
    Column,
    Constant,
    Expression,
    Inexact,
    Measure,
    aggregated_schema,
    decimal_type,
)
from hoodie.spark.unscaled import LONG_DIGITS

_DIGITS_OF_DOUBLE: Final = 15
_DIGITS_OF_MEAN: Final = 4


def understood_aggregate(offered: Any, schema: pa.Schema) -> Aggregation | None:
    """The aggregation in a Java `Aggregation` over rows of `schema`; None when it is not exact here."""
    try:
        groups = tuple(_column(one).name for one in offered.groupByExpressions())
        measures = tuple(_measure(one) for one in offered.aggregateExpressions())
        found = Aggregation(groups, measures)
        _ensure_columns(found, schema)
        aggregated_schema(found, schema)
    except Inexact:
        return None
    return found


def has_inexact_mean(offered: Any, schema: pa.Schema) -> bool:
    """Whether one of the averages in a Java `Aggregation` is not exactly a sum divided by a count."""
    means = (one for one in offered.aggregateExpressions() if _kind(one) == "Avg")
    return any(not _is_exact_mean(one, schema) for one in means)


def _is_exact_mean(mean: Any, schema: pa.Schema) -> bool:
    try:
        operand = _expression(mean.column())
        _ensure_columns(Aggregation((), (Measure("sum", operand),)), schema)
        return bool(decimal_type(operand, schema).precision + _DIGITS_OF_MEAN > _DIGITS_OF_DOUBLE)
    except Inexact:
        return False


def _ensure_columns(aggregation: Aggregation, schema: pa.Schema) -> None:
    if any(schema.get_field_index(name) < 0 for name in aggregation.columns):
        raise Inexact


def _measure(one: Any) -> Measure:
    match _kind(one):
        case "CountStar":
            return Measure("count")
        case "Min":
            return Measure("min", _expression(one.column()))
        case "Max":
            return Measure("max", _expression(one.column()))
        case "Sum" if not one.isDistinct():
            return Measure("sum", _expression(one.column()))
        case "Count" if not one.isDistinct():
            return Measure("count", _expression(one.column()))
    raise Inexact


def _expression(one: Any) -> Expression:
    match _kind(one):
        case "FieldReference":
            return _column(one)
        case "LiteralValue":
            return _constant(one)
        case "GeneralScalarExpression":
            return _arithmetic(str(one.name()), list(one.children()))
    raise Inexact


def _arithmetic(name: str, operands: list[Any]) -> Arithmetic:
    if len(operands) == 2:
        left, right = operands
        match name:
            case "+" | "-" | "*":
                return Arithmetic(name, _expression(left), _expression(right))
    raise Inexact


def _column(one: Any) -> Column:
    if _kind(one) != "FieldReference":
        raise Inexact
    path = one.fieldNames()
    if len(path) != 1:
        raise Inexact
    return Column(str(path[0]))


def _constant(one: Any) -> Constant:
    kind, value = one.dataType(), one.value()
    is_decimal = str(kind.typeName()).startswith("decimal")
    if value is None or not is_decimal or int(kind.precision()) > LONG_DIGITS:
        raise Inexact
    return Constant(int(value.toUnscaledLong()), int(kind.precision()), int(kind.scale()))


def _kind(one: Any) -> str:
    return str(one.getClass().getSimpleName())
