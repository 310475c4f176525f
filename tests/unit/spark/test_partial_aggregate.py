"""Partial aggregates: joined, they are the aggregates of all rows, and each part fits into its type."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.spark.partial_aggregate import (
    Aggregation,
    Arithmetic,
    Column,
    Constant,
    Expression,
    Inexact,
    Measure,
    aggregated,
    aggregated_schema,
    columns_of,
    decimal_type,
)

SCHEMA = pa.schema(
    {
        "text": pa.string(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "flag": pa.bool_(),
        "byte": pa.int8(),
        "long": pa.int64(),
        "rate": pa.decimal128(4, 2),
        "price": pa.decimal128(15, 2),
        "digits": pa.decimal128(18, 0),
        "ratio": pa.float64(),
        "wide": pa.decimal128(30, 2),
        "list": pa.list_(pa.int32()),
    }
)
ONE = Constant(1, 1, 0)
DISCOUNTED = Arithmetic("*", Column("price"), Arithmetic("-", ONE, Column("rate")))
SUMS: tuple[Expression, ...] = (
    *(Column(name) for name in ("byte", "long", "rate", "price", "digits")),
    DISCOUNTED,
    Arithmetic("+", Column("rate"), Column("digits")),
    Arithmetic("*", Column("digits"), Column("price")),
)
EXTREMES = ("text", "day", "at", "byte", "long", "rate", "digits")
MEASURES = (
    Measure("count"),
    *(Measure("count", Column(name)) for name in SCHEMA.names),
    *(Measure("sum", one) for one in SUMS),
    *(Measure(kind, Column(name)) for kind in ("min", "max") for name in EXTREMES),  # type: ignore[arg-type]
)

START = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)
END = datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**digits - 1
    whole = st.one_of(st.sampled_from([0, 1, most, -most]), st.integers(-most, most))
    return whole.map(lambda number: Decimal(f"{number}e-{scale}"))


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": st.sampled_from(["", "A", "a", "é", "\U0001f600", "\uffee", "longer than most"]),
    "day": st.sampled_from([datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)]),
    "at": st.sampled_from([START, END, datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)]),
    "flag": st.booleans(),
    "byte": st.integers(-128, 127),
    "long": st.one_of(st.sampled_from([0, (1 << 63) - 1, -(1 << 63)]), st.integers(-1000, 1000)),
    "rate": decimals(4, 2),
    "price": decimals(15, 2),
    "digits": decimals(18, 0),
    "ratio": st.floats(),
    "wide": decimals(30, 2),
    "list": st.just([1]),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=40)


def value_of(row: dict[str, Any], expression: Expression) -> Any:
    match expression:
        case Column(name):
            return row[name]
        case Constant(digits, _, scale):
            return Decimal(digits).scaleb(-scale)
    left, right = value_of(row, expression.left), value_of(row, expression.right)
    if left is None or right is None:
        return None
    return {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right}[expression.operator]()


def whole(rows: Iterable[dict[str, Any]], measure: Measure) -> Any:
    """The measure of all rows, by plain Python."""
    values = [1 if measure.of is None else value_of(row, measure.of) for row in rows]
    return joined([value for value in values if value is not None], measure, is_part=False)


def joined(values: list[Any], measure: Measure, *, is_part: bool) -> Any:
    if measure.kind == "count":
        return sum(values) if is_part else len(values)
    if not values:
        return None
    if isinstance(values[0], str):  # text goes by bytes
        return (min if measure.kind == "min" else max)(values, key=lambda text: text.encode())
    return {"sum": sum, "min": min, "max": max}[measure.kind](values)


@settings(deadline=None)
@given(
    rows=ROWS,
    groups=st.lists(st.sampled_from(["text", "day", "at", "flag", "byte", "rate"]), max_size=3),
    cut=st.integers(1, 50),
)
def test_parts_joined_are_what_all_rows_give(rows: list[dict[str, Any]], groups: list[str], cut: int) -> None:
    aggregation = Aggregation(tuple(groups), MEASURES)
    made = aggregated_schema(aggregation, SCHEMA)
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    batches = [batch.slice(0) for batch in table.to_batches(max_chunksize=cut)]
    parts: dict[tuple[Any, ...], list[list[Any]]] = defaultdict(list)
    for batch in aggregated(batches, aggregation, SCHEMA):
        assert batch.schema.equals(made)
        batch.validate(full=True)
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            parts[row[: len(groups)]].append(list(row[len(groups) :]))
    wanted: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        wanted[tuple(row[name] for name in groups)].append(row)
    if not groups:
        wanted.setdefault((), [])
    assert parts.keys() == wanted.keys()
    with localcontext() as context:
        context.prec = 60
        for key, found in parts.items():
            for at, measure in enumerate(MEASURES):
                values = [part[at] for part in found if part[at] is not None]
                assert joined(values, measure, is_part=True) == whole(wanted[key], measure), (key, measure)


def test_rows_without_groups_give_one_part_even_if_there_are_none() -> None:
    aggregation = Aggregation((), (Measure("count"), Measure("sum", Column("long")), Measure("max", Column("text"))))
    (part,) = aggregated([], aggregation, SCHEMA)
    assert part.to_pylist() == [{"_0": 0, "_1": None, "_2": None}]


def test_many_rows_of_small_numbers_give_few_parts() -> None:
    rows = pa.table({"rate": pa.array([Decimal("0.10")] * 10_000, pa.decimal128(4, 2))})
    aggregation = Aggregation((), (Measure("sum", Column("rate")),))
    parts = list(aggregated(rows.to_batches(), aggregation, rows.schema))
    assert sum(part.num_rows for part in parts) == 1 + 11  # 999 of them are less than 100


@pytest.mark.parametrize(
    ("groups", "measure"),
    [
        (("ratio",), Measure("count")),
        (("wide",), Measure("count")),
        (("list",), Measure("count")),
        ((), Measure("sum", Column("ratio"))),
        ((), Measure("sum", Column("wide"))),
        ((), Measure("sum", Column("text"))),
        ((), Measure("sum", ONE)),
        ((), Measure("min", Column("ratio"))),
        ((), Measure("max", Column("flag"))),
        ((), Measure("min", DISCOUNTED)),
        ((), Measure("count", DISCOUNTED)),
        ((), Measure("sum", Arithmetic("*", Arithmetic("*", Column("price"), Column("price")), Column("digits")))),
        ((), Measure("sum", Arithmetic("+", Column("long"), Column("price")))),
    ],
)
def test_what_is_not_exact_is_refused(groups: tuple[str, ...], measure: Measure) -> None:
    with pytest.raises(Inexact):
        aggregated_schema(Aggregation(groups, (measure,)), SCHEMA)


def test_decimals_have_the_types_of_spark() -> None:
    assert decimal_type(DISCOUNTED, SCHEMA) == pa.decimal128(15 + 5 + 1, 4)
    assert decimal_type(Arithmetic("+", Column("rate"), Column("digits")), SCHEMA) == pa.decimal128(21, 2)
    assert columns_of(DISCOUNTED) == ("price", "rate")
