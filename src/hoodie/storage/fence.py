"""Fences: what a storage asks before a step that cannot be taken back, when it is used under a lock that can be lost.

1. A fence belongs to one lock that is held, and goes with the storage value that is used under it (`with_fence`): into
   the handle, and the threads that work for it. Who uses the same table under another lock has another value.
2. Several may stand: a plan's lock, and the table's while the plan completes. All are asked.
3. Pickles carry none: what works in another process was told before it was sent (`ensure_held`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, Self, TypeVar, runtime_checkable

S = TypeVar("S")


class Fence(Protocol):
    """A lock that is held, as a storage sees it. May be asked by any thread."""

    deletes_own: bool
    """What is deleted now was made by the holder, who may do that whoever holds the table."""

    reopens: bool
    """What is done now makes a write of the holder pending again, which anybody may roll back."""

    @property
    def is_over(self) -> bool:
        """Whether the lock was given back: it stands in nobody's way any more."""
        ...

    def ensure_held(self, *, to_delete: bool = False) -> None:
        """Raises `Fenced` when the lock was lost, or may have been, and the step is none of the holder's own
        (`is_own_step`). `to_delete`: for a deletion.
        """
        ...

    def keeps(self, path: str) -> bool:
        """Whether a file that is to be deleted is the lock itself, which goes when it is given back instead."""
        ...


@runtime_checkable
class HasFences(Protocol):
    """A storage that asks fences, or stands around one that does."""

    @property
    def fences(self) -> tuple[Fence, ...]: ...

    def with_fence(self, fence: Fence) -> Self:
        """The same storage, which asks `fence`, too. Fences of locks that are over are left out."""
        ...


def with_fence(storage: S, fence: Fence) -> S:
    """The storage as it is used under the lock of `fence`; itself where storages of its kind ask no fences."""
    return storage.with_fence(fence) if isinstance(storage, HasFences) else storage


def ensure_held(storage: object) -> None:
    """Asks all locks under which this storage value is used.

    Raises:
        Fenced: one was lost, or may have been; what was not done yet must not be done.
    """
    for fence in _fences_of(storage):
        fence.ensure_held()


@contextmanager
def deleting_own(storage: object) -> Iterator[None]:
    """Inside the block what is deleted was made by the holder of the locks, who may do that though it has lost them."""
    fences = _fences_of(storage)
    try:
        for fence in fences:
            fence.deletes_own = True
        yield
    finally:
        for fence in fences:
            fence.deletes_own = False


@contextmanager
def reopening(storage: object) -> Iterator[None]:
    """Inside the block the holder of the locks makes a write of its own pending again, whoever has them by now."""
    fences = _fences_of(storage)
    try:
        for fence in fences:
            fence.reopens = True
        yield
    finally:
        for fence in fences:
            fence.reopens = False


def is_own_step(fence: Fence, *, to_delete: bool) -> bool:
    """Whether the holder of a lock may do what it is about to do though the lock is lost."""
    return fence.reopens or (to_delete and fence.deletes_own)


def _fences_of(storage: object) -> tuple[Fence, ...]:
    return storage.fences if isinstance(storage, HasFences) else ()
