"""A restore or rollback that was only slow, while others did the same, leaves nothing that keeps anybody out."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.errors import Conflict, Fenced
from hoodie.state.handle import load_handle
from hoodie.table import Table
from hoodie.testing.counting_storage import Call, CountingStorage, Crash
from hoodie.testing.lake import Lake, logged_lake, row
from hoodie.testing.unlocked_storage import LosingStorage, UnlockedStorage

OFF = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def saved_lake(version: int, made: Any) -> tuple[Lake, str]:
    """A table with a savepoint and a write after it."""
    lake: Lake = logged_lake(version, **OFF) if made is logged_lake else Lake(version, OFF)
    lake.upsert(row("a"))
    saved = lake.table.savepoints.create().instant
    lake.upsert(row("gone"))
    return lake, saved


def table_on(lake: Lake, storage: CountingStorage) -> Table:
    return Table(load_handle(storage, SystemEnv()), lake.options, LocalEngine(1))


@pytest.mark.parametrize("knows", [True, False])
@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_restore_that_slept_before_its_plan_was_stored_while_others_restored_is_gone(
    version: int, made: Any, knows: bool
) -> None:
    lake, saved = saved_lake(version, made)
    losses: list[str] = []

    def others(call: Call) -> None:
        if call.op == "create" and call.path.endswith(".restore.requested") and not losses:
            lake.table.services.restore(saved)
            lake.upsert(row("b"))
            losses.append("lost")

    storage = LosingStorage(lake.storage, losses, others) if knows else UnlockedStorage(lake.storage, on_call=others)
    with pytest.raises(Fenced):
        table_on(lake, storage).services.restore(saved)
    assert lake.table.timeline().pending() == ()
    assert lake.values() == {"a": "a", "b": "a"}
    lake.upsert(row("c"))
    assert lake.values() == {"a": "a", "b": "a", "c": "a"}
    assert lake.table.validate() == []


@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_the_plan_of_such_a_restore_that_died_there_goes_with_the_next_one(version: int, made: Any) -> None:
    lake, saved = saved_lake(version, made)
    state = {"stored": False}

    def others(call: Call) -> None:
        if state["stored"]:
            raise Crash
        if call.op == "create" and call.path.endswith(".restore.requested"):
            lake.table.services.restore(saved)
            lake.upsert(row("b"))
            state["stored"] = True

    with pytest.raises(Crash):
        table_on(lake, UnlockedStorage(lake.storage, on_call=others)).services.restore(saved)
    assert [one.action for one in lake.table.timeline().pending()] == ["restore"]
    lake.table.services.restore(saved)
    assert lake.table.timeline().pending() == ()
    assert lake.values() == {"a": "a"}
    lake.upsert(row("c"))
    assert lake.values() == {"a": "a", "c": "a"}
    assert lake.table.validate() == []


@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_rollback_that_slept_before_its_plan_was_stored_keeps_nobody_out(version: int, made: Any) -> None:
    """It ends after a restore that has completed meanwhile: what it would undo is gone."""
    lake, saved = saved_lake(version, made)
    state = {"slept": False}
    last = lake.table.timeline().completed_writes()[-1].requested

    def others(call: Call) -> None:
        if call.op == "create" and call.path.endswith(".rollback.requested") and not state["slept"]:
            state["slept"] = True
            lake.table.services.restore(saved)

    with suppress(Conflict, Fenced):
        table_on(lake, UnlockedStorage(lake.storage, on_call=others)).services.rollback(last)
    assert state["slept"]
    lake.upsert(row("c"))
    assert lake.values() == {"a": "a", "c": "a"}
    assert lake.table.timeline().pending() == ()
    assert lake.table.validate() == []
