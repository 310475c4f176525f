"""Views of Hudi tables are for reading: no statement and no call that writes to a name changes a file of the table."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hoodie
from hoodie.errors import HudiError, Unsupported

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
CITY = {"hoodie.datasource.write.partitionpath.field": "city"}
MERGED = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
VERSION = "hoodie.write.table.version"
DDL = "id string, city string, fare double, ts int"
ROWS = [("a", "sf", 1.0, 1), ("b", "sf", 2.0, 1), ("c", "la", 3.0, 1)]
TABLES: dict[str, dict[str, object]] = {
    "copy-on-write": {VERSION: 9, **CITY},
    "without partitions, version 6": {VERSION: 6},
    "merge-on-read, version 8": {VERSION: 8, **MERGED, **CITY},
    "merge-on-read with logs": {VERSION: 9, **MERGED},
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    made = {}
    for kind, options in TABLES.items():
        path = made[kind] = str(tmp_path_factory.mktemp("views") / "rides")
        rides = spark.createDataFrame(ROWS, DDL)
        rides.write.format("hudi").options(**OPTIONS, **options).save(path)
        if "logs" in kind:
            rides.limit(1).write.format("hudi").options(**OPTIONS, **options).mode("append").save(path)
    return made


@pytest.fixture
def kept(spark: SparkSession, tables: dict[str, str]) -> Iterator[None]:
    """Every file of every table is the same afterwards, byte by byte, and nothing of the test stays in the catalog."""
    before = {path: _files(path) for path in tables.values()}
    yield
    assert {path: _files(path) for path in tables.values()} == before
    spark.catalog.clearCache()
    for view in ("rides", "again"):
        spark.catalog.dropTempView(view)
    spark.catalog.dropGlobalTempView("rides")


def _files(path: str) -> dict[str, tuple[int, str]]:
    files = (file for file in Path(path).rglob("*") if file.is_file())
    return {str(file): (file.stat().st_size, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files}


@dataclass(frozen=True)
class Place:
    """A session in which the view `rides` is one of a table, and `rows` has rows that would fit."""

    spark: SparkSession
    path: str

    def sql(self, text: str) -> DataFrame:
        return self.spark.sql(text)

    @property
    def rows(self) -> DataFrame:
        return self.spark.table("new_rides")


def _place(spark: SparkSession, frame: DataFrame, path: str) -> Place:
    frame.createOrReplaceTempView("rides")
    rows = spark.createDataFrame([(None,) * len(frame.columns)], frame.schema)
    rows.createOrReplaceTempView("new_rides")
    return Place(spark, path)


MATCH = "MERGE INTO rides t USING new_rides s ON t.id = s.id"
WRITES: dict[str, Callable[[Place], Any]] = {
    "insert": lambda at: at.sql("INSERT INTO rides SELECT * FROM new_rides"),
    "insert some columns": lambda at: at.sql("INSERT INTO rides (id) VALUES ('d')"),
    "insert by name": lambda at: at.sql("INSERT INTO TABLE rides BY NAME SELECT * FROM new_rides"),
    "insert below with": lambda at: at.sql("WITH x AS (SELECT * FROM new_rides) INSERT INTO rides SELECT * FROM x"),
    "overwrite": lambda at: at.sql("insert overwrite `rides` select * from new_rides"),
    "overwrite a partition": lambda at: at.sql("INSERT OVERWRITE rides PARTITION (city) SELECT * FROM new_rides"),
    "overwrite after from": lambda at: at.sql("FROM new_rides INSERT OVERWRITE TABLE rides SELECT *"),
    "replace where": lambda at: at.sql("INSERT INTO rides REPLACE WHERE id = 'a' SELECT * FROM new_rides"),
    "overwrite when cached": lambda at: (
        at.sql("CACHE TABLE rides"),
        at.sql("INSERT OVERWRITE rides SELECT * FROM new_rides"),
    ),
    "overwrite a view of the view": lambda at: (
        at.sql("CREATE OR REPLACE TEMP VIEW again AS SELECT * FROM rides"),
        at.sql("INSERT OVERWRITE again SELECT * FROM new_rides"),
    ),
    "overwrite a view of its rows": lambda at: (
        at.spark.table("rides").alias("other").where("id is not null").createOrReplaceTempView("again"),
        at.sql("INSERT OVERWRITE again SELECT * FROM new_rides"),
    ),
    "overwrite a global view": lambda at: (
        at.spark.table("rides").createOrReplaceGlobalTempView("rides"),
        at.sql("INSERT OVERWRITE global_temp.rides SELECT * FROM new_rides"),
    ),
    "overwrite a view of the format": lambda at: (
        at.sql(f"CREATE OR REPLACE TEMPORARY VIEW again USING hudi OPTIONS (path '{at.path}')"),
        at.sql("INSERT OVERWRITE again SELECT * FROM new_rides"),
    ),
    "insert by path": lambda at: at.sql(f"INSERT OVERWRITE hudi.`{at.path}` SELECT * FROM new_rides"),
    "delete": lambda at: at.sql("DELETE FROM rides WHERE id = 'a'"),
    "delete all": lambda at: at.sql("DELETE FROM rides"),
    "update": lambda at: at.sql("UPDATE rides SET fare = 1"),
    "merge": lambda at: at.sql(f"{MATCH} WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"),
    "insertInto": lambda at: at.rows.write.insertInto("rides"),
    "insertInto overwrite": lambda at: at.rows.write.insertInto("rides", overwrite=True),
    "insertInto in mode overwrite": lambda at: at.rows.write.mode("overwrite").insertInto(tableName="rides"),
    "saveAsTable append": lambda at: at.rows.write.mode("append").saveAsTable("rides"),
    "saveAsTable overwrite": lambda at: at.rows.write.mode("overwrite").saveAsTable("rides"),
    "writeTo append": lambda at: at.rows.writeTo("rides").append(),
    "writeTo overwrite": lambda at: at.rows.writeTo("rides").overwrite(F.lit(True)),
    "writeTo overwritePartitions": lambda at: at.rows.writeTo("rides").overwritePartitions(),
    "writeTo createOrReplace": lambda at: at.rows.writeTo("rides").using("parquet").createOrReplace(),
    "mergeInto": lambda at: at.rows.mergeInto("rides", F.expr("rides.id = 'a'")).whenMatched().delete().merge(),
    "toTable": lambda at: at.spark.readStream.format("rate").load().writeStream.toTable("rides"),
}


@pytest.mark.parametrize("how", WRITES)
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read with logs"])
@pytest.mark.usefixtures("kept")
def test_a_write_to_a_view_is_refused(spark: SparkSession, tables: dict[str, str], kind: str, how: str) -> None:
    place = _place(spark, spark.read.format("hudi").load(tables[kind]), tables[kind])
    with pytest.raises(Unsupported, match="is a view of a Hudi table|not supported yet"):
        WRITES[how](place)


OTHERS = (
    "TRUNCATE TABLE rides", "ALTER TABLE rides DROP PARTITION (city = 'sf')", "ALTER TABLE rides ADD COLUMNS (x INT)",
    "ALTER TABLE rides SET LOCATION '/nowhere'", "LOAD DATA LOCAL INPATH '/nowhere' INTO TABLE rides",
    "MSCK REPAIR TABLE rides", "ANALYZE TABLE rides COMPUTE STATISTICS", "REFRESH TABLE rides", "CACHE TABLE rides",
    "BEGIN INSERT OVERWRITE rides SELECT * FROM new_rides; END", "DROP TABLE IF EXISTS rides", "DROP VIEW rides",
    "EXECUTE IMMEDIATE 'INSERT OVERWRITE rides SELECT * FROM new_rides'",
    "INSERT OVERWRITE IDENTIFIER('rides') SELECT * FROM new_rides",
)  # fmt: skip


@pytest.mark.usefixtures("kept")
def test_statements_on_the_view_itself_leave_the_table_alone(spark: SparkSession, tables: dict[str, str]) -> None:
    path = tables["copy-on-write"]
    for statement in OTHERS:
        place = _place(spark, spark.read.format("hudi").load(path), path)
        before = _files(path)
        with contextlib.suppress(PySparkException, Py4JError, HudiError):
            place.sql(statement)
        assert _files(path) == before, statement


def _earlier(spark: SparkSession, path: str) -> DataFrame:
    first = hoodie.Table.open(path).timeline().completed_writes()[0].requested
    return spark.read.format("hudi").option("as.of.instant", first).load(path)


FRAMES: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "snapshot": lambda spark, path: spark.read.format("hudi").load(path),
    "read optimized": lambda spark, path: (
        spark.read.format("hudi").option("hoodie.datasource.query.type", "read_optimized").load(path)
    ),
    "time travel": _earlier,
    "changed rows": lambda spark, path: (
        spark.read.format("hudi")
        .option("hoodie.datasource.query.type", "incremental")
        .option("hoodie.datasource.read.begin.instanttime", "000")
        .load(path)
    ),
    "by path": lambda spark, path: spark.sql(f"SELECT * FROM hudi.`{path}`"),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("what", FRAMES)
@pytest.mark.usefixtures("kept")
def test_spark_itself_finds_nothing_to_write_to(
    spark: SparkSession, tables: dict[str, str], kind: str, what: str
) -> None:
    """Past our message: the JVM's own `sql`, which knows nothing of `view_writes`."""
    path = tables[kind]
    _place(spark, FRAMES[what](spark, path), path)
    for statement in ("INSERT INTO", "INSERT OVERWRITE"):
        with pytest.raises((PySparkException, Py4JError)):
            spark._jsparkSession.sql(f"{statement} rides SELECT * FROM new_rides")


