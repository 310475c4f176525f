"""Streams into Hudi tables: micro-batches become commits, exactly once, with the writer's settings carried along."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hoodie
from hoodie.errors import Invalid, Unavailable
from hoodie.spark import streaming
from hoodie.timeline import load_commit_metadata

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "events",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
DDL = "id string, kind string, ts long"


class Stream:
    """A folder of JSON files as a stream, and the table it goes to."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.base = str(folder / "events")
        self.checkpoint = str(folder / "checkpoint")
        self._inbox = folder / "inbox"
        self._inbox.mkdir()

    def add(self, name: str, *rows: tuple[str, str, int]) -> None:
        lines = [json.dumps(dict(zip(("id", "kind", "ts"), row, strict=True))) for row in rows]
        (self._inbox / f"{name}.json").write_text("\n".join(lines))

    def rows(self) -> DataFrame:
        return self.spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).json(str(self._inbox))

    def run(self, frame: DataFrame | None = None, **options: Any) -> Any:
        """Everything there is, to the end."""
        writer = (self.rows() if frame is None else frame).writeStream.format("hudi").options(**OPTIONS)
        writer = writer.option("checkpointLocation", self.checkpoint).options(**options).trigger(availableNow=True)
        self.query = writer.start(self.base)
        self.query.awaitTermination()
        return self.query

    def forget_batch(self) -> None:
        """As after a crash between our first commit and Spark's note of it."""
        done = [file for file in (Path(self.checkpoint) / "commits").iterdir() if file.name in {"0", ".0.crc"}]
        assert done
        for file in done:
            file.unlink()

    def ids(self) -> list[str]:
        return sorted(row.id for row in self.spark.read.format("hudi").load(self.base).collect())

    def commits(self) -> list[dict[str, str]]:
        table = hoodie.Table.open(self.base)
        timeline = table.timeline()
        done = [instant for instant in timeline.completed() if instant.action in ("commit", "replacecommit")]
        return [dict(load_commit_metadata(table.storage, timeline.profile, instant).extra_metadata) for instant in done]


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def test_each_micro_batch_is_a_commit_that_carries_its_number(stream: Stream) -> None:
    stream.add("1", ("a", "new", 1), ("b", "new", 1))
    stream.add("2", ("a", "changed", 2), ("c", "new", 2))
    stream.run()
    assert stream.ids() == ["a", "b", "c"]
    noted = [json.loads(extra[streaming.CHECKPOINT_KEY]) for extra in stream.commits()]
    assert noted == [{"default_single_writer": "0"}, {"default_single_writer": "1"}]


def test_a_stream_may_append(stream: Stream) -> None:
    append = {"hoodie.datasource.write.operation": "insert", "hoodie.parquet.small.file.limit": "0"}
    stream.add("1", ("a", "new", 1), ("b", "new", 1))
    stream.run(**append)
    stream.forget_batch()
    stream.add("2", ("a", "again", 2))
    stream.run(**append)
    assert stream.ids() == ["a", "a", "b"]
    assert len(stream.commits()) == 2
    assert len(hoodie.Table.open(stream.base).files()) == 2


def test_a_restarted_stream_goes_on_where_it_was(stream: Stream) -> None:
    stream.add("1", ("a", "new", 1))
    stream.run()
    stream.add("2", ("b", "new", 1))
    stream.run()
    stream.run()
    assert stream.ids() == ["a", "b"]
    assert len(stream.commits()) == 2


@pytest.mark.parametrize("version", [6, 9])
def test_a_batch_spark_runs_again_is_not_written_again(stream: Stream, version: int) -> None:
    insert = {"hoodie.datasource.write.operation": "insert", "hoodie.write.table.version": str(version)}
    stream.add("1", ("a", "new", 1))
    stream.run(**insert)
    stream.forget_batch()
    stream.run(**insert)
    assert stream.ids() == ["a"]
    assert len(stream.commits()) == 1


