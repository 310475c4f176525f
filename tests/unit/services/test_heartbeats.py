"""Failed-write policies and signs of life."""

from __future__ import annotations

import os
import threading
import time
from datetime import timedelta

import pytest
from undo_world import BEFORE, ENGINE, last_delta, paths, rows_of, small_table

from hoodie.config import resolve
from hoodie.errors import Fenced, Unavailable
from hoodie.services.rollback.failed_writes import roll_back_expired_writes, roll_back_failed_writes
from hoodie.spec import V9, State
from hoodie.state.handle import TableHandle
from hoodie.storage import MemoryStorage
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.env import FakeEnv
from hoodie.testing.hand_logs import at
from hoodie.transaction.heartbeat import (
    Heartbeat,
    HeartbeatRule,
    heartbeat_path,
    holding_heartbeat,
    is_expired,
    load_beater,
)

POLICY = "hoodie.clean.failed.writes.policy"
LAZY = resolve({POLICY: "LAZY"})
QUICK = resolve({POLICY: "LAZY", "hoodie.client.heartbeat.interval_in_ms": "5"})
RULE = HeartbeatRule()


def beating() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "hoodie-heartbeat"]


def test_write_beats_while_it_runs_and_leaves_nothing():
    table = small_table(V9)
    with holding_heartbeat(table.handle, at(3), QUICK) as beat:
        assert beat is not None
        first = table.storage.head(heartbeat_path(at(3))).modified_ms
        deadline = time.monotonic() + 10
        while table.storage.head(heartbeat_path(at(3))).modified_ms == first and time.monotonic() < deadline:
            time.sleep(0.005)
        assert table.storage.head(heartbeat_path(at(3))).modified_ms > first
        who = load_beater(table.storage, at(3))
        assert who is not None
        assert (who.process, who.operation) == (os.getpid(), "write")
        assert not is_expired(table.storage, at(3), RULE, table.handle.env)
        beat.ensure_alive()
    assert beating() == []
    assert heartbeat_path(at(3)) not in paths(table.storage)


def test_thread_ends_when_the_write_fails():
    table = small_table(V9)
    with pytest.raises(KeyError), holding_heartbeat(table.handle, at(3), QUICK):
        raise KeyError
    assert beating() == []
    assert heartbeat_path(at(3)) not in paths(table.storage)


def test_other_policies_have_no_heartbeat():
    table = small_table(V9)
    for policy in ("EAGER", "NEVER"):
        with holding_heartbeat(table.handle, at(3), resolve({POLICY: policy})) as beat:
            assert beat is None
            assert heartbeat_path(at(3)) not in paths(table.storage)


def test_write_that_stalled_too_long_is_fenced():
    env, storage = FakeEnv(), MemoryStorage("stalled")
    beat = Heartbeat(storage, env, at(3), HeartbeatRule(1000, 2))
    beat.start()
    env.advance(timedelta(milliseconds=2990))
    beat.ensure_alive()
    env.advance(timedelta(milliseconds=20))
    with pytest.raises(Fenced, match="no sign of life"):
        beat.ensure_alive()
    beat.stop()


def test_storage_that_fails_for_a_while_does_not_end_the_beating():
    table = small_table(V9)
    failing = CountingStorage(table.storage, fail_at=2, failure=Unavailable("for a while"))
    handle = TableHandle(failing, table.config, table.profile, table.handle.env)
    with holding_heartbeat(handle, at(3), QUICK):
        deadline = time.monotonic() + 10
        while failing.count < 4 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert failing.count >= 4


def failed(version_profile):
    table = small_table(version_profile)
    last_delta(table, State.INFLIGHT)
    return table


def test_lazy_policy_leaves_failed_writes_to_the_cleaner_and_living_ones_alone(profile):
    table = failed(profile)
    table.storage.put(heartbeat_path(at(3)), b"")
    assert len(roll_back_failed_writes(table.handle, ENGINE, config=LAZY).pending()) == 1
    assert len(roll_back_expired_writes(table.handle, ENGINE, LAZY).pending()) == 1
    table.storage.delete(heartbeat_path(at(3)))
    assert roll_back_expired_writes(table.handle, ENGINE, LAZY).pending() == ()
    assert rows_of(table) == BEFORE


def test_expired_heartbeat_goes_with_its_write(profile):
    table = failed(profile)
    table.storage.put(heartbeat_path(at(3)), b"")
    time.sleep(0.02)
    quick = resolve({POLICY: "LAZY", "hoodie.client.heartbeat.interval_in_ms": "5"})
    assert roll_back_expired_writes(table.handle, ENGINE, quick).pending() == ()
    assert not [path for path in paths(table.storage) if ".heartbeat" in path]


def test_eager_policy_has_nothing_for_the_cleaner(profile):
    table = failed(profile)
    assert len(roll_back_expired_writes(table.handle, ENGINE, resolve({})).pending()) == 1


def test_never_policy_leaves_failed_writes(profile):
    table = failed(profile)
    before = paths(table.storage)
    assert len(roll_back_failed_writes(table.handle, ENGINE, config=resolve({POLICY: "NEVER"})).pending()) == 1
    assert paths(table.storage) == before
