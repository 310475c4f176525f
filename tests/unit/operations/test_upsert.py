"""Upsert and delete: which rows stay, what the files and the commit say."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.records import read_footer
from hoodie.testing.lake import ROWS, Lake, row, table_of

INDEXES = ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"]


@pytest.mark.parametrize("index", INDEXES)
def test_upsert_inserts_new_keys_and_updates_known_ones(version: int, index: str) -> None:
    lake = Lake(version, {"hoodie.index.type": index})
    first = lake.upsert(row("a"), row("b"), row("c", part="q"))
    second = lake.upsert(row("b", "b2", 2), row("d", "d2", 2), row("c", "c2", 2, "q"))
    assert (first.inserts, first.updates) == (3, 0)
    assert (second.inserts, second.updates, second.deletes) == (1, 2, 0)
    assert lake.values() == {"a": "a", "b": "b2", "c": "c2", "d": "d2"}
    assert len(lake.live()) == 2  # d went to the small file of its partition
    lake.ensure_sound()


def test_untouched_rows_keep_their_commit_and_all_rows_name_their_file(version: int) -> None:
    lake = Lake(version)
    first = lake.upsert(row("a"), row("b"))
    second = lake.upsert(row("b", "b2", 2), row("c", "c2"))
    found = lake.rows(("id", "_hoodie_commit_time", "_hoodie_file_name", "_hoodie_record_key"))
    (file,) = [one.base.path.rpartition("/")[2] for one in lake.table.files()]
    assert found == [
        ("a", first.instant, file, "a"),
        ("b", second.instant, file, "b"),
        ("c", second.instant, file, "c"),
    ]
    numbers = [text for (text,) in lake.rows(("_hoodie_commit_seqno",))]
    assert len(set(numbers)) == 3
    assert all(text.startswith((first.instant, second.instant)) for text in numbers)


def test_commit_says_what_happened(version: int) -> None:
    lake = Lake(version)
    first = lake.upsert(row("a"), row("b"))
    lake.upsert(row("b", "b2", 2), row("c"))
    _, metadata = lake.commits()
    (stat,) = metadata.partition_to_write_stats["p"]
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes, stat.num_deletes) == (3, 1, 1, 0)
    assert stat.prev_commit == first.instant
    (before,) = lake.commits()[0].partition_to_write_stats["p"]
    assert stat.prev_base_file == (None if version == 6 else (before.path or "").rpartition("/")[2])
    assert metadata.operation_type == "UPSERT"
    assert '"name":"lake_record"' in (metadata.schema or "")
    assert "_hoodie" not in (metadata.schema or "")


def test_footer_of_a_rewritten_file_knows_old_and_new_keys(version: int) -> None:
    lake = Lake(version, {"hoodie.index.type": "BLOOM"})
    lake.upsert(row("b"), row("c"))
    lake.upsert(row("b", "b2", 2), row("z"), row("a"))
    (one,) = lake.table.files()
    footer = read_footer(lake.storage, one.base.path)
    assert (footer.min_key, footer.max_key, footer.rows) == ("a", "z", 4)
    bloom = footer.bloom()
    assert bloom is not None
    assert bloom.contains(pa.array(["a", "b", "c", "z"])).all()
    lake.write("delete", [row("z"), row("a")])
    footer = read_footer(lake.storage, lake.table.files()[0].base.path)
    assert (footer.min_key, footer.max_key, footer.rows) == ("b", "c", 2)


@pytest.mark.parametrize("index", INDEXES)
def test_delete_removes_keys_and_ignores_unknown_ones(version: int, index: str) -> None:
    lake = Lake(version, {"hoodie.index.type": index})
    lake.upsert(row("a"), row("b"), row("c", part="q"))
    done = lake.write("delete", table_of([row("b"), row("nobody"), row("c", part="q")]).select(["id", "part"]))
    assert (done.deletes, done.inserts) == (2, 0)
    assert lake.values() == {"a": "a"}
    assert lake.commits()[-1].operation_type == "DELETE"
    assert lake.commits()[-1].schema == lake.commits()[0].schema
    lake.ensure_sound()


def test_delete_by_ordering_value_asks_nothing(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a", ts=100))
    lake.write("delete", [row("a", ts=1)])
    assert lake.values() == {}


def test_file_group_without_rows_stays_and_takes_new_ones(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"))
    groups = lake.live()
    lake.write("delete", [row("a")])
    assert (lake.values(), lake.live()) == ({}, groups)
    lake.upsert(row("b"))
    assert (lake.values(), lake.live()) == ({"b": "a"}, groups)
    lake.ensure_sound()


def test_delete_of_nothing_known_is_a_commit_without_files(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"))
    files = lake.base_files()
    done = lake.write("delete", [row("x"), row("y", part="nowhere")])
    assert (done.files, lake.base_files()) == (0, files)
    assert len(lake.commits()) == 2
    lake.ensure_sound()


def test_soft_delete_is_an_update_with_nulls(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"), row("b"))
    lake.upsert(row("a", None, 2))
    assert lake.values() == {"a": None, "b": "a"}


DELETED = ROWS.append(pa.field("_hoodie_is_deleted", pa.bool_()))


def test_rows_marked_as_deleted_delete_and_are_never_inserted(version: int) -> None:
    lake = Lake(version, schema=DELETED)
    lake.upsert(
        row("a"), row("b"), row("new", _hoodie_is_deleted=True), row("alone", part="r", _hoodie_is_deleted=True)
    )
    assert lake.values() == {"a": "a", "b": "a"}
    assert {partition for partition, _ in lake.live()} == {"p"}  # no empty file for a row that is none
    done = lake.upsert(row("a", ts=2, _hoodie_is_deleted=True), row("b", "b2", 2, _hoodie_is_deleted=False), row("c"))
    assert (done.deletes, done.updates, done.inserts) == (1, 1, 1)
    assert lake.values() == {"b": "b2", "c": "a"}
    lake.ensure_sound()


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"])
def test_no_operation_stores_rows_marked_as_deleted(version: int, operation: str) -> None:
    lake = Lake(version, schema=DELETED)
    lake.upsert(row("old", part="q"))
    lake.write(operation, [row("a"), row("b", _hoodie_is_deleted=True)])
    assert "b" not in lake.values()
    assert lake.values()["a"] == "a"


def test_late_delete_mark_loses_against_a_newer_row() -> None:
    lake = Lake(9, schema=DELETED)
    lake.upsert(row("a", ts=5))
    lake.upsert(row("a", ts=3, _hoodie_is_deleted=True))
    assert lake.values() == {"a": "a"}
    lake.upsert(row("a", ts=None, _hoodie_is_deleted=True))  # without an ordering value a delete goes by time
    assert lake.values() == {}


def test_deleted_column_must_be_boolean() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    before = lake.files()
    wrong = table_of([row("a")]).append_column("_hoodie_is_deleted", pa.array(["true"]))
    with pytest.raises(Invalid, match="_hoodie_is_deleted.*string"):
        lake.write("upsert", wrong)
    assert lake.files() == before


def test_custom_delete_marker_of_the_options(version: int) -> None:
    lake = Lake(version, {"hoodie.payload.delete.field": "v", "hoodie.payload.delete.marker": "D"})
    lake.upsert(row("a"), row("b"), row("x", "D"))
    lake.upsert(row("a", "D", 2), row("b", "d", 2))
    assert lake.values() == {"b": "d"}


def test_half_a_delete_marker_is_refused() -> None:
    lake = Lake(options={"hoodie.payload.delete.field": "v"})
    with pytest.raises(Invalid, match=r"hoodie\.payload\.delete\.marker"):
        lake.upsert(row("a"))
    assert lake.files() == {}


def test_key_stored_twice_is_updated_and_deleted_everywhere(version: int) -> None:
    lake = Lake(version)
    lake.write("insert", [row("a", "one")])
    lake.write("bulk_insert", [row("a", "two")])
    assert lake.rows() == [("a", "one"), ("a", "two")]
    lake.upsert(row("a", "new", 2))
    assert lake.rows() == [("a", "new"), ("a", "new")]
    lake.write("delete", [row("a")])
    assert lake.rows() == []


def test_same_key_in_two_partitions_is_two_rows_without_a_global_index(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a", "in p"), row("a", "in q", part="q"))
    lake.upsert(row("a", "in q2", 2, "q"))
    assert lake.rows(("part", "v")) == [("p", "in p"), ("q", "in q2")]
    lake.write("delete", [row("a")])
    assert lake.rows(("part", "v")) == [("q", "in q2")]


def test_many_rows_in_many_batches_are_merged_in_place(version: int) -> None:
    count = 70_000  # more than one batch of the reader
    lake = Lake(version, {"hoodie.index.bloom.num_entries": "80000"})
    keys = [f"k{n:06d}" for n in range(count)]
    first = pa.table({"id": keys, "part": ["p"] * count, "ts": [1] * count, "v": ["old"] * count})
    lake.write("bulk_insert", first.cast(ROWS))
    changed = first.take(pa.array(range(0, count, 1000))).set_column(3, "v", pa.array(["new"] * 70))
    lake.write("upsert", changed.cast(ROWS))
    lake.write("delete", first.take(pa.array(range(500, count, 1000))).cast(ROWS))
    found = lake.table.scan(columns=["id", "v"]).read_all()
    assert found.num_rows == count - 70
    assert found.filter(pa.compute.equal(found["v"], "new"))["id"].to_pylist() == keys[::1000]
    assert found["id"].to_pylist() == [key for n, key in enumerate(keys) if n % 1000 != 500]
