"""Aggregates as Spark's DataSource V2 offers them, told by stand-ins for the Java objects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from hoodie.spark.partial_aggregate import Aggregation, Arithmetic, Column, Constant, Measure
from hoodie.spark.pushed_aggregate import has_inexact_mean, understood_aggregate

SCHEMA = pa.schema(
    {
        "g": pa.string(),
        "i": pa.int32(),
        "p": pa.decimal128(15, 2),
        "d": pa.decimal128(4, 2),
        "x": pa.float64(),
    }
)


def java(kind: str, **members: Any) -> Any:
    """An object of a Java class whose methods give these members."""
    methods = {name: (lambda value=value: value) for name, value in members.items()}
    return SimpleNamespace(getClass=lambda: SimpleNamespace(getSimpleName=lambda: kind), **methods)


def column(*path: str) -> Any:
    return java("FieldReference", fieldNames=list(path))


def literal(digits: int, precision: int, scale: int, kind: str = "decimal(1,0)") -> Any:
    typed = java("DecimalType", typeName=kind, precision=precision, scale=scale)
    return java("LiteralValue", dataType=typed, value=java("Decimal", toUnscaledLong=digits))


def function(name: str, *operands: Any) -> Any:
    return java("GeneralScalarExpression", name=name, children=list(operands))


def measure(kind: str, of: Any, *, distinct: bool = False) -> Any:
    return java(kind, column=of, isDistinct=distinct)


def offered(*measures: Any, groups: tuple[Any, ...] = ()) -> Any:
    return java("Aggregation", aggregateExpressions=list(measures), groupByExpressions=list(groups))


ONE = literal(1, 1, 0)
DISCOUNTED = function("*", column("p"), function("-", ONE, column("d")))


def test_columns_constants_and_arithmetic_become_values() -> None:
    asked = offered(
        java("CountStar"), measure("Count", column("x")), measure("Sum", DISCOUNTED), measure("Max", column("g")),
        groups=(column("g"), column("i")),
    )  # fmt: skip
    product = Arithmetic("*", Column("p"), Arithmetic("-", Constant(1, 1, 0), Column("d")))
    expected = (Measure("count"), Measure("count", Column("x")), Measure("sum", product), Measure("max", Column("g")))
    assert understood_aggregate(asked, SCHEMA) == Aggregation(("g", "i"), expected)


@pytest.mark.parametrize(
    "asked",
    [
        offered(measure("Sum", column("x"))),
        offered(measure("Sum", column("i"), distinct=True)),
        offered(measure("Count", column("g"), distinct=True)),
        offered(measure("Sum", column("s", "member"))),
        offered(measure("Sum", column("nowhere"))),
        offered(measure("Sum", function("/", column("p"), column("d")))),
        offered(measure("Sum", function("ABS", column("p")))),
        offered(measure("Sum", function("+", column("p"), literal(1, 10, 0, "integer")))),
        offered(measure("Sum", function("+", column("p"), literal(1, 20, 0)))),
        offered(measure("Sum", java("Cast"))),
        offered(java("GeneralAggregateFunc")),
        offered(java("CountStar"), groups=(function("UPPER", column("g")),)),
        offered(java("CountStar"), groups=(column("x"),)),
    ],
)
def test_what_is_not_exact_or_not_known_is_left_to_spark(asked: Any) -> None:
    assert understood_aggregate(asked, SCHEMA) is None


@pytest.mark.parametrize(
    ("of", "is_inexact"),
    [(column("p"), False), (DISCOUNTED, False), (column("d"), True), (column("i"), True), (column("x"), True)],
)
def test_means_are_exact_where_spark_adds_up_decimals(of: Any, is_inexact: bool) -> None:
    assert has_inexact_mean(offered(java("CountStar"), measure("Avg", of)), SCHEMA) == is_inexact
    assert not has_inexact_mean(offered(measure("Sum", of)), SCHEMA)
