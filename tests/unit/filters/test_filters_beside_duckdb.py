"""Random filters over all types: we keep the rows DuckDB keeps, wherever Spark and DuckDB mean the same.

Spark's answers, which are the rule, are asked for in `tests/spark/test_filter_law.py`. `HOODIE_DUCKDB_FILTERS` is the
number of conditions, `HOODIE_FILTER_SEED` where they begin.
"""

from __future__ import annotations

import os
from random import Random

from hoodie.filters.sql import parse_filter
from hoodie.testing.duckdb_filters import DuckFilters, means_the_same
from hoodie.testing.random_filters import random_condition, random_rows

COUNT = int(os.environ.get("HOODIE_DUCKDB_FILTERS", "200"))
SEED = int(os.environ.get("HOODIE_FILTER_SEED", "15"))


def test_local_filters_keep_the_rows_duckdb_keeps() -> None:
    random = Random(SEED)
    rows = random_rows(random, 60)
    duck, wrong, asked = DuckFilters(rows), [], 0
    for _ in range(COUNT):
        sql = random_condition(random, depth=1)
        expected = duck.ids(sql) if means_the_same(sql) else None
        if expected is None:
            continue
        asked += 1
        kept = sorted(rows.filter(parse_filter(sql, rows.schema)).column("id").to_pylist())
        if kept != expected:
            wrong.append((sql, sorted(set(kept) ^ set(expected))))
    assert wrong == []
    assert asked > 0.7 * COUNT
