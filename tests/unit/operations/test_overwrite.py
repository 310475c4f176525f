"""Overwriting operations and partition deletes: what is replaced, what history still shows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.testing.lake import ROWS, Lake, row, table_of

TO_DELETE = "hoodie.datasource.write.partitions.to.delete"


def three_partitions(version: int, **options: str) -> Lake:
    lake = Lake(version, options)
    lake.upsert(row("a"), row("b", part="q"), row("c", part="r"))
    return lake


def test_insert_overwrite_replaces_the_partitions_of_its_rows(version: int) -> None:
    lake = three_partitions(version)
    before = lake.table.timeline().last_time()
    done = lake.write("insert_overwrite", [row("x", part="p"), row("y", part="new")])
    assert lake.values() == {"x": "a", "y": "a", "b": "a", "c": "a"}
    assert set(done.partitions) == {"p", "new"}
    last = lake.commits()[-1]
    assert last.operation_type == "INSERT_OVERWRITE"
    assert list(last.partition_to_replace_file_ids or {}) == ["p"]
    assert lake.values(as_of=before) == {"a": "a", "b": "a", "c": "a"}
    lake.ensure_sound()


def test_insert_overwrite_table_replaces_everything(version: int) -> None:
    lake = three_partitions(version)
    lake.write("insert_overwrite_table", [row("x"), row("y", part="new")])
    assert lake.values() == {"x": "a", "y": "a"}
    assert set(lake.commits()[-1].partition_to_replace_file_ids or {}) == {"p", "q", "r"}
    lake.upsert(row("a", "again"))  # its old file group is gone
    assert lake.values() == {"x": "a", "y": "a", "a": "again"}
    lake.ensure_sound()


def test_overwrites_keep_twins_unless_told_to_combine(version: int) -> None:
    lake = three_partitions(version)
    lake.write("insert_overwrite", [row("x", "1"), row("x", "2")])
    assert lake.rows()[-2:] == [("x", "1"), ("x", "2")]


def test_overwritten_groups_take_no_new_rows_and_no_updates(version: int) -> None:
    lake = three_partitions(version)
    replaced = set(lake.live())
    lake.write("insert_overwrite", [row("x")])
    lake.upsert(row("a", "new"), row("x", "x2", 2))
    assert lake.values() == {"a": "new", "x": "x2", "b": "a", "c": "a"}
    assert not {group for group in lake.live() if group[0] == "p"} & replaced


def test_incremental_query_after_an_overwrite_gives_the_new_rows(version: int) -> None:
    lake = three_partitions(version)
    begin = lake.table.timeline().last_completed_write()
    lake.write("insert_overwrite", [row("x")])
    since = begin.requested if version == 6 else begin.completed
    assert lake.values(query="incremental", begin=since) == {"x": "a"}


@pytest.mark.parametrize(
    ("named", "left"),
    [("q", "ac"), ("p,r", "b"), ("q,nowhere", "ac"), ("*", ""), ("nowhere", "abc"), ("?", "abc"), ("[pq]", "abc")],
)
def test_delete_partition_by_name_and_wildcard(version: int, named: str, left: str) -> None:
    lake = three_partitions(version)
    lake.write("delete_partition", ROWS.empty_table(), {TO_DELETE: named})
    assert "".join(lake.values()) == left
    assert lake.commits()[-1].operation_type == "DELETE_PARTITION"
    assert lake.commits()[-1].schema == lake.commits()[0].schema
    lake.ensure_sound()


def test_wildcard_stands_for_any_text_in_the_whole_path() -> None:
    lake = Lake()
    lake.upsert(*(row(part, part=part) for part in ("2024/01", "2024/02", "2025/01", "x2024/01", "a+b")))
    lake.table.delete_partition("2024/*")
    assert sorted(lake.values()) == ["2025/01", "a+b", "x2024/01"]
    lake.table.delete_partition(["*/01", "a+b"])
    assert lake.values() == {}


def test_delete_partition_takes_a_list_with_commas_in_names() -> None:
    lake = Lake()
    lake.upsert(row("a", part="x,y"), row("b", part="x"), row("c", part="y"))
    done = lake.table.delete_partition(["x,y"])
    assert done.partitions == ("x,y",)
    assert sorted(lake.values()) == ["b", "c"]


def test_delete_partition_of_the_partitions_of_rows(version: int) -> None:
    lake = three_partitions(version)
    rows = pa.table({"part": ["q", "r", "q", "other"]})
    done = lake.write("delete_partition", rows)
    assert set(done.partitions) == {"q", "r"}
    assert lake.values() == {"a": "a"}
    lake.ensure_sound()


def test_deleted_partition_can_be_filled_again(version: int) -> None:
    lake = three_partitions(version)
    lake.table.delete_partition("p")
    lake.upsert(row("a", "again"))
    assert lake.values() == {"a": "again", "b": "a", "c": "a"}


def test_delete_partition_needs_a_name() -> None:
    lake = three_partitions(9)
    before = lake.files()
    with pytest.raises(Invalid, match=r"partitions\.to\.delete"):
        lake.table.write("delete_partition", None)
    with pytest.raises(Invalid, match="partition column.*'part'|'part', the partition column"):
        lake.table.write("delete_partition", table_of([row("a")]).select(["id"]))
    assert lake.files() == before


def test_table_without_partitions_is_one(version: int) -> None:
    lake = Lake(version, {"hoodie.datasource.write.partitionpath.field": None})
    lake.upsert(row("a"), row("b"))
    lake.write("insert_overwrite", [row("c", part="whatever")])
    assert lake.values() == {"c": "a"}
    lake.table.delete_partition("")
    assert lake.values() == {}
    lake.ensure_sound()


def test_versions_that_a_clean_took_are_not_missed_after_their_group_was_replaced() -> None:
    lake = Lake(9, {"hoodie.clean.automatic": "false"})
    for number in range(4):
        lake.upsert(row("a", str(number), number))
    lake.table.services.clean(**{"hoodie.clean.commits.retained": "1"})
    lake.write("insert_overwrite", [row("b", "new", 9)])
    assert lake.table.validate() == []
