"""Insert: duplicates, small files, record sizes, automatic keys, empty input."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.table import Table
from hoodie.testing.lake import ROWS, Lake, row, table_of

DROP = "hoodie.datasource.write.insert.drop.duplicates"
POLICY = "hoodie.datasource.insert.dup.policy"
COMBINE = "hoodie.combine.before.insert"
SMALL_FILES = "hoodie.parquet.small.file.limit"
MAX_SIZE = "hoodie.parquet.max.file.size"
ROW_SIZE = "hoodie.copyonwrite.record.size.estimate"


def test_insert_does_not_look_for_keys(version: int) -> None:
    lake = Lake(version)
    lake.write("insert", [row("a", "one"), row("a", "two")])
    lake.write("insert", [row("a", "three")])
    assert lake.rows() == [("a", "one"), ("a", "three"), ("a", "two")]
    assert len(lake.live()) == 1
    assert [one.operation_type for one in lake.commits()] == ["INSERT", "INSERT"]
    lake.ensure_sound()


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("option", [{DROP: "true"}, {POLICY: "drop"}], ids=["flag", "policy"])
def test_drop_leaves_stored_keys_alone(version: int, index: str, option: dict[str, str]) -> None:
    lake = Lake(version, {"hoodie.index.type": index})
    lake.upsert(row("a"), row("b", part="q"))
    done = lake.write("insert", [row("a", "a2", 2), row("c"), row("b", "b2", 2, "q")], option)
    assert done.inserts == 1
    assert lake.values() == {"a": "a", "b": "a", "c": "a"}


def test_twins_in_the_input_are_dropped_by_the_flag_and_kept_by_the_policy(version: int) -> None:
    # As seen on Hudi 1.2.0.
    lake = Lake(version)
    lake.upsert(row("a"))
    lake.write("insert", [row("a"), row("b", "low", 1), row("b", "high", 2), row("b", "mid", 1)], {DROP: "true"})
    assert lake.values() == {"a": "a", "b": "high"}
    lake.write("insert", [row("a"), row("c", "low", 1), row("c", "high", 2), row("a", "again", 9)], {POLICY: "drop"})
    assert lake.rows() == [("a", "a"), ("b", "high"), ("c", "high"), ("c", "low")]


def test_fail_refuses_stored_keys_and_writes_nothing(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"), row("b"))
    before = lake.files()
    with pytest.raises(Invalid, match=r"1 of the keys .* for example 'a'.* operation upsert") as caught:
        lake.write("insert", [row("c"), row("a", "a2", 2)], {POLICY: "fail"})
    assert caught.value.facts["keys"] == 1
    assert lake.files() == before
    lake.write("insert", [row("c"), row("d")], {POLICY: "fail"})
    assert sorted(lake.values()) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"])
def test_combine_before_insert_keeps_the_newest_of_the_input(version: int, operation: str) -> None:
    lake = Lake(version)
    lake.write(
        operation, [row("a", "high", 9), row("b"), row("a", "low", 1), row("a", "other", 1, "q")], {COMBINE: "true"}
    )
    assert lake.rows(("id", "part", "v")) == [("a", "p", "high"), ("a", "q", "other"), ("b", "p", "a")]


def test_bulk_insert_that_combines_still_makes_its_own_files(version: int) -> None:
    lake = Lake(version)
    lake.write("insert", [row("a")])
    lake.write("bulk_insert", [row("b"), row("b", "b2", 2)], {COMBINE: "true"})
    assert lake.values() == {"a": "a", "b": "b2"}
    assert len(lake.live()) == 2


# --- file sizing


def rows(count: int, prefix: str = "k", part: str = "p") -> pa.Table:
    return table_of([row(f"{prefix}{n:03d}", part=part) for n in range(count)])


def file_rows(lake: Lake) -> list[int]:
    names = [name for (name,) in lake.rows(("_hoodie_file_name",))]
    return sorted((names.count(name) for name in set(names)), reverse=True)


def test_new_rows_are_split_by_the_estimated_row_size(version: int) -> None:
    lake = Lake(version, {MAX_SIZE: "1000", ROW_SIZE: "100"})
    lake.write("insert", rows(25))
    assert file_rows(lake) == [10, 10, 5]


def test_small_files_are_filled_first_smallest_first(version: int) -> None:
    lake = Lake(version)
    lake.write("bulk_insert", rows(2, "a"))
    lake.write("bulk_insert", rows(50, "b"))
    sizes = sorted((one.base.size_bytes, one.file_id) for one in lake.table.files() if one.base)
    limit = sizes[0][0] + 10 * 100
    done = lake.write("insert", rows(14, "c"), {MAX_SIZE: limit, SMALL_FILES: limit, ROW_SIZE: "100"})
    assert done.files == 2
    by_file = {stat.file_id: stat.num_inserts for stat in lake.commits()[-1].partition_to_write_stats["p"]}
    assert by_file.pop(sizes[0][1]) == 10  # the smallest is full, what the other has room for is less than the rest
    assert sum(by_file.values()) == 4
    assert lake.table.scan().read_all().num_rows == 66


def test_files_at_the_limit_and_limit_zero_take_nothing(version: int) -> None:
    lake = Lake(version)
    lake.write("insert", rows(3, "a"))
    lake.write("insert", rows(3, "b"), {SMALL_FILES: "0"})
    lake.write("insert", rows(3, "c"), {SMALL_FILES: "10"})
    assert file_rows(lake) == [3, 3, 3]


def test_upsert_fills_small_files_in_the_rewrite_of_its_updates(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"))
    done = lake.upsert(row("a", "a2", 2), row("b"), row("c"))
    assert done.files == 1
    assert file_rows(lake) == [3]


def test_row_size_is_learnt_from_a_commit_that_wrote_enough(version: int) -> None:
    lake = Lake(version, {SMALL_FILES: "1000", "hoodie.record.size.estimation.threshold": "0.1", ROW_SIZE: "1"})
    first = lake.write("insert", rows(100))
    per_row = first.size_bytes // 100
    lake.write("insert", rows(20, "n", "new"), {MAX_SIZE: per_row * 8})
    assert sorted(stat.num_inserts for stat in lake.commits()[-1].partition_to_write_stats["new"]) == [4, 8, 8]


def test_without_auto_split_files_hold_a_number_of_rows(version: int) -> None:
    lake = Lake(version, {"hoodie.copyonwrite.insert.auto.split": "false", "hoodie.copyonwrite.insert.split.size": "4"})
    lake.write("insert", rows(10))
    assert file_rows(lake) == [4, 4, 2]


# --- automatic keys, empty input


AUTO = {"hoodie.datasource.write.recordkey.field": None}


def test_automatic_keys_are_unique_over_writes(version: int) -> None:
    lake = Lake(version, AUTO)
    lake.save([row("a"), row("a"), row("a", part="q")])
    lake.save([row("a")])
    lake.write("bulk_insert", [row("a"), row("a", part="q")])
    keys = [key for (key,) in lake.rows(("_hoodie_record_key",))]
    assert len(keys) == len(set(keys)) == 6
    assert lake.commits()[0].operation_type == "INSERT"
    lake.ensure_sound()


@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_rows_without_own_keys_cannot_be_found_again(version: int, operation: str) -> None:
    lake = Lake(version, AUTO)
    lake.save([row("a")])
    before = lake.files()
    with pytest.raises(Invalid, match="record key.*insert"):
        lake.write(operation, [row("a")])
    assert lake.files() == before


@pytest.mark.parametrize(
    "operation", ["upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "insert_overwrite_table"]
)
def test_empty_input_is_a_commit_without_files(version: int, operation: str) -> None:
    lake = Lake(version)
    lake.upsert(row("a"))
    done = lake.write(operation, ROWS.empty_table())
    assert (done.files, done.inserts, done.deletes) == (0, 0, 0)
    assert lake.values() == ({} if operation == "insert_overwrite_table" else {"a": "a"})
    assert len(lake.commits()) == 2
    lake.ensure_sound()


def test_empty_first_write_makes_a_table_with_a_schema(version: int) -> None:
    lake = Lake(version)
    lake.save(ROWS.empty_table())
    assert lake.rows() == []
    assert lake.table.schema.names[-4:] == ROWS.names
    lake.upsert(row("a"))
    assert lake.values() == {"a": "a"}


def test_created_table_can_be_read_and_written(version: int) -> None:
    lake = Lake(version)
    made = Table.create(lake.uri, schema=ROWS, options=lake.options)
    assert made.scan().read_all().num_rows == 0
    assert made.schema.names[-4:] == ROWS.names
    assert made.timeline().instants == ()
    made.delete(table_of([row("nobody")]))
    made.upsert(table_of([row("a")]))
    assert lake.values() == {"a": "a"}
    lake.ensure_sound()


def test_table_without_a_name_is_called_as_its_folder(version: int) -> None:
    lake = Lake(version, {"hoodie.table.name": None})
    lake.upsert(row("a"))
    assert lake.table.config.name == lake.uri.rpartition("/")[2]
