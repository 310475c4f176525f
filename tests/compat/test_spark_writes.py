"""Tables that were written through Spark (tasks in its workers, names and tokens of its stages): all peers agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from peers import Model, Readers, ensure_same_rows, slim_rows, table_options, typed_rows, without_meta

import hoodie

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSIONS = (6, 8, 9)
OPERATION = "hoodie.datasource.write.operation"
# Nothing is small enough for the driver: every step runs in Spark's workers.
IN_WORKERS = {"hoodie.engine.local.max.bytes": "0"}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    settings = {"spark.driver.memory": "1g", "spark.ui.enabled": False, "spark.sql.shuffle.partitions": 2}
    session = hoodie.session("hoodie-compat", master="local[2]", **settings, **{"spark.sql.session.timeZone": "UTC"})
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def _write(spark: SparkSession, table: Path, operation: str, rows: pa.Table, options: dict[str, str]) -> None:
    writer = spark.createDataFrame(rows).repartition(3).write.format("hudi")
    writer.options(**options, **IN_WORKERS, **{OPERATION: operation}).mode("append").save(str(table))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_peer_reads_inserts_updates_and_deletes_by_spark_and_hudi_continues(
    version: int, spark: SparkSession, readers: Readers, tmp_path: Path
) -> None:
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    options = table_options(version, "id", "region")
    for operation, rows in (
        ("bulk_insert", slim_rows(range(40))),
        ("insert", slim_rows(range(40, 50))),
        ("upsert", slim_rows(range(30, 60), turn=1)),
        ("delete", slim_rows(range(5), turn=1)),
    ):
        _write(spark, table, operation, rows, options)
        model.delete(rows) if operation == "delete" else model.upsert(rows)
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("ours", "model"))

    rows = slim_rows(range(55, 65), turn=2)
    readers.hudi_12.write(table, "upsert", rows)
    model.upsert(rows)
    rows = slim_rows(range(60, 70), turn=3)
    _write(spark, table, "upsert", rows, options)
    model.upsert(rows)
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("ours", "model"))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_peer_reads_every_type_that_spark_wrote(
    version: int, spark: SparkSession, readers: Readers, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    first, second = typed_rows(range(12), zoneless=False), typed_rows(range(8, 16), 1, zoneless=False)
    model = Model(first.schema)
    for operation, rows in (("bulk_insert", first), ("upsert", second)):
        _write(spark, table, operation, rows, table_options(version, "id", "region"))
        model.upsert(rows)
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("ours", "model"))
