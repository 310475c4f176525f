"""Relayouts of some partitions: where their files go and stay, and moves of them that die at each call."""

from __future__ import annotations

from datetime import timedelta

import pytest
from relayout_world import EXPECTED, World, content, rows

from hoodie.errors import Invalid
from hoodie.layout import Layout, LayoutVersion
from hoodie.layout.move import MOVE_FILE
from hoodie.layout.properties import encode_versions, parse_versions
from hoodie.layout.strategy import parse_strategy
from hoodie.services.relayout.plan import newest_for, plan_target
from hoodie.state.handle import load_handle
from hoodie.testing.counting_storage import CountingStorage, Crash


@pytest.fixture
def world():
    made = World()
    yield made
    made.memory.forget()


def of(world: World, top: str, partition: str) -> list[str]:
    """Data files of a partition at the table path or below a root."""
    return [path for path in world.data(top) if f"/{partition}/" in path]


def where(world: World, *roots: str) -> dict[str, str]:
    return {"hoodie.storage.path": ",".join(world.root(root) for root in roots)}


def test_new_files_of_one_partition_go_elsewhere_and_all_others_stay(world):
    table = world.made()
    done = table.services.relayout("bits:4", partition="p1", **where(world, "one"))
    assert "new files of p1 go to bits:4" in done.steps[0]
    world.table().upsert(rows(*range(12), v=5))
    world.table().services.compact()
    assert of(world, "one", "p1")
    assert not of(world, "one", "p0")
    assert content(world.table()) == dict.fromkeys(range(12), 5)
    assert world.table().services.relayout("bits:4", partition="p1", **where(world, "one")) is None
    assert not world.table().doctor().concerns


def test_one_partition_after_the_other_is_moved_and_then_all(world):
    world.made()
    before = {name: of(world, "table", name) for name in ("p0", "p1")}
    world.table().services.relayout("bits:4", **where(world, "one"))
    preview = world.table().services.preview("relayout", "", True, False, 24.0, "p0")
    assert preview.files == len(before["p0"])
    assert {step.partition for step in preview.steps} == {"p0"}
    done = world.table().services.relayout(move=True, partition="p0")
    assert (done.files, done.waits) == (len(before["p0"]), True)
    assert len(of(world, "one", "p0")) == len(before["p0"])
    assert not of(world, "one", "p1")
    assert content(world.table()) == EXPECTED
    world.env.advance(timedelta(hours=25))
    assert world.table().services.relayout(move=True).deleted == len(before["p0"])
    assert [of(world, "table", name) for name in ("p0", "p1")] == [[], before["p1"]]
    assert world.table().services.relayout(move=True, partition="p0") is None
    done = world.table().services.relayout(move=True, grace_hours=0)
    assert (done.files, done.deleted) == (len(before["p1"]), len(before["p1"]))
    layout = load_handle(world.laid(), world.env).storage.layout
    assert [(one.since, one.partitions) for one in layout.versions] == [("0", "")]
    assert world.data("table") == []
    assert content(world.table()) == EXPECTED
    assert not world.table().doctor().concerns


def test_partition_with_a_bucket_of_its_own_keeps_it_when_all_others_move(world):
    world.made()
    world.table().services.relayout("bits:2", **where(world, "one"))
    world.table().services.relayout("map", move=True, grace_hours=0, partition="p1", **where(world, "two"))
    world.table().services.relayout(move=True, grace_hours=0)
    assert world.data("table") == []
    assert not of(world, "one", "p1")
    assert not of(world, "two", "p0")
    assert of(world, "two", "p1")
    world.table().upsert(rows(*range(12), v=3))
    assert not of(world, "one", "p1")
    assert content(world.table()) == dict.fromkeys(range(12), 3)
    world.table().services.relayout("bits:2", move=True, grace_hours=0, **where(world, "one"))
    assert not world.data("two")[1:]  # the owner object alone
    assert content(world.table()) == dict.fromkeys(range(12), 3)
    assert not world.table().doctor().concerns


def test_partition_comes_back_to_the_table_path(world):
    world.made(**where(world, "one"))
    world.table().services.relayout("hive", move=True, grace_hours=0, partition="p0")
    assert not of(world, "one", "p0")
    assert of(world, "table", "p0")
    world.table().upsert(rows(0, v=9))
    assert not of(world, "one", "p0")
    assert content(world.table()) == {**EXPECTED, 0: 9}
    assert not world.table().doctor().concerns


def test_prefixes_and_roots_of_one_partition_grow_without_rewriting(world):
    world.made(**where(world, "one"), **{"hoodie.storage.strategy": "bits:1"})
    old = world.data("one")
    world.table().services.relayout("bits:6", partition="p1", **where(world, "one", "two"))
    for v in range(3):
        world.table().upsert(rows(*range(12), v=v))
        world.table().services.compact()
    assert set(old) <= {*world.data("one")}
    grown = [path for top in ("one", "two") for path in of(world, top, "p1") if path not in old]
    assert {len(path.split("/")[1]) for path in grown} == {6}
    assert {len(path.split("/")[1]) for path in of(world, "one", "p0")} == {1}
    assert content(world.table()) == dict.fromkeys(range(12), 2)


def moved(world: World, storage: object = None) -> None:
    world.table(storage).services.relayout("bits:2", move=True, grace_hours=0, partition="p0", **where(world, "one"))


