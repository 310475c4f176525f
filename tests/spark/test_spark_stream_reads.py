"""Hudi tables as streams: offsets in Hudi's form, rows of incremental queries, restarts without loss or repetition."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hoodie
from hoodie.errors import Invalid
from hoodie.spark.data_source import HudiSource
from hoodie.spark.stream_source import HAS_LIMITS
from hoodie.testing.golden import golden_tables

pytestmark = pytest.mark.spark

DDL = "id string, fare double, ts int"
OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}


class Feed:
    """A Hudi table that grows, and a stream of it into a folder of parquet files."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.base = str(folder / "rides")
        self.checkpoint = folder / "checkpoint"
        self.out = str(folder / "out")

    def write(self, *rows: tuple[str, float, int], **options: str) -> None:
        frame = self.spark.createDataFrame(list(rows), DDL).coalesce(1)
        frame.write.format("hudi").options(**OPTIONS, **options).mode("append").save(self.base)

    def run(self, **options: Any) -> list[int]:
        """Streams what there is; rows of each batch that had some."""
        rows = self.spark.readStream.format("hudi").options(**options).load(self.base)
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(self.checkpoint))
        query = writer.trigger(availableNow=True).start(self.out)
        query.awaitTermination()
        return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]

    def seen(self) -> list[tuple[str, float]]:
        return sorted((row.id, row.fare) for row in self.spark.read.parquet(self.out).collect())

    def offsets(self) -> list[Mapping[str, str]]:
        files = sorted((self.checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
        return [json.loads(path.read_text().splitlines()[2]) for path in files]

    def completions(self) -> list[str]:
        return [str(one.completed) for one in hoodie.Table.open(self.base).timeline().completed_writes()]


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path)


def test_a_restarted_stream_loses_and_repeats_nothing(feed: Feed) -> None:
    feed.write(("a", 1.0, 1), ("b", 2.0, 1))
    assert feed.run() == [2]
    assert feed.run() == []
    feed.write(("a", 9.0, 2))
    feed.write(("c", 3.0, 1))
    for done in (feed.checkpoint / "commits").glob("*0*"):
        done.unlink()  # as after a crash between the sink's write and Spark's note of it: the batch runs again
    feed.run()
    if not HAS_LIMITS:
        feed.run()  # PySpark 4.1 makes one batch of `availableNow`, here the repeated one; the next run has the rest
    assert feed.seen() == [("a", 1.0), ("a", 9.0), ("b", 2.0), ("c", 3.0)]
    assert feed.offsets()[-1] == {"offsetCommitTime": feed.completions()[-1]}


@pytest.mark.skipif(not HAS_LIMITS, reason="this PySpark has no read limits")
def test_limits_end_a_batch_with_a_whole_commit(feed: Feed) -> None:
    for number in range(3):
        feed.write((f"k{number}", 1.0, 1), (f"l{number}", 1.0, 1))
    assert feed.run(maxFilesPerTrigger=1) == [2, 2, 2]
    assert [offset["offsetCommitTime"] for offset in feed.offsets()] == feed.completions()
    assert len(feed.seen()) == 6


def test_a_stream_may_start_at_the_end_or_at_an_instant(feed: Feed) -> None:
    feed.write(("a", 1.0, 1))
    feed.write(("b", 1.0, 1))
    start = "hoodie.datasource.streaming.startOffset"
    assert feed.run(**{start: "latest"}) == []
    feed.write(("c", 1.0, 1))
    assert feed.run(**{start: "latest"}) == [1]
    other = Feed(feed.spark, Path(feed.base).parent)
    other.checkpoint, other.out = feed.checkpoint.with_name("second"), f"{feed.out}-2"
    other.run(**{start: feed.completions()[0]})
    assert [key for key, _ in other.seen()] == ["b", "c"]


def test_a_table_of_version_6_counts_in_requested_times(feed: Feed) -> None:
    feed.write(("a", 1.0, 1), **{"hoodie.write.table.version": "6"})
    feed.write(("b", 1.0, 1))
    assert sum(feed.run()) == 2
    last = hoodie.Table.open(feed.base).timeline().completed_writes()[-1].requested
    assert feed.offsets()[-1] == {"commitTime": last}


def test_batches_go_to_foreach_batch_and_on_into_another_table(feed: Feed, tmp_path: Path) -> None:
    feed.write(("a", 1.0, 1), ("b", 2.0, 1))
    rows = feed.spark.readStream.format("org.apache.hudi").option("path", feed.base).load().select("id", "fare", "ts")
    writer = rows.writeStream.format("hudi").options(**OPTIONS).option("checkpointLocation", str(tmp_path / "second"))
    writer.trigger(availableNow=True).start(str(tmp_path / "copy")).awaitTermination()
    assert feed.spark.read.format("hudi").load(str(tmp_path / "copy")).count() == 2


@pytest.mark.parametrize("with_stream", [False, True], ids=["table", "stream"])
def test_a_stream_is_joined_with_a_table_and_with_another_stream(
    feed: Feed, tmp_path: Path, *, with_stream: bool
) -> None:
    prices = Feed(feed.spark, tmp_path / "prices")
    feed.write(("a", 1.0, 1), ("b", 2.0, 1))
    prices.write(("a", 10.0, 1), ("c", 30.0, 1))

    def rows(of: Feed, *, stream: bool) -> DataFrame:
        read = of.spark.readStream if stream else of.spark.read
        found = read.format("hudi").load(of.base).selectExpr("id", "fare", "timestamp_seconds(ts) AS at")
        return found.withWatermark("at", "1 minute") if stream else found

    left = rows(feed, stream=True).alias("l")
    joined = left.join(rows(prices, stream=with_stream).alias("r"), on="id").selectExpr("id", "l.fare * r.fare AS fare")
    writer = joined.writeStream.format("parquet").option("checkpointLocation", str(feed.checkpoint))

    def run() -> list[tuple[str, float]]:
        writer.trigger(availableNow=True).start(feed.out).awaitTermination()
        return feed.seen()

    assert run() == [("a", 10.0)]
    feed.write(("c", 3.0, 1), ("d", 4.0, 1))
    assert run() == [("a", 10.0), ("c", 90.0)]


def test_wrong_streams_say_why(feed: Feed) -> None:
    with pytest.raises(Invalid, match="no table"):
        feed.run()
    feed.write(("a", 1.0, 1))
    with pytest.raises(Invalid, match="own schema"):
        feed.spark.readStream.format("hudi").schema(DDL).load(feed.base)
    with pytest.raises(Exception, match="maxfilespertrigger"):
        feed.run(maxFilesPerTrigger="many")


def test_a_stream_reads_exactly_what_incremental_queries_do(feed: Feed) -> None:
    """The offsets of a stream are ends of incremental queries."""
    feed.write(("a", 1.0, 1), ("b", 2.0, 1))
    feed.write(("a", 5.0, 2), ("c", 3.0, 1))
    first, second = feed.completions()
    table = hoodie.Table.open(feed.base)
    source = HudiSource({"path": feed.base})
    reader = source.streamReader(source.schema())
    assert reader.initialOffset() == {"offsetCommitTime": "00000000000000"}
    assert reader.latestOffset() == {"offsetCommitTime": second}
    for start, end in (("00000000000000", first), (first, second), ("00000000000000", second), (second, second)):
        parts = reader.partitions({"offsetCommitTime": start}, {"offsetCommitTime": end, "unknown": 1})
        got = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
        expected = table.scan(query="incremental", begin=start, end=end).read_all().to_pylist()
        assert sorted(got, key=str) == sorted(expected, key=str)
    assert reader.partitions({"commitTime": "0"}, {"offsetCommitTime": first}) != []


def test_changes_with_images_are_a_stream(tmp_path: Path) -> None:
    tables = golden_tables(Path(__file__).parents[1] / "golden" / "tables")
    (golden,) = [table for table in tables if table.name == "1.2.0/cow_cdc_data_before_after"]
    path = str(golden.unpack(tmp_path))
    table = hoodie.Table.open(path)
    source = HudiSource({"path": path, "hoodie.datasource.query.incremental.format": "cdc"})
    schema = source.schema()
    assert schema.names == ["op", "ts_ms", "before", "after"]
    reader = source.streamReader(schema)
    ends = sorted(str(one.completed) for one in table.timeline().completed_writes())
    found = []
    for start, end in zip(("0", *ends), ends, strict=False):
        parts = reader.partitions({"offsetCommitTime": start}, {"offsetCommitTime": end})
        found += [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    expected = table.scan(query="cdc", begin="0").read_all().to_pylist()
    assert {row["op"] for row in found} == {"i", "u", "d"}
    assert sorted(found, key=str) == sorted(expected, key=str)
