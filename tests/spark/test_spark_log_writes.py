"""Merge-on-read tables written through Spark: tasks in its workers, DataFrames, streams."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hoodie

pytestmark = pytest.mark.spark

DDL = "id string, part string, ts long, v string"
OPTIONS = {
    "hoodie.table.name": "logged",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}
# Nothing is small enough for the driver: every step runs in Spark's workers.
IN_WORKERS = {"hoodie.engine.local.max.bytes": "0"}
OPERATION = "hoodie.datasource.write.operation"


def _rows(spark: SparkSession, base: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.read.format("hudi").load(base).select("id", "part", "v").collect())


def _actions(base: str) -> list[str]:
    return [instant.action for instant in hoodie.Table.open(base).timeline().completed_writes()]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_workers_write_log_files(spark: SparkSession, tmp_path: Path, version: int) -> None:
    base = str(tmp_path / "table")
    options = {**OPTIONS, **IN_WORKERS, "hoodie.write.table.version": str(version)}

    def write(rows: list[tuple[Any, ...]], operation: str) -> None:
        frame = spark.createDataFrame(rows, DDL).repartition(2)
        frame.write.format("hudi").options(**options, **{OPERATION: operation}).mode("append").save(base)

    write([(f"a{n}", f"p{n % 2}", 1, "old") for n in range(10)], "bulk_insert")
    write([(f"a{n}", f"p{n % 2}", 2, "new") for n in range(6)], "upsert")
    write([("a0", "p0", 3, ""), ("a1", "p1", 3, "")], "delete")
    expected = [(f"a{n}", f"p{n % 2}", "new" if n < 6 else "old") for n in range(2, 10)]
    assert _rows(spark, base) == expected
    assert _actions(base) == ["deltacommit"] * 3
    logs = [log.name for one in hoodie.Table.open(base).files() for log in one.logs]
    assert len({name.write_token for name in logs}) == len(logs) >= 4
    assert hoodie.Table.open(base).validate() == []


@pytest.mark.parametrize("version", [6, 8, 9])
def test_stream_into_a_merge_on_read_table(spark: SparkSession, tmp_path: Path, version: int) -> None:
    base, inbox = str(tmp_path / "table"), tmp_path / "inbox"
    options = {**OPTIONS, "hoodie.write.table.version": str(version)}
    inbox.mkdir()
    for number, rows in enumerate(([("a", 1), ("b", 1)], [("a", 2)], [("a", 3), ("b", 3)])):
        lines = [json.dumps({"id": key, "part": "p", "ts": ts, "v": f"v{ts}"}) for key, ts in rows]
        file = inbox / f"{number}.json"
        file.write_text("\n".join(lines))
        os.utime(file, (number, number))  # the stream takes the oldest first
    frame = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).json(str(inbox))

    def save(batch: DataFrame, _: int) -> None:
        batch.write.format("hudi").options(**options).mode("append").save(base)

    writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.foreachBatch(save).start().awaitTermination()
    assert _rows(spark, base) == [("a", "p", "v3"), ("b", "p", "v3")]
    assert _actions(base) == ["deltacommit"] * 3
    assert hoodie.Table.open(base).version == version
    (one,) = hoodie.Table.open(base).files()
    assert one.logs

    # The sink notes its batches in delta commits, and knows them again. It compacts when the fifth of them is there.
    sink = frame.writeStream.format("hudi").options(**options).trigger(availableNow=True)
    sink = sink.option("checkpointLocation", str(tmp_path / "second"))
    sink.start(base).awaitTermination()
    assert _actions(base) == [*["deltacommit"] * 5, "commit", "deltacommit"]
    sink.start(base).awaitTermination()
    assert _actions(base) == [*["deltacommit"] * 5, "commit", "deltacommit"]
    assert _rows(spark, base) == [("a", "p", "v3"), ("b", "p", "v3")]
