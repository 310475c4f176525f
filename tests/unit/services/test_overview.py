"""What happened to a table and what waits, as values: instants with what they did, pending ones with a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from hoodie.config import resolve
from hoodie.env import SystemEnv
from hoodie.fileview import FolderView
from hoodie.services.overview.group_sizes import group_sizes
from hoodie.services.overview.instant_works import InstantWork, load_works, log_debt_after
from hoodie.services.overview.table_overview import TableOverview, examined_overview, overview_of
from hoodie.services.overview.waiting import Waiting, load_waiting
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.env import FakeEnv
from hoodie.testing.lake import Lake, logged_lake, row
from hoodie.timeline import create_requested, instant_path, to_inflight
from hoodie.transaction.heartbeat import heartbeat_path

VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


def overview(lake: Lake) -> TableOverview:
    return examined_overview(lake.handle(), resolve(lake.options))


def works(lake: Lake) -> dict[str, InstantWork]:
    """The last of each kind."""
    return {one.kind: one for one in load_works(lake.handle(), timeline_of(lake.handle()).instants)}


@VERSIONS
def test_each_instant_says_what_it_did(version: int) -> None:
    lake = logged_lake(version)
    lake.upsert(row("a"), row("b", part="q"))
    lake.upsert(row("a", "new", 2), row("c", part="q"))
    lake.table.savepoints.create(comments="before the move")
    lake.table.services.compact()
    lake.upsert(row("a", "newest", 3))
    done = lake.table.services.rollback(timeline_of(lake.handle()).completed_writes()[-1].requested)
    found = works(lake)
    first, second = (
        one for one in load_works(lake.handle(), timeline_of(lake.handle()).instants) if one.kind == "deltacommit"
    )
    assert (first.operation, first.partitions, first.files, first.inserts, first.updates) == ("UPSERT", 2, 2, 2, 0)
    assert (second.inserts, second.updates, second.log_bytes > 0, second.base_bytes > 0) == (1, 1, True, True)
    assert first.seconds is not None
    assert 0 <= first.seconds < 60
    compaction = found["compaction"]
    assert (compaction.instant.action, compaction.operation) == ("commit", "COMPACT")
    assert compaction.log_bytes_merged == second.log_bytes
    assert "keeps 4 files" in found["savepoint"].note
    assert "before the move" in found["savepoint"].note
    assert found["rollback"].note == f"rolled back deltacommit {done.target}"


def test_a_clean_and_a_restore_say_what_they_took_away() -> None:
    lake = Lake(options={"hoodie.clean.automatic": "false"})
    for number in range(4):
        lake.upsert(row("a", str(number), number))
    lake.table.services.clean(**{"hoodie.clean.commits.retained": 1})
    clean = works(lake)["clean"]
    assert clean.files_deleted > 0
    assert clean.note.startswith("keeps what is needed since 20")
    lake.upsert(row("a", "last", 9))
    commits = timeline_of(lake.handle()).completed_writes()
    lake.table.services.restore(commits[-2].requested)
    assert works(lake)["restore"].note == f"took back commit {commits[-1].requested}"


def test_what_is_known_of_an_instant_is_not_read_again() -> None:
    lake = Lake()
    for number in range(3):
        lake.upsert(row("a", str(number), number))
    handle = lake.handle()
    instants = timeline_of(handle).instants
    known = {one.instant: one for one in load_works(handle, instants)}
    counting = CountingStorage(handle.storage)
    again = load_works(TableHandle(counting, handle.config, handle.profile, handle.env), instants, known)
    assert again == tuple(known.values())
    assert counting.calls == []


def test_a_damaged_instant_is_said_and_stops_nobody() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    lake.upsert(row("b"))
    first, _ = timeline_of(lake.handle()).completed_writes()
    lake.storage.put(instant_path(lake.handle().profile, first), b"no avro at all")
    damaged, whole = load_works(lake.handle(), timeline_of(lake.handle()).completed_writes())
    assert damaged.note.startswith("cannot be read: ")
    assert (damaged.operation, whole.operation) == (None, "UPSERT")
    assert log_debt_after((damaged, whole), 7) == (7, 7)
    assert log_debt_after((whole, damaged), 7) == (None, 7)
    assert not overview(lake).health.is_healthy


def test_times_that_somebodys_copy_changed_are_left_out() -> None:
    lake = Lake(version=6)
    lake.upsert(row("a"))
    (instant,) = timeline_of(lake.handle()).completed_writes()
    for copied in ("29990101000000000", "20010101000000000"):
        (work,) = load_works(lake.handle(), [replace(instant, completed=copied)])
        assert (work.seconds, work.operation) == (None, "UPSERT")


@VERSIONS
def test_log_debt_is_counted_back_from_now(version: int) -> None:
    lake = logged_lake(version, **{"hoodie.metadata.enable": "false"})
    debts = []
    for number in range(4):
        lake.upsert(row("a", "x" * number, number), row("b", part="q", ts=number))
        if number == 2:
            lake.table.services.compact()
        debts.append(sum(one.log_bytes for one in overview(lake).health.debts))
    found = works_of_writes(lake)
    counted = log_debt_after(found, debts[-1])
    assert [debt for work, debt in zip(found, counted, strict=True) if work.kind == "deltacommit"][:2] == debts[:2]
    assert next(debt for work, debt in zip(found, counted, strict=True) if work.kind == "compaction") == 0
    assert counted[-1] == debts[-1] > 0


def works_of_writes(lake: Lake) -> Sequence[InstantWork]:
    return load_works(lake.handle(), timeline_of(lake.handle()).completed_writes())


def waiting(lake: Lake, env: FakeEnv | SystemEnv) -> tuple[Waiting, ...]:
    handle = load_handle(lake.storage, env)
    timeline = timeline_of(handle)
    return load_waiting(
        handle, resolve(lake.options), timeline, FolderView(handle.storage, timeline).load().slices_at()
    )


@VERSIONS
def test_a_plan_that_waits_says_its_groups_bytes_and_remedy(version: int) -> None:
    lake = logged_lake(version)
    lake.upsert(row("a"), row("b", part="q"))
    lake.upsert(row("a", "new", 2))
    lake.table.services.schedule_compaction()
    (plan,) = waiting(lake, SystemEnv())
    assert (plan.is_plan, plan.verdict, plan.groups) == (True, "planned", 1)
    assert plan.size_bytes > 0
    assert plan.remedy == f"hoodie compact {lake.uri}"
    assert not plan.has_failed


def test_a_heartbeat_tells_running_writes_from_dead_ones() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    handle = lake.handle()
    to_inflight(
        handle.storage, handle.profile, create_requested(handle.storage, handle.profile, "20260102040000000", "commit")
    )
    assert waiting(lake, SystemEnv())[0].verdict == "stuck"
    handle.storage.put(heartbeat_path("20260102040000000"), b"")
    (alive,) = waiting(lake, SystemEnv())
    assert (alive.verdict, alive.has_failed) == ("running", False)
    assert alive.silent_s is not None
    env = FakeEnv(start=SystemEnv().now() + timedelta(minutes=4))
    (dead,) = waiting(lake, env)
    assert (dead.verdict, dead.has_failed) == ("dead", True)
    assert dead.remedy.endswith(f"hoodie rollback {lake.uri} 20260102040000000")


def test_a_young_write_without_a_heartbeat_may_run_or_be_dead() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    handle = lake.handle()
    env = FakeEnv(start=SystemEnv().now())
    instant = "20260102040000000"
    create_requested(handle.storage, handle.profile, instant, "commit")
    early = FakeEnv(start=env.now().replace(year=2026, month=1, day=2, hour=4, minute=10))
    assert waiting(lake, early)[0].verdict == "unknown"


def test_file_groups_of_a_partition_have_old_versions_and_pending_compactions() -> None:
    lake = logged_lake(9)
    lake.upsert(row("a"), row("b", part="q"))
    lake.upsert(row("a", "new", 2))
    lake.table.services.compact()
    lake.upsert(row("a", "newer", 3))
    lake.table.services.schedule_compaction()
    handle = lake.handle()
    view = FolderView(handle.storage, timeline_of(handle)).load()
    (group,) = group_sizes(view, "p")
    assert (group.log_files, group.old_versions) == (1, 1)
    assert min(group.base_bytes, group.log_bytes, group.old_bytes) > 0
    assert group.compaction == timeline_of(handle).pending()[0].requested
    assert tuple(group_sizes(view, "nowhere")) == ()


def test_an_overview_of_a_view_opens_no_data_file() -> None:
    lake = Lake()
    lake.upsert(row("a"), row("b", part="q"))
    handle = lake.handle()
    view = FolderView(handle.storage, timeline_of(handle)).load()
    found = overview_of(handle, resolve({}), view)
    assert not found.is_examined
    assert overview(lake).is_examined
    assert found.health.partitions == overview(lake).health.partitions
