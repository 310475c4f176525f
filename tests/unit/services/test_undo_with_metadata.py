"""Undoing writes of tables that have a metadata table: it lists what storage lists, whenever the undoing died."""

from __future__ import annotations

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.metadata_writer import MetadataParticipant
from hoodie.services.ingest import Request
from hoodie.services.rollback.restore import restore
from hoodie.services.rollback.rollback import roll_back_instant
from hoodie.services.save import write_table
from hoodie.state.handle import load_handle
from hoodie.storage import Storage
from hoodie.table import as_source
from hoodie.testing.counting_storage import Call, CountingStorage, Crash
from hoodie.testing.lake import Lake, row, table_of
from hoodie.transaction.abort import abort

pytestmark = pytest.mark.deep

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
ENGINE = LocalEngine(1)
CONFIG = resolve({})
FIRST = {"a": "a", "b": "a"}
LAST = {"a": "a3", "b": "a", "c": "a"}


def lake_of(version: int, kind: str, **options: str) -> Lake:
    lake = Lake(version, {"hoodie.datasource.write.table.type": kind, "hoodie.metadata.enable": "true", **options})
    lake.upsert(row("a"), row("b"))
    lake.upsert(row("a", "a2", 2))
    lake.upsert(row("a", "a3", 3), row("c"))
    return lake


def instants(lake: Lake) -> list[str]:
    return [one.requested for one in lake.table.timeline().completed_writes()]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("action", ["rollback", "restore"])
def test_metadata_table_lists_what_is_there_wherever_the_undoing_dies(version: int, kind: str, action: str) -> None:
    def act(lake: Lake, storage: Storage) -> None:
        handle = load_handle(storage, SystemEnv())
        if action == "rollback":
            roll_back_instant(handle, CONFIG, ENGINE, times[-1])
        else:
            restore(handle, CONFIG, ENGINE, times[0])

    lake = lake_of(version, kind)
    times = instants(lake)
    counted = CountingStorage(lake.storage)
    act(lake, counted)
    undone = lake.values()
    assert undone == ({"a": "a2", "b": "a"} if action == "rollback" else FIRST)
    lake.ensure_sound()
    for n in range(1, counted.count + 1, 11):
        lake = lake_of(version, kind)
        times = instants(lake)
        with pytest.raises(Crash):
            act(lake, CountingStorage(lake.storage, crash_at=n))
        before = lake.values()
        if action == "restore" and any(one.action == "restore" for one in lake.table.timeline().pending()):
            act(lake, lake.storage)
        lake.upsert(row("z"))
        assert {**lake.values(), "z": None} in ({**before, "z": None}, {**undone, "z": None}), f"call {n}"
        lake.ensure_sound()


def die_before_the_commit(lake: Lake) -> str:
    """An upsert that dies with its files, and what the metadata table says of them, on storage; its instant."""

    def look(call: Call) -> None:
        if call.op == "create" and call.path.endswith((".commit", ".deltacommit")) and "/metadata/" not in call.path:
            raise Crash

    request = Request("upsert", as_source(table_of([row("a", "a4", 4), row("n")])), resolve(lake.options), ENGINE)
    with pytest.raises(Crash):
        write_table(CountingStorage(lake.storage, on_call=look), request, SystemEnv())
    (pending,) = lake.table.timeline().pending()
    return pending.requested


@pytest.mark.parametrize("kind", TYPES)
def test_writer_that_takes_itself_back_leaves_the_metadata_table_as_it_was(version: int, kind: str) -> None:
    lake = lake_of(version, kind)
    known = {path for path in lake.files() if not path.startswith(".hoodie/metadata/")}
    abort(load_handle(lake.storage, SystemEnv()), die_before_the_commit(lake), (MetadataParticipant(),))
    assert lake.table.timeline().pending() == ()
    assert {path for path in lake.files() if not path.startswith(".hoodie/metadata/")} == known
    assert lake.values() == LAST
    lake.ensure_sound()
    lake.upsert(row("z"))
    lake.ensure_sound()


@pytest.mark.parametrize("kind", TYPES)
def test_lazy_writers_leave_a_dead_write_and_the_cleaner_rolls_it_back(version: int, kind: str) -> None:
    lake = lake_of(version, kind, **{"hoodie.clean.failed.writes.policy": "LAZY", "hoodie.clean.automatic": "false"})
    dead = die_before_the_commit(lake)
    assert not [path for path in lake.files() if "/.heartbeat/" in path]
    lake.upsert(row("y"))
    assert [one.requested for one in lake.table.timeline().pending()] == [dead]
    assert lake.values() == {**LAST, "y": "a"}
    lake.table.services.clean()
    assert lake.table.timeline().pending() == ()
    assert lake.values() == {**LAST, "y": "a"}
    lake.ensure_sound()
