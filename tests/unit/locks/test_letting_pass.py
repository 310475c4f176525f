"""A process that has work without end leaves the lease of an object store to others now and then."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from obstore.store import MemoryStore

from hoodie.errors import Conflict
from hoodie.locks import letting_pass
from hoodie.locks.letting_pass import ALONE_S, BESIDE_OTHERS_S, GAP_S, SEEN_S
from hoodie.locks.storage_based import StorageBasedLocks
from hoodie.locks.waiting import Patience
from hoodie.storage import object as object_module
from hoodie.storage.lease import LEASE_PATH, Lease, encode_lease
from hoodie.storage.object import ObjectStorage
from hoodie.testing.env import FakeEnv

HELD_S = 0.25


class Writer:
    """Holds the lock of one table again and again, each time for a moment."""

    def __init__(self) -> None:
        self.env = FakeEnv()
        self.storage = ObjectStorage(f"s3://bucket/{uuid.uuid4().hex}", env=self.env)
        self.locks = StorageBasedLocks(self.storage)

    def write(self, times: int, wait_ms: int = 60_000) -> None:
        for _ in range(times):
            with self.locks.acquire("upsert", patience=Patience(self.env, wait_ms)):
                self.env.advance(timedelta(seconds=HELD_S))

    def leave_to_another(self) -> None:
        """Another has held the lock and given it back."""
        version = self.storage.read_version(LEASE_PATH)[1]
        self.storage.replace_version(LEASE_PATH, encode_lease(Lease(0, True, "another")), version)


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Writer:
    store = MemoryStore()
    monkeypatch.setattr(object_module, "open_store", lambda location, options: store)
    writer = Writer()
    writer.write(1)
    return writer


def test_alone_it_leaves_a_gap_in_a_minute(writer: Writer) -> None:
    writer.write(round(0.9 * ALONE_S / HELD_S))
    assert writer.env.sleeps == []
    writer.write(round(2 * ALONE_S / HELD_S))
    assert writer.env.sleeps == [pytest.approx(GAP_S, abs=0.1)] * 2


def test_beside_others_it_leaves_one_each_second_until_they_were_not_seen_for_a_minute(writer: Writer) -> None:
    writer.leave_to_another()
    writer.write(round(3 * BESIDE_OTHERS_S / HELD_S) + 1)
    assert writer.env.sleeps == [pytest.approx(GAP_S, abs=0.1)] * 3
    writer.env.advance(timedelta(minutes=2))
    writer.env.sleeps.clear()
    writer.write(round(3 * BESIDE_OTHERS_S / HELD_S) + 1)
    assert writer.env.sleeps == []


def test_who_is_refused_has_seen_another(writer: Writer) -> None:
    held = Lease(int(writer.env.now().timestamp() * 1000) + 1000, False, "another")
    version = writer.storage.read_version(LEASE_PATH)[1]
    version = writer.storage.replace_version(LEASE_PATH, encode_lease(held), version)
    with pytest.raises(Conflict, match="another"):
        writer.write(1, wait_ms=0)
    writer.storage.replace_version(LEASE_PATH, encode_lease(Lease(0, True, "another")), version)
    writer.write(round(BESIDE_OTHERS_S / HELD_S) + 1)
    assert len(writer.env.sleeps) == 1


def test_a_gap_that_comes_by_itself_counts(writer: Writer) -> None:
    writer.leave_to_another()
    for _ in range(20):
        writer.write(2)
        writer.env.advance(timedelta(seconds=GAP_S))
    assert writer.env.sleeps == []


def test_who_does_not_wait_is_not_held_up(writer: Writer) -> None:
    writer.leave_to_another()
    writer.write(20, wait_ms=0)
    assert writer.env.sleeps == []
    writer.write(1, wait_ms=100)
    assert writer.env.sleeps == [pytest.approx(0.1)]


def test_locks_that_nobody_takes_any_more_are_forgotten_and_one_that_is_held_is_not(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letting_pass, "_turns", {})
    patience = Patience(writer.env, 60_000)
    letting_pass.note_taken("held", patience, "me", "")
    for number in range(20):
        letting_pass.note_taken(f"plan-{number}", patience, "me", "")
        letting_pass.note_given_back(f"plan-{number}", patience)
        writer.env.advance(timedelta(seconds=SEEN_S / 2))
    assert set(letting_pass._turns) == {"held", "plan-17", "plan-18", "plan-19"}
