"""SparkEngine and FrameSource: what reaches workers, what comes back, what an error looks like."""

from __future__ import annotations

import datetime
import decimal
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hoodie.engine import BulkInsertSortMode, TaskId
from hoodie.errors import Corrupt, HudiError, Invalid, Unavailable, Unsupported
from hoodie.spark import FrameSource, SparkEngine

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark: SparkSession) -> SparkEngine:
    return SparkEngine(spark)


def test_results_come_in_task_order_from_worker_processes(engine: SparkEngine) -> None:
    def work(task_id: TaskId, number: int) -> tuple[int, int, TaskId]:
        return number * number, os.getpid(), task_id

    results = engine.run(work, list(range(20)), "squares")
    assert [square for square, _, _ in results] == [n * n for n in range(20)]
    assert os.getpid() not in {pid for _, pid, _ in results}
    assert len({task_id.token for _, _, task_id in results}) == 20
    assert [task_id.partition for _, _, task_id in results] == list(range(20))


def test_no_tasks_start_no_job(engine: SparkEngine) -> None:
    assert engine.run(_never, [], "nothing") == []


def test_parallelism_is_that_of_the_session(engine: SparkEngine) -> None:
    assert engine.parallelism == 2


def test_an_error_of_ours_arrives_whole_when_all_tasks_have_ended(engine: SparkEngine, tmp_path: Path) -> None:
    def work(_: TaskId, number: int) -> int:
        if number == 1:
            raise Corrupt("Block 7 is torn", remedy="Restore it", path="a/b", offset=7)
        (tmp_path / str(number)).touch()
        return number

    with pytest.raises(Corrupt, match="Block 7 is torn") as caught:
        engine.run(work, list(range(6)), "reading")
    assert caught.value.facts == {"path": "a/b", "offset": 7}
    assert "in work" in str(caught.value.__cause__)
    assert len(list(tmp_path.iterdir())) == 5