def test_a_stream_with_a_new_checkpoint_folder_loses_no_rows(stream: Stream) -> None:
    stream.add("1", ("a", "new", 1))
    stream.run()
    stream.add("2", ("b", "new", 1))
    stream.checkpoint += "-2"
    stream.run()
    assert stream.ids() == ["a", "b"]


def test_streams_with_identifiers_of_their_own_are_told_apart(stream: Stream) -> None:
    def run(name: str, *, again: bool = False) -> None:
        stream.checkpoint = f"{stream.base}-of-{name}"
        if again:
            stream.forget_batch()
        identifier = {"hoodie.datasource.write.streaming.checkpoint.identifier": name}
        stream.run(**identifier, **{"hoodie.datasource.write.operation": "insert"})

    stream.add("1", ("a", "x", 1))
    run("one")
    run("two")
    assert stream.ids() == ["a", "a"]
    noted = [json.loads(extra[streaming.CHECKPOINT_KEY]) for extra in stream.commits()]
    assert noted == [{"one": "0"}, {"two": "0"}]
    run("one", again=True)
    run("two", again=True)
    assert stream.ids() == ["a", "a"]


def test_streams_without_identifiers_are_told_apart_by_their_folders(stream: Stream) -> None:
    insert = {"hoodie.datasource.write.operation": "insert"}
    first, second = stream.checkpoint, f"{stream.checkpoint}-2"
    stream.add("1", ("a", "x", 1))
    stream.run(**insert)
    stream.checkpoint = second
    stream.run(**insert)
    for stream.checkpoint in (first, second):
        stream.forget_batch()
        stream.run(**insert)
    assert stream.ids() == ["a", "a"]


@pytest.mark.parametrize(
    ("notes", "known"),
    [
        ([], False),
        ([({"s": 5}, {"s": "q"})], True),
        ([({"s": 4}, {"s": "q"}), ({"s": 5}, {"s": "other"})], False),
        ([({"s": 5}, {"s": "other"})], False),
        ([({"s": 9}, {"s": "other"}), ({"s": 5}, {"s": "q"})], True),
        ([({"s": 5}, {})], True),
        ([({"s": 4}, {})], False),
        ([({"s": 9}, {})], False),
        ([({"s": 9}, {"s": "other"}), ({"s": 5}, {})], False),
        ([({"t": 9}, {}), ({"s": 5}, {})], True),
        ([({"t": 9}, {"t": "r"}), ({"s": 5}, {"s": "q"})], True),
        ([({"s": 4}, {}), ({"s": 5}, {"s": "q"})], True),
    ],
    ids=[
        "no stream", "this batch", "an earlier one", "another folder", "another folder since",
        "by Hudi", "an earlier one by Hudi", "a later one by Hudi",
        "started over after Hudi", "another stream after Hudi", "another stream", "Hudi since",
    ],
)  # fmt: skip
def test_a_batch_is_known_by_its_stream_and_folder(notes: list[Any], known: bool) -> None:
    said = [streaming.StreamNote(*one) for one in notes]
    assert streaming.has_committed(said, "s", 5, "q", may_be_hudis=True) is known


def test_a_batch_of_hudi_counts_only_where_a_stream_begins() -> None:
    by_hudi = streaming.StreamNote({"s": 5}, {})
    assert not streaming.has_committed([by_hudi], "s", 5, "q", may_be_hudis=False)


@pytest.mark.parametrize(("last", "left"), [("0", ["b", "h"]), ("3", ["a", "b", "h"])])
def test_a_stream_that_hudi_led_skips_only_hudis_last_batch(stream: Stream, last: str, left: list[str]) -> None:
    by_hudi = {streaming.CHECKPOINT_KEY: json.dumps({"default_single_writer": last})}
    rows = stream.spark.createDataFrame([("h", "x", 1)], DDL)
    rows.write.format("hudi").options(**OPTIONS, **by_hudi).save(stream.base)
    for name in "ab":
        stream.add(name, (name, "x", 1))
        stream.run()
    assert stream.ids() == left


