"""Savepoints and restores: what they keep, what goes, what is refused, and dying in the middle."""

from __future__ import annotations

import pytest
from undo_world import (
    AFTER,
    BEFORE,
    ENGINE,
    OLD,
    calls_of,
    handle_on,
    last_delta,
    paths,
    row,
    rows_of,
    small_table,
)

from hoodie.config import resolve
from hoodie.errors import Conflict, Invalid, Unavailable
from hoodie.present import as_json
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.rollback.restore import is_after, preview_restore, restore
from hoodie.services.rollback.rollback import roll_back_instant
from hoodie.services.rollback.savepoint import create_savepoint, delete_savepoint, load_savepoints
from hoodie.spec import (
    COMMIT,
    COMPACTION,
    COMPLETION_CLOCK,
    DELTA_COMMIT,
    REQUEST_CLOCK,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    V6,
    V9,
    Instant,
    InstantInfo,
    State,
    encode_container,
)
from hoodie.spec.restore_plan import RestorePlan, encode_restore_plan, parse_restore_metadata, parse_restore_plan
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.hand_logs import HandLogTable, at
from hoodie.timeline import load_instant, load_requested

CONFIG = resolve({})
LAST = [("k1", 4), ("k2", 3), ("k3", 1), ("k4", 3), ("k9", 4)]


def grown(profile) -> HandLogTable:
    """Delta commits 3 and 4 and a new base file of 5 on top of the small table."""
    table = small_table(profile)
    last_delta(table)
    table.delta(at(4), {OLD: {"rows": [row("k1", 4)]}, ("p1", "b"): {"rows": [row("k9", 4, "p1")]}})
    return table


# --- savepoints


def test_savepoint_names_the_files_of_its_commit(profile):
    table = small_table(profile)
    made = create_savepoint(table.handle, CONFIG, user="somebody", comments="before the big change")
    last_delta(table)
    log = f".a_{at(1) if profile is V6 else at(2)}.log.1_0-1-2"
    assert made.instant == at(2)
    assert dict(made.files) == {"p0": (table.path_of(at(1), "p0", "a").rpartition("/")[2], log)}
    assert load_savepoints(table.handle) == (made,)
    assert made.paths == {f"p0/{name}" for name in made.files["p0"]}
    assert (made.user, made.comments) == ("somebody", "before the big change")
    assert as_json(made)["files"] == 2
    assert "somebody" in made._repr_html_()
    delete_savepoint(table.handle, at(2))
    assert load_savepoints(table.handle) == ()
    assert not [one for one in table.timeline().instants if one.action == SAVEPOINT]


def test_savepoint_of_an_earlier_commit_leaves_later_log_files_out():
    table = small_table(V9)
    last_delta(table)
    made = create_savepoint(table.handle, CONFIG, at(1))
    assert dict(made.files) == {"p0": (table.path_of(at(1), "p0", "a").rpartition("/")[2],)}


def test_what_cannot_be_saved_is_refused(profile):
    table = small_table(profile)
    with pytest.raises(Invalid, match="no completed commit"):
        create_savepoint(table.handle, CONFIG, at(9))
    with pytest.raises(Invalid, match="has no savepoint"):
        delete_savepoint(table.handle, at(2))
    create_savepoint(table.handle, CONFIG, at(2))
    with pytest.raises(Conflict, match="has a savepoint already"):
        create_savepoint(table.handle, CONFIG, at(2))
    table.clean(at(4), at(2))
    with pytest.raises(Invalid, match="older than"):
        create_savepoint(table.handle, CONFIG, at(1))


def test_table_without_commits_has_nothing_to_save():
    with pytest.raises(Invalid, match="no completed commit"):
        create_savepoint(HandLogTable(V9).handle, CONFIG)


@pytest.mark.parametrize("action", ["create", "delete"])
def test_savepoint_call_that_dies_anywhere_is_done_again(profile, action):
    def make() -> HandLogTable:
        table = small_table(profile)
        if action == "delete":
            create_savepoint(table.handle, CONFIG, at(2))
        return table

    def act(handle) -> None:
        if action == "delete":
            delete_savepoint(handle, at(2))
        else:
            create_savepoint(handle, CONFIG, at(2))

    for n in calls_of(make, act):
        table = make()
        with pytest.raises(Crash):
            act(handle_on(table, CountingStorage(table.storage, crash_at=n)))
        assert rows_of(table) == BEFORE
        found = load_savepoints(table.handle)
        assert bool(found) == (action == "delete") or n > 1, f"call {n}"
        if action == "create" and not found:
            act(table.handle)
            assert len(load_savepoints(table.handle)) == 1, f"call {n}"
        assert roll_back_failed_writes(table.handle, ENGINE).pending() == (), f"call {n}"


