"""What every `Engine` and every `Source` promises, as tests: subclass and give the two makers.

Work functions stand at module level, because that is all that may travel to a worker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest

from hoodie.engine import BulkInsertSortMode, Engine, Source, TaskId
from hoodie.errors import Corrupt, Invalid

SCHEMA = pa.schema([pa.field("key", pa.string()), pa.field("part", pa.string()), pa.field("value", pa.int64())])


class EngineContract:
    """Promises of `Engine.run`."""

    def make_engine(self) -> Engine:
        raise NotImplementedError

    def test_results_come_in_task_order_even_when_tasks_end_in_another(self) -> None:
        assert self.make_engine().run(_slow_first, list(range(6)), "order") == list(range(6))

    def test_no_task_gives_no_result(self) -> None:
        assert self.make_engine().run(_slow_first, [], "none") == []

    def test_every_task_has_its_own_token(self) -> None:
        engine = self.make_engine()
        tokens = [*engine.run(_token, [0, 1, 2], "first"), *engine.run(_token, [0, 1, 2], "second")]
        assert len(set(tokens)) == 6

    def test_an_error_arrives_as_it_was_raised(self) -> None:
        with pytest.raises(Corrupt) as caught:
            self.make_engine().run(_fail_on_two, [1, 2, 3], "fail")
        assert caught.value.facts == {"path": "f.parquet"}

    def test_parallelism_is_positive(self) -> None:
        assert self.make_engine().parallelism >= 1


class SourceContract:
    """Promises of `Source`. `make_source` gives rows of `SCHEMA`, in several tasks or batches where it can."""

    def make_source(self, table: pa.Table) -> Source:
        raise NotImplementedError

    def rows(self, count: int = 1000) -> pa.Table:
        """Keys in no order, three parts."""
        numbers = [(n * 7919) % count for n in range(count)]
        return pa.table(
            {"key": [f"k{n:05}" for n in numbers], "part": [f"p{n % 3}" for n in numbers], "value": numbers}, SCHEMA
        )

    def test_schema_is_that_of_the_rows(self) -> None:
        assert self.make_source(self.rows()).schema.equals(SCHEMA)

    def test_consume_sees_every_row_once(self) -> None:
        seen = self.make_source(self.rows()).consume(_values, "all")
        assert sorted(value for values in seen for value in values) == list(range(1000))

    def test_small_gives_all_rows_or_none_at_all(self) -> None:
        given = self.make_source(self.rows()).small(1 << 40)
        assert given is None or sorted(given.column("value").to_pylist()) == list(range(1000))
        assert self.make_source(self.rows()).small(1) is None

    def test_maps_apply_in_order_before_the_work(self) -> None:
        source = self.make_source(self.rows(10)).mapped(partial(_plus, 1), SCHEMA).mapped(_times_ten, SCHEMA)
        seen = source.consume(_values, "maps")
        assert sorted(value for values in seen for value in values) == [10 * (n + 1) for n in range(10)]

    def test_an_error_of_the_work_arrives_as_it_was_raised(self) -> None:
        with pytest.raises(Invalid, match="row is bad"):
            self.make_source(self.rows()).consume(_refuse, "refuse")

    def test_empty_source_gives_no_rows_and_no_error(self) -> None:
        seen = self.make_source(SCHEMA.empty_table()).consume(_values, "empty")
        assert [value for values in seen for value in values] == []

    @pytest.mark.parametrize("sort_mode", list(BulkInsertSortMode))
    def test_arranging_keeps_every_row(self, sort_mode: BulkInsertSortMode) -> None:
        source = self.make_source(self.rows()).in_sort_mode(sort_mode, "part", "key")
        seen = source.consume(_values, "arranged")
        assert sorted(value for values in seen for value in values) == list(range(1000))

    def test_global_sort_orders_all_rows_by_part_and_key(self) -> None:
        source = self.make_source(self.rows()).in_sort_mode(BulkInsertSortMode.GLOBAL_SORT, "part", "key")
        runs = [run for run in source.consume(_part_and_key, "sorted") if run]
        assert all(run == sorted(run) for run in runs)
        ordered = sorted(runs, key=lambda run: run[0])
        assert [pair for run in ordered for pair in run] == sorted(pair for run in runs for pair in run)

    @pytest.mark.parametrize(
        "sort_mode", [BulkInsertSortMode.PARTITION_SORT, BulkInsertSortMode.PARTITION_PATH_REPARTITION_AND_SORT]
    )
    def test_sorted_arrangements_order_rows_within_a_task(self, sort_mode: BulkInsertSortMode) -> None:
        source = self.make_source(self.rows()).in_sort_mode(sort_mode, "part", "key")
        assert all(run == sorted(run) for run in source.consume(_part_and_key, "sorted"))

    @pytest.mark.parametrize(
        "sort_mode",
        [BulkInsertSortMode.PARTITION_PATH_REPARTITION, BulkInsertSortMode.PARTITION_PATH_REPARTITION_AND_SORT],
    )
    def test_repartitioning_keeps_a_part_in_one_task(self, sort_mode: BulkInsertSortMode) -> None:
        source = self.make_source(self.rows()).in_sort_mode(sort_mode, "part", "key")
        parts = [{part for part, _ in run} for run in source.consume(_part_and_key, "by part")]
        assert sum(len(found) for found in parts) == 3


def _slow_first(_: TaskId, number: int) -> int:
    time.sleep(0.05 if number == 0 else 0)
    return number


def _token(task_id: TaskId, _: int) -> str:
    return task_id.token


def _fail_on_two(_: TaskId, number: int) -> int:
    if number == 2:
        raise Corrupt("The file is cut short", remedy="Restore it", path="f.parquet")
    return number


def _values(_: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[list[int]]:
    yield [value for batch in batches for value in batch.column("value").to_pylist()]


def _part_and_key(_: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[list[tuple[str, str]]]:
    rows = [(batch.column("part").to_pylist(), batch.column("key").to_pylist()) for batch in batches]
    yield [pair for parts, keys in rows for pair in zip(parts, keys, strict=True)]


def _refuse(_: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[None]:
    for _batch in batches:
        raise Invalid("A row is bad", remedy="Correct it")
    yield None


def _plus(more: int, _: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        values = pa.array([value + more for value in batch.column("value").to_pylist()], pa.int64())
        yield pa.RecordBatch.from_arrays([batch.column("key"), batch.column("part"), values], schema=SCHEMA)


def _times_ten(_: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        values = pa.array([value * 10 for value in batch.column("value").to_pylist()], pa.int64())
        yield pa.RecordBatch.from_arrays([batch.column("key"), batch.column("part"), values], schema=SCHEMA)
