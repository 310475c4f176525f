"""Plans taken off the timeline, looked at, and put back."""

from __future__ import annotations

import json

import pytest
from compact_world import (
    ENGINE,
    NEW,
    SMALL,
    A,
    compact,
    config,
    handle_of,
    later_delta,
    paths,
    plan_of,
    row,
    rows_of,
    schedule,
    small_table,
)

from hoodie.errors import Conflict, Invalid, Unavailable
from hoodie.locks import held_lock
from hoodie.present import as_json
from hoodie.services.compaction.admin import repair_compaction, unschedule_compaction, validate_compaction
from hoodie.services.compaction.compact import run_compaction
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.rollback.plan import load_rollback_plan
from hoodie.services.rollback.restore import restore
from hoodie.services.rollback.rollback import roll_back_instant
from hoodie.spec import RESTORE, ROLLBACK, V6, V8, V9, MarkerKind, State, encode_rollback_plan
from hoodie.timeline import create_requested, delete_instant_files, markers_of, new_instant_time, to_inflight
from hoodie.transaction.locking import executor_lock


def planned(profile):
    table, env = small_table(profile)
    handle = handle_of(table, env)
    pending = schedule(handle)
    assert pending is not None
    return table, env, handle, pending


def test_unscheduled_plan_is_gone_and_can_be_made_again(profile):
    table, _env, handle, pending = planned(profile)
    done = unschedule_compaction(handle, ENGINE, pending.requested)
    assert done.plan_deleted
    assert set(done.groups) == {A, NEW}
    assert not table.timeline().pending()
    assert rows_of(table) == SMALL
    assert compact(handle) is not None
    assert json.dumps(as_json(done))


def test_one_group_is_taken_out_of_a_plan(profile):
    table, _env, handle, pending = planned(profile)
    done = unschedule_compaction(handle, ENGINE, pending.requested, NEW)
    assert (done.groups, done.plan_deleted) == ((NEW,), False)
    assert plan_of(handle, pending).group_ids == (A,)
    result = run_compaction(handle, config(), ENGINE)
    assert result is not None
    assert result.files == 1
    assert rows_of(table) == SMALL
    with pytest.raises(Invalid, match="no pending compaction"):
        unschedule_compaction(handle, ENGINE, pending.requested, NEW)


def test_last_group_takes_the_plan_with_it(profile):
    table, _, handle, pending = planned(profile)
    unschedule_compaction(handle, ENGINE, pending.requested, A)
    assert unschedule_compaction(handle, ENGINE, pending.requested, NEW).plan_deleted
    assert not table.timeline().pending()


def test_unknown_groups_are_refused(profile):
    _, _, handle, pending = planned(profile)
    with pytest.raises(Invalid, match="has no file group"):
        unschedule_compaction(handle, ENGINE, pending.requested, ("p9", "x"))


@pytest.mark.parametrize("version", [V8, V9], ids=["v8", "v9"])
def test_later_log_files_fall_back_to_the_slice_before(version):
    table, env, handle, pending = planned(version)
    later_delta(table, env, {A: {"rows": [row("k3", 9)]}}, 90)
    unschedule_compaction(handle, ENGINE, pending.requested)
    assert ("k3", 9) in rows_of(table)


def test_version_6_keeps_a_plan_that_log_files_are_named_by():
    table, env, handle, pending = planned(V6)
    later_delta(table, env, {A: {"rows": [row("k3", 9)]}}, 90)
    with pytest.raises(Invalid, match="nobody would see them"):
        unschedule_compaction(handle, ENGINE, pending.requested)
    assert unschedule_compaction(handle, ENGINE, pending.requested, NEW).groups == (NEW,)
    assert ("k3", 9) in rows_of(table)


def test_repair_puts_back_the_plan_that_log_files_are_named_by():
    table, env, handle, pending = planned(V6)
    later_delta(table, env, {A: {"rows": [row("k3", 9)]}}, 90)
    delete_instant_files(table.storage, table.profile, pending)
    assert ("k3", 9) not in rows_of(table)
    (repaired,) = repair_compaction(handle, config())
    assert (repaired.instant, repaired.groups) == (pending.requested, (A,))
    assert ("k3", 9) in rows_of(table)
    assert all(check.is_valid for check in validate_compaction(handle))
    run_compaction(handle, config(), ENGINE)
    assert rows_of(table) == [("k1", 2), ("k3", 9), ("k4", 2), ("k7", 3), ("k9", 1)]
    assert repair_compaction(handle, config()) == ()


def test_repair_leaves_log_files_of_failed_writes_alone(profile):
    table, env = small_table(profile)
    table.delta("20260102000050000", {("p0", "gone"): {"rows": [row("k8", 1)]}}, state=State.INFLIGHT)
    assert repair_compaction(handle_of(table, env), config()) == ()