# --- restores


@pytest.mark.parametrize("saved", [True, False], ids=["savepoint", "instant"])
def test_restore_takes_everything_after_a_commit_back(profile, saved):
    table = small_table(profile)
    if saved:
        create_savepoint(table.handle, CONFIG, at(2))
    known = paths(table.storage)
    last_delta(table)
    table.delta(at(4), {OLD: {"rows": [row("k1", 4)]}, ("p1", "b"): {"rows": [row("k9", 4, "p1")]}})
    assert rows_of(table) == LAST
    result = restore(table.handle, CONFIG, ENGINE, at(2))
    assert rows_of(table) == BEFORE
    assert result.undone == (at(4), at(3))
    assert (result.to, as_json(result)["undone"]) == (at(2), [at(4), at(3)])
    assert at(2) in result._repr_html_()
    timeline = table.timeline()
    assert [one.requested for one in timeline.completed_writes()] == [at(1), at(2)]
    (instant,) = [one for one in timeline.completed() if one.action == RESTORE]
    plan = parse_restore_plan(load_requested(table.storage, profile, instant), "plan")
    assert plan == RestorePlan((InstantInfo(at(4), DELTA_COMMIT), InstantInfo(at(3), DELTA_COMMIT)), at(2))
    said = parse_restore_metadata(load_instant(table.storage, profile, instant), "done")
    assert set(said.rollbacks) == {at(3), at(4)}
    assert said.instants == plan.instants
    left = set(paths(table.storage)) - set(known)
    data = {path for path in left if not path.startswith(".hoodie/") and "partition_metadata" not in path}
    if profile is V6:
        blocks = {f"p0/.a_{at(1)}.log.{n}" for n in (2, 3, 4, 5)}
        assert {path.rpartition("_")[0] for path in data} == blocks
        assert sum(path.endswith("_1-0-1") for path in data) == 2
    else:
        assert data == set()
    table.delta(instant.requested[:-3] + "999", {OLD: {"rows": [row("k2", 9)]}})
    assert ("k2", 9) in rows_of(table)


def test_restore_over_a_compaction_takes_its_whole_slice(profile):
    table = small_table(profile)
    compact = {OLD: [row("k1", 2), row("k2", 1), row("k3", 1)]}
    operation = {"baseInstantTime": at(1), "fileId": "a", "partitionPath": "p0"}
    plan = encode_container("HoodieCompactionPlan", {"operations": [operation], "version": 2}, profile.avro_generation)
    table.instant(at(3), COMPACTION, state=State.INFLIGHT, content={State.REQUESTED: plan})
    table.commit(at(3), compact, operation="COMPACT")
    table.delta(at(4), {OLD: {"rows": [row("k1", 4)]}})
    restore(table.handle, CONFIG, ENGINE, at(2))
    assert rows_of(table) == BEFORE
    assert not [path for path in paths(table.storage) if at(3) in path]
    assert table.timeline().pending() == ()


def test_restore_removes_pending_writes_and_later_rollbacks(profile):
    table = grown(profile)
    roll_back_instant(table.handle, CONFIG, ENGINE, at(4))
    requested = at(5)
    table.delta(requested, {OLD: {"rows": [row("k1", 5)]}}, state=State.INFLIGHT)
    restore(table.handle, CONFIG, ENGINE, at(2))
    assert rows_of(table) == BEFORE
    actions = [one.action for one in table.timeline().instants]
    assert ROLLBACK not in actions
    assert table.timeline().pending() == ()


def test_what_cannot_be_restored_is_refused_before_anything_changes(profile):
    table = grown(profile)
    create_savepoint(table.handle, CONFIG, at(3))
    before = paths(table.storage)
    with pytest.raises(Invalid, match=f"deltacommit {at(3)} has a savepoint"):
        restore(table.handle, CONFIG, ENGINE, at(2))
    with pytest.raises(Invalid, match="no completed commit"):
        restore(table.handle, CONFIG, ENGINE, at(9))
    table.clean(at(6), at(3))
    with pytest.raises(Invalid, match="older than"):
        restore(table.handle, CONFIG, ENGINE, at(1))
    assert [path for path in paths(table.storage) if at(6) not in path] == before
    restore(table.handle, CONFIG, ENGINE, at(3))
    assert rows_of(table) == AFTER