@pytest.mark.usefixtures("kept")
def test_the_bare_relation_of_a_native_scan_cannot_be_written_to_either(
    spark: SparkSession, tables: dict[str, str]
) -> None:
    path = tables["without partitions, version 6"]
    frame = spark.read.format("hudi").load(path)
    relation = frame._jdf.queryExecution().analyzed().collectLeaves().head()
    assert "Relation [" in relation.toString()
    bare = spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, relation)
    _place(spark, frame, path)
    bare.createOrReplaceTempView("rides")
    for statement in ("INSERT INTO", "INSERT OVERWRITE"):
        with pytest.raises(PySparkException, match="single path"):
            spark._jsparkSession.sql(f"{statement} rides SELECT * FROM new_rides")


@pytest.mark.usefixtures("kept")
def test_a_view_over_the_python_data_source_refuses_writes(spark: SparkSession, tables: dict[str, str]) -> None:
    from pyspark.sql.readwriter import DataFrameReader  # noqa: PLC0415

    from hoodie.spark.data_source import register  # noqa: PLC0415

    register(spark)
    load = DataFrameReader.load.__wrapped__  # type: ignore[attr-defined]  # Spark's own, past our reader
    path = tables["copy-on-write"]
    _place(spark, load(spark.read.format("hudi").option("path", path)), path)
    for statement in ("INSERT INTO", "INSERT OVERWRITE"):
        with pytest.raises(Unsupported, match="not written through views"):
            spark.sql(f"{statement} rides SELECT * FROM new_rides")


def test_views_of_other_files_are_written_as_ever(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "plain"))
    spark.read.parquet(str(tmp_path / "plain")).createOrReplaceTempView("plain")
    spark.sql("INSERT INTO plain VALUES (3)")
    spark.range(4, 5).write.insertInto("plain")
    assert spark.read.parquet(str(tmp_path / "plain")).count() == 5
    spark.catalog.dropTempView("plain")
