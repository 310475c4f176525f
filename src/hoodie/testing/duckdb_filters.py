"""Conditions in Spark's SQL, asked of DuckDB over the same rows."""

from __future__ import annotations

import re
from typing import Final

import duckdb
import pyarrow as pa
import sqlglot

_DIFFERENT: Final = re.compile(
    r"""
    \\\\            # backslash has no meaning in its LIKE
    | '[^']*''        # two texts beside each other are one in Spark
    | '2024'          # no date to DuckDB
    | \bi\ =\ 1\ =   # chained comparisons
    | substring\(s,\ 0
    | \b[dnt]\ (NOT\ )?BETWEEN  # it compares with both ends in one type
    | isn(ot)?ull\(
    | isnan\(         # of NULL is false in Spark
    | \bf\b.*1\.1\b  # it compares floats with exact constants as floats
    | 1\.1\b.*\bf\b
    """,
    re.VERBOSE,
)


class DuckFilters:
    """Rows, and DuckDB to filter them, in UTC."""

    def __init__(self, rows: pa.Table) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.register("given", rows)

    def ids(self, sql: str) -> list[int] | None:
        """Numbers (`id`) of the rows for which the condition is true, sorted; None where DuckDB cannot tell."""
        (translated,) = sqlglot.transpile(sql, read="spark", write="duckdb")
        try:
            found = self._connection.execute(f"SELECT id FROM given WHERE {translated} ORDER BY id").fetchall()
        except duckdb.Error:
            return None
        return [number for (number,) in found]


def means_the_same(sql: str) -> bool:
    """Whether nothing in a random condition is known to be something else to DuckDB."""
    return _DIFFERENT.search(sql) is None
