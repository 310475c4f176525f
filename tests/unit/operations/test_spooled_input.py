"""Input that is too large to stay in memory goes through spool files, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from hoodie.engine import ArrowSource, BatchMap, BatchWork, BulkInsertSortMode, TaskId
from hoodie.errors import Invalid
from hoodie.storage import MemoryStorage
from hoodie.testing.lake import ROWS, Lake, row, table_of
from hoodie.write.incoming import SpooledRows

SPOOL = {"hoodie.engine.local.max.bytes": "1"}


def sorted_rows(lake: Lake) -> list[dict[str, object]]:
    return (
        lake.table.scan(columns=ROWS.names).read_all().sort_by([("id", "ascending"), ("part", "ascending")]).to_pylist()
    )


@pytest.mark.deep
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("spool", [{}, SPOOL], ids=["memory", "spool"])
def test_operations_on_many_batches(version: int, index: str, spool: dict[str, str]) -> None:
    random = np.random.default_rng(3)
    lake = Lake(version, {"hoodie.index.type": index, **spool})
    model: dict[str, tuple[str, str]] = {}
    for step in range(3):
        keys = random.integers(0, 60, 90)
        rows = [row(f"k{k}", f"{step}-{n}", step, f"p{k % 4}") for n, k in enumerate(keys)]
        batches = [batch for n in range(0, 90, 15) for batch in table_of(rows[n : n + 15]).to_batches()]
        lake.write("upsert", pa.RecordBatchReader.from_batches(ROWS, batches))
        model.update({one["id"]: (one["part"], one["v"]) for one in rows})
        lake.ensure_sound()
    gone = [row(f"k{k}", part=f"p{k % 4}") for k in range(0, 60, 3)]
    lake.write("delete", pa.RecordBatchReader.from_batches(ROWS, table_of(gone).to_batches(max_chunksize=4)))
    for one in gone:
        model.pop(one["id"], None)
    assert {id: (part, v) for id, part, v in lake.rows(("id", "part", "v"))} == model
    lake.ensure_sound()


class InTasks:
    """A source whose tasks get the given tables, in order: some small enough to stay inline, some not."""

    def __init__(self, *parts: pa.Table) -> None:
        self._parts = parts

    @property
    def schema(self) -> pa.Schema:
        return self._parts[0].schema

    def small(self, limit_bytes: int) -> pa.Table | None:
        return None

    def mapped(self, work: BatchMap, schema: pa.Schema) -> ArrowSource:
        raise NotImplementedError

    def in_sort_mode(self, sort_mode: BulkInsertSortMode, partition_column: str, key_column: str) -> ArrowSource:
        raise NotImplementedError

    def consume(self, work: BatchWork[object], label: str) -> list[object]:
        return [one for n, part in enumerate(self._parts) for one in work(TaskId(n, 1, n), iter(part.to_batches()))]


@pytest.mark.parametrize("large_first", [True, False])
def test_arrival_decides_between_equal_rows_whatever_was_spooled(large_first: bool) -> None:
    lake = Lake(9, {"hoodie.engine.local.max.bytes": "1000"})
    large = table_of([row("a", "x" * 3000), row("b", "x" * 3000)])
    small = table_of([row("a", "small"), row("c", "small")])
    lake.write("upsert", InTasks(*((large, small) if large_first else (small, large))))
    found = lake.values()
    assert (found["a"] == "small") == large_first
    assert sorted(found) == ["a", "b", "c"]


def test_failing_source_leaves_no_spool(version: int) -> None:
    lake = Lake(version, SPOOL)
    lake.upsert(row("a"))
    before = lake.files()

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table_of([row("b")]).to_batches()
        yield from table_of([row("c")]).to_batches()
        raise RuntimeError("the source broke")

    for operation in ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "delete_partition"):
        with pytest.raises(RuntimeError, match="the source broke"):
            lake.write(operation, pa.RecordBatchReader.from_batches(ROWS, batches()))
        assert lake.files() == before, operation


def test_failing_first_source_leaves_no_table(version: int) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from table_of([row("b")]).to_batches()
        raise RuntimeError("the source broke")

    for operation in ("upsert", "bulk_insert"):
        lake = Lake(version, SPOOL)
        with pytest.raises(RuntimeError, match="the source broke"):
            lake.write(operation, pa.RecordBatchReader.from_batches(ROWS, batches()))
        assert lake.files() == {}


def test_spool_gives_any_rows_in_any_order_by_reading_few_batches() -> None:
    storage = MemoryStorage("spool-take")
    table = pa.table({"n": range(100), "s": [str(n) for n in range(100)]})
    with storage.open_output("x.arrow") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=10):
            writer.write_batch(batch)
    rows = SpooledRows(storage, "x.arrow", ((2, 10), (5, 10), (9, 10)))  # 20-29, 50-59, 90-99
    assert rows.load(["n"])["n"].to_pylist() == [*range(20, 30), *range(50, 60), *range(90, 100)]
    wanted = np.array([29, 0, 10, 10, 5, 19, 20])
    assert rows.take(wanted)["n"].to_pylist() == [99, 20, 50, 50, 25, 59, 90]
    assert rows.take(np.array([], dtype=np.int64)).num_rows == 0
    storage.delete("x.arrow")


def test_partitions_of_a_partition_delete_are_not_spooled() -> None:
    lake = Lake(9, SPOOL)
    lake.upsert(row("a"), row("b", part="q"))
    lake.write("delete_partition", pa.table({"part": ["q"] * 10_000}))
    assert lake.values() == {"a": "a"}
    lake.ensure_sound()


def test_bad_row_after_many_good_ones_writes_nothing(version: int) -> None:
    lake = Lake(version, SPOOL)
    lake.upsert(row("a"))
    before = lake.files()
    rows = [row(f"k{n}") for n in range(50)] + [row("")]
    with pytest.raises(Invalid, match="null or empty"):
        lake.write("upsert", pa.RecordBatchReader.from_batches(ROWS, table_of(rows).to_batches(max_chunksize=5)))
    assert lake.files() == before
