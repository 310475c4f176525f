"""Comparison of two row sets: order-insensitive, exact on every column, meta columns included."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa


def canonical(value: Any) -> Any:
    """A hashable form in which equal values, and only they, are equal (an int is not a float, NaN equals NaN)."""
    match value:
        case None:
            return None
        case bool():
            return ("bool", value)
        case float():
            return ("float", "nan" if math.isnan(value) else repr(value))
        case dict():
            return ("struct", *sorted((name, canonical(item)) for name, item in value.items()))
        case list() | tuple():
            return ("list", *(canonical(item) for item in value))
        case dt.datetime() if value.tzinfo:
            return ("instant", value.astimezone(dt.UTC).isoformat())
        case _:
            return (type(value).__name__, str(value))


def row_counts(rows: pa.Table, ignore: Collection[str] = ()) -> Counter[tuple[Any, ...]]:
    """How often each row occurs, its columns in name order."""
    names = sorted(name for name in rows.column_names if name not in ignore)
    columns = [_values(rows.column(name)) for name in names]
    return Counter(zip(*columns, strict=True)) if columns else Counter()


def difference(
    left: pa.Table, right: pa.Table, ignore: Collection[str] = (), called: tuple[str, str] = ("left", "right")
) -> str | None:
    """None when both hold the same rows, else a short text that shows where they differ."""
    columns = [{name for name in rows.column_names if name not in ignore} for rows in (left, right)]
    if columns[0] != columns[1]:
        only = [f"only in {name}: {sorted(mine - other)}" for name, mine, other in _sides(called, columns)]
        return "columns differ; " + "; ".join(only)
    counts = [row_counts(rows, ignore) for rows in (left, right)]
    if counts[0] == counts[1]:
        return None
    names = sorted(columns[0])
    parts = [f"{left.num_rows} rows in {called[0]}, {right.num_rows} in {called[1]}"]
    first = [sorted((mine - other).elements(), key=repr)[:3] for _, mine, other in _sides(called, counts)]
    for name, rows in zip(called, first, strict=True):
        parts += [f"only in {name}: {dict(zip(names, row, strict=True))}"[:1500] for row in rows]
    return "\n  ".join(parts)


def ensure_same_rows(
    left: pa.Table, right: pa.Table, ignore: Collection[str] = (), called: tuple[str, str] = ("left", "right")
) -> None:
    """Raises AssertionError with the first differing rows."""
    text = difference(left, right, ignore, called)
    assert text is None, text


def without_meta(rows: pa.Table) -> pa.Table:
    """The table's own columns."""
    return rows.select([name for name in rows.column_names if not is_meta(name)])


def is_meta(name: str) -> bool:
    """Whether a column is one of Hudi's five."""
    return name.startswith("_hoodie_") and name != "_hoodie_is_deleted"


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_map(column.type):
        return [
            None if value is None else ("map", *sorted(map(canonical, value), key=repr)) for value in column.to_pylist()
        ]
    return [canonical(value) for value in column.to_pylist()]


def _sides(called: tuple[str, str], both: list[Any]) -> list[tuple[str, Any, Any]]:
    return [(called[0], both[0], both[1]), (called[1], both[1], both[0])]


def as_mapping(rows: pa.Table, keys: Collection[str]) -> Mapping[tuple[Any, ...], dict[str, Any]]:
    """Rows by the values of `keys` (which must be unique)."""
    found = {tuple(row[key] for key in keys): row for row in rows.to_pylist()}
    assert len(found) == rows.num_rows, f"{keys} is not unique: {rows.num_rows} rows, {len(found)} keys"
    return found
