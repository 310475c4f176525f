"""What every party of a commit must do. Test modules subclass it and say how the party is made and what readers see."""

from __future__ import annotations

import pytest

from hoodie.testing.hand_write import HandWrite
from hoodie.testing.lake import Lake
from hoodie.transaction import Participant, PendingCommit


class ParticipantContract:
    """Subclass it with `make_participant`, `is_counted` and a fixture `lake`: a table with one row in partition `p`."""

    def make_participant(self, lake: Lake) -> Participant:
        raise NotImplementedError

    def is_counted(self, lake: Lake, path: str) -> bool:
        """Whether readers that ask the party hear of the data file."""
        raise NotImplementedError

    @pytest.fixture
    def written(self, lake: Lake) -> HandWrite:
        """A write that is inflight, with one file."""
        write = HandWrite(lake.handle())
        write.begin()
        write.write_file("q")
        return write

    def pending(self, write: HandWrite) -> PendingCommit:
        assert write.inflight is not None
        return PendingCommit(write.handle, write.inflight, write.outcome, write.planned_on)

    def test_what_is_prepared_counts_once_the_instant_is_completed(self, lake: Lake, written: HandWrite) -> None:
        (path,) = written.outcome.files
        participant = self.make_participant(lake)
        participant.prepare(self.pending(written))
        assert not self.is_counted(lake, path)
        written.commit((participant,))  # prepares it again
        assert self.is_counted(lake, path)

    def test_what_was_withdrawn_never_counts(self, lake: Lake, written: HandWrite) -> None:
        (path,) = written.outcome.files
        participant = self.make_participant(lake)
        pending = self.pending(written)
        participant.prepare(pending)
        for _ in range(2):
            handle = participant.withdraw(written.handle, pending.inflight)
            assert handle.config == written.handle.config
        written.commit()
        assert not self.is_counted(lake, path)

    def test_nothing_may_have_been_prepared(self, lake: Lake, written: HandWrite) -> None:
        participant = self.make_participant(lake)
        before = lake.files()
        participant.withdraw(written.handle, self.pending(written).inflight)
        assert lake.files() == before
