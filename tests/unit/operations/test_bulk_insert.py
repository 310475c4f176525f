"""Bulk insert: arrangements, rollover, many partitions, what is left when the input fails."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from hoodie import engine
from hoodie.errors import Invalid
from hoodie.spec import WriteStat
from hoodie.testing.lake import ROWS, Lake, row, table_of
from hoodie.write import bulk

SORT = "hoodie.bulkinsert.sort.mode"
MODES = ["NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"]


def shuffled(count: int, partitions: int = 3, width: int = 0) -> pa.Table:
    order = np.random.default_rng(7).permutation(count)
    return pa.table(
        {
            "id": [f"k{n:06d}" for n in order],
            "part": [f"p{n % partitions}" for n in order],
            "ts": order,
            "v": [f"{n:0{width}d}" if width else str(n) for n in np.random.default_rng(8).integers(0, 10**15, count)],
        }
    ).cast(ROWS)


def in_file_order(lake: Lake) -> dict[str, list[str]]:
    """Record keys of each live base file, in the order they are stored."""
    found = lake.table.scan(columns=["_hoodie_file_name", "id"]).read_all()
    files: dict[str, list[str]] = {}
    for name, key in zip(found["_hoodie_file_name"].to_pylist(), found["id"].to_pylist(), strict=True):
        files.setdefault(name, []).append(key)
    return files


@pytest.mark.parametrize("mode", MODES)
def test_every_arrangement_stores_all_rows_once(version: int, mode: str) -> None:
    lake = Lake(version, {SORT: mode})
    rows = shuffled(500)
    done = lake.write("bulk_insert", rows)
    assert (done.inserts, done.rows_written) == (500, 500)
    found = lake.table.scan(columns=ROWS.names).read_all().sort_by("id")
    assert found.to_pylist() == rows.sort_by("id").to_pylist()
    assert lake.commits()[0].operation_type == "BULK_INSERT"
    if "SORT" in mode:
        assert all(keys == sorted(keys) for keys in in_file_order(lake).values())
    if mode != "NONE":
        assert len(lake.live()) == 3  # on one machine every arrangement brings a partition's rows together
    lake.ensure_sound()


@pytest.mark.parametrize("mode", MODES)
def test_combined_bulk_insert_is_arranged_too(mode: str) -> None:
    lake = Lake(9, {SORT: mode, "hoodie.combine.before.insert": "true"})
    rows = shuffled(200)
    lake.write("bulk_insert", pa.concat_tables([rows, rows.slice(0, 20)]))
    assert lake.table.scan().read_all().num_rows == 200
    if "SORT" in mode:
        assert all(keys == sorted(keys) for keys in in_file_order(lake).values())


@pytest.mark.parametrize("mode", MODES)
def test_files_roll_over_at_the_size_limit(version: int, mode: str) -> None:
    limit = 60_000
    options = {"hoodie.parquet.block.size": "50000", "hoodie.parquet.bloom.filter.enabled": "false"}
    lake = Lake(version, {SORT: mode, "hoodie.parquet.max.file.size": limit, **options})
    done = lake.write("bulk_insert", shuffled(20_000, partitions=2, width=40))
    sizes = [one.base.size_bytes for one in lake.table.files() if one.base]
    assert done.files == len(sizes) > 4
    assert max(sizes) < 2 * limit
    assert lake.table.scan(columns=["id"]).read_all().num_rows == 20_000
    ids = [text.rpartition("-") for _, text in lake.live()]
    assert len({prefix for prefix, _, _ in ids}) < len(ids)  # a task counts its files up
    lake.ensure_sound()


def test_memory_is_bounded_by_closing_files_and_writing_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "OPEN_FILES", 4)
    monkeypatch.setattr(bulk, "HELD_BYTES", 2_000)
    lake = Lake()
    done = lake.write("bulk_insert", shuffled(2_000, partitions=50))
    assert lake.table.scan(columns=["id"]).read_all().num_rows == 2_000
    assert len(done.partitions) == 50
    lake.ensure_sound()


def test_many_partitions_that_wait_are_written_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest of all that wait are looked for once for half of them, not for each."""
    monkeypatch.setattr(bulk, "HELD_BYTES", 20_000)
    looks = 0
    flush = bulk._Writers._flush_largest

    def counted(writers: bulk._Writers) -> Iterator[WriteStat]:
        nonlocal looks
        looks += 1
        return flush(writers)

    monkeypatch.setattr(bulk._Writers, "_flush_largest", counted)
    lake = Lake()
    done = lake.write("bulk_insert", shuffled(3_000, partitions=500))
    assert lake.table.scan(columns=["id"]).read_all().num_rows == 3_000
    assert 0 < looks < done.files / 10


