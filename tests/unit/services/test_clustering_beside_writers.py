"""Clusterings and base-file compactions in a thread of the writer's process, and what they do beside its writes."""

from __future__ import annotations

import threading

import pytest

from hoodie.errors import Conflict, Unavailable
from hoodie.services.background import BACKGROUND, BackgroundWork
from hoodie.testing.lake import Lake, row

MANY_FILES = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
    "hoodie.write.lock.wait_time_ms": "30000",
}
ASYNC = {"hoodie.clustering.async.enabled": "true", "hoodie.clustering.async.max.commits": "3"}
BASE_FILES = {
    "hoodie.base.file.compaction.async.enabled": "true",
    "hoodie.base.file.compaction.inline.max.commits": "3",
}


def filled(lake, count, name="k"):
    for n in range(count):
        lake.write("insert", [row(f"{name}{n}{m}") for m in range(3)])
        assert BACKGROUND.wait(lake.storage.uri, 30)


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("asked", [ASYNC, BASE_FILES], ids=["clustering", "base files"])
def test_small_files_are_joined_in_a_thread_every_third_commit(version, asked):
    lake = Lake(version, {**MANY_FILES, **asked})
    filled(lake, 3)
    done = [one.operation_type for one in lake.commits()]
    assert done.count("CLUSTER") == 1
    assert len(lake.table.files()) == 1
    filled(lake, 3, "m")
    assert [one.operation_type for one in lake.commits()].count("CLUSTER") == 2
    assert len(lake.rows()) == 18
    lake.ensure_sound()


def test_a_write_goes_on_while_a_clustering_runs_beside_it():
    lake = Lake(9, {**MANY_FILES, **ASYNC})
    begun, goes_on = threading.Event(), threading.Event()
    assert BACKGROUND.submit(lake.storage.uri, "a test", lambda: (begun.set(), goes_on.wait(30)))
    assert begun.wait(30)
    for n in range(4):
        lake.write("insert", [row(f"a{n}")])
    (plan,) = lake.table.timeline().pending()
    lake.write("insert", [row("b")])
    with pytest.raises(Conflict, match=plan.requested):
        lake.upsert(row("a0", "mine", 9))
    goes_on.set()
    assert BACKGROUND.wait(lake.storage.uri, 30)
    assert lake.table.timeline().pending() == ()
    lake.upsert(row("a0", "mine", 9))
    assert lake.values()["a0"] == "mine"


def test_a_plan_that_a_dead_process_left_is_handed_over_again():
    lake = Lake(9, MANY_FILES)
    filled(lake, 2)
    plan = lake.table.services.cluster(op="schedule")
    lake.write("insert", [row("x")], ASYNC)
    assert BACKGROUND.wait(lake.storage.uri, 30)
    assert lake.table.timeline().find(plan.instant).is_completed


def test_one_process_plans_and_another_carries_out():
    lake = Lake(9, {**MANY_FILES, "hoodie.clustering.schedule.inline": "true"})
    filled(lake, 4)
    (plan,) = lake.table.timeline().pending()
    assert lake.table.services.cluster(op="execute").instant == plan.requested


def test_calls_of_a_name_are_not_piled_up_and_errors_are_told(caplog):
    work, goes_on = BackgroundWork(), threading.Event()
    assert work.submit("t", "cluster", lambda: goes_on.wait(30))
    assert not work.submit("t", "cluster", lambda: None)
    assert not work.wait("t", 0)

    def failing(error):
        raise error

    assert work.submit("t", "other", lambda: failing(Unavailable("the store is gone", remedy="wait")))
    goes_on.set()
    assert work.wait("t", 30)
    assert "the store is gone" in caplog.text
    assert work.submit("t", "cluster", lambda: failing(RuntimeError("odd")))
    assert work.wait("t", 30)
    assert "odd" in caplog.text
