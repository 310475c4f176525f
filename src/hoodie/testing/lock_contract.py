"""What every provider of locks must do. Test modules subclass it with a fixture `storage`, whose provider it is."""

from __future__ import annotations

import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from hoodie.errors import Conflict
from hoodie.locks import LockOptions, LockProvider, held_lock, lock_provider_of
from hoodie.locks.lock_provider import TellsHolders
from hoodie.locks.waiting import waiting_threads
from hoodie.storage import Storage
from hoodie.storage.fence import ensure_held
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.env import FakeEnv


class Elsewhere(CountingStorage):
    """A storage whose locks are in another place."""

    def __init__(self, inner: Storage, locks: LockProvider) -> None:
        super().__init__(inner)
        self.locks = locks

    def lock_provider(self) -> LockProvider:
        """See `HasLocks`."""
        return self.locks


class LockProviderContract:
    """Subclass it with a fixture `storage`: an empty storage that can be pickled."""

    def test_a_lock_is_held_by_one_at_a_time(self, storage: Storage) -> None:
        copy = pickle.loads(pickle.dumps(storage))
        with held_lock(storage, "the first write"):
            for other in (storage, copy):
                with pytest.raises(Conflict, match="the second write"), held_lock(other, "the second write"):
                    pytest.fail("two hold it")
        with held_lock(copy, "the third write"):
            pass

    def test_a_lock_ends_with_an_exception(self, storage: Storage) -> None:
        with pytest.raises(RuntimeError, match="boom"), held_lock(storage, "a write"):
            raise RuntimeError("boom")
        with held_lock(storage, "a write"):
            pass

    def test_who_holds_it_is_told_so_and_works_with_the_same_storage(self, storage: Storage) -> None:
        with held_lock(storage, "a plan", "plan_1") as plan, held_lock(storage, "a write") as held:
            fenced = held.fenced(plan.fenced(storage))
            assert isinstance(fenced, type(storage))
            assert fenced.uri == storage.uri
            held.ensure_held()
            ensure_held(fenced)
            ensure_held(pickle.loads(pickle.dumps(fenced)))
            fenced.create("x", b"x")
            assert storage.read("x") == b"x"
            assert fenced.delete("x")
        held.ensure_held()  # it says no more
        ensure_held(fenced)

    def test_who_waited_is_told_the_same(self, storage: Storage) -> None:
        with held_lock(storage, "a write", "", LockOptions(60_000), FakeEnv()) as held:
            held.ensure_held()
            assert not held.fenced(storage).delete("x")

    def test_who_asks_is_told_who_holds_it_and_takes_nothing(self, storage: Storage) -> None:
        provider = lock_provider_of(storage)
        if not isinstance(provider, TellsHolders):
            pytest.skip("this provider cannot tell who holds a lock")
        assert provider.holders() == ()
        with held_lock(storage, "a write"):
            (holder,) = provider.holders()
            assert holder is not None
            assert (holder.process, holder.operation) == (os.getpid(), "a write")
            assert provider.holders("plan_1") == ()
            with held_lock(storage, "a plan", "plan_1"):
                assert [one.operation for one in provider.holders("plan_1") if one is not None] == ["a plan"]
        assert provider.holders() == ()

    def test_scopes_do_not_exclude_each_other_and_leave_nothing_behind(self, storage: Storage) -> None:
        copy = pickle.loads(pickle.dumps(storage))
        with held_lock(storage, "a write"), held_lock(storage, "one", "plan_1"), held_lock(copy, "two", "plan_2"):
            for other in (storage, copy):
                with pytest.raises(Conflict, match="three"), held_lock(other, "three", "plan_1"):
                    pytest.fail("two hold it")
        with held_lock(copy, "four", "plan_1"):
            pass
        assert not [file.path for file in storage.list("") if "plan_" in file.path]

    def test_of_many_threads_wanting_it_exactly_one_holds_the_lock(self, storage: Storage) -> None:
        bar = threading.Barrier(8)

        def contend(_: int) -> bool:
            bar.wait()
            try:
                with held_lock(storage, "a write"):
                    bar.wait()
                    return True
            except Conflict:
                bar.wait()
                return False

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(contend, range(8))) == 1

    def test_who_waits_gets_it_when_it_is_given_back_or_hears_who_holds_it(self, storage: Storage) -> None:
        lock = held_lock(storage, "the first write")
        lock.__enter__()

        class Clock(FakeEnv):
            def sleep(self, seconds: float) -> None:
                super().sleep(seconds)
                if self.monotonic() > 1 and not given:
                    given.append(True)
                    lock.__exit__(None, None, None)

        given: list[bool] = [True]
        with (
            pytest.raises(Conflict, match=f"the first write by process {os.getpid()} on .* since 20.*the second write"),
            held_lock(storage, "the second write", "", LockOptions(500), Clock()),
        ):
            pytest.fail("two hold it")
        given.clear()
        with held_lock(storage, "the second write", "", LockOptions(60_000), Clock()):
            assert given

    def test_threads_that_wait_get_it_in_the_order_they_came(self, storage: Storage) -> None:
        order: list[int] = []
        waits = LockOptions(60_000)

        def write(number: int) -> None:
            with held_lock(storage, f"write {number}", "", waits):
                order.append(number)

        with ThreadPoolExecutor(8) as pool, held_lock(storage, "the first write"):
            for number in range(8):
                pool.submit(write, number)
                while waiting_threads() <= number:
                    time.sleep(0.001)
        assert order == list(range(8))
