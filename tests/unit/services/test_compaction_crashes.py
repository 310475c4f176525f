"""Whoever plans or carries out a compaction may die at every storage call: rows stay, and the next run finishes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from compact_world import ENGINE, SMALL, compact, config, handle_of, paths, rows_of, schedule, small_table
from test_log_compaction import ON, many_logs

from hoodie.errors import HudiError
from hoodie.locks import held_lock
from hoodie.services.compaction.compact import run_compaction
from hoodie.services.compaction.log_compact import run_log_compaction, schedule_log_compaction
from hoodie.spec import parse_base_file_name, parse_log_file_name
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.timeline import load_commit_metadata

pytestmark = [pytest.mark.deep, pytest.mark.sampled(3)]

ANY = config(**ON)


def plan_and_run(table, env, storage) -> None:
    compact(handle_of(table, env, storage))


def plan_and_run_logs(table, env, storage) -> None:
    handle = handle_of(table, env, storage)
    with held_lock(storage, "plan"):
        schedule_log_compaction(handle, ANY, ENGINE)
    run_log_compaction(handle, ANY, ENGINE)


def calls_of(make, action) -> int:
    table, env = make()
    storage = CountingStorage(table.storage)
    action(table, env, storage)
    return storage.count


def strays(table) -> list[str]:
    """Data files that no completed instant names, and temporary files."""
    timeline = table.timeline()
    named = {
        stat.path
        for one in timeline.completed_writes()
        for _, stat in load_commit_metadata(table.storage, table.profile, one).write_stats()
    }
    found = []
    for path in paths(table.storage):
        name = path.rpartition("/")[2]
        is_data = parse_base_file_name(name) or parse_log_file_name(name)
        if ".temp/" in path or (is_data and not path.startswith(".hoodie/") and path not in named):
            found.append(path)
    return found


def crash_everywhere(make: Callable, action: Callable, redo: Callable, rows: list) -> int:
    total = calls_of(make, action)
    for call in range(1, total + 1):
        table, env = make()
        with pytest.raises(Crash):
            action(table, env, CountingStorage(table.storage, crash_at=call))
        assert rows_of(table) == rows, f"after a crash at call {call}"
        redo(table, env)
        assert rows_of(table) == rows, f"after the crash at call {call} was healed"
        assert not [one for one in table.timeline().pending() if "compaction" in one.action], call
        assert strays(table) == [], call
    return total


def redo_compaction(table, env) -> None:
    handle = handle_of(table, env)
    while run_compaction(handle, config(), ENGINE) is not None:
        pass
    compact(handle)
    assert rows_of(table, query="read_optimized") == SMALL


def redo_logs(table, env) -> None:
    handle = handle_of(table, env)
    while run_log_compaction(handle, ANY, ENGINE) is not None:
        pass
    plan_and_run_logs(table, env, table.storage)


def test_compaction_survives_a_crash_at_every_call(profile):
    assert crash_everywhere(lambda: small_table(profile), plan_and_run, redo_compaction, SMALL) > 30


def test_log_compaction_survives_a_crash_at_every_call(profile):
    rows = [("k1", 4), ("k3", 4), ("k4", 2), ("k9", 3)]
    assert crash_everywhere(lambda: many_logs(profile), plan_and_run_logs, redo_logs, rows) > 30


@pytest.mark.parametrize("when", ["fail_at", "fail_after"])
def test_an_error_at_any_call_leaves_a_plan_nobody_has_begun_or_all_of_it(profile, when):
    table, env = small_table(profile)
    schedule(handle_of(table, env))
    counting = CountingStorage(table.storage)
    run_compaction(handle_of(table, env, counting), config(), ENGINE)
    for call in range(1, counting.count + 1):
        table, env = small_table(profile)
        schedule(handle_of(table, env))
        storage = CountingStorage(table.storage, **{when: call})
        with contextlib.suppress(HudiError):
            run_compaction(handle_of(table, env, storage), config(), ENGINE)
        assert rows_of(table) == SMALL, call
        redo_compaction(table, env)
        assert strays(table) == [], call
