"""Spark's simple filters as SQL text of the dialect that `hoodie.query` understands.

Spark hands a source its filters in two forms: Catalyst expressions in the driver's JVM, and objects of
`pyspark.sql.datasource` in the Python process that plans a data source. Both are offers: a filter without a text here
is simply not used.

1. Columns are named as the table has them, never by the alias of a query (which the SQL text of an expression would
   show: `s.a` may be column `a` of view `s`, or a member of struct `s`).
2. Names are quoted, values are written so that they take the type of their column: a date compares with dates.
3. Values that have no exact text (bytes, NaN, infinity, dates outside of years 1 to 9999) make no text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hoodie.spark.sql_text import quoted

_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_TURNED = {
    "EqualTo": "EqualTo",
    "EqualNullSafe": "EqualNullSafe",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
}
_TESTS = {
    "StringStartsWith": "startswith",
    "StringEndsWith": "endswith",
    "StringContains": "contains",
    "StartsWith": "startswith",
    "EndsWith": "endswith",
    "Contains": "contains",
}
_PLAIN = frozenset({"byte", "short", "integer", "long", "float", "double", "boolean"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_VALUES = 1000


class _NoText(Exception):
    """The filter cannot be written exactly."""


def texts_of(filters: Iterable[Any]) -> tuple[str, ...]:
    """SQL of those filters of a Python data source that have one."""
    return _those_with_text(_python_text(one) for one in filters)


def texts_of_catalyst(expressions: Iterable[Any]) -> tuple[str, ...]:
    """SQL of those Catalyst expressions that have one. About ten calls into the JVM for each comparison."""
    return _those_with_text(_catalyst_text(one) for one in expressions)


def _those_with_text(texts: Iterable[Any]) -> tuple[str, ...]:
    return tuple(text for text in texts if text is not None)


# --- filters of Python data sources ----------------------------------------------------------------------------------


def _python_text(one: Any) -> str | None:
    kind = type(one).__name__
    try:
        if kind == "Not":
            inner = _python_text(one.child)
            return None if inner is None else f"NOT ({inner})"
        column = _column(one.attribute)
        if kind == "In":
            return _in(column, [_literal(value) for value in one.value])
        value = getattr(one, "value", None)
        return _leaf(kind, column, None if value is None else _literal(value))
    except _NoText:
        return None


# --- Catalyst expressions --------------------------------------------------------------------------------------------


def _catalyst_text(one: Any) -> str | None:
    try:
        return _condition(one)
    except _NoText:
        return None


def _condition(one: Any) -> str:
    match kind := _kind(one):
        case "And" | "Or":
            return f"({_condition(one.left())}) {kind.upper()} ({_condition(one.right())})"
        case "Not":
            return f"NOT ({_condition(one.child())})"
        case "IsNull" | "IsNotNull":
            return _leaf(kind, _path_text(one.child()), None)
        case "In":
            options = one.list()
            return _in(_path_text(one.value()), [_value_text(options.apply(at)) for at in range(options.size())])
        case "InSet":
            return _in(_path_text(one.child()), _set_texts(one))
        case "AttributeReference" | "GetStructField" | "KnownNullable":
            return _path_text(one)
    if kind not in _COMPARISONS and kind not in _TESTS:
        raise _NoText
    left, right = one.left(), one.right()
    if _kind(left) == "Literal" and kind in _TURNED:
        kind, left, right = _TURNED[kind], right, left
    return _leaf(kind, _path_text(left), _value_text(right))


def _kind(one: Any) -> str:
    return str(one.getClass().getSimpleName())


def _path_text(one: Any) -> str:
    return _column(_path(one))


def _path(one: Any) -> list[str]:
    """Names on the way to a column or to a member of a struct."""
    match _kind(one):
        case "AttributeReference":
            return [str(one.name())]
        case "GetStructField":
            return [*_path(one.child()), str(one.childSchema().fieldNames()[one.ordinal()])]
        case "KnownNullable":  # see `native_scan`
            return _path(one.child())
    raise _NoText


def _value_text(one: Any) -> str:
    if _kind(one) != "Literal":
        raise _NoText
    return _literal(_value(one.value(), str(one.dataType().typeName())))


def _set_texts(one: Any) -> list[str]:
    values = one.hset().toSeq()
    if values.size() > _MAX_VALUES:
        raise _NoText
    kind = str(one.child().dataType().typeName())
    return [_literal(_value(values.apply(at), kind)) for at in range(values.size())]


def _value(value: Any, kind: str) -> Any:
    """Catalyst's own form of a value as Python has it."""
    if value is None:
        raise _NoText
    if kind in _PLAIN:
        return value
    if kind == "string":
        return str(value.toString())
    if kind.startswith("decimal"):
        return Decimal(str(value.toString()))
    try:
        match kind:
            case "date":
                return _EPOCH.date() + timedelta(days=value)
            case "timestamp":
                return _EPOCH + timedelta(microseconds=value)
            case "timestamp_ntz":
                return (_EPOCH + timedelta(microseconds=value)).replace(tzinfo=None)
    except OverflowError as error:
        raise _NoText from error
    raise _NoText


# --- text ------------------------------------------------------------------------------------------------------------


def _leaf(kind: str, column: str, value: str | None) -> str:
    if kind == "IsNull":
        return f"{column} IS NULL"
    if kind == "IsNotNull":
        return f"{column} IS NOT NULL"
    if value is None:
        raise _NoText
    if kind in _TESTS:
        return f"{_TESTS[kind]}({column}, {value})"
    if kind not in _COMPARISONS:
        raise _NoText
    return f"{column} {_COMPARISONS[kind]} {value}"


def _in(column: str, values: Sequence[str]) -> str:
    if not values:
        raise _NoText
    return f"{column} IN ({', '.join(values)})"


def _column(path: Sequence[str]) -> str:
    return ".".join(map(quoted, path))


def _literal(value: Any) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case Decimal() if value.is_finite():
            return f"{value:f}"
        case str():
            return _quoted(value)
        case datetime() | date():
            return _quoted(value.isoformat())
    raise _NoText


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
