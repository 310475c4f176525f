"""Filters that cast and compute: the rows are those Spark keeps (4.3, in ANSI mode, which is its default), and where it
fails they are refused. `tests/spark/test_filter_law.py` asks Spark about random ones.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie.errors import HudiError, Invalid, Unsupported
from hoodie.filters.row_filter import matching
from hoodie.filters.sql import parse_filter
from hoodie.testing.lake import Lake, row

ROWS = pa.table(
    {
        "id": ["a", "b", "c", "d"],
        "f": pa.array([0.1, 0.5, float("nan"), 16777216.0], pa.float32()),
        "i": pa.array([1, 2, -7, None], pa.int32()),
        "l": pa.array([3, 16777217, -7, 10**18]),
        "y": pa.array([1, 127, -128, None], pa.int8()),
        "s": ["01", "1", "1.5", None],
        "d": pa.array([Decimal("0.30"), Decimal("2.00"), None, Decimal("-1.01")], pa.decimal128(10, 2)),
        "g": [0.3, -0.0, None, 1.5],
        "w": pa.array(
            [Decimal("12345678901234567890.123456789012345678"), Decimal(1), None, Decimal("-0.000000000000000005")],
            pa.decimal128(38, 18),
        ),
        "dt": [dt.date(2020, 1, 1), dt.date(2020, 1, 2), None, dt.date(1969, 12, 31)],
        "ts": pa.array(
            [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 12), None, dt.datetime(1969, 12, 31, 23, 59, 59, 500000)],
            pa.timestamp("us", "UTC"),
        ),
        "b": [True, False, None, True],
    }
)

KEPT_BY_SPARK = {
    "f = 0.1F": "a",
    "f IN (0.1F, 0.5)": "ab",
    "f IN (CAST(0.1 AS FLOAT))": "a",
    "f NOT IN (0.1F)": "bcd",
    "f <> 0.1F": "bcd",
    "f <=> 0.1F": "a",
    "f = FLOAT(0.1)": "a",
    "f = CAST('0.1' AS FLOAT)": "a",
    "f <= CAST(0.1 AS FLOAT)": "a",
    "f = -(-0.1F)": "a",
    "f = 0.1F + 0": "a",
    "f = 0.1": "",
    "f BETWEEN 0.1F AND 0.4 + 0.1": "ab",
    "f * 10 = 1": "",
    "f * 10F = 1": "a",
    "f + 0.4 = 0.5": "",
    "f + 0.4F = 0.5": "a",
    "f < 0.1 + 0.1": "a",
    "f = CAST(0.05 + 0.05 AS FLOAT)": "a",
    "CAST(f AS DOUBLE) = 0.1F": "a",
    "coalesce(f, 0.1F) = 0.1F": "a",
    "coalesce(f, 1) = 0.1": "",
    "i = CAST(1.7 AS INT)": "a",
    "i >= CAST(1.7 AS INT)": "ab",
    "i = INT(2.9)": "b",
    "i = CAST('2' AS INT)": "b",
    "i = CAST(' +2 ' AS INT)": "b",
    "i = CAST(-7.9D AS INT)": "c",
    "i IN (CAST(1.7 AS INT), 2)": "ab",
    "i IN (0.5 + 0.5, 2)": "ab",
    "i NOT IN (1, CAST(NULL AS INT))": "",
    "i BETWEEN CAST(1.9 AS INT) AND CAST('2' AS INT)": "ab",
    "i BETWEEN 3 / 2 AND 5": "b",
    "i <=> CAST(1.7 AS INT)": "a",
    "i / 2 = 0.5": "a",
    "i / 4 < 0.5": "ac",
    "i + '1' = 2": "a",
    "i + NULL IS NULL": "abcd",
    "coalesce(i, 1.5) = 1.5": "d",
    "coalesce(i, l) > 10": "d",
    "l = CAST(16777217 AS FLOAT)": "",
    "l = 16777217": "b",
    "l = CAST(16777217.9 AS BIGINT)": "b",
    "l / 3.0 = 1": "a",
    "l * 0.5 = 1.5": "a",
    "y * 2 = 254": "b",
    "y + 1000 > 1100": "b",
    "y = CAST('127' AS TINYINT)": "b",
    "s = CAST(1 AS STRING)": "b",
    "s = STRING(1)": "b",
    "s = CAST(1.50 AS STRING)": "",
    "s IN (CAST(1 AS STRING), '1.5')": "bc",
    "s = CAST(CAST(1.9 AS INT) AS STRING)": "b",
    "s = CAST(001 AS STRING)": "b",
    "s = 1.50": "c",
    "d = CAST(0.295 AS DECIMAL(10, 2))": "a",
    "d = CAST(1.996 AS DECIMAL(10, 2))": "b",
    "d = CAST('2' AS DECIMAL(10, 2))": "b",
    "d = CAST(-1.005 AS DECIMAL(10, 2))": "d",
    "d IN (CAST(1.999 AS DECIMAL(10, 2)))": "b",
    "d = 0.1 + 0.2": "a",
    "d IN (0.1 + 0.2, 2)": "ab",
    "d = 0.3D": "a",
    "d = 0.3F": "",
    "d + 0.1D = 0.4D": "a",
    "d / 3 = 0.1": "a",
    "d / 3 = 0.666667": "b",
    "d / -3 = -0.666667": "b",
    "d / 0.3 = 6.666667": "b",
    "d / i = 0.3": "a",
    "d / d = 1": "abd",
    "d * 3 / 3 = d": "abd",
    "d * d * d * d * d * 0.00001 = 0.00032": "b",
    "d + i = 1.3": "a",
    "3 - d = 2.7": "a",
    "CAST(d AS INT) = -1": "d",
    "CAST(d AS DECIMAL(10, 1)) = -1.0": "d",
    "CAST(d AS DOUBLE) = 0.3": "a",
    "CAST(d AS FLOAT) = 0.3F": "a",
    "CAST(d AS BOOLEAN)": "abd",
    "CAST(d AS STRING) = '0.30'": "a",
    "CAST(i AS DECIMAL(5, 2)) / 3 = 0.33333333": "",
    "CAST(i AS STRING) = CAST(1 AS STRING)": "a",
    "CAST(i AS BOOLEAN)": "abc",
    "CAST(g AS INT) = 1": "d",
    "CAST(w AS DECIMAL(25, 2)) = 12345678901234567890.12": "a",
    "w + 1 = 12345678901234567891.12345678901234568": "a",
    "w * 2 = 24691357802469135780.2469135780246914": "a",
    "w / 3 = 0.333333333333333333": "b",
    "w * 0.000001 = 0.000001": "b",
    "g = 0.1 + 0.2": "a",
    "g = 0.1D + 0.2D": "",
    "g IN (0.1 + 0.2)": "a",
    "g = 0.3F": "",
    "g + 0.1 = 0.4": "a",
    "g = CAST('0.3' AS DOUBLE)": "a",
    "0.1 + 0.2 = 0.3": "abcd",
    "0.1D + 0.2D = 0.3D": "",
    "0.10000000000000000001 = 0.1": "",
    "1.0 / 3 = 0.333333": "abcd",
    "1 / 3 = 0.3333333333333333": "abcd",
    "2 / 3.0 = 0.666667": "abcd",
    "CAST(2.5 AS DECIMAL(1, 0)) = 3": "abcd",
    "CAST(-2.5 AS DECIMAL(1, 0)) = -3": "abcd",
    "CAST(0.1 AS DECIMAL) = 0": "abcd",
    "CAST(0.1F AS DOUBLE) = 0.1": "",
    "CAST(1e40 AS FLOAT) = CAST('inf' AS FLOAT)": "abcd",
    "CAST(true AS DECIMAL(5, 2)) = 1": "abcd",
    "-(0.1) = -0.1": "abcd",
    "9223372036854775807 * 1.0 = 9223372036854775807": "abcd",
    "0.99999999999999999999999999999999999999 + 1 = 2": "abcd",
    "dt = CAST('2020-01-02 13:00:00' AS DATE)": "b",
    "dt = DATE('2020-01-01 10:00:00')": "a",
    "dt < CAST('2020-01-01 00:00:01' AS TIMESTAMP)": "ad",
    "ts = TIMESTAMP('2020-01-01')": "a",
    "ts = CAST('2020-01-01 14:00:00+02:00' AS TIMESTAMP)": "b",
    "CAST(dt AS STRING) = CAST(DATE '2020-01-02' AS STRING)": "b",
    "lower(d) = '0.30'": "a",
    "i LIKE '1%'": "a",
    "length(1.50) = 4": "abcd",
    "b = CAST(1 AS BOOLEAN)": "ad",
}

REFUSED_BY_SPARK = [
    "(y + 1Y) IS NOT NULL",
    "(y + y) IS NOT NULL",
    "(w * w) IS NOT NULL",
    "(i + s) IS NOT NULL",
    "(s + s) IS NOT NULL",
    "('1' + '2') IS NOT NULL",
    "(b + 1) IS NOT NULL",
    "(-y) IS NOT NULL",
    "(-CAST(-128 AS TINYINT)) IS NOT NULL",
    "(-(CAST(-2147483648 AS INT))) IS NOT NULL",
    "(2147483647 + 1) IS NOT NULL",
    "(9223372036854775807 + 1) IS NOT NULL",
    "(abs(CAST(-2147483648 AS INT))) IS NOT NULL",
    "(CAST(CAST('NaN' AS DOUBLE) AS INT)) IS NOT NULL",
    "(CAST(3e9 AS INT)) IS NOT NULL",
    "(CAST(300 AS TINYINT)) IS NOT NULL",
    "(CAST(1e19 AS BIGINT)) IS NOT NULL",
    "(CAST('1.7' AS INT)) IS NOT NULL",
    "(CAST('1e2' AS INT)) IS NOT NULL",
    "(CAST('' AS INT)) IS NOT NULL",
    "(CAST('0x1F' AS INT)) IS NOT NULL",
    "(CAST(dt AS INT)) IS NOT NULL",
    "(CAST(dt AS BIGINT)) IS NOT NULL",
    "(CAST(1 AS DATE)) IS NOT NULL",
    "(CAST(true AS TIMESTAMP)) IS NOT NULL",
    "(CAST(ts AS BOOLEAN)) IS NOT NULL",
    "(CAST(dt AS BOOLEAN)) IS NOT NULL",
    "(CAST(i AS BINARY)) IS NOT NULL",
    "(CAST(1 AS BINARY)) IS NOT NULL",
    "(CAST(w AS DECIMAL(10,2))) IS NOT NULL",
    "(CAST(f AS INT)) IS NOT NULL",
    "(CAST(l AS INT)) IS NOT NULL",
    "(CAST(l AS DECIMAL(10,2))) IS NOT NULL",
    "(CAST('2020-13-02' AS DATE)) IS NOT NULL",
    "(CAST('a' AS BOOLEAN)) IS NOT NULL",
    "(coalesce(s, 5)) IS NOT NULL",
    "s = 1",
    "s = CAST(1 AS INT)",
    "(w * w * 0.000000000001) IS NOT NULL",
    "(32767S + 1S) IS NOT NULL",
    "(127Y + 1Y) IS NOT NULL",
    "(100Y * 2Y) IS NOT NULL",
    "(-2147483648 - 1) IS NOT NULL",
    "(99999999999999999999999999999999999999 + 1) IS NOT NULL",
    "(CAST(9.95 AS DECIMAL(2,1))) IS NOT NULL",
    "(CAST(CAST(300 AS SMALLINT) AS TINYINT)) IS NOT NULL",
    "(CAST(w AS INT)) IS NOT NULL",
    "(CAST(w AS BIGINT)) IS NOT NULL",
    "(CAST(s AS INT)) IS NOT NULL",
    "(ts - 1) IS NOT NULL",
    "dt = 0",
    "dt = '2020-01-01' + 0",
    "s + 1 = 2",
    "s / 2 > 0.6",
    "'a' + i = 2",
    "i + '1.5' > 2",
    "i + true = 2",
    "(abs(y)) IS NOT NULL",
    "(y * 2Y) IS NOT NULL",
    "(l + 9223372036854775807) IS NOT NULL",
    "b = 1",
    "CAST(1.5 AS INT) = b",
]


def kept(sql: str) -> str:
    return "".join(matching(ROWS, parse_filter(sql, ROWS.schema)).column("id").to_pylist())


@pytest.mark.parametrize("sql", KEPT_BY_SPARK)
def test_what_is_cast_and_computed_is_what_spark_makes_of_it(sql):
    assert kept(sql) == KEPT_BY_SPARK[sql]


@pytest.mark.parametrize("sql", REFUSED_BY_SPARK)
def test_what_fails_in_spark_is_refused(sql):
    with pytest.raises(HudiError):
        kept(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "d / 3L = 0.1",  # the tree does not tell 3L, which has one digit, from CAST(3 AS BIGINT), which has twenty
        "d / -(3) = -0.1",  # nor is this the constant -3
        "CAST(g AS DECIMAL(10, 1)) = 0.3",  # by way of Java's text of a double
        "CAST(g AS STRING) = '0.3'",
        "s = CAST(1e0 AS STRING)",
        "CAST(w AS STRING) = '1'",
        "CAST(l AS FLOAT) = 16777217",  # Spark makes the long a double at once
        "CAST(ts AS BIGINT) = 1577836800",
        "CAST(i AS TIMESTAMP) > '1970-01-01'",
        "TRY_CAST(s AS INT) = 1",
        "d = CAST(1 AS DECIMAL(40, 2))",
        "i % 2 = 1",
        "i div 2 = 1",
        "lower(g) = '0.3'",
        "dt + 1 = dt",
    ],
)
def test_what_is_not_done_as_spark_does_it_is_named(sql):
    with pytest.raises(Unsupported, match="not supported here"):
        kept(sql)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("i + 2147483647 > 0", "computes a number over the rows that its type cannot hold. Cast .* to DOUBLE or DEC"),
        ("CAST(l AS INT) = 3", "computes a number over the rows that its type cannot hold"),
        ("CAST(d AS DECIMAL(2, 2)) = 0.3", "computes a number over the rows that its type cannot hold"),
        ("i = CAST(3e9 AS INT)", "casts '3e9' to int32, of which it is no value"),
        ("i = CAST('1.7' AS INT)", "casts '1.7' to int32, of which it is no value"),
        ("dt = i", "compares date32.* with int32, which does not go together"),
        ("d = " + "9" * 39 + ".5 - 1", "more than 38 digits. Write it with an exponent"),
    ],
)
def test_the_error_says_what_cannot_be_computed(sql, words):
    with pytest.raises(Invalid, match=words):
        kept(sql)


def test_a_scan_casts_its_constants_and_says_where_a_sum_is_too_large(version):
    lake = Lake(version)
    lake.upsert(row("a", ts=1), row("b", ts=2**63 - 1))
    assert lake.table.scan(["id"], filter="ts = CAST(1.7 AS INT)").read_all().column("id").to_pylist() == ["a"]
    with pytest.raises(Invalid, match="computes a number over .*parquet that its type cannot hold"):
        lake.table.scan(filter="ts + 1 > 2").read_all()