def test_batches_are_noted_whatever_prefix_options_of_commits_have(stream: Stream) -> None:
    options = {
        "hoodie.datasource.write.operation": "insert",
        "hoodie.datasource.write.commitmeta.key.prefix": "my.",
        "my.team": "lake",
    }
    stream.add("1", ("a", "x", 1))
    stream.run(**options)
    stream.forget_batch()
    stream.run(**options)
    assert stream.ids() == ["a"]
    (extra,) = stream.commits()
    assert extra["my.team"] == "lake"


def test_a_repeated_delete_spares_rows_that_came_since(stream: Stream) -> None:
    stream.add("1", ("a", "x", 1))
    rows = stream.spark.createDataFrame([("a", "x", 1), ("b", "x", 1)], DDL)
    rows.write.format("hudi").options(**OPTIONS).save(stream.base)
    stream.run(**{"hoodie.datasource.write.operation": "delete"})
    assert stream.ids() == ["b"]
    rows.write.format("hudi").options(**OPTIONS).mode("append").save(stream.base)
    stream.forget_batch()
    stream.run(**{"hoodie.datasource.write.operation": "delete"})
    assert stream.ids() == ["a", "b"]


def test_a_process_that_goes_on_beside_its_successor_writes_nothing_twice(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = {**OPTIONS, "hoodie.datasource.write.operation": "insert"}
    monkeypatch.setattr(streaming, "_query_id", lambda _: "q")
    first, second = (streaming.BatchSink(stream.base, insert, (), "append") for _ in range(2))
    rows = [stream.spark.createDataFrame([(name, "x", 1)], DDL) for name in "abc"]
    first(rows[0], 0)
    second(rows[1], 1)
    first(rows[1], 1)
    first(rows[2], 2)
    second(rows[2], 2)
    assert stream.ids() == ["a", "b", "c"]


def test_complete_mode_replaces_the_rows_with_each_batch(stream: Stream) -> None:
    stream.add("1", ("a", "x", 1), ("b", "y", 1))
    stream.add("2", ("c", "x", 2))
    counts = stream.rows().groupBy("kind").count().selectExpr("kind as id", "count as ts")
    writer = counts.writeStream.format("hudi").options(**OPTIONS).option("checkpointLocation", stream.checkpoint)
    writer.outputMode("complete").trigger(availableNow=True).start(stream.base).awaitTermination()
    rows = stream.spark.read.format("hudi").load(stream.base).collect()
    assert {row.id: row.ts for row in rows} == {"x": 2, "y": 1}


def test_update_mode_upserts_what_each_batch_changed(stream: Stream) -> None:
    stream.add("1", ("a", "x", 1), ("b", "y", 1))
    stream.add("2", ("c", "x", 2))
    counts = stream.rows().groupBy("kind").count().selectExpr("kind as id", "count as ts")
    writer = counts.writeStream.format("hudi").options(**OPTIONS).option("checkpointLocation", stream.checkpoint)
    writer.outputMode("update").trigger(availableNow=True).start(stream.base).awaitTermination()
    table = hoodie.Table.open(stream.base)
    assert sorted(zip(*table.scan(["id", "ts"]).read_all().to_pydict().values(), strict=True)) == [("x", 2), ("y", 1)]
    timeline = table.timeline()
    writes = timeline.completed_writes()
    assert [one.action for one in writes] == ["commit", "commit"]
    stats = load_commit_metadata(table.storage, timeline.profile, writes[1]).write_stats()
    assert sum(one.num_update_writes for _, one in stats) == 1


def test_arguments_of_start_name_and_partitioning_are_carried(stream: Stream) -> None:
    stream.add("1", ("a", "x", 1))
    query = stream.rows().writeStream.trigger(availableNow=True).start(
        stream.base, format="hudi", outputMode="append", partitionBy="kind", queryName="to_hudi",
        checkpointLocation=stream.checkpoint, **OPTIONS,
    )  # fmt: skip
    assert query.name == "to_hudi"
    query.awaitTermination()
    assert stream.ids() == ["a"]
    assert hoodie.Table.open(stream.base).config.partition_fields == ("kind",)


def test_streams_of_other_formats_keep_their_partitioning(stream: Stream, tmp_path: Path) -> None:
    stream.add("1", ("a", "x", 1))
    writer = stream.rows().writeStream.partitionBy("kind").format("parquet")
    writer = writer.option("checkpointLocation", stream.checkpoint).trigger(availableNow=True)
    writer.start(str(tmp_path / "plain")).awaitTermination()
    assert (tmp_path / "plain" / "kind=x").is_dir()


def test_a_stream_without_a_checkpoint_folder_is_refused(stream: Stream) -> None:
    stream.add("1", ("a", "x", 1))
    with pytest.raises(Invalid, match="checkpoint folder"):
        stream.rows().writeStream.format("hudi").options(**OPTIONS).start(stream.base)


def test_a_folder_for_all_streams_is_taken_for_those_with_a_name(stream: Stream, tmp_path: Path) -> None:
    stream.add("1", ("a", "x", 1))
    stream.spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path / "all"))
    try:
        writer = stream.rows().writeStream.format("hudi").options(**OPTIONS).trigger(availableNow=True)
        with pytest.raises(Invalid, match="another folder"):
            writer.start(stream.base)
        writer.queryName("to_hudi").start(stream.base).awaitTermination()
    finally:
        stream.spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert stream.ids() == ["a"]
    assert (tmp_path / "all" / "to_hudi").is_dir()


