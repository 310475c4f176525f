"""Storages on which locks keep nobody out, as leases that were lost, with and without their holder knowing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from hoodie.errors import Fenced
from hoodie.locks.lock_provider import EndsWithProcess
from hoodie.storage import Storage
from hoodie.storage.fence import Fence, is_own_step, with_fence
from hoodie.testing.counting_storage import Call, CountedOutput, CountingStorage

S = TypeVar("S")


class UnlockedStorage(CountingStorage):
    """Counts calls, and lets everybody have every lock at once."""

    @contextmanager
    def locked(self, what: Any, scope: Any, patience: Any) -> Iterator[EndsWithProcess]:
        """A lock that never says that it is lost."""
        del what, scope, patience
        yield EndsWithProcess()


class LosingStorage(CountingStorage):
    """The same, but for locks that are held when somebody sets `losses` up: the call at which that happens goes
    through, as a request that is under way; each later one that changes something is refused.
    """

    own: tuple[Fence, ...] = ()

    def __init__(self, inner: Storage, losses: list[str], on_call: Callable[[Call], None]) -> None:
        super().__init__(inner, on_call=on_call)
        self.losses = losses

    @property
    def fences(self) -> tuple[Fence, ...]:
        return self.own

    def with_fence(self, fence: Fence) -> CountingStorage:
        other = self.beside(self.inner)
        other.__dict__["own"] = (*self.own, fence)
        return other

    @contextmanager
    def locked(self, what: Any, scope: Any, patience: Any) -> Iterator[LosableLock]:
        del what, scope, patience
        lock = LosableLock(self.losses, len(self.losses))
        try:
            yield lock
        finally:
            lock.is_over = True

    def create(self, path: str, data: bytes) -> None:
        self._ask()
        super().create(path, data)

    def put(self, path: str, data: bytes) -> None:
        self._ask()
        super().put(path, data)

    def delete(self, path: str) -> bool:
        self._ask(to_delete=True)
        return super().delete(path)

    def open_output(self, path: str) -> CountedOutput:
        self._ask()
        return super().open_output(path)

    def _ask(self, *, to_delete: bool = False) -> None:
        for fence in self.own:
            fence.ensure_held(to_delete=to_delete)


@dataclass(slots=True, eq=False)
class LosableLock:
    """A lock that says that it is lost once there are more `losses` than when it was taken."""

    losses: list[str]
    known: int
    is_over: bool = False
    deletes_own: bool = False
    reopens: bool = False

    def ensure_held(self, *, to_delete: bool = False) -> None:
        """See `Held` and `Fence`."""
        if len(self.losses) > self.known and not (self.is_over or is_own_step(self, to_delete=to_delete)):
            raise Fenced("The lease could not be extended", remedy="Read the table again and repeat what you did")

    def keeps(self, path: str) -> bool:
        """See `Fence`."""
        del path
        return False

    def fenced(self, storage: S) -> S:
        """See `Held`."""
        return with_fence(storage, self)
