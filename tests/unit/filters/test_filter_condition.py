"""What statistics are told of a filter: never more than the filter says."""

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.filters.sql import parse_row_filter
from hoodie.metadata import Ranges
from hoodie.records.condition import AllOf, AnyOf, Comparison, Condition

ROWS = pa.table(
    {
        "i": pa.array([None, -1, 0, 1, 2, 5], pa.int32()),
        "d": pa.array([float("nan"), None, -1.5, 0.0, 2.0, float("inf")]),
        "t": pa.array(["", None, "a", "ab%", "b_c", "é"]),
        "b": pa.array([True, False, None, True, False, None]),
        "day": pa.array([date(2024, 1, n) for n in range(1, 6)] + [None], pa.date32()),
        "at": pa.array([datetime(2024, 1, n) for n in range(1, 6)] + [None], pa.timestamp("us", tz="UTC")),
        "m": pa.array(
            [Decimal("1.25"), None, Decimal("-3.00"), Decimal("0.00"), Decimal("9.99"), None], pa.decimal128(9, 2)
        ),
        "s": pa.array([{"n": 1}, {"n": None}, None, {"n": 2}, {"n": 3}, {"n": -1}], pa.struct([("n", pa.int64())])),
    }
)

CONDITIONS = (
    "i = 1",
    "1 = i",
    "i != 1",
    "i <> 1 AND i < 5",
    "2 > i",
    "NOT i > 1",
    "NOT (i = 1 OR i = 2)",
    "NOT (i > 0 AND i < 5)",
    "i IN (1, 5)",
    "i IN (1, NULL)",
    "i NOT IN (1, 5)",
    "i BETWEEN 0 AND 2",
    "i NOT BETWEEN 0 AND 2",
    "i IS NULL",
    "i IS NOT NULL",
    "NOT (i IS NULL)",
    "isnull(i) OR i = -1",
    "i <=> 1",
    "i <=> NULL",
    "NOT (i <=> 1)",
    "i = 1.5 OR i > 1.5",
    "i = '1'",
    "i = d",
    "i + 1 = 2",
    "i = NULL",
    "d > 1",
    "d >= 2.0",
    "NOT (d > 1)",
    "NOT (d <= 1)",
    "d != 0",
    "d < -1",
    "t = 'a'",
    "t > 'a'",
    "t LIKE 'a%'",
    "t LIKE 'a'",
    "t LIKE '%'",
    "t LIKE 'b_c'",
    "t NOT LIKE 'a%'",
    "startswith(t, 'b')",
    "upper(t) = 'A'",
    "NOT (lower(t) = 'a')",
    "length(t) > 1",
    "i LIKE '1%'",
    "i LIKE 'x'",
    "b",
    "NOT b",
    "b = false",
    "b IS TRUE",
    "b IS NOT TRUE",
    "day = '2024-01-03'",
    "day > '2024-01-02' AND day < '2024-01-05'",
    "day = '2024-01-03 00:00:00'",
    "year(day) = 2024 AND month(day) = 1",
    "at >= '2024-01-04'",
    "m = 1.25",
    "m > 1 OR m IS NULL",
    "m < 1.255",
    "s.n = 2",
    "s.n IS NULL",
    "(i = 1 AND t = 'x') OR m = 9.99",
    "coalesce(i, 7) = 7",
)


@pytest.mark.parametrize("sql", CONDITIONS)
def test_where_the_condition_is_false_the_filter_is_not_true(sql):
    asked = parse_row_filter(sql, ROWS.schema)
    numbered = ROWS.append_column("row", pa.array(range(ROWS.num_rows)))
    true_at = set(numbered.filter(asked.expression).column("row").to_pylist())
    possible = set(np.flatnonzero(holds(asked.condition)).tolist())
    assert true_at <= possible, asked.condition


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("i = 1", [("i", "=", [1])]),
        ("2 > i", [("i", "<", [2])]),
        ("NOT (i BETWEEN 0 AND 2)", [("i", "<", [0]), ("i", ">", [2])]),
        ("i IN (1, 5)", [("i", "in", [1, 5])]),
        ("t LIKE 'a%'", [("t", "starts with", ["a"])]),
        ("s.n IS NULL", [("s.n", "is null", [])]),
        ("NOT b", [("b", "!=", [True])]),
        ("day = '2024-01-03'", [("day", "=", [date(2024, 1, 3)])]),
        ("upper(T) = 'A' AND I = 1", [("t", "=", ["A"]), ("i", "=", [1])]),
    ],
)
def test_simple_comparisons_are_told(sql, told):
    condition = parse_row_filter(sql, ROWS.schema).condition
    parts = (condition,) if isinstance(condition, Comparison) else condition.parts
    assert [(part.column, part.operator, part.values.to_pylist()) for part in parts] == told


def test_function_is_named():
    condition = parse_row_filter("upper(t) = 'A'", ROWS.schema).condition
    assert isinstance(condition, Comparison)
    assert condition.function == "upper"


@pytest.mark.parametrize("sql", ["i = d", "i NOT IN (1)", "i + 1 = 2", "i = 1 OR i = d", "t = 5", "t LIKE '%a'"])
def test_what_has_no_place_says_nothing(sql):
    condition = parse_row_filter(sql, ROWS.schema).condition
    assert isinstance(condition, AllOf)
    assert not condition.parts


def holds(condition: Condition):
    """Where the condition may be true when every row is a file of its own."""
    if isinstance(condition, Comparison):
        if condition.function:
            return np.ones(ROWS.num_rows, dtype=bool)
        values = ROWS.column(condition.column.partition(".")[0]).combine_chunks()
        for name in condition.column.split(".")[1:]:
            values = pc.struct_field(values, name)
        one = pa.array([1] * len(values), pa.int64())
        bounds = pc.if_else(pc.is_nan(values), None, values) if pa.types.is_floating(values.type) else values
        return Ranges(bounds, bounds, one, values.is_null().cast(pa.int64())).may_pass(condition)
    masks = [holds(part) for part in condition.parts]
    joined = np.logical_or if isinstance(condition, AnyOf) else np.logical_and
    return joined.reduce(masks) if masks else np.ones(ROWS.num_rows, dtype=bool)
