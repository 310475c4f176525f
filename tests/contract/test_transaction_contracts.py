"""Parties of a commit, and ways to use the table lock, keep their promises."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest

from hoodie.errors import Conflict
from hoodie.fileview import open_file_view
from hoodie.locks import LockOptions, held_lock
from hoodie.metadata_writer import MetadataParticipant
from hoodie.state.handle import timeline_of
from hoodie.testing.env import FakeEnv
from hoodie.testing.lake import Lake, row
from hoodie.testing.locking_contract import LockingContract
from hoodie.testing.participant_contract import ParticipantContract
from hoodie.transaction import Locking, LockPolicy, Participant, TakenAtBothEnds, locking


@pytest.fixture(params=[6, 8, 9], ids=lambda version: f"v{version}")
def lake(request: pytest.FixtureRequest) -> Lake:
    made = Lake(request.param)
    made.upsert(row("a"))
    return made


class TestMetadataTable(ParticipantContract):
    def make_participant(self, lake: Lake) -> Participant:
        assert lake.handle().config.has_metadata_table
        return MetadataParticipant()

    def is_counted(self, lake: Lake, path: str) -> bool:
        handle = lake.handle()
        view = open_file_view(handle.storage, handle.config, timeline_of(handle))
        assert not view.lists_uncommitted, "the metadata table is to answer"
        found = view.files({path.rpartition("/")[0]})
        return path in {one.path for partition in found for one in partition.everything}


class TestHeldThroughout(LockingContract):
    def make_locking(self, lake: Lake) -> AbstractContextManager[Locking]:
        return locking(lake.storage, "a write", lake.handle().env, LockPolicy.THROUGHOUT)

    def test_nobody_moves_in_between(self, lake: Lake) -> None:
        with self.make_locking(lake) as lock:
            with lock.to_begin():
                pass
            self.ensure_locked(lake)


class TestTakenAtBothEnds(LockingContract):
    def make_locking(self, lake: Lake) -> AbstractContextManager[Locking]:
        return locking(lake.storage, "a write", lake.handle().env, LockPolicy.AT_BOTH_ENDS)

    def test_others_may_hold_it_in_between(self, lake: Lake) -> None:
        with self.make_locking(lake) as lock:
            with lock.to_begin():
                pass
            with held_lock(lake.storage, "another"):
                pass

    def test_who_comes_waits_as_long_as_options_say_and_to_commit_for_longer(self, lake: Lake) -> None:
        env = FakeEnv()
        lock: Locking = TakenAtBothEnds(lake.storage, env, "a write", LockOptions(500), LockOptions(2_000))
        with held_lock(lake.storage, "another"):
            with pytest.raises(Conflict, match="a write"), lock.to_begin():
                pytest.fail("two hold it")
            assert 0.5 <= sum(env.sleeps) < 1
            with pytest.raises(Conflict, match="a write"), lock.to_commit(lake.handle()):
                pytest.fail("two hold it")
            assert 2.5 <= sum(env.sleeps) < 3
