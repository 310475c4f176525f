"""Tables that somebody opened before their files moved, or before they were dropped and made again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from relayout_world import EXPECTED, ROOTS, World, content, rows

from hoodie.errors import Conflict
from hoodie.services.relayout.relayout import GRACE_HOURS
from hoodie.state.handle import load_handle
from hoodie.table import Table
from hoodie.testing.counting_storage import CountingStorage

ONE = {"hoodie.storage.path": "memory://lake/one", "hoodie.storage.strategy": "bits:1"}
SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "v"}


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.memory.forget()


def moved(world: World, grace_hours: float = 0) -> None:
    """All files move to the other storage path."""
    where = {"hoodie.storage.path": world.root("two")}
    world.table().services.relayout("map", move=True, grace_hours=grace_hours, **where)


@pytest.mark.parametrize("grace", [0, GRACE_HOURS])
@pytest.mark.parametrize("options", [{}, ONE], ids=["plain", "with a storage path"])
def test_who_kept_a_table_drops_it_where_it_lies_now(world: World, options: dict[str, str], grace: float) -> None:
    kept = world.made(**options)
    moved(world, grace)
    kept.drop()
    assert [path for root in ("table", *ROOTS) for path in world.data(root) if "_owners" not in path] == []
    again = world.made(**{"hoodie.storage.path": world.root("two"), "hoodie.storage.strategy": "map"})
    again.delete(rows(*range(12)))
    again.indexes.rebuild()
    assert content(world.table()) == {}


@pytest.mark.parametrize("has_written", [False, True])
def test_a_table_that_was_made_again_without_storage_paths_is_found_where_it_is(
    world: World, has_written: bool
) -> None:
    kept = world.made(**ONE)
    if has_written:
        kept.upsert(rows(0, v=2))
    world.table().drop()
    world.made()
    assert content(kept) == EXPECTED
    kept.upsert(rows(*range(12), v=7))
    assert content(world.table()) == dict.fromkeys(range(12), 7)
    assert [path for root in ROOTS for path in world.data(root)] == []
    assert world.table().validate() == []


@pytest.mark.parametrize("kind", ["compaction", "clustering"])
def test_a_plan_that_was_made_after_a_move_is_carried_out_where_the_files_are(world: World, kind: str) -> None:
    """At each of the first calls of who carries out a plan, somebody else does, moves the files and plans anew."""
    world.made(**ONE)
    planned(world.table(), kind)
    files = world.files()
    came_between = 0
    for at in range(1, 9):
        later = World(files)
        calls = iter(range(1, 1 << 20))

        def between(_: object, later: World = later, calls: Iterator[int] = calls, at: int = at) -> None:
            nonlocal came_between
            if next(calls) == at:
                carried_out(later.table(), kind)
                later.table().upsert(rows(*range(12), v=4))
                moved(later, GRACE_HOURS)
                planned(later.table(), kind)
                came_between += 1

        with suppress(Conflict):  # of who came between: the plan is held already, or the lock
            carried_out(later.table(CountingStorage(later.memory, on_call=between)), kind)
        after = content(later.table())
        assert after in (EXPECTED, dict.fromkeys(range(12), 4)), at
        assert later.table().validate() == [], at
        later.memory.forget()
    assert came_between > 3


def planned(table: Table, kind: str) -> None:
    if kind == "compaction":
        assert table.services.schedule_compaction() is not None
    else:
        assert table.services.cluster(op="schedule", **SORTED) is not None


def carried_out(table: Table, kind: str) -> None:
    if kind == "compaction":
        table.services.compact()
    else:
        table.services.cluster(**SORTED)


def test_a_read_is_of_one_look_whatever_other_threads_saw(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = world.made(**ONE)
    old = load_handle(world.laid(), world.env)
    moved(world)
    fresh = type(kept._opened).fresh

    def then_another_thread_goes_on(self: object) -> object:
        found = fresh(self)  # type: ignore[arg-type]
        kept._opened.handle = old
        return found

    monkeypatch.setattr(type(kept._opened), "fresh", then_another_thread_goes_on)
    assert content(kept) == EXPECTED
    assert kept.lookup([0, 11], columns=["id", "v"]).read_all().num_rows == 2


def test_what_moves_while_it_is_examined_is_not_called_lost(world: World) -> None:
    world.made(**ONE)
    files = world.files()
    moves = 0
    for at in range(1, 40, 4):
        later = World(files)
        calls = iter(range(1, 1 << 20))

        def between(_: object, later: World = later, calls: Iterator[int] = calls, at: int = at) -> None:
            nonlocal moves
            if next(calls) == at:
                moved(later)
                moves += 1

        table = later.table(CountingStorage(later.memory, on_call=between))
        assert (
            table.validate() if at % 8 == 1 else [one for one in table.doctor().concerns if one.severity == "error"]
        ) == []
        later.memory.forget()
    assert moves > 7


def test_a_look_up_goes_by_the_key_fields_of_the_table_that_is_there_now(world: World) -> None:
    kept = world.made()
    world.table().drop()
    world.made(**{"hoodie.datasource.write.recordkey.field": "id,v"})
    assert kept.lookup(iter([(5, 0), (1, 1)])).read_all().select(["id", "v"]).num_rows == 2
