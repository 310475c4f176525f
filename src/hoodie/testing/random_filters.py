"""Rows with the values that engines disagree about, and random conditions over them.

Conditions are in Spark's SQL and fail on no row in its ANSI mode: they divide by no zero and do not overflow.
They leave out `i < 9223372036854775808` and its like: Spark takes a comparison of a whole number with a constant beyond
all of them for decided, also where the number is NULL.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any, Final

import pyarrow as pa

_NAN, _INF = float("nan"), float("inf")
_MOMENTS: Final = (dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 10, 0, 0, 1), dt.datetime(1969, 12, 31, 23))

SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("part", pa.string()),
        pa.field("i", pa.int32()),
        pa.field("l", pa.int64()),
        pa.field("f", pa.float32()),
        pa.field("x", pa.float64()),
        pa.field("m", pa.decimal128(10, 2)),
        pa.field("d", pa.date32()),
        pa.field("t", pa.timestamp("us", "UTC")),
        pa.field("n", pa.timestamp("us")),
        pa.field("s", pa.string()),
        pa.field("b", pa.bool_()),
        pa.field("r", pa.binary()),
    ]
)

_VALUES: Final[Mapping[str, Sequence[Any]]] = {
    "i": [None, 0, 1, 5, 6, -1, 2**31 - 1, -(2**31)],
    "l": [None, 0, 1, 5, 10**18, 10**18 + 1, 2**63 - 1, -(2**63), 2**53 + 1],
    "f": [None, 0.0, -0.0, 1.1, 1.5, -2.0, _NAN, _INF, -_INF],
    "x": [None, 0.0, -0.0, 1.1, 1.5, 1e18, _NAN, _INF, -_INF, 5e-324],
    "m": [None, *map(Decimal, ("0.00", "1.50", "-1.50", "5.00", "99999999.99"))],
    "d": [None, *(dt.date(*one) for one in ((2024, 1, 1), (2024, 1, 2), (1969, 12, 31), (9999, 12, 31)))],
    "t": [None, *(one.replace(tzinfo=dt.UTC) for one in _MOMENTS)],
    "n": [None, *_MOMENTS],
    "s": [None, "", "a", "it's", 'say "x"', "ä😀", "A", "a%b", "a_b", "back\\slash"],
    "b": [None, True, False],
    "r": [None, b"", b"a", b"b"],
}
_NUMBERS: Final = (
    "0",
    "-0.0",
    "0D",
    "-0.0D",
    "1",
    "5",
    "5.5",
    "1.5",
    "1.50",
    "1.1",
    "1.1D",
    "-1",
    "2147483648",
    "1e18",
    "1000000000000000001",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "99999999.99",
    "1.005",
    "1e-3",
    "5e-324",
)
_BEYOND: Final = ("9223372036854775808", "-9223372036854775809")
_WHOLE: Final = tuple(one for one in _NUMBERS if one not in _BEYOND)
_FLOATS: Final = (*_NUMBERS, "double('NaN')", "double('Infinity')", "'NaN'", "'1.5'")
_TIMES: Final = (
    "'2024-01-01'",
    "'2024-01-01 10:00:00'",
    "'2024-01-01T10:00:00.000001'",
    "'2024-01-01 10:00:00.000001+02:00'",
    "'2024-1-2'",
    "'2024'",
    "'1969-12-31 23:00:00'",
    "DATE '2024-01-01'",
    "TIMESTAMP '2024-01-01 10:00:00.000001'",
    "TIMESTAMP '2024-01-01 00:00:00'",
    "TIMESTAMP_NTZ '2024-01-01 00:00:00'",
    "'9999-12-31'",
)
_TEXTS: Final = ("''", "'a'", "'it''s'", "'it\\'s'", "'say \"x\"'", "'ä😀'", "'A'", "'a%b'", "'back\\\\slash'", "'z'")
_CONSTANTS: Final[Mapping[str, Sequence[str]]] = {
    "i": _WHOLE,
    "l": _WHOLE,
    "m": _NUMBERS,
    "f": _FLOATS,
    "x": _FLOATS,
    "d": _TIMES,
    "t": _TIMES,
    "n": _TIMES,
    "s": _TEXTS,
    "b": ("true", "false", "'true'"),
    "r": ("'a'", "'b'", "''"),
}
_ALIKE: Final = (("i", "l", "m", "f", "x"), ("d", "t", "n"), ("s",), ("b",), ("r",))
_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_PATTERNS: Final = ("'a%'", "'%a'", "'_'", "'a\\\\%b'", "'A'", "'%''%'", "''")

_COUNTS: Final = ("0", "1", "2", "3.5", "NULL")
_DAYS: Final = ("1", "31", "12", "2024", "1969", "9999")
_CALLS: Final = (
    ("lower(s)", _TEXTS),
    ("upper(s)", _TEXTS),
    ("substring(s, 2)", _TEXTS),
    ("substring(s, 1, 1)", _TEXTS),
    ("substring(s, 0, 2)", _TEXTS),
    ("substring(s, -2, 1)", _TEXTS),
    ("substring(s, -9, 9)", _TEXTS),
    ("coalesce(s, 'z')", _TEXTS),
    ("CAST(i AS STRING)", ("'0'", "'1'", "'-1'", "'2147483647'", "''")),
    ("CAST(m AS STRING)", ("'0.00'", "'1.50'", "'-1.50'")),
    ("CAST(d AS STRING)", ("'2024-01-01'", "'2024'", "'9999-12-31'")),
    ("CAST(b AS STRING)", ("'true'", "'false'")),
    ("length(s)", _COUNTS),
    ("abs(m)", _NUMBERS),
    ("abs(x)", _FLOATS),
    ("-x", _FLOATS),
    ("-m", _NUMBERS),
    ("m + 1", _NUMBERS),
    ("m * 2", _NUMBERS),
    ("m - 1.005", _NUMBERS),
    ("x / 2", _FLOATS),
    ("i / 4", _FLOATS),
    ("coalesce(i, 5)", _WHOLE),
    ("coalesce(l, 5)", _WHOLE),
    ("coalesce(x, 5.5D)", _FLOATS),
    ("CAST(i AS BIGINT)", _WHOLE),
    ("CAST(i AS DOUBLE)", _FLOATS),
    ("CAST(i AS DECIMAL(12, 1))", _NUMBERS),
    ("CAST(b AS INT)", _COUNTS),
    ("CAST(t AS DATE)", _TIMES),
    ("CAST(n AS DATE)", _TIMES),
    ("CAST(d AS TIMESTAMP)", _TIMES),
    ("CAST(n AS TIMESTAMP)", _TIMES),
    ("CAST(t AS TIMESTAMP_NTZ)", _TIMES),
    ("year(d)", _DAYS),
    ("month(t)", _DAYS),
    ("day(n)", _DAYS),
    ("year(t)", _DAYS),
)
_TRUTHS: Final = (
    "b",
    "NOT b",
    "b IS TRUE",
    "b IS NOT TRUE",
    "b IS FALSE",
    "b IS NOT FALSE",
    "isnan(x)",
    "isnan(f)",
    "isnull(s)",
    "isnotnull(t)",
    "startswith(s, 'a')",
    "endswith(s, '%b')",
    "contains(s, 'a')",
    "s RLIKE '^a'",
    "s RLIKE 'b$'",
    "s LIKE 'a!%b' ESCAPE '!'",
    "s LIKE 'a/_b' ESCAPE '/'",
    "s NOT LIKE 'a!%b' ESCAPE '!'",
    "(s = 'a') = b",
    "(i > 0) <=> b",
    "i = 1 = true",
    "NULL",
    "true",
    "s = NULL",
    "i <=> NULL",
    "s IN (lower(s), 'A')",
    "i IN (l, 5)",
)


def random_rows(random: Random, rows: int) -> pa.Table:
    """Rows numbered by `id`, over three partitions."""
    columns = {name: [random.choice(values) for _ in range(rows)] for name, values in _VALUES.items()}
    columns |= {"id": list(range(rows)), "part": [f"p{number % 3}" for number in range(rows)]}
    return pa.table(columns, schema=SCHEMA)


def random_condition(random: Random, depth: int = 2) -> str:
    """A condition over these columns, of so many levels of AND, OR and NOT."""
    if depth and random.random() < 0.5:
        join = random.choice(("AND", "OR", "NOT"))
        inner = random_condition(random, depth - 1)
        return f"NOT ({inner})" if join == "NOT" else f"({inner}) {join} ({random_condition(random, depth - 1)})"
    return random.choice(_KINDS)(random, random.choice(list(_VALUES)))


def _comparison(random: Random, column: str) -> str:
    sides = [column, random.choice(_CONSTANTS[column])]
    random.shuffle(sides)
    return f"{sides[0]} {random.choice(_COMPARISONS)} {sides[1]}"


def _two_columns(random: Random, column: str) -> str:
    other = random.choice(next(alike for alike in _ALIKE if column in alike))
    return f"{column} {random.choice(_COMPARISONS)} {other}"


def _list(random: Random, column: str) -> str:
    some = random.choices((*_CONSTANTS[column], "NULL"), k=random.randint(1, 4))
    return f"{column} {random.choice(('IN', 'NOT IN'))} ({', '.join(some)})"


def _between(random: Random, column: str) -> str:
    low, high = random.choices(_CONSTANTS[column], k=2)
    return f"{column} {random.choice(('BETWEEN', 'NOT BETWEEN'))} {low} AND {high}"


def _null_test(random: Random, column: str) -> str:
    return f"{column} IS {random.choice(('NULL', 'NOT NULL'))}"


def _like(random: Random, column: str) -> str:
    return f"s {random.choice(('', 'NOT '))}{random.choice(('LIKE', 'ILIKE'))} {random.choice(_PATTERNS)}"


def _computed(random: Random, column: str) -> str:
    name = column if column in ("f", "x") else random.choice(("f", "x"))
    sum_ = f"{name} {random.choice('+-*')} {random.choice(('1', '0', '-1.5D', 'x'))}"
    return f"{sum_} {random.choice(_COMPARISONS)} {random.choice(_FLOATS)}"


def _of_function(random: Random, column: str) -> str:
    call, constants = random.choice(_CALLS)
    return f"{call} {random.choice(_COMPARISONS)} {random.choice(constants)}"


def _truth(random: Random, column: str) -> str:
    return random.choice(_TRUTHS)


_KINDS: Final[Sequence[Callable[[Random, str], str]]] = (
    _comparison,
    _comparison,
    _comparison,
    _two_columns,
    _list,
    _list,
    _between,
    _null_test,
    _like,
    _computed,
    _of_function,
    _truth,
)
