"""Rows of numbers, and random conditions that cast and compute: constants with constants, and columns with both.

Conditions are in Spark's SQL and fail on no row in its ANSI mode: they divide by no zero and do not overflow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any, Final

import pyarrow as pa

_NAN, _INF = float("nan"), float("inf")

SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("y", pa.int8()),
        pa.field("i", pa.int32()),
        pa.field("l", pa.int64()),
        pa.field("f", pa.float32()),
        pa.field("x", pa.float64()),
        pa.field("m", pa.decimal128(10, 2)),
        pa.field("w", pa.decimal128(38, 18)),
        pa.field("s", pa.string()),
    ]
)

_VALUES: Final[Mapping[str, Sequence[Any]]] = {
    "y": [None, 0, 1, 2, -3, 127, -128],
    "i": [None, 0, 1, 2, 3, -7, 16777217, 2**31 - 1, -(2**31)],
    "l": [None, 0, 1, 3, -7, 16777217, 10**18 + 1],
    "f": [None, 0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 1.5, -2.5, 16777216.0, _NAN, _INF],
    "x": [None, 0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 1.5, -2.5, 16777216.0, 16777217.0, 1 / 3, _NAN, -_INF],
    "m": [None, *map(Decimal, ("0.00", "0.10", "0.29", "0.30", "1.00", "1.50", "-2.50", "2.00", "99999999.99"))],
    "w": [
        None,
        *map(Decimal, ("0", "0.1", "0.3", "0.333333333333333333", "-1.000000000000000005", "12345678901234567")),
    ],
    "s": [None, "0.3", "01", "1", "1.5", "0.30", "3", "true", "-1"],
}
_WRITTEN: Final = ("0", "1", "2", "3", "7L", "2S", "3Y", "0.1", "0.2", "0.30", "1.50", "2.5", "1.005", "-1", "-0.5")
_MARKED: Final = ("0.1F", "1.5F", "0.3D", "1.1D", "1.5BD", "1e-1", "16777217D", "16777217F")
_CAST: Final = (
    "CAST(16777217 AS FLOAT)",
    "FLOAT(0.1)",
    "INT(2.9)",
    "DOUBLE(0.3)",
    "CAST('0.3' AS DOUBLE)",
    "CAST('0.1' AS FLOAT)",
    "CAST(' 2 ' AS INT)",
    "CAST('1.005' AS DECIMAL(10, 2))",
    "CAST(true AS INT)",
    "CAST(-1.7 AS BIGINT)",
)
_DIVISORS: Final = ("2", "3", "0.3", "1.50", "-0.5", "0.1F", "1.1D", "16777217")
_TYPES: Final = ("FLOAT", "DOUBLE", "INT", "BIGINT", "SMALLINT", "DECIMAL(12, 2)", "DECIMAL(12, 1)", "DECIMAL(20, 6)")
_COLUMNS: Final = (
    *("y", "i", "l", "f", "x", "m", "w"),
    *("-f", "-x", "-m", "-w", "abs(f)", "abs(m)", "abs(x)"),
    *("y + 1L", "y + 1000", "y * 2", "y * 0.5", "y / 2", "y + f", "y + m", "CAST(y AS STRING) + 1"),
    *("i / 4", "i * 0.5", "i + 0.1", "i + 1L", "i + 2147483648", "i / 3.0", "i + f", "i * 0.1F", "i + m", "i + '1'"),
    *("l / 4", "l * 0.5", "l - 1", "l / 3.0", "l + f", "l * m", "l + m", "i + l", "l + '1'"),
    *("f + 0.1F", "f * 10", "f * 10F", "f + 0.4", "f / 3", "f + f", "f * x", "f + m", "3 - f", "f + '1'"),
    *("x + 0.1", "x * 3", "x / 3", "x + 0.1F", "x + m", "1 - x"),
    *("m + 0.1", "m + 0.001", "m * 1.05", "m / 3", "m / 0.3", "m - 1", "m * m", "m + w", "m * -1", "3 - m", "m / 7.25"),
    *("w + 1", "w * 2", "w / 3", "w * 0.1", "w - 0.0000001", "w / 1.5", "w + '1'"),
    *("CAST(i AS BIGINT) + 1", "CAST(i AS DECIMAL(10, 0)) / 4", "CAST(i AS DECIMAL(12, 2)) * 2"),
    *("CAST(l AS DOUBLE)", "CAST(l AS DECIMAL(20, 1))", "CAST(y AS SMALLINT) * 2S"),
    *("CAST(m AS INT)", "CAST(m AS FLOAT)", "CAST(m AS DOUBLE)", "CAST(m AS DECIMAL(10, 1))", "CAST(m AS BIGINT)"),
    *("CAST(w AS DECIMAL(20, 2))", "CAST(w AS BIGINT)", "CAST(w AS DOUBLE)", "CAST(w AS FLOAT)"),
    *("CAST(x AS FLOAT)", "CAST(f AS DOUBLE)", "CAST(CAST(m AS DOUBLE) AS INT)", "CAST(m = 0.3 AS INT)"),
    *("coalesce(f, 0.1F)", "coalesce(f, 1)", "coalesce(i, 1.5)", "coalesce(m, 0.1 + 0.2)", "coalesce(y, i)"),
    *("coalesce(f, x)", "coalesce(m, x)", "coalesce(i, m)", "coalesce(m, NULL, 1.005)"),
)
_COMPARISONS: Final = ("=", "=", "=", "<>", "<", "<=", ">", ">=", "<=>")


def random_numbers(random: Random, rows: int) -> pa.Table:
    """Rows numbered by `id`."""
    columns = {name: [random.choice(values) for _ in range(rows)] for name, values in _VALUES.items()}
    return pa.table(columns | {"id": list(range(rows))}, schema=SCHEMA)


def random_computation(random: Random) -> str:
    """A condition over these columns that casts or computes."""
    if random.random() < 0.1:
        texts = (f"CAST({_constant(random, 1)} AS {one})" for one in ("DECIMAL(12, 2)", "DECIMAL(12, 1)", "INT"))
        return f"s {random.choice(_COMPARISONS)} CAST({random.choice(tuple(texts))} AS STRING)"
    subject, one, two = random.choice(_COLUMNS), _constant(random, 2), _constant(random, random.randint(0, 2))
    match random.randint(0, 9):
        case 0:
            return f"{subject} {random.choice(('IN', 'NOT IN'))} ({one}, {two})"
        case 1:
            return f"{subject} {random.choice(('BETWEEN', 'NOT BETWEEN'))} {one} AND {two}"
        case 2:
            return f"{one} {random.choice(_COMPARISONS)} {two}"
        case 3:
            return f"{one} {random.choice(_COMPARISONS)} {subject}"
    return f"{subject} {random.choice(_COMPARISONS)} {one}"


def _constant(random: Random, depth: int) -> str:
    """A number, computed in so many steps at most."""
    if not depth or random.random() < 0.2:
        return random.choice(random.choice((_WRITTEN, _WRITTEN, _MARKED, _CAST)))
    inner = _constant(random, depth - 1)
    match random.randint(0, 5):
        case 0:
            return f"-({inner})"
        case 1:
            return f"CAST({inner} AS {random.choice(_TYPES if '16777217' not in inner else _TYPES[:4])})"
        case 2:
            return f"({inner} / {random.choice(_DIVISORS)})"
    return f"({inner} {random.choice('+-*' if '16777217' not in inner else '+-')} {_small(random)})"


def _small(random: Random) -> str:
    return random.choice(random.choice((_WRITTEN, _WRITTEN, _MARKED[:6], _CAST[1:])))
