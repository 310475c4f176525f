"""A small merge-on-read table whose clock is steered, and what its readers see, for tests of compactions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from hoodie.config import Config, resolve
from hoodie.engine import LocalEngine
from hoodie.fileview import FolderView
from hoodie.locks import held_lock
from hoodie.query import ReadOptions, load_read_plan, run_read
from hoodie.services.compaction.compact import run_compaction, schedule_compaction
from hoodie.services.compaction.result import CompactionResult
from hoodie.spec import CompactionPlan, FormatProfile, Instant
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import MemoryStorage, Storage
from hoodie.testing.env import FakeEnv
from hoodie.testing.hand_logs import HandLogTable, at
from hoodie.testing.hand_table import new_name

A, B, NEW = ("p0", "a"), ("p1", "b"), ("p0", "new")
ENGINE = LocalEngine(1)
SMALL_FILTERS = {"hoodie.index.bloom.num_entries": "100"}
START = 60
"""The second of the day at which a table's clock starts: everything written by hand is older."""

Rows = list[tuple[object, object]]


def plan_of(handle: TableHandle, instant: Instant) -> CompactionPlan:
    """The plan of a pending compaction or log compaction."""
    return PendingPlans(handle.storage, timeline_of(handle)).compaction(instant)


def row(key: str, qty: int | None, part: str = "p0") -> dict[str, object]:
    return {"id": key, "part": part, "qty": qty}


def new_table(profile: FormatProfile, **more: Any) -> tuple[HandLogTable, FakeEnv]:
    """An empty table, and the clock of its storage (version 6 takes completion times from there) and its handle."""
    env = FakeEnv(datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=START))
    return HandLogTable(profile, storage=MemoryStorage(new_name(), env), **more), env


def small_table(profile: FormatProfile, **more: Any) -> tuple[HandLogTable, FakeEnv]:
    """k1 to k3 and k9 in base files; 2 updates k1 and adds k4, 3 deletes k2; k7 is in a log-only group."""
    made, env = new_table(profile, **more)
    made.commit(at(1), {A: [row("k1", 1), row("k2", 1), row("k3", 1)], B: [row("k9", 1, "p1")]})
    made.delta(at(2), {A: {"rows": [row("k1", 2), row("k4", 2)]}})
    made.delta(at(3), {A: {"deleted": ["k2"]}, NEW: {"rows": [row("k7", 3)]}})
    return made, env


SMALL: Rows = [("k1", 2), ("k3", 1), ("k4", 2), ("k7", 3), ("k9", 1)]


def later_delta(
    table: HandLogTable, env: FakeEnv, files: Mapping[tuple[str, str], Any], second: int, **more: Any
) -> str:
    """A delta commit at that second, written the way a writer does it who sees pending compactions."""
    env.advance(timedelta(seconds=1))
    pending = {
        group.group_id: group.pending_compaction
        for group in view_of_table(table).groups
        if group.pending_compaction is not None
    }
    for group in files:
        if group in pending and table._bases.get(group) != pending[group]:
            table._bases[group] = pending[group]
            table._logs[group] = []
    table.delta(at(second), files, **more)
    return at(second)


def view_of_table(table: HandLogTable) -> Any:

    return FolderView(table.storage, table.timeline()).load()


def handle_of(table: HandLogTable, env: FakeEnv, storage: Storage | None = None) -> TableHandle:
    return TableHandle(storage or table.storage, table.config, table.profile, env)


def config(**more: Any) -> Config:
    return resolve({**SMALL_FILTERS, **{f"hoodie.{key}": value for key, value in more.items()}})


def schedule(handle: TableHandle, options: Config | None = None) -> Instant | None:
    with held_lock(handle.storage, "plan"):
        return schedule_compaction(handle, options or config(), ENGINE, when_due=False)


def compact(handle: TableHandle, options: Config | None = None) -> CompactionResult | None:
    schedule(handle, options)
    return run_compaction(handle, options or config(), ENGINE)


def rows_of(table: HandLogTable, **query: Any) -> Rows:
    """(id, qty) of a query, sorted."""
    got = all_rows(table, **query)
    return sorted(zip(got["id"].to_pylist(), got["qty"].to_pylist(), strict=True), key=repr)


def all_rows(table: HandLogTable, **query: Any) -> pa.Table:
    plan = load_read_plan(table.storage, table.config, table.timeline(), ReadOptions(**query))
    return run_read(plan, table.storage).read_all()


def origins(table: HandLogTable) -> dict[object, tuple[object, object]]:
    """Commit time and sequence number by key."""
    got = all_rows(table)
    names = ("_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno")
    return {key: (time, number) for key, time, number in zip(*(got[name].to_pylist() for name in names), strict=True)}


def paths(storage: Storage) -> list[str]:
    return [file.path for file in storage.list("")]
