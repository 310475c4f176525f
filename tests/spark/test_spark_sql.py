"""SQL on Hudi tables: queries by path and temporary views, read natively; what is not there says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import hoodie
from hoodie.errors import Invalid, Unsupported

pytestmark = [pytest.mark.spark, pytest.mark.first]

OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
DDL = "id string, city string, fare double, ts int"


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table with two commits: a, b, c, then a again."""
    path = str(tmp_path_factory.mktemp("sql") / "rides with `tick`")
    rows = [("a", "sf", 1.0, 1), ("b", "sf", 2.0, 1), ("c", "la", 3.0, 1)]
    spark.createDataFrame(rows, DDL).write.format("hudi").options(**OPTIONS).save(path)
    changed = spark.createDataFrame([("a", "sf", 9.0, 2)], DDL)
    changed.write.format("hudi").options(**OPTIONS).mode("append").save(path)
    return path


def _relation(base: str) -> str:
    return f"hudi.`{base.replace('`', '``')}`"


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_a_query_by_path_is_a_native_scan(spark: SparkSession, base: str) -> None:
    frame = spark.sql(
        f"SELECT t.id, '{{}}' AS braces FROM {_relation(base)} t WHERE fare > :least AND id > ''", args={"least": 2.5}
    )
    assert sorted(frame.collect()) == [("a", "{}"), ("c", "{}")]
    assert "FileScan parquet" in _plan(frame)
    assert "GreaterThan(id,)" in _plan(frame)
    assert "(fare," not in _plan(frame)  # bounds of older files leave out NaN
    assert [table.name for table in spark.catalog.listTables() if table.name.startswith("_pyspark")] == []


def test_a_query_by_path_looks_back(spark: SparkSession, base: str) -> None:
    first = hoodie.Table.open(base).timeline().completed_writes()[0].requested
    rows = spark.sql(f"SELECT fare FROM {_relation(base)} TIMESTAMP AS OF '{first}' WHERE id = 'a'").collect()
    assert rows[0].fare == 1.0


def test_frames_and_paths_may_be_mixed(spark: SparkSession, base: str) -> None:
    few = spark.createDataFrame([("a",)], "id string")
    rows = spark.sql(f"SELECT r.fare FROM {_relation(base)} r JOIN {{few}} f ON r.id = f.id", few=few).collect()
    assert [row.fare for row in rows] == [9.0]


@pytest.mark.parametrize("format", ["hudi", "org.apache.hudi"])
def test_a_temporary_view_is_a_native_scan(spark: SparkSession, base: str, format: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW rides_view USING {format} OPTIONS (path '{base}')")
    frame = spark.sql("SELECT id FROM rides_view WHERE city = 'la'")
    assert [row.id for row in frame.collect()] == ["c"]
    assert "FileScan parquet" in _plan(frame)


def test_a_view_takes_the_options_of_a_reader(spark: SparkSession, base: str) -> None:
    first = hoodie.Table.open(base).timeline().completed_writes()[0].completed
    spark.sql(
        f"CREATE GLOBAL TEMP VIEW changes USING hudi OPTIONS (path '{base}', "
        f"hoodie.datasource.query.type 'incremental', hoodie.datasource.read.begin.instanttime '{first}')"
    )
    assert [row.id for row in spark.sql("SELECT id FROM global_temp.changes").collect()] == ["a"]
    spark.catalog.dropGlobalTempView("changes")


def test_wrong_views_say_why(spark: SparkSession, base: str, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="no table"):
        spark.sql(f"CREATE TEMP VIEW nothing USING hudi OPTIONS (path '{tmp_path}/nothing')")
    with pytest.raises(Invalid, match="own schema"):
        spark.sql(f"CREATE TEMP VIEW nothing (a INT) USING hudi OPTIONS (path '{base}')")
    with pytest.raises(Unsupported, match="not supported yet"):
        spark.sql(f"INSERT INTO {_relation(base)} SELECT * FROM {_relation(base)}")


def test_the_python_data_source_gives_the_same_rows_filtered_or_not(spark: SparkSession, base: str) -> None:
    from pyspark.sql.readwriter import DataFrameReader  # noqa: PLC0415

    from hoodie.spark.data_source import register  # noqa: PLC0415

    register(spark)
    load = DataFrameReader.load.__wrapped__  # type: ignore[attr-defined]  # Spark's own, past our reader
    frame = load(spark.read.format("hudi").option("path", base))
    assert sorted(row.id for row in frame.where("fare > 2.5").collect()) == ["a", "c"]
    assert frame.count() == 3
    with pytest.raises(Invalid, match="no table"):
        load(spark.read.format("hudi").option("path", f"{base}-nothing"))
