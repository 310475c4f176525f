"""`df.write`, `spark.read` and their options for the format hudi, as scripts use them."""

from __future__ import annotations

import decimal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

import hoodie
from hoodie.errors import Conflict, Corrupt, HudiError, Invalid, Unsupported
from hoodie.index import IndexedTable, IndexTraits, KeyedRows, PlainIndex
from hoodie.index.simple_index import SimpleIndexedWrite
from hoodie.locks import held_lock, options_to_wait
from hoodie.spark import FrameSource

pytestmark = [pytest.mark.spark, pytest.mark.first]

OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
DDL = "id string, city string, fare double, ts long"
ROWS = [("a", "sf", 1.0, 1), ("b", "sf", 2.0, 1), ("c", "la", 3.0, 1)]


@pytest.fixture
def rides(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, DDL)


@pytest.fixture
def base(tmp_path: Path) -> str:
    return str(tmp_path / "rides")


def _ids(spark: SparkSession, base: str) -> list[str]:
    return sorted(row.id for row in spark.read.format("hudi").load(base).select("id").collect())


WRITES: dict[str, Callable[[DataFrame, str], Any]] = {
    "options after format": lambda df, base: df.write.format("hudi").options(**OPTIONS).mode("append").save(base),
    "options before format": lambda df, base: df.write.options(**OPTIONS).mode("append").format("hudi").save(base),
    "long format name": lambda df, base: df.write.format("org.apache.hudi").options(**OPTIONS).save(base),
    "arguments of save": lambda df, base: df.write.save(base, "hudi", "append", **OPTIONS),
    "keyword arguments": lambda df, base: df.write.mode(saveMode="append").save(path=base, format="hudi", **OPTIONS),
    "path as option": lambda df, base: df.write.format("hudi").options(**OPTIONS).option("path", base).save(),
    "file URL": lambda df, base: df.write.format("hudi").options(**OPTIONS).save(f"file://{base}"),
}


@pytest.mark.parametrize("how", WRITES)
def test_every_way_to_say_it_writes_the_same_table(spark: SparkSession, rides: DataFrame, base: str, how: str) -> None:
    WRITES[how](rides, base)
    assert _ids(spark, base) == ["a", "b", "c"]
    assert hoodie.Table.open(base).config.record_key_fields == ("id",)


READS: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "format and load": lambda spark, base: spark.read.format("hudi").load(base),
    "arguments of load": lambda spark, base: spark.read.load(base, "hudi"),
    "keyword arguments": lambda spark, base: spark.read.load(path=base, format="org.apache.hudi"),
    "path as option": lambda spark, base: spark.read.option("path", base).format("hudi").load(),
    "list of one path": lambda spark, base: spark.read.format("hudi").load([base]),
    "wildcards of old scripts": lambda spark, base: spark.read.format("hudi").load(f"{base}/*/*"),
}


@pytest.mark.parametrize("how", READS)
def test_every_way_to_say_it_reads_the_same_rows(spark: SparkSession, rides: DataFrame, base: str, how: str) -> None:
    rides.write.format("hudi").options(**OPTIONS).save(base)
    assert sorted(row.id for row in READS[how](spark, base).collect()) == ["a", "b", "c"]


def test_save_modes_do_what_spark_says(spark: SparkSession, rides: DataFrame, base: str) -> None:
    writer = lambda mode: rides.limit(1).write.format("hudi").options(**OPTIONS).mode(mode)  # noqa: E731
    rides.write.format("hudi").options(**OPTIONS).mode("ignore").save(base)
    for mode in ("error", "errorifexists"):
        with pytest.raises(Invalid, match="exists"):
            writer(mode).save(base)
    with pytest.raises(Invalid, match="exists"):
        rides.write.format("hudi").options(**OPTIONS).save(base)
    writer("ignore").save(base)
    assert len(_ids(spark, base)) == 3
    writer("overwrite").save(base)
    assert len(_ids(spark, base)) == 1


@pytest.mark.parametrize("said", ["option", "session"])
def test_dynamic_overwrite_keeps_partitions_without_new_rows(
    spark: SparkSession, rides: DataFrame, base: str, said: str
) -> None:
    conf = "spark.sql.sources.partitionOverwriteMode"
    option = {"partitionOverwriteMode": "dynamic"} if said == "option" else {}
    if said == "session":
        spark.conf.set(conf, "dynamic")
    try:
        for rows in (rides, rides.where("id = 'a'")):
            rows.write.format("hudi").options(**OPTIONS, **option).mode("overwrite").save(base)
    finally:
        spark.conf.unset(conf)
    assert _ids(spark, base) == ["a", "c"]