def test_wrong_options_are_refused_before_the_stream_starts(stream: Stream) -> None:
    with pytest.raises(Invalid, match=r"hoodie\.table\.nam"):
        stream.run(**{"hoodie.table.nam": "x"})


def test_an_error_in_a_batch_ends_the_stream_with_its_text(stream: Stream) -> None:
    stream.add("1", ("a", "x", 1))
    with pytest.raises(Invalid, match="no_such_column") as caught:
        stream.run(**{"hoodie.datasource.write.recordkey.field": "no_such_column"})
    assert "Traceback" not in str(caught.value)
    assert str(stream.query.exception()) == str(caught.value)
    assert stream.spark.streams.active == []


Failing = Callable[..., None]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes the next so many writes of the sink fail as if the disk were full."""
    write = streaming.write_frame

    def fail(times: int) -> None:
        left = [times]

        def tried(*args: Any, **named: Any) -> Any:
            if left[0] > 0:
                left[0] -= 1
                raise Unavailable("Disk is full")
            return write(*args, **named)

        monkeypatch.setattr(streaming, "write_frame", tried)

    return fail


def test_a_passing_failure_is_tried_again(stream: Stream, failing: Callable[[int], None]) -> None:
    stream.add("1", ("a", "x", 1))
    failing(2)
    stream.run(**{"hoodie.datasource.write.streaming.retry.interval.ms": "1"})
    assert stream.ids() == ["a"]


def test_a_batch_whose_commit_was_not_answered_is_not_written_again(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = streaming.write_frame

    def written_and_not_told(*args: Any, **named: Any) -> None:
        write(*args, **named)
        raise Unavailable("The connection broke")

    monkeypatch.setattr(streaming, "write_frame", written_and_not_told)
    stream.add("1", ("a", "x", 1))
    insert = {"hoodie.datasource.write.operation": "insert"}
    stream.run(**insert, **{"hoodie.datasource.write.streaming.retry.interval.ms": "1"})
    assert stream.ids() == ["a"]
    assert len(stream.commits()) == 1


def test_a_lasting_failure_drops_the_batch_only_when_told_so(stream: Stream, failing: Callable[[int], None]) -> None:
    stream.add("1", ("a", "x", 1))
    stream.add("2", ("b", "x", 1))
    told = {
        "hoodie.datasource.write.streaming.retry.interval.ms": "1",
        "hoodie.datasource.write.streaming.retry.count": "1",
    }
    failing(2)
    with pytest.raises(Unavailable, match="Disk is full"):
        stream.run(**told)
    failing(2)
    stream.run(**told, **{"hoodie.datasource.write.streaming.ignore.failed.batch": "true"})
    assert stream.ids() == ["b"]
