"""Writers and the executor of a compaction at the same time, in one process, in all versions."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pytest
from compact_world import ENGINE, A, B, config, handle_of, new_table, row, rows_of, schedule

from hoodie.config import resolve
from hoodie.engine import ArrowSource, Engine, LocalEngine
from hoodie.env import SystemEnv
from hoodie.errors import Conflict
from hoodie.services.compaction.compact import run_compaction, schedule_compaction
from hoodie.services.ingest import Request
from hoodie.services.save import write_table
from hoodie.spec import COMPACTION, V6, V9
from hoodie.state.pending_plans import PendingPlans
from hoodie.testing.hand_logs import HandLogTable, at

QUIET = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.engine.local.max.bytes": "0",
    "hoodie.index.bloom.num_entries": "100",
}
NEW_ROWS = [row("k3", 50), row("k8", 50)]
AFTER = [("k1", 2), ("k3", 50), ("k4", 2), ("k8", 50), ("k9", 1)]


BEFORE = [("k1", 2), ("k3", 1), ("k4", 2), ("k9", 1)]


def logged_table(profile):
    """k1 to k3 and k9 in base files; 2 updates k1 and adds k4, 3 deletes k2."""
    made, env = new_table(profile)
    made.commit(at(1), {A: [row("k1", 1), row("k2", 1), row("k3", 1)], B: [row("k9", 1, "p1")]})
    made.delta(at(2), {A: {"rows": [row("k1", 2), row("k4", 2)]}})
    made.delta(at(3), {A: {"deleted": ["k2"]}})
    return made, env


class Meanwhile(LocalEngine):
    """An engine that does something else before it runs a step."""

    def __init__(self, step: str, other: Any) -> None:
        super().__init__(1)
        self.step = step
        self.other = other

    def run(self, work: Any, tasks: Any, label: str) -> Any:
        if label == self.step and self.other is not None:
            other, self.other = self.other, None
            other()
        return super().run(work, tasks, label)


def upsert(table: HandLogTable, env: Any, rows: list[dict[str, object]], engine: Engine = ENGINE) -> None:
    source = ArrowSource(pa.Table.from_pylist(rows, table.schema), LocalEngine(1))
    write_table(table.storage, Request("upsert", source, resolve(QUIET), engine), env)


def test_a_write_that_comes_and_goes_while_files_are_written(profile):
    table, env = logged_table(profile)
    handle = handle_of(table, env)
    schedule(handle)
    engine = Meanwhile("compact", lambda: upsert(table, env, NEW_ROWS))
    result = run_compaction(handle, config(**{"engine.local.max.bytes": 0}), engine)
    assert result is not None
    assert rows_of(table) == AFTER
    assert ("k3", 1) in rows_of(table, query="read_optimized")


def test_an_executor_that_is_ready_waits_for_the_writer(profile):
    table, env = logged_table(profile)
    handle = handle_of(table, env)
    schedule(handle)
    handle = handle_of(table, SystemEnv())
    begun = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        done = []

        def start() -> None:
            ready = Meanwhile("compact", begun.set)
            options = config(**{"engine.local.max.bytes": 0})
            done.append(pool.submit(run_compaction, handle, options, ready))
            assert begun.wait(20)

        upsert(table, env, NEW_ROWS, Meanwhile("upsert", start))
        assert done[0].result(20) is not None
    assert rows_of(table) == AFTER
    assert not [one for one in table.timeline().pending() if one.action == COMPACTION]


def test_executors_of_two_plans_work_at_the_same_time(profile):
    table, env = logged_table(profile)
    handle = handle_of(table, env)
    schedule(handle)
    upsert(table, env, [row("k9", 7, "p1")])
    second = schedule(handle)
    assert second is not None
    engine = Meanwhile("compact", lambda: run_compaction(handle, config(), ENGINE, second.requested))
    assert run_compaction(handle, config(**{"engine.local.max.bytes": 0}), engine) is not None
    expected = [(key, 7 if key == "k9" else qty) for key, qty in BEFORE]
    assert rows_of(table) == rows_of(table, query="read_optimized") == expected


@pytest.mark.parametrize("version", [V6, V9], ids=["v6", "v9"])
@pytest.mark.parametrize("rows", [[row("k10", 1, "p1")], [row("k3", 8)]], ids=["base file", "log file"])
def test_a_plan_made_behind_a_writers_back_fails_what_it_would_forget(version, rows, monkeypatch):
    """By a writer that does not honour the exclusion. Only a log file that finds its slice by completion is safe."""
    table, env = logged_table(version)
    monkeypatch.setattr(
        "hoodie.services.compaction.compact.roll_back_failed_writes", lambda handle, engine, timeline, config: timeline
    )
    monkeypatch.setattr(PendingPlans, "incomplete_writes", lambda plans: ())

    def plan() -> None:
        assert schedule_compaction(handle_of(table, env), config(), ENGINE, when_due=False) is not None

    is_safe = version is V9 and rows[0]["id"] == "k3"
    with nullcontext() if is_safe else pytest.raises(Conflict, match="appeared while"):
        upsert(table, env, rows, Meanwhile("upsert", plan))
    expected = [("k1", 2), ("k3", 8 if is_safe else 1), ("k4", 2), ("k9", 1)]
    assert rows_of(table) == expected
    assert run_compaction(handle_of(table, env), config(), ENGINE) is not None
    assert rows_of(table) == expected
