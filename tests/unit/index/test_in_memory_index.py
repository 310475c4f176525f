"""INMEMORY: a process remembers where keys are, as long as nobody else has written."""

from __future__ import annotations

import pytest

from hoodie.index import in_memory_index, key_lookup
from hoodie.testing.lake import Lake, row
from hoodie.write import tag

INDEX = {"hoodie.index.type": "inmemory", "hoodie.parquet.small.file.limit": 0}
MERGE = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


@pytest.fixture(params=[{}, MERGE], ids=["cow", "mor"])
def lake(request, version):
    return Lake(version, {**INDEX, **request.param})


@pytest.fixture
def read(monkeypatch):
    """Paths of base files whose keys were read: all of them, to be remembered, and to be looked for."""
    found = {"all": [], "some": []}
    whole, some = in_memory_index.read_keys, tag.find_in_file
    monkeypatch.setattr(
        in_memory_index, "read_keys", lambda at, task: found["all"].append(task.path) or whole(at, task)
    )
    monkeypatch.setattr(tag, "find_in_file", lambda at, task: found["some"].append(task.path) or some(at, task))
    assert in_memory_index.read_keys is not key_lookup.read_keys
    return found


def test_keys_of_this_process_are_looked_for_in_the_one_file_that_has_them(lake, read):
    for key in "abc":
        lake.upsert(row(key))
    assert read == {"all": [], "some": []}
    lake.upsert(row("b", "new", 2), row("d"))
    assert read["all"] == []
    assert len(read["some"]) == 1
    assert lake.values() == {"a": "a", "b": "new", "c": "a", "d": "a"}
    lake.ensure_sound()


def test_after_a_write_with_another_index_keys_are_read_anew(lake, read):
    lake.upsert(row("a"))
    lake.upsert(row("b"), hoodie__index__type="SIMPLE")
    read["some"].clear()
    lake.upsert(row("b", "new", 2))
    assert len(read["all"]) == 2
    assert len(read["some"]) == 1
    assert lake.values() == {"a": "a", "b": "new"}


def test_a_new_process_reads_the_keys_of_the_partitions_it_writes_to(lake, read):
    lake.upsert(row("a"), row("b", part="q"))
    in_memory_index.forget(lake.storage, "any")
    lake.upsert(row("a", "new", 2))
    assert [path.partition("/")[0] for path in read["all"]] == ["p"]
    lake.upsert(row("b", "new", 2, part="q"))
    assert [path.partition("/")[0] for path in read["all"]] == ["p", "q"]
    assert lake.values() == {"a": "new", "b": "new"}


def test_what_a_rollback_takes_away_is_not_remembered(lake):
    lake.upsert(row("a"))
    done = lake.upsert(row("b"))
    lake.table.services.rollback(done.instant)
    lake.upsert(row("b", "again", 2))
    lake.upsert(row("b", "and again", 3))
    assert lake.values() == {"a": "a", "b": "and again"}
    lake.ensure_sound()


def test_deleted_keys_come_back_once(lake):
    lake.upsert(row("a"), row("b"))
    lake.write("delete", [row("a", ts=5)])
    assert lake.values() == {"b": "a"}
    lake.upsert(row("a", "back", 6))
    lake.upsert(row("a", "again", 7))
    assert lake.values() == {"a": "again", "b": "a"}
    lake.ensure_sound()


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite"])
def test_rows_of_every_operation_are_remembered(lake, read, operation):
    lake.upsert(row("a"))
    lake.write(operation, [row("b"), row("c")])
    lake.upsert(row("b", "new", 2))
    assert lake.values() == {**({} if operation == "insert_overwrite" else {"a": "a"}), "b": "new", "c": "a"}
    assert len(read["all"]) == (1 if operation == "insert_overwrite" else 0)


def test_a_key_that_comes_with_another_partition_is_another_row(lake):
    lake.upsert(row("a", part="p"))
    lake.upsert(row("a", "other", 2, part="q"))
    assert lake.rows() == [("a", "a"), ("a", "other")]


def test_a_key_that_is_stored_twice_is_updated_twice(lake):
    lake.upsert(row("a"))
    lake.write("insert", [row("a")])
    lake.upsert(row("a", "new", 2))
    assert lake.rows() == [("a", "new"), ("a", "new")]