def test_move_of_a_partition_that_dies_at_any_call_is_gone_on_with_and_no_row_is_ever_missing():
    start = World()
    start.made()
    files = start.files()
    moved(start, counted := CountingStorage(start.memory))
    assert [len(of(start, "table", name)) > 0 for name in ("p0", "p1")] == [False, True]
    kept = of(start, "table", "p1")
    for at in range(1, len(counted.calls) + 1, 5):
        world = World(files)
        with pytest.raises(Crash):
            moved(world, CountingStorage(world.memory, crash_at=at, torn=True))
        assert content(world.table()) == EXPECTED, at
        if at % 2:
            world.table().upsert(rows(4, 5, v=5))  # a writer comes between, in both partitions
            world.table().upsert(rows(4, 5, v=EXPECTED[5]))
        moved(world)
        moved(world)
        assert content(world.table()) == EXPECTED, at
        assert not world.table().doctor().concerns, at
        assert not of(world, "table", "p0"), at
        assert not of(world, "one", "p1"), at
        assert set(kept) <= {*of(world, "table", "p1")}, at
        assert MOVE_FILE not in {path.removeprefix("table/") for path in world.files()}
        world.memory.forget()


def test_move_of_a_partition_can_be_given_up_and_no_other_is_begun_beside_it(world):
    world.made()
    probe = World(world.files(), world.env)
    moved(probe, counted := CountingStorage(probe.memory))
    flip = max(call.n for call in counted.calls if call.op == "put" and call.path.endswith("hoodie.properties"))
    probe.memory.forget()
    with pytest.raises(Crash):
        moved(world, CountingStorage(world.memory, crash_at=flip))
    with pytest.raises(Invalid, match="A move of p0 to bits:2 is under way"):
        world.table().services.relayout(move=True, partition="p1")
    assert world.table().services.run("relayout", {"undo": True}).deleted == len(of(world, "table", "p0"))
    assert content(world.table()) == EXPECTED
    assert not of(world, "one", "p0")


@pytest.mark.parametrize("partition", ["..", "/p0", "p0/", "a//b"])
def test_what_is_no_partition_is_refused(world, partition):
    table = world.made()
    before = world.files()
    with pytest.raises(Invalid, match="cannot be a partition"):
        table.services.relayout("bits:2", partition=partition, **where(world, "one"))
    with pytest.raises(Invalid, match="cannot be a partition"):
        table.services.preview("relayout", "bits:2", True, False, 0, partition, **where(world, "one"))
    assert world.files() == before


# Versions


def version(number: int, since: str, text: str, partitions: str = "") -> LayoutVersion:
    return LayoutVersion(number, since, text, (0,), "t", partitions, parse_strategy(text, {}))


def target(*versions: LayoutVersion, of: str = "") -> list[tuple[str, str, str]]:
    found = plan_target(Layout(("s3://b",), versions, ""), of)
    assert parse_versions(encode_versions(found), 1, {}) == found
    return [(one.since, one.text, one.partitions) for one in found]


def test_targets_of_moves():
    one, two, three = version(1, "0", "bits:1"), version(2, "5", "bits:2"), version(3, "7", "map", "a")
    assert target(one, two) == [("0", "bits:2", "")]
    assert target(one, two, of="a") == [("0", "bits:1", ""), ("5", "bits:2", ""), ("0", "bits:2", "a")]
    assert target(one, two, three) == [("0", "bits:2", ""), ("0", "map", "a")]
    assert target(one, two, three, of="a") == [("0", "bits:1", ""), ("5", "bits:2", ""), ("0", "map", "a")]
    assert target(one, of="a") == [("0", "bits:1", "")]
    again = version(3, "0", "bits:2", "a")
    assert target(one, two, again) == [("0", "bits:2", "")]
    wider = version(4, "9", "bits:2", "a*")
    assert target(one, two, three, wider) == [("0", "bits:2", ""), ("0", "map", "a"), ("0", "bits:2", "a*")]
    assert target(one, two, again, of="a/b") == [("0", "bits:1", ""), ("5", "bits:2", ""), ("0", "bits:2", "a")]
    assert target(one, two, three, of="b*") == [
        ("0", "bits:1", ""),
        ("5", "bits:2", ""),
        ("7", "map", "a"),
        ("0", "bits:2", "b*"),
    ]
    for asked in ("a*", "*"):
        with pytest.raises(Invalid, match="strategy of their own"):
            target(one, two, three, of=asked)
    with pytest.raises(Invalid, match="No storage strategy is for all"):
        target(three)
    with pytest.raises(Invalid, match="No storage strategy is for partition 'b'"):
        target(three, of="b")
    with pytest.raises(Invalid, match="as many as it can use"):
        target(*(version(n, "1", "map", f"p{n}") for n in range(1, 100)), version(100, "2", "map"), of="z")


def test_newest_for_some_partitions_is_the_one_that_new_files_go_by():
    versions = (version(1, "0", "bits:1"), version(2, "5", "map", "a*"), version(3, "6", "bits:3", "b"))
    for partition, number in {"a": 2, "ab": 2, "ab*": 2, "b": 3, "b/c": 3, "b*": 1, "c": 1, "": 1}.items():
        found = newest_for(versions, partition)
        assert found is not None
        assert found.number == number, partition