def test_other_errors_arrive_as_themselves_or_as_their_text(engine: SparkEngine) -> None:
    class Odd(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__("odd")

    def wrong_key(_: TaskId, number: int) -> int:
        return {}[number]  # type: ignore[no-any-return]

    def odd(_: TaskId, number: int) -> int:
        raise Odd(1, 2)

    with pytest.raises(KeyError, match="3"):
        engine.run(wrong_key, [3], "lookup")
    with pytest.raises(RuntimeError, match="Odd: odd"):
        engine.run(odd, [3], "odd")


def test_a_worker_that_dies_is_reported_as_unavailable(engine: SparkEngine) -> None:
    def work(_: TaskId, number: int) -> int:
        os._exit(9)

    with pytest.raises(Unavailable, match="lost a Python worker in step 'dying'"):
        engine.run(work, [1], "dying")


def test_rows_of_all_types_reach_the_work_in_the_schema_of_the_source(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        frame = spark.sql(
            "select 1 as i, 2L as l, 1.5f as f, 2.5d as d, true as b, 'x' as s, binary('y') as y, 12.34 as m,"
            " date'2024-02-29' as day, timestamp'2024-01-01 00:00:00Z' as t, timestamp_ntz'2024-01-01 00:00:00' as n,"
            " array(named_struct('t', timestamp'2024-01-01 00:00:00Z')) as nested, map('k', 1) as kv, 3Y as z"
        )
        source = FrameSource(frame)

        def work(_: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
            yield pa.Table.from_batches(list(batches))

        (table,) = source.consume(work, "types")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert table.schema.equals(source.schema, check_metadata=True)
    assert table.schema.metadata is None
    assert source.schema.field("t").type == pa.timestamp("us", tz="UTC")
    (row,) = table.to_pylist()
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    assert row["t"] == moment
    assert row["nested"] == [{"t": moment}]
    assert row["n"] == datetime.datetime(2024, 1, 1)
    assert row["m"] == decimal.Decimal("12.34")
    assert row["kv"] == [("k", 1)]


def test_maps_and_work_run_in_one_pass_over_the_input(spark: SparkSession) -> None:
    seen = spark.sparkContext.accumulator(0)

    def count(value: int) -> int:
        seen.add(1)
        return value

    counted = F.udf(count, "long")
    source = FrameSource(spark.range(1000).select(counted("id").alias("id")))

    def double(_: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pc.multiply(batch["id"], 2)], ["twice"])

    def total(task_id: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, int]]:
        yield task_id.token, sum(pc.sum(batch["twice"]).as_py() for batch in batches)

    results = source.mapped(double, pa.schema([("twice", pa.int64())])).consume(total, "sum")
    assert sum(part for _, part in results) == 999_000
    assert len({token for token, _ in results}) == 2
    assert seen.value == 1000


def test_a_random_column_has_one_value_for_every_step(spark: SparkSession) -> None:
    source = FrameSource(spark.range(100).withColumn("key", F.expr("uuid()")))
    table = source.small(1 << 20)
    assert table is not None
    held = source.consume(_whole, "again")
    assert pa.concat_tables(held).column("key").to_pylist() == table.column("key").to_pylist()


def test_small_takes_rows_only_when_statistics_say_they_are_few(spark: SparkSession) -> None:
    few = FrameSource(spark.createDataFrame(pa.table({"id": [1, 2], "name": ["a", None]})))
    table = few.small(1 << 20)
    assert table is not None
    assert table.to_pylist() == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    assert table.schema.equals(few.schema, check_metadata=True)
    assert FrameSource(spark.range(10_000_000)).small(1 << 20) is None
    unknown = spark.createDataFrame([(1,)], "id long")
    assert FrameSource(unknown).small(1 << 30) is None
    found = few._frame.join(few._frame.withColumnRenamed("name", "other"), "id").where("id > 0").orderBy("id").limit(5)
    found = found.union(found).groupBy("name").count().distinct().repartition(2)
    assert FrameSource(found).small(1 << 30) is not None
    cached = few._frame.cache()
    assert cached.count() == 2
    assert FrameSource(cached).small(1 << 20) is not None
    cached.unpersist()


def _twice(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        yield batch


MORE_THAN_IT_SEEMS = {
    "explode": lambda frame: frame.selectExpr("explode(sequence(1, 1000000)) as id"),
    "lateral view": lambda frame: frame.selectExpr("id", "stack(3, 1, 2, 3)"),
    "mapInArrow": lambda frame: frame.mapInArrow(_twice, "id long"),
    "mapInPandas": lambda frame: frame.mapInPandas(_twice, "id long"),
    "applyInPandas": lambda frame: frame.groupBy("id").applyInPandas(lambda group: group, "id long"),
    "below a limit": lambda frame: frame.mapInArrow(_twice, "id long").where("id >= 0").orderBy("id"),
    "collected values": lambda frame: frame.groupBy().agg(F.collect_list("id").alias("ids")),
    "cached, not yet there": lambda frame: frame.selectExpr("explode(array(id, id)) as id").cache(),
    "checkpoint": lambda frame: frame.selectExpr("explode(array(id, id)) as id").localCheckpoint(),
}


@pytest.mark.parametrize("how", MORE_THAN_IT_SEEMS)
def test_rows_that_statistics_do_not_see_are_not_small(spark: SparkSession, how: str) -> None:
    frame = MORE_THAN_IT_SEEMS[how](spark.createDataFrame(pa.table({"id": [1, 2]})))
    try:
        assert FrameSource(frame).small(1 << 30) is None
    finally:
        frame.unpersist()


@pytest.mark.parametrize("sort_mode", list(BulkInsertSortMode))
def test_arranged_rows_are_grouped_and_sorted_as_asked(spark: SparkSession, sort_mode: BulkInsertSortMode) -> None:
    frame = spark.range(0, 400, 1, 4).selectExpr(
        "concat('p', (id * 7) % 5) as part", "lpad(cast((id * 37) % 400 as string), 3, '0') as key"
    )
    source = FrameSource(frame).mapped(_upper, pa.schema([("part", pa.string()), ("key", pa.string())]))
    tasks = source.in_sort_mode(sort_mode, "part", "key").consume(_whole, "arranged")
    rows = [[(row["part"], row["key"]) for row in table.to_pylist()] for table in tasks]
    assert sorted(row for task in rows for row in task) == sorted(
        (f"P{(n * 7) % 5}", f"{n * 37 % 400:03}") for n in range(400)
    )
    if sort_mode is BulkInsertSortMode.GLOBAL_SORT:
        assert [row for task in rows for row in task] == sorted(row for task in rows for row in task)
    if sort_mode in (BulkInsertSortMode.PARTITION_SORT, BulkInsertSortMode.PARTITION_PATH_REPARTITION_AND_SORT):
        assert all(task == sorted(task) for task in rows)
    if sort_mode.name.startswith("PARTITION_PATH_REPARTITION"):
        places = [{part for part, _ in task} for task in rows]
        assert sum(len(place) for place in places) == 5


def test_an_error_in_a_map_before_a_shuffle_arrives_as_itself(spark: SparkSession) -> None:
    def refuse(_: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise Invalid("Column 'k' has 3 nulls", remedy="Fill them", column="k")
        yield from batches

    source = FrameSource(spark.range(10).selectExpr("cast(id as string) as k"))
    mapped = source.mapped(refuse, source.schema).in_sort_mode(BulkInsertSortMode.GLOBAL_SORT, "k", "k")
    with pytest.raises(Invalid, match="has 3 nulls") as caught:
        mapped.consume(_whole, "sorting")
    assert caught.value.facts == {"column": "k"}


def test_an_error_of_the_callers_own_plan_names_the_step(spark: SparkSession) -> None:
    source = FrameSource(spark.range(10).selectExpr("raise_error('their fault') as k"))
    with pytest.raises(HudiError, match=r"step 'intake'.*their fault"):
        source.consume(_whole, "intake")


def test_a_plan_that_fails_before_it_runs_names_the_step(spark: SparkSession) -> None:
    source = FrameSource(spark.range(10).selectExpr("assert_true(false) as k"))
    with pytest.raises(HudiError, match="step 'read input'") as caught:
        source.small(1 << 20)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("column", ["parse_json('1')", "interval 1 day", "interval 2 months", "array(interval 1 day)"])
def test_types_a_table_cannot_hold_are_refused_by_column(spark: SparkSession, column: str) -> None:
    with pytest.raises(Unsupported, match="Column 'odd'"):
        FrameSource(spark.range(1).selectExpr(f"{column} as odd"))


def test_batch_size_of_the_session_is_given_back(spark: SparkSession) -> None:
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(key)
    spark.conf.set(key, "1000")
    try:
        sizes = FrameSource(spark.range(0, 50_000, 1, 1)).consume(_sizes, "sizes")
        assert spark.conf.get(key) == "1000"
    finally:
        spark.conf.set(key, before)
    assert max(sizes) > 1000


def _never(_: TaskId, task: Any) -> None:
    raise AssertionError


def _whole(_: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held = list(batches)
    if held:
        yield pa.Table.from_batches(held)


def _sizes(_: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield batch.num_rows


def _upper(_: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pc.utf8_upper(batch["part"]), batch["key"]], ["part", "key"])
