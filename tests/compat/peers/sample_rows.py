"""Rows for compat tables: one table with every type, one slim table, and a model that says what must come out.

Rows are a function of their number and of a round: row n of round r always has the same values.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

REGIONS = ("north", "south", "east")

SLIM = pa.schema(
    [
        ("id", pa.string()),
        ("region", pa.string()),
        ("day", pa.date32()),
        ("city", pa.int32()),
        ("seen_ms", pa.int64()),
        ("seen_text", pa.string()),
        ("ts", pa.int64()),
        ("name", pa.string()),
        ("amount", pa.float64()),
    ]
)

DEEP = pa.struct(
    [
        ("amount", pa.decimal128(12, 4)),
        ("at", pa.timestamp("us", "UTC")),
        ("numbers", pa.list_(pa.int32())),
    ]
)

TYPED_COLUMNS: dict[str, pa.DataType] = {
    "c_bool": pa.bool_(),
    "c_byte": pa.int8(),
    "c_short": pa.int16(),
    "c_int": pa.int32(),
    "c_long": pa.int64(),
    "c_float": pa.float32(),
    "c_double": pa.float64(),
    "c_string": pa.string(),
    "c_binary": pa.binary(),
    "c_date": pa.date32(),
    "c_ts": pa.timestamp("us", "UTC"),
    "c_dec_5_0": pa.decimal128(5, 0),
    "c_dec_10_2": pa.decimal128(10, 2),
    "c_dec_38_10": pa.decimal128(38, 10),
    "c_list": pa.list_(pa.int32()),
    "c_list_of_struct": pa.list_(pa.struct([("a", pa.string()), ("b", pa.float64())])),
    "c_list_of_list": pa.list_(pa.list_(pa.string())),
    "c_map": pa.map_(pa.string(), pa.int64()),
    "c_map_of_struct": pa.map_(pa.string(), pa.struct([("p", pa.date32()), ("q", pa.binary())])),
    "c_struct": pa.struct([("s", pa.string()), ("n", pa.int64()), ("deep", DEEP)]),
}
NO_ZONE = {"c_ntz": pa.timestamp("us")}


def slim_rows(numbers: Iterable[int], turn: int = 0) -> pa.Table:
    """Rows of the slim table; `turn` moves `ts` forward and changes the values, never key or partition columns."""
    rows = []
    for number in numbers:
        seen = dt.datetime(2024, 1, 1, 6, tzinfo=dt.UTC) + dt.timedelta(days=number % 4, minutes=number)
        rows.append(
            {
                "id": f"id{number:04d}",
                "region": REGIONS[number % 3],
                "day": seen.date(),
                "city": number % 2,
                "seen_ms": int(seen.timestamp() * 1000),
                "seen_text": seen.strftime("%Y-%m-%d %H:%M:%S"),
                "ts": 1000 * turn + number,
                "name": None if (number + turn) % 7 == 0 else f"name {number} of turn {turn} – ü",
                "amount": number / 4 + turn,
            }
        )
    return pa.Table.from_pylist(rows, SLIM)


def typed_rows(
    numbers: Iterable[int], turn: int = 0, *, zoneless: bool = True, nulls_in_lists: bool = False
) -> pa.Table:
    """Rows with every type: row 0 all NULL, row 1 the extremes, the others ordinary."""
    columns = TYPED_COLUMNS | (NO_ZONE if zoneless else {})
    fields = [("id", pa.string()), ("region", pa.string()), ("ts", pa.int64()), *columns.items()]
    rows = []
    for number in numbers:
        values = _typed_values(number, turn, nulls_in_lists)
        row = {"id": f"id{number:04d}", "region": REGIONS[number % 3], "ts": 1000 * turn + number}
        rows.append(row | {name: values.get(name) for name in columns})
    return pa.Table.from_pylist(rows, pa.schema(fields))


def ancient_rows() -> pa.Table:
    """Dates before the Gregorian calendar and timestamps before 1900: Spark reads them only where it trusts a file."""
    return pa.table(
        {
            "id": ["a", "b"],
            "region": ["north", "south"],
            "ts": pa.array([1, 2], pa.int64()),
            "c_date": pa.array([dt.date(1, 1, 1), dt.date(1582, 10, 4)]),
            "c_ts": pa.array([dt.datetime(1, 1, 1), dt.datetime(1899, 12, 31, 23, 59, 59)], pa.timestamp("us", "UTC")),
        }
    )


def _typed_values(number: int, turn: int, nulls_in_lists: bool) -> dict[str, Any]:
    if number == 0 and turn == 0:
        return {}
    if number == 1:
        return {
            "c_bool": True,
            "c_byte": -128,
            "c_short": -(2**15),
            "c_int": -(2**31),
            "c_long": -(2**63),
            "c_float": float("-inf"),
            "c_double": float("nan"),
            "c_string": "",
            "c_binary": b"",
            "c_date": dt.date(1583, 1, 1) if turn else dt.date(9999, 12, 31),
            "c_ts": dt.datetime(1900, 1, 1, 1, 2, 3, 456789, dt.UTC),
            "c_ntz": dt.datetime(2262, 4, 10, 23, 59, 59, 999999),
            "c_dec_5_0": decimal.Decimal(-99999),
            "c_dec_10_2": decimal.Decimal("99999999.99"),
            "c_dec_38_10": decimal.Decimal("-9999999999999999999999999999.9999999999"),
            "c_list": [],
            "c_list_of_struct": [{"a": None, "b": None}],
            "c_list_of_list": [[], ["x"]],
            "c_map": [],
            "c_map_of_struct": [("k", None)],
            "c_struct": {"s": None, "n": None, "deep": None},
        }
    at = dt.datetime(2024, 2, 29, 12, 30, 15, 123456) + dt.timedelta(hours=number, days=turn)
    return {
        "c_bool": number % 2 == 0,
        "c_byte": number % 100,
        "c_short": number * 3,
        "c_int": number * 1000 + turn,
        "c_long": number * 10**12 + turn,
        "c_float": number / 8,
        "c_double": number / 3 + turn,
        "c_string": f"text {number} 'quoted', \\ and ünïcode 字",
        "c_binary": bytes([number % 256, turn, 0, 255]),
        "c_date": at.date(),
        "c_ts": at.replace(tzinfo=dt.UTC),
        "c_ntz": at,
        "c_dec_5_0": decimal.Decimal(number),
        "c_dec_10_2": decimal.Decimal(number) + decimal.Decimal("0.25"),
        "c_dec_38_10": decimal.Decimal(number) * 10**15 + decimal.Decimal("0.0000000001"),
        "c_list": [number, turn, *([None] if nulls_in_lists else [])],
        "c_list_of_struct": [{"a": f"a{number}", "b": number / 2}],
        "c_list_of_list": [["a", "b"], [str(number)]],
        "c_map": [(f"k{number}", number), ("turn", None if number % 5 == 0 else turn)],
        "c_map_of_struct": [("m", {"p": at.date(), "q": b"\x01\x02"})],
        "c_struct": {
            "s": f"s{number}",
            "n": number,
            "deep": {"amount": decimal.Decimal("1.2345"), "at": at.replace(tzinfo=dt.UTC), "numbers": [1, number]},
        },
    }


def as_stored(rows: pa.Table) -> pa.Table:
    """The rows with the types a Hudi table can hold: byte and short become int."""
    narrow = {pa.int8(), pa.int16()}
    fields = [field.with_type(pa.int32()) if field.type in narrow else field for field in rows.schema]
    return rows.cast(pa.schema(fields))


class Model:
    """What a table must hold: rows by key, with event-time ordering on `ts`; knows nothing about files."""

    def __init__(self, schema: pa.Schema, keys: Sequence[str] = ("id",), ordering: str | None = "ts") -> None:
        self.schema = schema
        self._keys = tuple(keys)
        self._ordering = ordering
        self._rows: dict[tuple[Any, ...], dict[str, Any]] = {}

    def upsert(self, rows: pa.Table) -> None:
        for row in rows.to_pylist():
            old = self._rows.get(self._key(row))
            if old is None or self._ordering is None or row[self._ordering] >= old[self._ordering]:
                self._rows[self._key(row)] = row

    def delete(self, rows: pa.Table) -> None:
        for row in rows.to_pylist():
            self._rows.pop(self._key(row), None)

    def remove(self, column: str, values: Iterable[Any]) -> None:
        """Drops every row whose `column` has one of `values`, as partition operations do."""
        gone = set(values)
        self._rows = {key: row for key, row in self._rows.items() if row[column] not in gone}

    def clear(self) -> None:
        self._rows = {}

    @property
    def rows(self) -> pa.Table:
        return as_stored(pa.Table.from_pylist(list(self._rows.values()), self.schema))

    def _key(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[key] for key in self._keys)