def test_names_of_others_are_acted_on_or_refused_with_the_nearest(
    spark: SparkSession, rides: DataFrame, base: str
) -> None:
    rides.write.format("hudi").options(**OPTIONS).save(base)
    first = hoodie.Table.open(base).timeline().last_time()
    rides.limit(1).write.format("hudi").options(**OPTIONS).mode("overwrite").save(base)
    for name in ("timestampAsOf", "versionAsOf", "as.of.instant"):
        assert spark.read.format("hudi").option(name, first).load(base).count() == 3
    with pytest.raises(Invalid, match=r"as\.of\.instnat.*Did you mean as\.of\.instant"):
        spark.read.format("hudi").option("as.of.instnat", first).load(base)
    with pytest.raises(Invalid, match=r"primaryKey.*hoodie\.datasource\.write\.recordkey\.field"):
        rides.write.format("hudi").options(**OPTIONS).option("primaryKey", "id").mode("append").save(base)


def test_partition_by_names_the_partition_fields(spark: SparkSession, rides: DataFrame, base: str) -> None:
    options = {name: value for name, value in OPTIONS.items() if "partitionpath" not in name}
    rides.write.format("hudi").options(**options).partitionBy("city").save(base)
    assert hoodie.Table.open(base).config.partition_fields == ("city",)
    with pytest.raises(Invalid, match="contradict"):
        rides.write.format("hudi").options(**OPTIONS).partitionBy("fare").mode("append").save(base)


def test_upsert_delete_and_reading_while_writing(spark: SparkSession, rides: DataFrame, base: str) -> None:
    rides.write.format("hudi").options(**OPTIONS).save(base)
    before = spark.read.format("hudi").load(base)
    raised = before.where("city = 'sf'").withColumn("fare", F.col("fare") * 10).withColumn("ts", F.col("ts") + 1)
    raised.write.format("hudi").options(**OPTIONS).mode("append").save(base)
    gone = spark.read.format("hudi").load(base).where("id = 'c'")
    delete = {**OPTIONS, "hoodie.datasource.write.operation": "delete"}
    gone.write.format("hudi").options(**delete).mode("append").save(base)
    after = {row.id: row.fare for row in spark.read.format("hudi").load(base).collect()}
    assert after == {"a": 10.0, "b": 20.0}
    assert {row.id: row.fare for row in before.collect()} == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_a_frame_shows_the_moment_it_was_loaded_and_a_new_one_the_new_rows(
    spark: SparkSession, rides: DataFrame, base: str
) -> None:
    rides.write.format("hudi").options(**OPTIONS).save(base)
    first = spark.read.format("hudi").load(base).cache()
    assert first.count() == 3
    more = spark.createDataFrame([("d", "sf", 4.0, 2)], DDL)
    more.write.format("hudi").options(**OPTIONS).mode("append").save(base)
    assert spark.read.format("hudi").load(base).count() == 4
    assert first.count() == 3
    first.unpersist()
    assert first.join(spark.read.format("hudi").load(base), "id").count() == 3


def test_queries_on_a_table_prune_partitions_and_push_filters(spark: SparkSession, rides: DataFrame, base: str) -> None:
    rides.write.format("hudi").options(**OPTIONS).save(base)
    frame = spark.read.format("hudi").load(base).where("city = 'sf' and fare > 1.5 and id > 'a'").select("id")
    assert [row.id for row in frame.collect()] == ["b"]
    plan = str(frame._jdf.queryExecution().executedPlan().toString())
    assert "FileScan parquet" in plan
    assert "GreaterThan(id,a)" in plan
    assert "(fare," not in plan  # bounds of older files leave out NaN
    assert "(city#" in plan.split("PartitionFilters: [")[1].split("]", maxsplit=1)[0]
    assert "ReadSchema: struct<id:string,fare:double>" in plan


def test_types_of_spark_survive_a_table(spark: SparkSession, base: str) -> None:
    frame = spark.sql(
        "select 'k' as id, 'p' as city, 1 as i, 2L as l, 1.5f as f, 2.5d as d, true as b, binary('y') as y,"
        " cast(12.34 as decimal(10, 2)) as m, date'1900-02-28' as day, timestamp'1969-01-01 00:00:00.123456Z' as t,"
        " timestamp_ntz'2024-01-01 00:00:00' as n, array(1, null) as xs, map('k', array(1.0d)) as kv,"
        " named_struct('a', 1, 'b', named_struct('c', 'x')) as nest, cast(null as string) as nothing, 1L as ts"
    )
    frame.write.format("hudi").options(**OPTIONS).save(base)
    got = spark.read.format("hudi").load(base).select(*frame.columns)
    assert got.schema.simpleString() == frame.schema.simpleString()
    assert got.collect() == frame.collect()
    assert got.first().m == decimal.Decimal("12.34")


