"""The native scan over plain parquet files: what Spark plans, what it prunes, what it answers."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from hoodie.errors import Corrupt, Unavailable
from hoodie.records import BaseFileOptions, BaseFileWriter
from hoodie.spark.native_scan import ScanFile, is_native_possible, native_scan
from hoodie.storage import open_storage

pytestmark = pytest.mark.spark

DATA = StructType(
    [StructField("id", LongType()), StructField("region", StringType()), StructField("fare", DoubleType())]
)
REGION = StructType([StructField("region", StringType())])


def _file(path: Path, table: pa.Table, *values: object) -> ScanFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    state = os.stat(path)
    return ScanFile(str(path), state.st_size, int(state.st_mtime * 1000), values)


def _rides(first: int, rows: int, region: str) -> pa.Table:
    ids = list(range(first, first + rows))
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "region": [region] * rows, "fare": pa.array([i / 2 for i in ids])}
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[ScanFile, ...]:
    root = tmp_path_factory.mktemp("scan")
    return (
        _file(root / "r=a b%1" / "one.parquet", _rides(0, 10, "stored"), "a b%1"),
        _file(root / "r=a b%1" / "two.parquet", _rides(10, 10, "stored"), "a b%1"),
        _file(root / "r=ü" / "three.parquet", _rides(20, 10, "stored"), "ü"),
        _file(root / "r=null" / "four.parquet", _rides(30, 5, "stored"), None),
    )


@pytest.fixture
def scan(spark: SparkSession, files: tuple[ScanFile, ...]) -> Callable[..., DataFrame]:
    def make(**changes: Any) -> DataFrame:
        return native_scan(spark, changes.pop("files", files), DATA, REGION, root="/base", **changes)

    return make


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_all_rows_come_with_partition_values_of_the_path_in_schema_order(scan: Callable[..., DataFrame]) -> None:
    frame = scan()
    assert frame.columns == ["id", "region", "fare"]
    assert frame.count() == 35
    counts = {row.region: row["count"] for row in frame.groupBy("region").count().collect()}
    assert counts == {"a b%1": 20, "ü": 10, None: 5}


def test_only_asked_columns_are_read_and_filters_are_pushed_down(scan: Callable[..., DataFrame]) -> None:
    frame = scan().where("region = 'ü' and id > 25").select("id")
    plan = _plan(frame)
    assert sorted(row.id for row in frame.collect()) == [26, 27, 28, 29]
    assert "FileScan parquet" in plan
    assert "PushedFilters: [IsNotNull(id), GreaterThan(id,25)]" in plan
    assert "region" in plan.split("PartitionFilters: [")[1].split("]")[0]
    assert "ReadSchema: struct<id:bigint>" in plan


@pytest.mark.parametrize(
    ("condition", "read"),
    [("region = 'ü'", 1), ("region is null", 1), ("region in ('a b%1', 'ü')", 3), ("upper(region) like 'A%'", 2)],
)
def test_partition_filters_leave_only_files_of_matching_partitions(
    scan: Callable[..., DataFrame], condition: str, read: int
) -> None:
    frame = scan().where(condition).select(F.input_file_name().alias("file")).distinct()
    assert frame.count() == read


def test_partition_values_of_all_types_reach_rows_and_filters(spark: SparkSession, tmp_path: Path) -> None:
    values = (
        7, 1 << 40, True, datetime.date(1969, 7, 20), Decimal("12.50"),
        datetime.datetime(2024, 2, 29, 12, 0, tzinfo=datetime.UTC),
    )  # fmt: skip
    schema = StructType(
        [
            StructField("i", IntegerType()),
            StructField("l", LongType()),
            StructField("b", BooleanType()),
            StructField("d", DateType()),
            StructField("n", DecimalType(10, 2)),
            StructField("t", TimestampType()),
        ]
    )
    one = _file(tmp_path / "one.parquet", _rides(0, 3, "x"), *values)
    two = _file(tmp_path / "two.parquet", _rides(3, 3, "x"), *[None] * len(values))
    frame = native_scan(spark, (one, two), DATA, schema, root=str(tmp_path))
    matching = frame.where(
        "i = 7 and l = 1099511627776 and b and d = date'1969-07-20' and n = 12.5 "
        "and t > timestamp'2024-02-29 11:00:00Z'"
    )
    (row,) = matching.select(*schema.names).distinct().collect()
    assert tuple(row)[:5] == values[:5]
    assert row.t.timestamp() == values[5].timestamp()  # type: ignore[attr-defined]
    assert frame.where("i is null").count() == 3


def test_skip_gets_data_filters_as_sql_and_decides_which_files_are_read(scan: Callable[..., DataFrame]) -> None:
    seen: list[list[str]] = []

    def skip(filters: Sequence[str], files: Sequence[ScanFile]) -> Iterable[ScanFile]:
        seen.append(list(filters))
        return [file for file in files if file.path.endswith("two.parquet")]

    frame = scan(skip=skip).where("id between 12 and 25 and region is not null")
    assert sorted(row.id for row in frame.collect()) == list(range(12, 20))
    assert "`id` >= 12" in seen[0]


def test_skip_that_fails_raises_its_own_error(scan: Callable[..., DataFrame]) -> None:
    def skip(filters: Sequence[str], files: Sequence[ScanFile]) -> Iterable[ScanFile]:
        raise Corrupt("The statistics cannot be read", remedy="Rebuild them", path="stats/1")

    frame = scan(skip=skip).where("id > 1")
    for action in (frame.collect, frame.count, frame.toArrow):
        with pytest.raises(Corrupt, match="statistics cannot be read") as caught:
            action()
        assert caught.value.facts == {"path": "stats/1"}
        assert caught.value.remedy == "Rebuild them"


def test_self_join_union_cache_and_subquery_agree(scan: Callable[..., DataFrame], spark: SparkSession) -> None:
    frame = scan()
    assert frame.join(frame.withColumnRenamed("fare", "f2"), "id").count() == 35
    assert frame.union(scan()).count() == 70
    cached = frame.where("region = 'ü'").cache()
    try:
        assert cached.count() == 10
        assert "InMemoryRelation" in _plan(scan().where("region = 'ü'"))
    finally:
        cached.unpersist()
    frame.createOrReplaceTempView("rides_scan")
    rows = spark.sql(
        "select id from rides_scan where region = (select max(region) from rides_scan) and id > "
        "(select avg(id) + 10 from rides_scan) and exists (select 1 from rides_scan where id = 34)"
    ).collect()
    assert sorted(row.id for row in rows) == [28, 29]


def test_partition_is_pruned_dynamically_by_a_join(scan: Callable[..., DataFrame], spark: SparkSession) -> None:
    small = spark.createDataFrame([("ü", 1), ("x", 2)], "region string, tag int").where("tag = 1")
    joined = scan().join(F.broadcast(small), "region")
    assert joined.count() == 10


def test_same_files_make_equal_plans_and_others_do_not(
    scan: Callable[..., DataFrame], files: tuple[ScanFile, ...]
) -> None:
    assert scan().sameSemantics(scan())
    assert not scan().sameSemantics(scan(files=files[:3]))
    assert scan().semanticHash() == scan().semanticHash()


def test_threads_read_one_frame_at_the_same_time(scan: Callable[..., DataFrame]) -> None:
    frame = scan()

    def count(n: int) -> int:
        return frame.where(F.col("id") >= n).count()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, range(8))) == [35 - n for n in range(8)]


def test_a_frame_survives_clearing_the_cache_and_refreshing(
    scan: Callable[..., DataFrame], spark: SparkSession
) -> None:
    frame = scan()
    spark.catalog.clearCache()
    spark.catalog.refreshByPath("/base")
    assert frame.count() == 35


def test_file_names_and_metadata_column_are_served(scan: Callable[..., DataFrame], files: tuple[ScanFile, ...]) -> None:
    frame = scan()
    assert len(frame.inputFiles()) == 4
    sizes = {row.file_size for row in frame.select("_metadata.file_size").distinct().collect()}
    assert sizes == {file.size_bytes for file in files}


def test_no_files_make_an_empty_frame_with_the_schema(scan: Callable[..., DataFrame]) -> None:
    frame = scan(files=())
    assert frame.columns == ["id", "region", "fare"]
    assert frame.where("region = 'x'").collect() == []


def test_columns_that_a_file_lacks_are_null(spark: SparkSession, tmp_path: Path) -> None:
    schema = StructType([*DATA.fields, StructField("tip", DoubleType())])
    file = _file(tmp_path / "one.parquet", _rides(0, 3, "x"))
    frame = native_scan(spark, (file,), schema, StructType([]), root=str(tmp_path))
    assert [row.tip for row in frame.collect()] == [None] * 3
    assert frame.where("tip is null").count() == 3


def test_a_small_scan_is_broadcast_in_a_join(scan: Callable[..., DataFrame], spark: SparkSession) -> None:
    joined = spark.range(100_000).join(scan(), "id")
    assert "BroadcastHashJoin" in _plan(joined)
    assert joined.count() == 35


def test_a_scheme_unknown_to_the_jvm_is_seen(spark: SparkSession) -> None:
    assert is_native_possible(spark, "file")
    assert not is_native_possible(spark, "memory")


def test_an_error_of_ours_is_not_mistaken_for_another_kind(scan: Callable[..., DataFrame]) -> None:
    def skip(filters: Sequence[str], files: Sequence[ScanFile]) -> Iterable[ScanFile]:
        raise Unavailable("hoodie-error[not json]")

    with pytest.raises(Unavailable, match="not json"):
        scan(skip=skip).where("id > 1").count()


def test_bounds_without_nan_lose_no_rows_with_nan_and_signed_zeros_are_equal(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int64()),
            "x": [1.0, -0.0, float("nan"), None],
            "s": [{"x": 1.0}, {"x": -0.0}, {"x": float("nan")}, None],
        }
    )
    schema = spark.createDataFrame(rows).schema
    frame = native_scan(spark, (_file(tmp_path / "f.parquet", rows),), schema, StructType([]), root=str(tmp_path))
    for column in ("x", "s.x"):
        for condition, kept in ({"> 5": [3], "= 0.0": [2], ">= 1": [1, 3], "= double('NaN')": [3]}).items():
            found = frame.where(f"{column} {condition}")
            assert [row.id for row in found.collect()] == kept, (column, condition)
    assert "PushedFilters: []" in _plan(frame.where("x > 5"))
    assert "PushedFilters: [IsNotNull(id), GreaterThan(id,1)]" in _plan(frame.where("x > 5 and id > 1"))


def test_bounds_that_are_cut_are_no_answers_and_hide_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Of texts that are too long to be bounds. Spark may answer an aggregate from footers, but not of texts."""
    texts = ["a", "x" * 5000 + "1", "x" * 5000 + "2", None, "y" * 5000]
    rows = pa.table({"id": pa.array(range(5), pa.int64()), "t": texts})
    with BaseFileWriter(open_storage(str(tmp_path)), "f.parquet", rows.schema, BaseFileOptions(bloom=None)) as writer:
        writer.write(rows)
    chunk = pq.read_metadata(tmp_path / "f.parquet").row_group(0).column(1)
    assert (chunk.statistics.min, chunk.statistics.max) == ("a", "y" * 255 + "z")
    state = os.stat(tmp_path / "f.parquet")
    file = ScanFile(str(tmp_path / "f.parquet"), state.st_size, int(state.st_mtime * 1000), ())
    schema = spark.createDataFrame(rows).schema
    pushed = {"spark.sql.sources.useV1SourceList": "", "spark.sql.parquet.aggregatePushdown": "true"}
    before = {name: spark.conf.get(name) for name in pushed}
    try:
        for changed in (False, True):
            for name, value in pushed.items() if changed else ():
                spark.conf.set(name, value)
            for frame in (
                native_scan(spark, (file,), schema, StructType([]), root=str(tmp_path)),
                spark.read.parquet(str(tmp_path / "f.parquet")),
            ):
                assert frame.agg(F.min("t"), F.max("t"), F.count("t")).collect() == [("a", "y" * 5000, 4)]
                for condition, found in {
                    f"= '{texts[2]}'": [2],
                    "> 'xy'": [4],
                    "like 'yy%'": [4],
                    f"in ('{texts[4]}', 'b')": [4],
                    "not like 'x%'": [0, 4],
                    "is null": [3],
                    "< 'x'": [0],
                }.items():
                    assert [row.id for row in frame.where(f"t {condition}").collect()] == found, condition
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))
