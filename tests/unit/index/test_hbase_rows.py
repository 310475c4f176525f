"""HBASE: rows say where keys are, and are believed only if their write has completed and their group is there."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from hoodie.errors import Conflict, Invalid, Unavailable, Unsupported
from hoodie.index import hbase_index
from hoodie.index.hbase_client import IndexRow
from hoodie.index.hbase_locations import HBaseLocations, Limit, Pacing
from hoodie.table import Table
from hoodie.testing.env import FakeEnv
from hoodie.testing.hbase_table import HBaseTable
from hoodie.testing.lake import Lake, row, table_of
from hoodie.write import operations
from hoodie.write.index_steps import IndexParticipant

INDEX = {
    "hoodie.index.type": "HBASE",
    "hoodie.index.hbase.table": "places",
    "hoodie.index.hbase.zkquorum": "one,two",
    "hoodie.parquet.small.file.limit": 0,
}
MERGE = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
MOVES = {"hoodie.hbase.index.update.partition.path": "true"}


@pytest.fixture
def hbase(monkeypatch: pytest.MonkeyPatch) -> Iterator[HBaseTable]:
    """The table that the index is in, wherever options say it is."""
    table = HBaseTable()
    monkeypatch.setattr(hbase_index, "Gateway", lambda host, port, name: table)
    yield table
    assert table.open_clients == 0


@pytest.fixture(params=[{}, MERGE], ids=["cow", "mor"])
def lake(request: pytest.FixtureRequest, version: int, hbase: HBaseTable) -> Lake:
    return Lake(version, {**INDEX, **request.param})


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Base files in which keys were looked for by the index itself."""
    found: list[str] = []
    find = hbase_index.find_in_file
    monkeypatch.setattr(hbase_index, "find_in_file", lambda at, task: found.append(task.path) or find(at, task))
    return found


def test_each_key_has_the_row_of_the_write_that_inserted_it(lake, hbase, searched):
    first = lake.upsert(row("a"), row("b", part="q"))
    second = lake.upsert(row("a", "new", 2), row("c"))
    third = lake.write("bulk_insert", [row("d")])
    lake.write("insert", [row("e")])
    assert {key: hbase.rows[key] for key in "abcd"} == {
        "a": (first.instant, "p"),
        "b": (first.instant, "q"),
        "c": (second.instant, "p"),
        "d": (third.instant, "p"),
    }
    lake.upsert(row("d", "new", 2), row("e", "new", 2))
    assert lake.values() == {"a": "new", "b": "a", "c": "a", "d": "new", "e": "new"}
    assert searched == []
    lake.ensure_sound()


def test_rows_name_the_group_that_has_the_key(lake, hbase):
    lake.upsert(row("a"))
    lake.upsert(row("b"))
    (found,) = lake.table.scan(columns=["_hoodie_file_name"], filter="id = 'b'").read_all().to_pylist()
    assert found["_hoodie_file_name"].startswith(hbase.versions[b"b"][-1].file_id.decode())


def test_a_row_of_a_write_that_never_completed_does_not_count(lake, hbase, searched):
    lake.upsert(row("a"))
    (known,) = hbase.versions[b"a"]
    hbase.versions[b"a"].append(known._replace(commit=b"29990101000000000", file_id=b"gone-0"))
    hbase.versions[b"x"] = [IndexRow(b"x", b"29990101000000000", b"gone-0", b"p")]
    lake.upsert(row("a", "new", 2), row("x", "new", 2))
    assert len(searched) == 1
    assert lake.values() == {"a": "new", "x": "new"}
    assert hbase.rows["a"][0] == known.commit.decode()
    lake.ensure_sound()


def test_what_was_mended_is_not_looked_for_again(lake, hbase, searched):
    lake.upsert(row("a"))
    (known,) = hbase.versions[b"a"]
    hbase.versions[b"a"].append(known._replace(file_id=b"gone-0"))
    lake.upsert(row("a", "new", 2))
    assert hbase.versions[b"a"][-1].file_id == known.file_id
    lake.upsert(row("a", "newer", 3))
    assert len(searched) == 1


def test_a_write_that_cannot_tell_hbase_does_not_complete_and_leaves_no_row(lake, hbase):
    lake.upsert(row("a"))
    before = dict(hbase.rows), lake.values()
    hbase.fails = {"put"}
    with pytest.raises(Unavailable):
        lake.upsert(row("b"))
    hbase.fails = set()
    assert (hbase.rows, lake.values()) == before
    lake.upsert(row("b"))
    assert lake.values() == {"a": "a", "b": "a"}
    lake.ensure_sound()