@pytest.mark.sampled(3)
def test_restore_that_dies_at_any_call_goes_on_where_it_stopped(profile):
    def make() -> HandLogTable:
        return grown(profile)

    def act(handle) -> None:
        restore(handle, CONFIG, ENGINE, at(2))

    for n in calls_of(make, act):
        table = make()
        with pytest.raises(Crash):
            act(handle_on(table, CountingStorage(table.storage, crash_at=n)))
        begun = [one for one in table.timeline().instants if one.action == RESTORE]
        if begun and not begun[0].is_completed:
            with pytest.raises(Unavailable):
                roll_back_failed_writes(table.handle, ENGINE)
        if not begun or not begun[0].is_completed:
            act(table.handle)
        assert rows_of(table) == BEFORE, f"call {n}"
        timeline = roll_back_failed_writes(table.handle, ENGINE)
        assert timeline.pending() == (), f"call {n}"
        (instant,) = [one for one in timeline.completed() if one.action == RESTORE]
        said = parse_restore_metadata(load_instant(table.storage, profile, instant), "done")
        assert set(said.rollbacks) == {at(3), at(4)}, f"call {n}"
        assert all(one.partitions for done in said.rollbacks.values() for one in done), f"call {n}"
        blocks = [path for path in paths(table.storage) if path.endswith("_1-0-1")]
        assert len(blocks) == (2 if profile is V6 else 0), f"call {n}"
        assert not [path for path in paths(table.storage) if path.startswith(".hoodie/.temp/")], f"call {n}"


def test_pending_restore_of_hudi_is_finished_and_another_target_is_refused(profile):
    table = grown(profile)
    plan = RestorePlan((InstantInfo(at(4), DELTA_COMMIT), InstantInfo(at(3), DELTA_COMMIT)), at(2))
    table.instant(at(7), RESTORE, state=State.INFLIGHT, content={State.REQUESTED: encode_restore_plan(plan)})
    with pytest.raises(Invalid, match=f"Restore to {at(2)} first"):
        restore(table.handle, CONFIG, ENGINE, at(3))
    assert restore(table.handle, CONFIG, ENGINE, at(2)).instant == at(7)
    assert rows_of(table) == BEFORE


@pytest.mark.parametrize("is_begun", [False, True])
def test_preview_of_a_restore_writes_nothing(profile, is_begun):
    """Not even where one that died has left its instant before its plan."""
    table = grown(profile)
    if is_begun:
        table.instant(at(7), RESTORE, state=State.REQUESTED, content={State.REQUESTED: b""})
    before = {path: table.storage.read(path) for path in paths(table.storage)}
    shown = preview_restore(table.handle, CONFIG, ENGINE, at(2))
    assert {path: table.storage.read(path) for path in paths(table.storage)} == before
    assert any("no savepoint" in note for note in shown.notes)
    assert shown.files == (2 if profile is V6 else 4)
    assert rows_of(table) == LAST


def instant(requested: int, completed: int | None, action: str = DELTA_COMMIT) -> Instant:
    state = State.REQUESTED if completed is None else State.COMPLETED
    return Instant(at(requested), action, state, None if completed is None else at(completed))


@pytest.mark.parametrize(
    ("one", "merge_on_read", "after"),
    [
        (instant(3, 9), True, False),  # requested earlier, completed earlier
        (instant(3, 11), True, True),  # requested earlier, completed later
        (instant(3, None), True, True),
        (instant(3, 11, COMMIT), True, False),  # a compaction: its slice holds what is restored to
        (instant(3, None, COMPACTION), True, False),
        (instant(6, 7, COMMIT), True, True),
        (instant(3, 11, COMMIT), False, True),
        (instant(6, 9, COMMIT), False, False),
    ],
)
def test_after_goes_by_completion_except_for_compactions(one, merge_on_read, after):
    action = DELTA_COMMIT if merge_on_read else COMMIT
    to = Instant(at(5), action, State.COMPLETED, at(10))
    assert is_after(one, to, COMPLETION_CLOCK, merge_on_read=merge_on_read) is after
    assert is_after(one, to, REQUEST_CLOCK, merge_on_read=merge_on_read) is (one.requested > at(5))
