"""Plans that are taken off, put back or rewritten at their instant: a kept view follows them as a fresh one does."""

from __future__ import annotations

import pytest

from hoodie.engine import LocalEngine
from hoodie.server.kept_view import KeptView, load_into, open_view, synced
from hoodie.services.compaction.admin import unschedule_compaction
from hoodie.spec import COMPACTION, Instant, State
from hoodie.state.handle import load_handle
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lake import Awake, Lake, logged_lake, row
from hoodie.testing.view_law import ensure_view_is_kept
from hoodie.timeline import instant_path


@pytest.fixture(params=[False, True], ids=["folders", "metadata"])
def lake(request: pytest.FixtureRequest, version: int) -> Lake:
    """Two partitions with a log file each."""
    made = logged_lake(version, **{"hoodie.metadata.enable": str(request.param).lower()})
    made.upsert(row("a", part="p"), row("b", part="q"))
    made.upsert(row("a", "log", ts=2, part="p"), row("b", "log", ts=2, part="q"))
    return made


def opened(lake: Lake) -> KeptView:
    return load_into(open_view(lake.handle()), None)


def scheduled(lake: Lake) -> str:
    planned = lake.table.services.schedule_compaction()
    assert planned is not None
    return planned.requested


def taken_off(lake: Lake, planned: str) -> bytes:
    """What the plan said; as Hudi's command line takes it off, which asks nobody about log files on top of it."""
    path = instant_path(lake.handle().profile, Instant(planned, COMPACTION, State.REQUESTED))
    data = lake.storage.read(path)
    lake.storage.delete(path)
    return data


@pytest.mark.parametrize("then", ["plan", "compaction"])
def test_log_files_are_seen_again_once_their_plan_is_put_back(lake: Lake, then: str) -> None:
    planned = scheduled(lake)
    lake.upsert(row("a", "after the plan", ts=3, part="p"))
    said = taken_off(lake, planned)
    view = opened(lake)
    lake.table.services.repair_compaction()
    if lake.version > 6:
        path = instant_path(lake.handle().profile, Instant(planned, COMPACTION, State.REQUESTED))
        lake.storage.create(path, said)
    if then == "compaction":
        lake.table.services.compact()
    ensure_view_is_kept(view, lake.storage)


def test_a_plan_that_lost_a_file_group_is_read_again(lake: Lake) -> None:
    planned = scheduled(lake)
    view = opened(lake)
    (group,) = (one.group_id for one in view.groups("p").found)
    unschedule_compaction(lake.handle(), LocalEngine(1), planned, group)
    view = ensure_view_is_kept(view, lake.storage)
    assert dict(view.plans.compactions()) == dict(opened(lake).plans.compactions())
    assert group not in view.plans.compactions()


def test_a_plan_that_got_a_file_group_back_shows_its_log_files(lake: Lake) -> None:
    planned = scheduled(lake)
    path = instant_path(lake.handle().profile, Instant(planned, COMPACTION, State.REQUESTED))
    whole = lake.storage.read(path)
    (group,) = (one.group_id for one in opened(lake).groups("p").found)
    unschedule_compaction(lake.handle(), LocalEngine(1), planned, group)
    without = lake.storage.read(path)
    lake.storage.put(path, whole)
    lake.upsert(row("a", "after the plan", ts=3, part="p"))
    lake.storage.put(path, without)
    view = opened(lake)
    lake.storage.put(path, whole)
    ensure_view_is_kept(view, lake.storage)
    lake.upsert(row("b", "later", ts=4, part="q"))
    ensure_view_is_kept(view, lake.storage)


@pytest.mark.parametrize("is_planned", [False, True])
def test_a_look_that_finds_nothing_new_reads_no_plan(lake: Lake, is_planned: bool) -> None:
    if is_planned:
        scheduled(lake)
    view = opened(lake)
    counted = CountingStorage(lake.storage)
    handle = load_handle(counted, Awake())
    before = len(counted.calls)
    assert synced(view, handle) is view
    assert [call.op for call in counted.calls[before:]] == ["list_dir"]