def incremental_reader(spark: SparkSession, begin: str | None) -> DataFrameReader:
    reader = spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
    return reader.option("hoodie.datasource.read.begin.instanttime", str(begin))


def test_incremental_and_time_travel_options_reach_the_reader(spark: SparkSession, rides: DataFrame, base: str) -> None:
    rides.write.format("hudi").options(**OPTIONS).save(base)
    first = hoodie.Table.open(base).timeline().last_completed_write()
    assert first is not None
    changed = spark.createDataFrame([("a", "sf", 9.0, 2), ("d", "la", 4.0, 2)], DDL)
    changed.write.format("hudi").options(**OPTIONS).mode("append").save(base)
    incremental = incremental_reader(spark, first.completed).load(base)
    assert sorted(row.id for row in incremental.collect()) == ["a", "d"]
    everything = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "000",
        "hoodie.datasource.read.incr.filters": "fare > 2, city IN ('sf', 'la')",
    }
    filtered = spark.read.format("hudi").options(**everything).load(base)
    assert sorted(row.id for row in filtered.collect()) == ["a", "c", "d"]
    by_path = spark.read.format("hudi").options(**everything).option("hoodie.datasource.read.incr.path.glob", "/la/*")
    assert sorted(row.id for row in by_path.load(base).collect()) == ["c", "d"]
    condition = {"hoodie.datasource.read.incr.filters": "city = 'la', fare > 3.5"}
    limited = incremental_reader(spark, first.completed).options(**condition).load(base)
    assert [row.id for row in limited.collect()] == ["d"]
    past = spark.read.option("as.of.instant", first.requested).format("hudi").load(base)
    assert sorted(row.id for row in past.collect()) == ["a", "b", "c"]
    changes = spark.read.format("hudi").options(
        **{
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.query.incremental.format": "cdc",
            "hoodie.datasource.read.begin.instanttime": "0",
        }
    )
    with pytest.raises(Invalid, match="no change data"):
        changes.load(base)


def test_other_formats_are_left_alone(spark: SparkSession, rides: DataFrame, tmp_path: Path) -> None:
    path = str(tmp_path / "plain")
    rides.write.format("parquet").option("compression", "zstd").partitionBy("city").mode("overwrite").save(path)
    assert spark.read.format("parquet").schema(DDL).load(path).count() == 3
    assert spark.read.load(path, "parquet").count() == 3
    rides.write.save(path, "json", "overwrite")
    assert spark.read.json(path, schema=DDL).count() == 3
    assert spark.sql("select 'using hudi' as text -- using hudi").first().text == "using hudi"


def test_hudi_as_the_sessions_default_format_needs_no_format(spark: SparkSession, rides: DataFrame, base: str) -> None:
    spark.conf.set("spark.sql.sources.default", "hudi")
    try:
        rides.write.options(**OPTIONS).save(base)
        assert spark.read.load(base).count() == 3
    finally:
        spark.conf.unset("spark.sql.sources.default")


def test_enabling_again_changes_nothing(spark: SparkSession) -> None:
    from pyspark.sql.readwriter import DataFrameWriter  # noqa: PLC0415

    before = DataFrameWriter.save
    assert hoodie.enable(spark) is spark
    assert hoodie.enable(spark.newSession()) is not spark
    assert DataFrameWriter.save is before


