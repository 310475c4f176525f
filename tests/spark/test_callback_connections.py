"""Queries and writes leave no connections behind, however many there are."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROUNDS = 6
SCHEMA = "id long, ts long"
SCHEMA = "id long, ts long"
WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "events",
    WRITE + "table.type": "MERGE_ON_READ",
    WRITE + "recordkey.field": "id",
    WRITE + "precombine.field": "ts",
}


def threads() -> int:
    return len(threading.enumerate())


def test_queries_and_writes_leave_no_threads(spark: SparkSession, tmp_path: Path) -> None:
    base = str(tmp_path / "events")

    def one_round(number: int) -> None:
        rows = [(key, number) for key in range(20)]
        frame = spark.createDataFrame(rows, SCHEMA)
        frame.write.format("hudi").options(**OPTIONS).mode("append").save(base)
        whole = spark.read.format("hudi").load(base)
        assert whole.toArrow().num_rows == 20
        assert len(whole.toPandas()) == 20
        bases = spark.read.format("hudi").option("hoodie.datasource.query.type", "read_optimized").load(base)
        assert bases.toArrow().num_rows == 20

    for number in range(2):
        one_round(number)
    before = threads()
    for number in range(ROUNDS):
        one_round(2 + number)
    assert threads() <= before + 3, "each round leaves threads that serve threads of the JVM which have ended"