def test_what_waits_at_the_end_is_one_file_for_each_partition_with_numbers_of_its_own() -> None:
    """They are written by several threads."""
    assert bulk.FEW_FILES < 100
    lake = Lake()
    done = lake.write("bulk_insert", shuffled(1_000, partitions=100))
    assert done.files == 100
    numbers = lake.rows(("_hoodie_commit_seqno",))
    assert sorted(int(text.rpartition("_")[2]) for (text,) in numbers) == list(range(1_000))
    lake.ensure_sound()


@pytest.mark.parametrize("fits", [True, False])
def test_what_tasks_of_this_process_leave_of_a_partition_is_one_file(
    monkeypatch: pytest.MonkeyPatch, *, fits: bool
) -> None:
    monkeypatch.setattr(engine, "usable_cores", lambda: 4)
    monkeypatch.setattr(engine, "ROWS_PER_LOCAL_TASK", 700)
    if not fits:
        monkeypatch.setattr(bulk, "HELD_BYTES", 8_000)
    lake, rows = Lake(), shuffled(2_800, partitions=20)
    done = lake.write("bulk_insert", rows)
    assert done.files == 20 if fits else done.files > 20
    assert lake.table.scan(columns=ROWS.names).read_all().sort_by("id").equals(rows.sort_by("id"))
    assert len({text for (text,) in lake.rows(("_hoodie_commit_seqno",))}) == 2_800
    if fits:
        arrived = {key: at for at, key in enumerate(rows["id"].to_pylist())}
        assert all(keys == sorted(keys, key=arrived.__getitem__) for keys in in_file_order(lake).values())
    lake.ensure_sound()


def test_small_files_that_cannot_be_written_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake()
    lake.write("bulk_insert", table_of([row("first", "n", 1, "p0")]))
    write, begun = bulk._OpenFile.write, 0

    def failing(file: bulk._OpenFile, rows: pa.Table) -> int:
        nonlocal begun
        begun += 1
        if begun == 30:
            raise Invalid("This file is not to be", remedy="None")
        return write(file, rows)

    monkeypatch.setattr(bulk._OpenFile, "write", failing)
    with pytest.raises(Invalid, match="not to be"):
        lake.write("bulk_insert", shuffled(1_000, partitions=100))
    monkeypatch.undo()
    assert lake.rows(("id",)) == [("first",)]
    lake.write("bulk_insert", shuffled(1_000, partitions=100))
    assert len(lake.rows(("id",))) == 1_001
    lake.ensure_sound()


def test_sequence_numbers_of_one_task_do_not_repeat_over_its_files() -> None:
    lake = Lake(9, {"hoodie.parquet.max.file.size": "20000"})
    lake.write("bulk_insert", shuffled(3_000))
    numbers = [text for (text,) in lake.rows(("_hoodie_commit_seqno",))]
    assert len(set(numbers)) == 3_000


def test_bulk_insert_adds_beside_what_is_there(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"))
    lake.write("bulk_insert", [row("a", "twin"), row("b")])
    assert lake.rows() == [("a", "a"), ("a", "twin"), ("b", "a")]
    assert len(lake.live()) == 2


def test_bulk_insert_cannot_leave_out_duplicates() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    before = lake.files()
    with pytest.raises(Invalid, match="bulk_insert does not look for keys.*Use operation insert"):
        lake.write("bulk_insert", [row("a")], {"hoodie.datasource.write.insert.drop.duplicates": "true"})
    assert lake.files() == before


@pytest.mark.parametrize("mode", MODES)
def test_bad_row_in_the_middle_leaves_no_trace(version: int, mode: str) -> None:
    lake = Lake(version, {SORT: mode})
    lake.upsert(row("a"))
    before = lake.files()
    batches = [*table_of([row(f"n{n}") for n in range(5)]).to_batches(), *table_of([row("x"), row(None)]).to_batches()]  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="null or empty"):
        lake.write("bulk_insert", pa.RecordBatchReader.from_batches(ROWS, iter(batches)))
    assert lake.files() == before
    assert lake.values() == {"a": "a"}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("operation", ["bulk_insert", "insert"])
def test_a_key_stored_more_than_once_is_changed_and_deleted_in_all_copies(
    version: int, operation: str, kind: str
) -> None:
    lake = Lake(version, {"hoodie.datasource.write.table.type": kind})
    lake.write(operation, [row("a", "1"), row("a", "2"), row("a", "3"), row("b", "1"), row("b", "2"), row("c")])
    assert len(lake.rows()) == 6
    lake.upsert(row("a", "new", ts=2))
    lake.write("delete", [row("b", ts=2)])
    wanted = [("a", "new")] * 3 + [("c", "a")]
    assert lake.rows() == wanted
    if kind == "MERGE_ON_READ":
        lake.table.services.compact()
        assert lake.rows() == wanted