def test_an_inflight_plan_is_undone_first(profile):
    table, _, handle, pending = planned(profile)
    to_inflight(table.storage, table.profile, pending)
    assert unschedule_compaction(handle, ENGINE, pending.requested).plan_deleted
    assert not [path for path in paths(table.storage) if "compaction" in path]


def test_a_living_executor_is_left_alone(profile):
    table, _, handle, pending = planned(profile)
    to_inflight(table.storage, table.profile, pending)
    before = paths(table.storage)
    with executor_lock(table.handle, pending.requested):
        with pytest.raises(Conflict):
            unschedule_compaction(handle, ENGINE, pending.requested)
        with pytest.raises(Conflict):
            roll_back_instant(handle, config(), ENGINE, pending.requested)
        assert paths(table.storage) == before
    roll_back_instant(handle, config(), ENGINE, pending.requested)
    found = table.timeline().find(pending.requested)
    assert found is not None
    assert found.state is State.REQUESTED


def test_a_rollback_that_died_is_finished_before_its_plan_is_begun(profile):
    table, env, handle, pending = planned(profile)
    inflight = to_inflight(table.storage, table.profile, pending)
    timeline = table.timeline()
    plan = encode_rollback_plan(load_rollback_plan(handle, timeline, inflight, ENGINE))
    requested = new_instant_time(env, handle.config.timezone, timeline.last_time())
    create_requested(table.storage, table.profile, requested, ROLLBACK, plan)
    assert run_compaction(handle, config(), ENGINE) is not None
    with held_lock(table.storage, "write"):
        roll_back_failed_writes(handle, ENGINE)
    assert table.timeline().pending() == ()
    assert rows_of(table) == rows_of(table, query="read_optimized") == SMALL


def test_a_plan_that_was_rolled_back_is_carried_out_by_the_next_run(profile):
    table, _, handle, pending = planned(profile)
    to_inflight(table.storage, table.profile, pending)
    roll_back_instant(handle, config(), ENGINE, pending.requested)
    assert run_compaction(handle, config(), ENGINE, pending.requested) is not None
    assert rows_of(table) == rows_of(table, query="read_optimized") == SMALL


def test_markers_that_an_earlier_run_left_go_with_their_files_before_the_plan_is_begun(profile):
    """Whoever took that run back died before its markers went, or the run was only slow."""
    table, _, handle, pending = planned(profile)
    name = f"{A[0]}/late_1-2-3_{pending.requested}.parquet"
    markers_of(table.storage, pending.requested).create(name, MarkerKind.MERGE)
    table.storage.put(name, b"late")
    assert run_compaction(handle, config(), ENGINE, pending.requested) is not None
    assert name not in [file.path for file in table.storage.list("")]
    assert markers_of(table.storage, pending.requested).load() is None


def test_a_plan_older_than_what_the_table_was_restored_to_can_be_carried_out(profile):
    table, env, handle, pending = planned(profile)
    kept = later_delta(table, env, {A: {"rows": [row("k3", 9)]}}, 90)
    later_delta(table, env, {A: {"rows": [row("k3", 11)]}}, 91)
    restore(handle, config(), ENGINE, kept)
    assert run_compaction(handle, config(), ENGINE, pending.requested) is not None
    assert ("k3", 9) in rows_of(table)


def test_nothing_is_carried_out_while_a_restore_is_pending(profile):
    table, _, handle, pending = planned(profile)
    table.instant("20260102010000000", RESTORE, state=State.REQUESTED)
    before = paths(table.storage)
    with pytest.raises(Unavailable):
        run_compaction(handle, config(), ENGINE, pending.requested)
    assert paths(table.storage) == before


def test_valid_plans_have_no_problem(profile):
    table, env, handle, pending = planned(profile)
    later_delta(table, env, {A: {"rows": [row("k3", 9)]}}, 90)
    checks = validate_compaction(handle, pending.requested)
    assert [(check.partition, check.file_id, check.problem) for check in checks] == [
        ("p0", "a", None),
        ("p0", "new", None),
    ]
    assert validate_compaction(handle) == checks


def test_missing_and_shorter_files_are_told(profile):
    table, _, handle, pending = planned(profile)
    operation = next(one for one in plan_of(handle, pending).operations if one.group_id == A)
    path = operation.log_paths[0]
    table.storage.put(path, table.storage.read(path)[:-10])
    (check, _) = validate_compaction(handle)
    assert check.problem is not None
    assert "bytes" in check.problem
    table.storage.delete(path)
    (check, _) = validate_compaction(handle)
    assert check.problem == f"{path} is gone"
    with pytest.raises(Invalid):
        validate_compaction(handle, "20260101000000000")
