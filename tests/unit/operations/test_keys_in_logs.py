"""Keys that are looked up in base files while log files say otherwise: deleted, moved, newer there."""

from __future__ import annotations

import pytest

from hoodie.errors import Invalid
from hoodie.testing.lake import Lake, row
from hoodie.testing.lake import logged_lake as logged

POLICY = "hoodie.datasource.insert.dup.policy"
GLOBAL = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}
STAYS = {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"}


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_key_deleted_in_a_log_comes_back_where_it_was(version: int, index: str) -> None:
    lake = logged(version, **{"hoodie.index.type": index})
    lake.upsert(row("a"), row("b"))
    lake.write("delete", [row("a")])
    groups = lake.live()
    lake.upsert(row("a", "back", 2))
    assert lake.values() == {"a": "back", "b": "a"}
    assert lake.live() == groups


@pytest.mark.parametrize("policy", ["drop", "fail"])
def test_insert_that_looks_for_duplicates_takes_a_deleted_key(version: int, policy: str) -> None:
    lake = logged(version)
    lake.upsert(row("a"), row("b"))
    lake.write("delete", [row("a")])
    lake.write("insert", [row("a", "again", 2), row("z")], {POLICY: policy})
    assert lake.values() == {"a": "again", "b": "a", "z": "a"}
    assert len(lake.base_files()) == 2  # a came back in the log of its file group
    if policy == "drop":
        lake.write("insert", [row("a", "no", 3), row("y")], {POLICY: policy})
        assert lake.values() == {"a": "again", "b": "a", "y": "a", "z": "a"}
        return
    with pytest.raises(Invalid, match="in the table already"):
        lake.write("insert", [row("a", "no", 3)], {POLICY: policy})


def test_key_that_was_deleted_and_inserted_without_looking_is_one_row_for_ever(version: int) -> None:
    lake = logged(version)
    lake.upsert(row("a"), row("b"))
    lake.write("delete", [row("a")])
    lake.write("insert", [row("a", "anew", 2)])
    assert lake.values() == {"a": "anew", "b": "a"}
    lake.upsert(row("a", "updated", 3))
    assert lake.values() == {"a": "updated", "b": "a"}
    lake.write("delete", [row("a")])
    assert lake.values() == {"b": "a"}
    lake.upsert(row("a", "again", 4))
    assert lake.values() == {"a": "again", "b": "a"}


def moved(version: int, **more: str) -> Lake:
    lake = logged(version, **{**GLOBAL, **more})
    lake.upsert(row("a", ts=1), row("b", ts=1))
    lake.upsert(row("a", "newer", ts=5))
    return lake


def test_row_moves_by_a_delete_here_and_an_insert_there(version: int) -> None:
    lake = moved(version)
    lake.upsert(row("a", "moved", ts=6, part="q"))
    assert lake.rows(("id", "part", "v")) == [("a", "q", "moved"), ("b", "p", "a")]
    lake.upsert(row("a", "home", ts=7))
    assert lake.rows(("id", "part", "v")) == [("a", "p", "home"), ("b", "p", "a")]
    lake.upsert(row("a", "still", ts=8))
    assert lake.rows(("id", "part", "v")) == [("a", "p", "still"), ("b", "p", "a")]
    lake.ensure_sound()


def test_row_older_than_the_one_in_the_log_does_not_move(version: int) -> None:
    lake = moved(version)
    lake.upsert(row("a", "late", ts=3, part="q"))  # newer than the base row, older than the log's
    assert lake.rows(("id", "part", "v")) == [("a", "p", "newer"), ("b", "p", "a")]


def test_deleted_row_does_not_hold_its_key_in_the_old_partition(version: int) -> None:
    for options in (GLOBAL, STAYS):
        lake = moved(version, **options)
        lake.write("delete", [row("a")])
        lake.upsert(row("a", "fresh", ts=2, part="q"))
        assert lake.rows(("id", "part", "v")) == [("a", "q", "fresh"), ("b", "p", "a")]
        lake.upsert(row("a", "updated", ts=3, part="q"))
        assert lake.rows(("id", "part", "v")) == [("a", "q", "updated"), ("b", "p", "a")]


def test_row_found_in_another_partition_is_updated_there_when_rows_stay(version: int) -> None:
    lake = moved(version, **STAYS)
    lake.upsert(row("a", "updated", ts=9, part="q"))
    assert lake.rows(("id", "_hoodie_partition_path", "v")) == [("a", "p", "updated"), ("b", "p", "a")]


def test_keys_made_from_columns_are_found_in_logs(version: int) -> None:
    lake = logged(version, **{"hoodie.populate.meta.fields": False})
    lake.upsert(row("a"), row("b"))
    lake.write("delete", [row("a")])
    lake.write("insert", [row("a", "again", 2)], {POLICY: "fail"})
    assert lake.values() == {"a": "again", "b": "a"}