def test_a_write_that_fails_after_its_rows_were_stored_takes_them_back(lake, hbase, monkeypatch):
    lake.upsert(row("a"))
    before = dict(hbase.rows)
    monkeypatch.setattr(operations.MetadataParticipant, "prepare", _fail)
    with pytest.raises(Conflict):
        lake.write("upsert", [row("a", "b", 2, "q"), row("b")], MOVES)
    assert hbase.sizes("put") == [1, 2, 1]
    assert hbase.rows == before


def test_rows_of_a_writer_that_died_before_its_commit_lose_no_key(lake, hbase, monkeypatch, searched):
    lake.upsert(row("a"))
    with monkeypatch.context() as dying:
        dying.setattr(IndexParticipant, "withdraw", lambda self, handle, inflight: handle)
        dying.setattr(operations.MetadataParticipant, "prepare", _fail)
        with pytest.raises(Conflict):
            lake.write("upsert", [row("a", "b", 2, "q"), row("b")], MOVES)
    assert hbase.rows["a"][1] == "q"
    lake.write("upsert", [row("a", "new", 3, "q"), row("b", "new", 3)], MOVES)
    assert lake.rows(columns=("id", "v", "part")) == [("a", "new", "q"), ("b", "new", "p")]
    assert len(searched) == 1
    lake.ensure_sound()


def test_a_key_that_moves_has_the_row_of_its_new_place(version, hbase):
    lake = Lake(version, {**INDEX, **MOVES})
    lake.upsert(row("a"), row("b"))
    moved = lake.upsert(row("a", "new", 2, "q"))
    assert hbase.rows["a"] == (moved.instant, "q")
    assert lake.rows(columns=("id", "v", "part")) == [("a", "new", "q"), ("b", "a", "p")]
    lake.upsert(row("a", "newer", 3, "q"))
    assert lake.values() == {"a": "newer", "b": "a"}
    lake.ensure_sound()


def test_without_the_option_a_key_stays_where_it_is(lake, hbase):
    lake.upsert(row("a"))
    lake.upsert(row("a", "new", 2, "q"))
    assert lake.rows(columns=("id", "v", "part"))[0][:2] == ("a", "new")
    assert hbase.rows["a"][1] == "p"


@pytest.mark.parametrize("undo", ["rollback", "restore", None])
def test_rows_of_deleted_keys_stay_for_whoever_undoes_the_delete(lake, hbase, undo):
    """A key that came back by a rollback had no row, and was stored twice (state machine, seed 1209)."""
    kept = lake.upsert(row("a"), row("b"))
    gone = lake.write("delete", [row("a", ts=9)])
    assert "a" in hbase.rows
    if undo == "rollback":
        lake.table.services.rollback(gone.instant)
    elif undo == "restore":
        lake.table.services.restore(kept.instant)
    lake.upsert(row("a", "again", 10))
    assert lake.values() == {"a": "again", "b": "a"}
    lake.ensure_sound()


@pytest.mark.parametrize("version", [8, 9])
def test_columns_of_keys_that_log_files_may_have_deleted_are_not_updated(version, hbase):
    """The row of a deleted key came back, with some of its columns (state machine, seed 1209)."""
    lake = Lake(version, {**INDEX, **MERGE, "hoodie.table.ordering.fields": None})
    lake.upsert(row("a"), row("b"))
    lake.write("delete", [row("a")])
    with pytest.raises(Unsupported, match="not whether log files have it"):
        lake.table.update(pa.table({"id": ["a"], "part": ["p"], "v": ["back"]}))
    assert lake.values() == {"b": "a"}


def test_keys_of_a_clustering_are_told_where_they_are(version, hbase, searched):
    lake = Lake(version, {**INDEX, "hoodie.clustering.plan.strategy.small.file.limit": 10_000_000})
    lake.upsert(row("a"))
    lake.upsert(row("b"))
    lake.table.services.cluster()
    assert len({kept[-1].file_id for kept in hbase.versions.values()}) == 1
    lake.upsert(row("a", "new", 2))
    assert lake.values() == {"a": "new", "b": "a"}
    assert searched == []
    lake.ensure_sound()


def test_groups_that_are_gone_are_no_places(lake, hbase, searched):
    lake.upsert(row("a"), row("b", part="q"))
    lake.table.delete_partition(["p"])
    lake.upsert(row("a", "new", 2))
    assert lake.values() == {"a": "new", "b": "a"}
    assert len(searched) == 1
    lake.ensure_sound()


