"""Random filters over all types: the local engine, with and without data skipping, keeps the rows Spark keeps, and
DuckDB where it means the same (`tests/unit/filters/test_filters_beside_duckdb.py` asks it for more).

`HOODIE_FILTERS` is the number of conditions (100; four times as many that cast and compute), `HOODIE_FILTER_SEED` where
they begin.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hoodie
from hoodie.errors import Unsupported
from hoodie.filters.sql import parse_filter
from hoodie.spark.arrow_types import spark_schema
from hoodie.testing.duckdb_filters import DuckFilters
from hoodie.testing.random_arithmetic import random_computation, random_numbers
from hoodie.testing.random_filters import random_condition, random_rows

pytestmark = pytest.mark.spark

COUNT = int(os.environ.get("HOODIE_FILTERS", "100"))
SEED = int(os.environ.get("HOODIE_FILTER_SEED", "15"))
PUSHED = 10
PLANNED = 100


def test_local_filters_with_and_without_skipping_keep_the_rows_spark_keeps(spark: SparkSession, tmp_path: Path) -> None:
    random = Random(SEED)
    rows = random_rows(random, 60)
    conditions = [random_condition(random) for _ in range(COUNT)]
    frame = spark.createDataFrame(rows, spark_schema(rows.schema))
    marked = frame.select("id", *(F.expr(f"({one}) <=> true").alias(f"c{n}") for n, one in enumerate(conditions)))
    told = marked.toArrow()
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.metadata.index.column.stats.enable": "true",
    }
    table = hoodie.Table.create(str(tmp_path / "t"), schema=rows.schema, options=options)
    for at in range(0, 60, 20):
        table.insert(rows.slice(at, 20))
    wrong = []
    duck, as_duckdb = DuckFilters(rows), 0
    for number, sql in enumerate(conditions):
        expected = sorted(told.filter(told.column(f"c{number}")).column("id").to_pylist())
        found = {"expression": rows.filter(parse_filter(sql, rows.schema))}
        for skip in (True, False):
            scan = table.scan(["id"], filter=sql, skip_data=skip)
            found[f"skipping {skip}"] = scan.read_all()
        if number < PUSHED:
            found["pushed"] = spark.read.format("hudi").load(str(tmp_path / "t")).where(sql).select("id").toArrow()
        as_duckdb += duck.ids(sql) == expected
        for way, kept in found.items():
            ids = sorted(kept.column("id").to_pylist())
            if ids != expected:
                wrong.append((way, sql, sorted(set(ids) ^ set(expected))))
    assert wrong == []
    assert as_duckdb > 0.8 * COUNT


def test_what_local_filters_cast_and_compute_is_what_spark_does_or_is_refused(spark: SparkSession) -> None:
    random = Random(SEED)
    rows = random_numbers(random, 100)
    conditions = [random_computation(random) for _ in range(4 * COUNT)]
    frame = spark.createDataFrame(rows, spark_schema(rows.schema)).cache()
    wrong, refused = [], 0
    for at in range(0, len(conditions), PLANNED):
        some = conditions[at : at + PLANNED]
        marked = frame.select("id", *(F.expr(f"({one}) <=> true").alias(f"c{n}") for n, one in enumerate(some)))
        told = marked.toArrow()
        for number, sql in enumerate(some):
            expected = sorted(told.filter(told.column(f"c{number}")).column("id").to_pylist())
            try:
                ids = sorted(rows.filter(parse_filter(sql, rows.schema)).column("id").to_pylist())
            except Unsupported:
                refused += 1
                continue
            if ids != expected:
                wrong.append((sql, sorted(set(ids) ^ set(expected))))
    assert wrong == []
    assert refused < 0.15 * len(conditions)
