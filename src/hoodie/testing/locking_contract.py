"""What every way to use the table lock must do. Test modules subclass it and say how it is made."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest

from hoodie.errors import Conflict
from hoodie.locks import held_lock
from hoodie.testing.lake import Lake
from hoodie.transaction import Locking


class LockingContract:
    """Subclass it with `make_locking` and a fixture `lake`: a table with a row."""

    def make_locking(self, lake: Lake) -> AbstractContextManager[Locking]:
        raise NotImplementedError

    def ensure_locked(self, lake: Lake) -> None:
        with pytest.raises(Conflict, match="another"), held_lock(lake.storage, "another"):
            pytest.fail("two hold it")

    def test_nobody_else_begins_or_commits_at_the_same_time(self, lake: Lake) -> None:
        with self.make_locking(lake) as locking:
            with locking.to_begin() as handle:
                self.ensure_locked(lake)
            with locking.to_commit(handle) as (locked, _):
                self.ensure_locked(lake)
            assert locked.config == handle.config
            assert locked.storage.uri == lake.storage.uri
        with held_lock(lake.storage, "another"):
            pass

    def test_an_error_in_either_block_gives_the_lock_back(self, lake: Lake) -> None:
        with pytest.raises(RuntimeError, match="boom"), self.make_locking(lake) as locking, locking.to_begin():
            raise RuntimeError("boom")
        with (
            pytest.raises(RuntimeError, match="boom"),
            self.make_locking(lake) as locking,
            locking.to_commit(lake.handle()),
        ):
            raise RuntimeError("boom")
        with held_lock(lake.storage, "another"):
            pass

    def test_a_commit_rests_on_what_is_there_now(self, lake: Lake) -> None:
        """What others may have done since the action began is in the timeline that the commit is given."""
        with self.make_locking(lake) as locking:
            with locking.to_begin() as handle:
                pass
            try:
                other = lake.upsert({"id": "other", "part": "p", "ts": 1, "v": "a"}).instant
            except Conflict:
                other = ""
            with locking.to_commit(handle) as (_, seen):
                assert (seen is None) == (other == "")
                if seen is not None:
                    assert seen.is_committed(other)
