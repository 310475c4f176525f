"""Rows read by workers as a relation of Spark: which columns and filters reach them, and that rows stay right."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie.errors import Corrupt, Invalid
from hoodie.filters.sql import parse_row_filter
from hoodie.spark.arrow_types import arrow_schema, spark_schema
from hoodie.spark.worker import with_schema
from hoodie.spark.worker_scan import Work, is_worker_scan_possible, with_longs, worker_scan

pytestmark = pytest.mark.spark

ZONE = "America/New_York"
LONG_AGO = datetime.datetime(1500, 1, 1, tzinfo=datetime.UTC)
NEW = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
ROWS = pa.table(
    {
        "a.b": pa.array([1, 2, 3], pa.int64()),
        "s": pa.array([{"a": 1, "b": "x"}] * 3),
        "a": pa.array([7, 8, 9], pa.int32()),
        "x": [1.5, float("nan"), -0.0],
        "d": pa.array([LONG_AGO.date(), NEW.date(), None]),
        "t": pa.array([LONG_AGO, NEW, None], pa.timestamp("us", "UTC")),
        "n": pa.array([LONG_AGO.replace(tzinfo=None), NEW.replace(tzinfo=None), None], pa.timestamp("us")),
        "m": pa.array([Decimal("1.10"), Decimal("-2.20"), None], pa.decimal128(10, 2)),
        "w": pa.array([Decimal("1.10"), Decimal("-2.20"), None], pa.decimal128(38, 2)),
        "y": [b"\x00\xff", b"a", None],
        "st": ['it\'s \\ "q"', "ü%", None],
        "bo": [True, False, None],
        "f": pa.array([1.1, 2.2, None], pa.float32()),
    }
)
CONDITIONS = (
    "`a.b` > 1", "s.a = 7", "a = 7", "7 < a", "s.s.a = 1", "x = double('nan')", "x > 1", "x < 1", "not x > 1",
    "d = date'1500-01-01'", "d > '2000-01-01'", "t = timestamp'1500-01-01 00:00:00Z'", "t > '2000-01-01'",
    "n >= timestamp_ntz'1500-01-01 00:00:00'", "m < 0", "m = 1.1", "w < 0", "m is null", "m in (1.1, 5)", "y = x'00ff'",
    "st = 'it\\'s \\\\ \"q\"'", "st like 'ü%'", "st like '%\\\\%'", "bo", "not bo", "f > 1.5", "a in (7, 9, 100)",
    "a not in (7, null)", "a <=> 7", "d is null and (a = 9 or st = 'x')", "m <=> null", "year(d) = 2024",
    "st in ('ü%', 'b')", "a > 7 and x > 0 and length(st) > 0",
    "a in (1, 2, 3, 4, 5, 6, 8, 11, 12, 13, 14, 15)", "d in (date'1500-01-01', date'2024-01-01')",
)  # fmt: skip


class Scan:
    """A worker scan over `ROWS`, which notes what it was asked for."""

    def __init__(self, spark: SparkSession, identity: str = "rows") -> None:
        self.asked: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        self.frame: DataFrame = worker_scan(
            spark, spark_schema(ROWS.schema), self._narrow, name="rows", identity=lambda: identity
        )

    def _narrow(self, columns: tuple[str, ...], filters: tuple[str, ...]) -> Work:
        self.asked.append((columns, filters))
        rows = ROWS
        for text in filters:
            rows = rows.filter(parse_row_filter(text, ROWS.schema, timezone=ZONE).expression)
        rows = rows.select(list(columns or ("a",))).combine_chunks()
        told = spark_schema(rows.schema)
        made = arrow_schema(with_longs(told))

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                yield from with_schema(rows.to_batches(), made)

        return Work(told, read, (b"",), 1000)


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", str(before))


def test_this_spark_has_all_that_worker_scans_need(spark: SparkSession) -> None:
    assert is_worker_scan_possible(spark)


def test_filters_are_understood_exactly_or_left_to_spark(session: SparkSession) -> None:
    scan = Scan(session)
    scan.frame.createOrReplaceTempView("s")  # an alias that is a struct column, too
    session.createDataFrame(ROWS).createOrReplaceTempView("plain")
    for condition in CONDITIONS:
        got = session.sql(f"select a from s where {condition}").collect()
        assert got == session.sql(f"select a from plain s where {condition}").collect(), condition


def test_only_asked_columns_and_filters_reach_workers(spark: SparkSession) -> None:
    scan = Scan(spark)
    found = scan.frame.where("a > 7 and m < 5").groupBy("st").agg(F.sum("f")).select("st").collect()
    assert [row.st for row in found] == ["ü%"]
    columns, filters = scan.asked[-1]
    assert set(columns) == {"a", "m", "st"}
    assert {"`a` > 7", "`m` < 5.00"} <= set(filters)


def test_rows_are_counted_without_columns(spark: SparkSession) -> None:
    scan = Scan(spark)
    assert scan.frame.count() == 3
    assert scan.asked[-1] == ((), ())


def test_all_types_arrive(session: SparkSession) -> None:
    got = Scan(session).frame.toArrow()
    assert got.cast(ROWS.schema).equals(ROWS.cast(ROWS.schema)) or got.to_pylist()[0] == ROWS.to_pylist()[0]
    assert got.schema.field("m").type == pa.decimal128(10, 2)
    assert got.column("m").to_pylist() == ROWS.column("m").to_pylist()


def test_self_join_cache_and_subquery_agree(spark: SparkSession) -> None:
    frame = Scan(spark).frame
    assert frame.join(frame.select("a", F.col("f").alias("f2")), "a").count() == 3
    cached = frame.where("a > 7").cache()
    try:
        assert cached.count() == 2
        plan = Scan(spark).frame.where("a > 7")._jdf.queryExecution().executedPlan().toString()
        assert "InMemoryRelation" in plan
        other = Scan(spark, "other rows").frame.where("a > 7")._jdf.queryExecution().executedPlan().toString()
        assert "InMemoryRelation" not in other
    finally:
        cached.unpersist()
    frame.createOrReplaceTempView("worker_rows")
    assert spark.sql("select a from worker_rows where a = (select max(a) from worker_rows)").collect()[0].a == 9


def test_a_small_scan_is_broadcast_in_a_join(spark: SparkSession) -> None:
    joined = spark.range(10_000_000).join(Scan(spark).frame, F.col("id") == F.col("a"))
    assert "BroadcastHashJoin" in str(joined._jdf.queryExecution().executedPlan().toString())


def _failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise error

    return fail


def test_errors_while_planning_and_in_workers_come_out_as_they_were(spark: SparkSession) -> None:
    schema = spark_schema(pa.schema([pa.field("a", pa.int64())]))
    planning = worker_scan(spark, schema, _failing(Invalid("no such thing", path="x")), name="x", identity=str)
    with pytest.raises(Invalid, match="no such thing") as caught:
        planning.collect()
    assert caught.value.facts == {"path": "x"}

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from hoodie.spark.failures import raise_through_jvm  # noqa: PLC0415

        for _ in batches:
            raise_through_jvm(Corrupt("torn", path="y"))
        yield from ()

    work = Work(schema, read, (b"",), 1)
    with pytest.raises(Corrupt, match="torn"):
        worker_scan(spark, schema, lambda *_: work, name="y", identity=str).collect()
