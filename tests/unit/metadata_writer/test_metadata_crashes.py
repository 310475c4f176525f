"""Writers that die at any storage call while they keep a metadata table: the next one makes all of it true again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from test_metadata_kept import ENGINE, ON, ensure_equal, lake_of

from hoodie.config import resolve
from hoodie.env import SystemEnv
from hoodie.errors import Fenced, HudiError
from hoodie.services.ingest import Request
from hoodie.services.metadata_upkeep import keep_metadata
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.save import write_table
from hoodie.spec import keys
from hoodie.state.handle import load_handle
from hoodie.storage import Storage
from hoodie.table import Table, as_source
from hoodie.testing import crash_actions as actions
from hoodie.testing.counting_storage import Call, CountingStorage, Crash
from hoodie.testing.crash_actions import loaded, prepared
from hoodie.testing.lake import Lake, row, table_of
from hoodie.testing.table_kind import MOR

pytestmark = pytest.mark.deep

COMPACT = {**ON, "hoodie.metadata.compact.max.delta.commits": "3"}
KEY = "hoodie.metadata.enable"
Action = Callable[[Lake, Storage], object]


def upsert(lake: Lake, storage: Storage) -> None:
    request = Request("upsert", as_source(table_of([row("a", "new", 9), row("n", part="n")])), resolve(ON), ENGINE)
    write_table(storage, request, SystemEnv())


def compact(_: Lake, storage: Storage) -> None:
    keep_metadata(load_handle(storage, SystemEnv()), resolve(COMPACT), ENGINE)


def roll_back(_: Lake, storage: Storage) -> None:
    roll_back_failed_writes(load_handle(storage, SystemEnv()), ENGINE)


def without_metadata(version: int) -> Lake:
    lake = Lake(version)
    lake.upsert(row("a"), row("b"), row("c", part="q"))
    return lake


def due(version: int) -> Lake:
    lake = lake_of(version)
    for n in range(3):
        lake.upsert(row("a", str(n), n + 2), row(f"n{n}", part=f"p{n}"))
    compact(lake, lake.storage)
    for n in range(3, 6):
        lake.upsert(row("a", str(n), n + 2), row(f"n{n}", part=f"p{n}"))
    return lake


def died_late(version: int) -> Lake:
    """A write died when its metadata table was complete."""
    lake = lake_of(version)
    counted = CountingStorage(lake.storage)
    upsert(lake, counted)
    last = max(call.n for call in counted.calls if call.op == "create" and ".hoodie/metadata" not in call.path)
    lake = lake_of(version)
    with pytest.raises(Crash):
        upsert(lake, CountingStorage(lake.storage, crash_at=last))
    return lake


def copied(lake: Lake) -> Lake:
    """The same table somewhere else."""
    other = Lake(lake.version, lake.options)
    for path, data in lake.files().items():
        other.storage.put(path, data)
    return other


WORLDS: dict[str, tuple[Callable[[int], Lake], Action]] = {
    "a write that makes the metadata table": (without_metadata, upsert),
    "a write that keeps it": (lake_of, upsert),
    "its compaction and cleaning": (due, compact),
    "a rollback": (died_late, roll_back),
}


def points(world: Lake, act: Action) -> Iterator[int]:
    """Numbers of the calls of an action that change something, and of the last: what is read in between does not
    matter to what is left.
    """
    lake = copied(world)
    counted = CountingStorage(lake.storage)
    act(lake, counted)
    changing = ("create", "put", "delete", "delete_dir", "close")
    yield from (call.n for call in counted.calls if call.op in changing or call.n == len(counted.calls))


# Versions 8 and 9 differ in what statistics hold: one action shows it.
CASES = [(8, "a write that keeps it"), *((version, name) for version in (6, 9) for name in WORLDS)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("version", "name"), CASES)
def test_the_metadata_table_is_true_after_a_crash_at_any_call_and_one_more_write(version: int, name: str) -> None:
    make, act = WORLDS[name]
    world = make(version)
    before, count = world.values(), 0
    for n in points(world, act):
        lake = copied(world)
        with pytest.raises(Crash):
            act(lake, CountingStorage(lake.storage, crash_at=n))
        found = lake.values()
        assert found == before or found.get("n"), f"call {n}"
        plain = Table.open(lake.uri, options={KEY: "false"}).scan(columns=["id", "v"]).read_all()
        assert dict(zip(*plain.to_pydict().values(), strict=True)) == found, f"call {n}"
        lake.write("upsert", [row("z", "next", part="z")], ON)
        assert lake.values() == {**found, "z": "next"}, f"call {n}"
        ensure_equal(lake)
        lake.ensure_sound()
        count += 1
    assert count > 5


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("version", "name"), [case for case in CASES if "write" in case[1]])
def test_a_write_that_fails_at_any_call_leaves_a_true_metadata_table(version: int, name: str) -> None:
    make, act = WORLDS[name]
    world = make(version)
    before = world.values()
    for n in points(world, act):
        lake = copied(world)
        storage = CountingStorage(lake.storage, fail_at=n)
        try:
            act(lake, storage)
        except HudiError:
            assert lake.values() == before or storage.calls[n - 1].op == "release", f"call {n}"
        lake.write("upsert", [row("z", "next", part="z")], ON)
        ensure_equal(lake)
        lake.ensure_sound()


def test_a_fenced_write_leaves_nothing_in_the_metadata_table(version: int) -> None:
    lake = lake_of(version)
    own = f"{keys.METADATA_TABLE_DIR}/files/"

    def fence(call: Call) -> None:
        if call.op == "put" and call.path.startswith(own):
            for path in lake.files():
                if path.endswith(".inflight") and running[0] in path and not path.startswith(keys.METADATA_TABLE_DIR):
                    lake.storage.delete(path)
        elif call.op == "create" and call.path.endswith(".commit.requested"):
            running.append(call.path.rpartition("/")[2][:17])

    running: list[str] = []
    with pytest.raises(Fenced):
        upsert(lake, CountingStorage(lake.storage, on_call=fence))
    assert running
    assert not [path for path in lake.files() if path.startswith(keys.METADATA_TABLE_DIR) and running[0] in path]
    lake.upsert(row("z", "next", part="z"))
    ensure_equal(lake)


def test_a_compaction_whose_delta_commit_was_not_listed_leaves_none_of_its_records_to_the_next_try(version) -> None:
    kind = next(one for one in MOR if one.version == version)
    counted = CountingStorage(loaded(prepared(kind)))
    actions.compact(counted, kind)
    begun = next(call.n for call in counted.calls if call.op == "create" and is_metadata_inflight(call.path))
    storage = loaded(prepared(kind))
    with suppress(HudiError):
        actions.compact(CountingStorage(storage, stale_from=begun), kind)
    actions.compact(storage, kind)
    assert actions.opened(storage, kind).validate() == []


def is_metadata_inflight(path: str) -> bool:
    return path.startswith(".hoodie/metadata/") and path.endswith(".deltacommit.inflight")
