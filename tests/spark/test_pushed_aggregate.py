"""Aggregates that workers compute in part: the result is Spark's own, to the type and the last digit."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from hoodie.spark.arrow_types import arrow_schema, spark_schema
from hoodie.spark.partial_aggregate import Aggregation, aggregated, aggregated_schema
from hoodie.spark.worker import with_schema
from hoodie.spark.worker_scan import Aggregates, Work, with_longs, worker_scan

pytestmark = pytest.mark.spark

ROWS = pa.table(
    {
        "g": ["a", "b", None, "a", "é", "b", "a", None],
        "h": pa.array([1, 1, 2, None, 2, 1, 1, 2], pa.int32()),
        "i": pa.array([1, -2, 3, None, 5, 2**31 - 1, -(2**31), 8], pa.int32()),
        "l": pa.array([1, 2**62, None, -5, 2**61, 7, 8, 9], pa.int64()),
        "p": pa.array([Decimal("1.10"), Decimal("-2.20"), None, Decimal("9999999999999.99")] * 2, pa.decimal128(15, 2)),
        "d": pa.array([Decimal("0.10"), Decimal("0.01"), Decimal("99.99"), None] * 2, pa.decimal128(4, 2)),
        "x": [1.5, float("nan"), -0.0, 0.0, 1e300, None, 2.5, -1.0],
        "s": ["x", "Z", "é", "\U0001f600", "\uffee", None, "", "x"],
    }
)
PUSHED = (
    "select count(*) from {t}",
    "select g, h, count(*), count(l), sum(l), min(l), max(i), sum(i), min(s), max(s) from {t} group by g, h",
    "select sum(p), avg(p), sum(p * (1 - d)), sum(p + d), sum(d), min(p), max(d) from {t}",
    "select g, sum(p * (1 - d) * (1 + d)), avg(p) + 1, max(g) from {t} group by g having count(*) > 1 order by g",
    "select distinct h, g from {t}",
    "select h, count(g), count(x) from {t} group by h",
    "select sum(i) + sum(l) from {t} limit 3",
)
LEFT_TO_SPARK = (
    "select avg(i), avg(l) from {t}",
    "select avg(d) from {t}",
    "select sum(x), min(x), max(x) from {t}",
    "select x, count(*) from {t} group by x",
    "select count(distinct g), sum(distinct i) from {t}",
    "select sum(h * 2), sum(h + d) from {t}",
    "select g, count(*) from {t} where i > 0 group by g",
    "select count(*) filter (where i > 0) from {t}",
    "select upper(g), count(*) from {t} group by upper(g)",
    "select collect_list(g), stddev(i) from {t}",
)


def scan(spark: SparkSession) -> DataFrame:
    def narrow(columns: tuple[str, ...], filters: tuple[str, ...]) -> Work:
        del filters
        rows = ROWS.select(list(columns or ("h",)))
        made = spark_schema(rows.schema)
        sent = arrow_schema(with_longs(made))

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                yield from with_schema(rows.to_batches(), sent)

        return Work(made, read, (b"",), 1000)

    def aggregate(aggregation: Aggregation) -> Work:
        made = spark_schema(aggregated_schema(aggregation, ROWS.schema))
        sent = arrow_schema(with_longs(made))

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                half = ROWS.slice(4) if batch.column(0)[0].as_py() else ROWS.slice(0, 4)
                yield from with_schema(aggregated(half.to_batches(max_chunksize=3), aggregation, ROWS.schema), sent)

        return Work(made, read, (b"", b"second"), 1000, "aggregated")

    aggregates = Aggregates(ROWS.schema, aggregate)
    return worker_scan(spark, spark_schema(ROWS.schema), narrow, name="r", identity=lambda: "r", aggregates=aggregates)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_results_are_those_of_spark(spark: SparkSession, ansi: str) -> None:
    scan(spark).createOrReplaceTempView("pushed")
    spark.createDataFrame(ROWS).createOrReplaceTempView("plain")
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for query in (*PUSHED, *LEFT_TO_SPARK):
            got, expected = (spark.sql(query.format(t=name)) for name in ("pushed", "plain"))
            assert got.schema == expected.schema or [f.dataType for f in got.schema] == [
                f.dataType for f in expected.schema
            ], query
            assert sorted(map(str, got.collect())) == sorted(map(str, expected.collect())), query
            is_pushed = "aggregated" in str(got._jdf.queryExecution().executedPlan().toString())
            if ansi == "true":  # Spark offers arithmetic in this mode only
                assert is_pushed == (query in PUSHED), query
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))


def test_a_join_of_aggregates_and_a_subquery_agree(spark: SparkSession) -> None:
    scan(spark).createOrReplaceTempView("pushed")
    rows = spark.sql(
        "select a.g, a.n, b.m from (select g, count(*) n from pushed group by g) a "
        "join (select g, max(i) m from pushed group by g) b on a.g = b.g "
        "where a.n = (select count(*) from pushed where g = 'a') order by 1"
    ).collect()
    assert [tuple(row) for row in rows] == [("a", 3, 1)]
