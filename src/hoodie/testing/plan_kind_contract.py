"""What every kind of plans must keep. Test modules subclass it with a fixture `pending`: a table with one such plan."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Conflict, Fenced, HudiError
from hoodie.locks import held_lock
from hoodie.services.rewrite.executor import CarriedOut, run_plan
from hoodie.services.rewrite.plan_kind import PlanKind
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.rollback.rollback import roll_back_instant
from hoodie.spec import ROLLBACK, Instant, State, parse_data_file_name
from hoodie.state.handle import load_handle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage
from hoodie.testing.counting_storage import Call, CountingStorage, Crash
from hoodie.testing.lake import Awake, Lake
from hoodie.timeline import instant_path, load_commit_metadata
from hoodie.transaction import PlanSetAside, executor_lock

_CHANGES = ("create", "put", "delete", "delete_dir", "open_output", "close")
"""Storage calls that may leave something else behind than the call before."""

_SEEN = ("_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_partition_path", "v")
_ENGINE = LocalEngine(1)


@dataclass(frozen=True)
class Pending:
    """A lake with one pending plan, which is of `kind`, and has not been begun."""

    lake: Lake
    kind: PlanKind

    def again(self) -> Lake:
        """Another lake with the same files as this one has now."""
        copy = Lake(self.lake.version, self.lake.options)
        for path, data in self.lake.files().items():
            copy.storage.put(path, data)
        return copy

    def plan(self, lake: Lake) -> Instant:
        """The pending plan of a lake."""
        found = self.find(lake)
        assert found is not None
        return found

    def find(self, lake: Lake) -> Instant | None:
        """The same; None when there is none any more."""
        return self.kind.find(PendingPlans(lake.storage, lake.table.timeline()), None)

    def run(self, lake: Lake, storage: Storage | None = None, asked: Instant | None = None) -> CarriedOut | None:
        """Carries the plan of a lake out, under the table lock where writers may not go on beside it."""
        handle = load_handle(storage or lake.storage, Awake())
        held = not isinstance(self.kind.rule, PlanSetAside)
        lock: AbstractContextManager[object] = held_lock(handle.storage, "a plan") if held else nullcontext()
        with lock:
            return run_plan(handle, resolve(lake.options), _ENGINE, self.kind, asked or self.plan(lake), held=held)

    def changes(self) -> list[Call]:
        """The calls of carrying the plan out that change what is on storage."""
        lake = self.again()
        counted = CountingStorage(lake.storage)
        assert self.run(lake, counted) is not None
        return [call for call in counted.calls if call.op in _CHANGES]

    def first_file(self) -> int:
        """The number of the call that opens the first data file."""
        return next(call.n for call in self.changes() if call.op == "open_output" and not call.path.startswith("."))


def seen(lake: Lake) -> list[tuple[object, ...]]:
    """What a snapshot reads."""
    return lake.rows(_SEEN)


def strays(lake: Lake) -> list[str]:
    """Data files that no completed write names, and temporary files, after the next action has begun."""
    handle = lake.handle()
    with held_lock(lake.storage, "the next write"):
        timeline = roll_back_failed_writes(handle, _ENGINE)
    writes = timeline.completed_writes()
    stats = [load_commit_metadata(handle.storage, handle.profile, one).write_stats() for one in writes]
    named = {path for some in stats for _, stat in some for path in (stat.path, *(stat.cdc_stats or ()))}
    found = []
    for path in lake.files():
        is_data = not path.startswith(".hoodie/") and parse_data_file_name(path.rpartition("/")[2]) is not None
        if path.startswith(".hoodie/.temp/") or (is_data and path not in named):
            found.append(path)
    return found


class PlanKindContract:
    """Subclass it with a fixture `pending`."""

    def test_its_pending_plan_is_found_and_is_no_write(self, pending: Pending) -> None:
        plan, handle = pending.plan(pending.lake), pending.lake.handle()
        plans = PendingPlans(handle.storage, timeline_of(handle))
        assert plan.action == pending.kind.pending_action(handle.profile)
        assert pending.kind.find(plans, plan.requested) == plan
        assert plans.is_plan(plan)
        assert plans.groups(plan)
        assert plans.incomplete_writes() == ()

    def test_rows_stay_and_the_plan_is_completed(self, pending: Pending) -> None:
        before, plan = seen(pending.lake), pending.plan(pending.lake)
        done = pending.run(pending.lake)
        assert done is not None
        assert (done.instant.requested, done.instant.is_completed) == (plan.requested, True)
        assert seen(pending.lake) == before
        assert pending.find(pending.lake) is None
        pending.lake.ensure_sound()

    def test_what_it_changes_was_set_aside(self, pending: Pending) -> None:
        handle = pending.lake.handle()
        groups = set(PendingPlans(handle.storage, timeline_of(handle)).groups(pending.plan(pending.lake)))
        done = pending.run(pending.lake)
        assert done is not None
        said = load_commit_metadata(handle.storage, handle.profile, done.instant)
        replaced = said.replaced_file_groups()
        assert said.operation_type == pending.kind.operation
        assert (done.instant.action == "replacecommit", said.compacted) == (bool(replaced), not replaced)
        assert groups == (replaced or {(stat.partition_path, stat.file_id) for stat in done.outcome.stats})

    def test_one_executor_works_on_a_plan(self, pending: Pending) -> None:
        plan, files = pending.plan(pending.lake), pending.lake.files()
        with executor_lock(pending.lake.handle(), plan.requested), pytest.raises(Conflict):
            pending.run(pending.lake)
        assert pending.lake.files() == files
        assert pending.run(pending.lake) is not None

    def test_what_somebody_completed_meanwhile_is_not_done_again(self, pending: Pending) -> None:
        plan = pending.plan(pending.lake)
        assert pending.run(pending.lake) is not None
        files = pending.lake.files()
        assert pending.run(pending.lake, asked=plan) is None
        assert pending.lake.files() == files

    def test_what_somebody_took_off_meanwhile_is_fenced(self, pending: Pending) -> None:
        handle, plan = pending.lake.handle(), pending.plan(pending.lake)
        handle.storage.delete(instant_path(handle.profile, plan))
        files = pending.lake.files()
        with pytest.raises(Fenced, match="not planned any more"):
            pending.run(pending.lake, asked=plan)
        assert pending.lake.files() == files

    def test_a_crash_at_a_change_leaves_rows_and_a_plan_for_the_next_run(self, pending: Pending) -> None:
        before = seen(pending.lake)
        for call in pending.changes()[::2]:
            lake = pending.again()
            with pytest.raises(Crash):
                pending.run(lake, CountingStorage(lake.storage, crash_at=call.n))
            assert seen(lake) == before, call
            if pending.find(lake) is not None:
                assert pending.run(lake) is not None
            assert seen(lake) == before, call
            assert strays(lake) == [], call

    def test_an_error_at_a_change_leaves_a_plan_that_nobody_has_begun_or_all_of_it(self, pending: Pending) -> None:
        before = seen(pending.lake)
        for call in pending.changes()[1::2]:
            lake = pending.again()
            with contextlib.suppress(HudiError):
                pending.run(lake, CountingStorage(lake.storage, fail_at=call.n))
            assert seen(lake) == before, call
            left = pending.find(lake)
            if left is not None:
                assert left.state is State.REQUESTED, call
                assert pending.run(lake) is not None
            assert seen(lake) == before, call
            assert strays(lake) == [], call

    def test_two_runs_name_their_files_differently(self, pending: Pending) -> None:
        other = pending.again()
        names = []
        for lake in (pending.lake, other):
            done = pending.run(lake)
            assert done is not None
            names.append({stat.path for stat in done.outcome.stats})
        assert not names[0] & names[1]

    def test_a_rollback_leaves_the_plan_and_one_that_died_is_finished_first(self, pending: Pending) -> None:
        lake, before, opened = pending.lake, seen(pending.lake), pending.first_file()
        with pytest.raises(Crash):
            pending.run(lake, CountingStorage(lake.storage, crash_at=opened + 1))
        counted = CountingStorage(pending.again().storage)
        plan = pending.plan(lake)
        self._roll_back(lake, counted, plan)
        dead = next(call.n for call in counted.calls if call.path.endswith(".rollback.inflight")) + 1
        with pytest.raises(Crash):
            self._roll_back(lake, CountingStorage(lake.storage, crash_at=dead), plan)
        assert [one.action for one in lake.table.timeline().pending() if one.action == ROLLBACK] == [ROLLBACK]
        assert pending.run(lake) is not None
        assert not lake.table.timeline().pending()
        assert seen(lake) == before

    @staticmethod
    def _roll_back(lake: Lake, storage: Storage, plan: Instant) -> None:
        with held_lock(storage, "rollback"):
            roll_back_instant(load_handle(storage, Awake()), resolve(lake.options), _ENGINE, plan.requested)