REFUSED: dict[str, Callable[[SparkSession, DataFrame], Any]] = {
    "saveAsTable": lambda spark, df: df.write.format("hudi").saveAsTable("t"),
    "saveAsTable format": lambda spark, df: df.write.saveAsTable("t", "hudi"),
    "insertInto": lambda spark, df: df.write.format("hudi").insertInto("t"),
    "writeTo create": lambda spark, df: df.writeTo("t").using("hudi").create(),
    "writeTo append": lambda spark, df: df.writeTo("t").using("hudi").append(),
    "bucketBy": lambda spark, df: df.write.format("hudi").bucketBy(2, "id").save("/tmp/never"),
    "create table": lambda spark, df: spark.sql("CREATE TABLE t (id int)\n  USING hudi"),
    "create table long": lambda spark, df: spark.sql("create table t using org.apache.hudi location '/x'"),
    "insert by path": lambda spark, df: spark.sql("insert into hudi.`/tmp/never` values (1)"),
    "createTable": lambda spark, df: spark.catalog.createTable("t", "/tmp/never", "hudi"),
    "createTable by name": lambda spark, df: spark.catalog.createTable("t", source="org.apache.hudi", schema=df.schema),
    "createExternalTable": lambda spark, df: spark.catalog.createExternalTable("t", "/tmp/never", source="hudi"),
    "stream to table": lambda spark, df: spark.readStream.format("rate").load().writeStream.format("hudi").toTable("t"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_there_yet_says_so(spark: SparkSession, rides: DataFrame, what: str) -> None:
    with pytest.raises(Unsupported):
        REFUSED[what](spark, rides)


def test_wrong_calls_name_cause_and_remedy(spark: SparkSession, rides: DataFrame, base: str, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="path is missing"):
        rides.write.format("hudi").options(**OPTIONS).save()
    with pytest.raises(Invalid, match="table"):
        spark.read.format("hudi").load(str(tmp_path / "nowhere"))
    with pytest.raises(Invalid, match=r"hoodie\.table\.name"):
        rides.write.format("hudi").option("hoodie.tabel.name", "x").save(base)
    with pytest.raises(Invalid, match="own schema"):
        spark.read.format("hudi").schema(DDL).load(base)
    with pytest.raises(Invalid, match="one Hudi table"):
        spark.read.format("hudi").load([base, base])
    with pytest.raises(Invalid, match="no format hoodie"):
        spark.read.format("hoodie").load(base)
    with pytest.raises(Invalid, match="no format hoodie"):
        rides.write.save(base, "hoodie", **OPTIONS)
    with pytest.raises(Invalid):
        rides.write.format("hudi").options(**OPTIONS, **{"hoodie.datasource.write.operation": "upsrt"}).save(base)
    assert not Path(base).exists()


def test_a_null_key_in_a_worker_is_the_callers_error_and_writes_nothing(spark: SparkSession, base: str) -> None:
    frame = spark.createDataFrame([("a", "sf", 1.0, 1), (None, "sf", 2.0, 1)], DDL)
    with pytest.raises(Invalid, match="id"):
        frame.write.format("hudi").options(**OPTIONS).save(base)
    assert list(Path(base).rglob("*.parquet")) == []


def test_what_makes_no_sense_on_spark_is_refused(spark: SparkSession, rides: DataFrame, base: str) -> None:
    with pytest.raises(Unsupported, match="process"):
        rides.write.format("hudi").options(**OPTIONS).save("memory://rides")
    with pytest.raises(Unsupported, match="process"):
        spark.read.format("hudi").load("memory://rides")
    twice = rides.selectExpr("id", "id as ID", "city", "ts")
    with pytest.raises(Invalid, match="Column 'ID' occurs twice"):
        twice.write.format("hudi").options(**OPTIONS).save(base)


def test_a_torn_base_file_is_named(spark: SparkSession, rides: DataFrame, base: str) -> None:
    rides.coalesce(1).write.format("hudi").options(**OPTIONS).save(base)
    torn = next(path for path in Path(base).glob("sf/*.parquet"))
    torn.write_bytes(torn.read_bytes()[: torn.stat().st_size // 2])
    with pytest.raises(HudiError) as caught:
        spark.read.format("hudi").load(base).collect()
    assert isinstance(caught.value, Corrupt)
    assert torn.name in str(caught.value)


def test_a_base_file_torn_in_its_data_is_named(spark: SparkSession, rides: DataFrame, base: str) -> None:
    rides.coalesce(1).write.format("hudi").options(**OPTIONS).save(base)
    torn = next(path for path in Path(base).glob("sf/*.parquet"))
    data = bytearray(torn.read_bytes())
    data[4 : len(data) // 2] = b"\0" * (len(data) // 2 - 4)
    torn.write_bytes(data)
    with pytest.raises(Corrupt, match=torn.name):
        spark.read.format("hudi").load(base).collect()


def test_a_base_file_that_went_away_is_named(spark: SparkSession, rides: DataFrame, base: str) -> None:
    rides.write.format("hudi").options(**OPTIONS).save(base)
    frame = spark.read.format("hudi").load(base)
    gone = next(path for path in Path(base).glob("sf/*.parquet"))
    gone.unlink()
    with pytest.raises(HudiError, match=gone.name):
        frame.collect()


def test_a_second_writer_conflicts(spark: SparkSession, rides: DataFrame, base: str) -> None:
    rides.write.format("hudi").options(**OPTIONS).save(base)
    with held_lock(hoodie.Table.open(base).storage, "a test"), pytest.raises(Conflict):
        rides.write.format("hudi").options(**OPTIONS, **options_to_wait(0)).mode("append").save(base)


def test_a_spark_frame_is_data_for_the_table_api(spark: SparkSession, rides: DataFrame, base: str) -> None:
    rides.write.format("hudi").options(**OPTIONS).save(base)
    table = hoodie.Table.open(base, spark=spark)
    table.upsert(spark.createDataFrame([("z", "sf", 5.0, 3)], DDL))
    assert table.scan(columns=["id"]).read_all().num_rows == 4
    table.delete(FrameSource(spark.createDataFrame([("z", "sf")], "id string, city string")))
    assert table.scan(columns=["id"]).read_all().num_rows == 3
    assert pa.types.is_string(table.schema.field("id").type)


def test_an_empty_frame_makes_an_empty_table_with_its_schema(spark: SparkSession, base: str) -> None:
    spark.createDataFrame([], DDL).write.format("hudi").options(**OPTIONS).save(base)
    frame = spark.read.format("hudi").load(base)
    assert frame.count() == 0
    assert frame.columns[-4:] == ["id", "city", "fare", "ts"]


def test_options_of_the_session_reach_reads_writes_and_streams_beneath_their_own(
    spark: SparkSession, rides: DataFrame, base: str, tmp_path: Path
) -> None:
    own = spark.newSession()
    own.conf.set("spark.hoodie.datasource.write.table.type", "MERGE_ON_READ")
    own.conf.set("hoodie.metadata.enable", "false")
    frame = own.createDataFrame(ROWS, DDL)
    frame.write.format("hudi").options(**OPTIONS).save(base)
    config = hoodie.Table.open(base).config
    assert config.is_merge_on_read
    assert config.metadata_partitions == ()
    frame.write.format("hudi").options(**OPTIONS, **{"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}).save(
        f"{base}-2"
    )
    assert not hoodie.Table.open(f"{base}-2").config.is_merge_on_read
    own.conf.set("hoodie.datasource.merge.type", "skip_merge")
    with pytest.raises(Unsupported, match=r"hoodie\.datasource\.merge\.type=skip_merge"):
        own.read.format("hudi").load(base)
    assert _ids(spark, base) == ["a", "b", "c"]
    own.conf.set("hoodie.index.type", "FLINK_STATE")
    with pytest.raises(Unsupported, match=r"hoodie\.index\.type=FLINK_STATE"):
        frame.write.format("hudi").mode("append").save(base)
    stream = own.readStream.format("rate").load().writeStream.format("hudi").option("checkpointLocation", str(tmp_path))
    with pytest.raises(Unsupported, match=r"hoodie\.index\.type=FLINK_STATE"):
        stream.start(base)


def test_a_session_that_encrypts_parquet_writes_nothing_plain(spark: SparkSession, rides: DataFrame, base: str) -> None:
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    hadoop.set("parquet.encryption.footer.key", "k")
    try:
        with pytest.raises(Unsupported, match=r"parquet\.encryption\.footer\.key"):
            rides.write.format("hudi").options(**OPTIONS).save(base)
    finally:
        hadoop.unset("parquet.encryption.footer.key")
    assert not Path(base).exists()


class ReadsFiles(PlainIndex):
    """A write index of a caller's own, which only this process knows: workers are not told of it."""

    traits = IndexTraits("READS_FILES", is_global=True)

    def __init__(self, config: object, table: object) -> None:
        del config, table

    def begin(self, table: IndexedTable, rows: KeyedRows) -> SimpleIndexedWrite:
        del rows
        return SimpleIndexedWrite(self.traits, table)


@pytest.mark.parametrize("most", ["0", "268435456"], ids=["spread", "local"])
def test_a_write_index_of_ones_own_is_an_option_like_any_other(
    spark: SparkSession, rides: DataFrame, base: str, most: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("an_index_of_ones_own")
    module.ReadsFiles = ReadsFiles  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    options = OPTIONS | {"hoodie.index.class": f"{module.__name__}:ReadsFiles", "hoodie.engine.local.max.bytes": most}
    for _ in range(2):
        rides.write.format("hudi").options(**options).mode("append").save(base)
    assert _ids(spark, base) == ["a", "b", "c"]
    with pytest.raises(Invalid, match=r"hoodie\.index\.class=no\.Such cannot be imported"):
        rides.write.format("hudi").options(**OPTIONS | {"hoodie.index.class": "no.Such"}).mode("append").save(base)