@pytest.mark.parametrize("sync", ["true", "false"])
def test_a_rollback_gives_rows_back_if_it_is_asked_to(version, hbase, sync):
    lake = Lake(version, {**INDEX, **MOVES, "hoodie.index.hbase.rollback.sync": sync})
    lake.upsert(row("a"))
    before = dict(hbase.rows)
    done = lake.upsert(row("a", "new", 2, "q"), row("b", "new", 2))
    lake.table.services.rollback(done.instant)
    assert (hbase.rows == before) == (sync == "true")
    lake.upsert(row("a", "newer", 3), row("b", "newer", 3))
    assert lake.values() == {"a": "newer", "b": "newer"}
    lake.ensure_sound()


def test_later_writes_know_the_index_and_do_not_go_on_without_its_address(lake):
    lake.upsert(row("a"))
    told = {"hoodie.index.hbase.table": "places", "hoodie.index.hbase.zkquorum": "one"}
    table = Table.open(lake.uri)
    for work in (lambda: table.upsert(table_of([row("a")])), table.services.cluster):
        with pytest.raises(Invalid, match=r"Index HBASE needs hoodie\.index\.hbase\."):
            work()
    Table.open(lake.uri, options=told).upsert(table_of([row("a", "new", 2)]))
    assert lake.values() == {"a": "new"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"hoodie.index.hbase.table": None}, "needs hoodie.index.hbase.table"),
        ({"hoodie.index.hbase.zkquorum": None}, "needs hoodie.index.hbase.zkquorum"),
        ({"hoodie.index.hbase.thrift.address": "here"}, "no address"),
    ],
)
def test_what_is_missing_is_told(hbase, given, told):
    with pytest.raises(Invalid, match=told):
        Lake(9, {**INDEX, **given}).upsert(row("a"))


def _fail(self, pending):
    raise Conflict("another was faster", remedy="Try again")


KEYS = [f"k{n:03}" for n in range(250)]


def test_requests_have_a_size_and_stay_in_their_region():
    table = HBaseTable(begins=(b"", b"k100"))
    locations = HBaseLocations(table, Pacing(get_rows=80, put_rows=60))
    more = {"partition": ["p"] * 250, "file_id": ["f"] * 250, "commit": ["1"] * 250, "put_ms": range(250)}
    rows = pa.table({"record_key": KEYS, **more})
    locations.put(rows)
    found = locations.find(pa.array([*KEYS, "none"]))
    assert sorted(table.sizes("put")) == [30, 40, 60, 60, 60]
    assert sorted(table.sizes("get")) == [20, 71, 80, 80]
    assert found.sort_by("record_key").drop("put_ms").to_pylist() == rows.drop("put_ms").to_pylist()
    assert table.open_clients == 0


def test_a_row_that_was_put_anew_is_not_removed():
    locations = HBaseLocations(HBaseTable())
    first = {"record_key": ["a", "b"], "partition": ["p"] * 2, "file_id": ["f"] * 2, "commit": ["1"] * 2}
    locations.put(pa.table({**first, "put_ms": [0, 0]}))
    found = locations.find(pa.array(["a", "b"]))
    locations.put(pa.table({**first, "commit": ["2"] * 2, "put_ms": [0, 0]}).slice(0, 1))
    locations.delete(found)
    left = locations.find(pa.array(["a", "b"]))
    assert left.select(["record_key", "commit"]).to_pylist() == [{"record_key": "a", "commit": "2"}]


def test_who_fails_leaves_rows_alone_that_another_has_put_since(version, hbase, monkeypatch):
    lake = Lake(version, INDEX)
    lake.upsert(row("a"))
    withdraw = IndexParticipant.withdraw

    def withdraw_late(self, handle, inflight):
        (own,) = hbase.versions[b"b"]
        hbase.connect().put([own._replace(commit=b"20990101000000000")])
        hbase.open_clients -= 1
        return withdraw(self, handle, inflight)

    monkeypatch.setattr(IndexParticipant, "withdraw", withdraw_late)
    monkeypatch.setattr(operations.MetadataParticipant, "prepare", _fail)
    with pytest.raises(Conflict):
        lake.upsert(row("b"), row("c"))
    assert {key: commit for key, (commit, _) in hbase.rows.items() if key != "a"} == {"b": "20990101000000000"}


def test_no_more_rows_in_a_second_than_was_asked_for():
    env, table = FakeEnv(), HBaseTable(begins=(b"", b"k100"))
    locations = HBaseLocations(table, Pacing(get_rows=50, rows_per_second=25, share=0.5), env)
    began = env.monotonic()
    locations.find(pa.array(KEYS))
    assert env.monotonic() - began >= 200 / 25  # half of what two servers bear
    assert Limit(None, env).wait_for(10**9) is None
