"""What a provider of locks promises to those who change a table.

1. One at a time: of all processes and threads that ask the same provider for the same scope of the same table, at most
   one is inside the block.
2. Scopes are names of pieces of work (a plan that is carried out); the empty one is the table itself. Holders of
   different scopes do not exclude each other.
3. `acquire` waits as long as its caller's patience says; threads of one process get the lock in the order they came,
   and nobody who waits is passed over for ever. A refusal says who holds it, where that is known. A provider may be
   asked by any thread.
4. A holder that dies lets go: at once where the system ends locks with the process, else when its lease has run out.
   A holder that stalls may lose its lock where it is a lease. Then its `Held` says so, and so does every storage that
   is used under it (`Held.fenced`); no other holder hears of it. Commits do not rest on the lock alone.
5. Nothing is left behind by a lock that was given back, but for the one file that Hudi's own provider leaves.

Implemented by the modules of this package, and by storages around others in tests (`HasLocks`). The contract is the
class `LockProviderContract` in `hoodie.testing`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from hoodie.locks.waiting import AT_ONCE, Patience
from hoodie.storage.lock_holder import LockHolder

S = TypeVar("S")


class Held(Protocol):
    """A lock while it is held. May be asked by any thread of its process; once it was given back it says no more."""

    def ensure_held(self) -> None:
        """Raises `Fenced` when the lock was lost, or may have been: what was not done yet must not be done."""
        ...

    def fenced(self, storage: S) -> S:
        """The storage as it is used under this lock: it asks before it deletes, or makes an instant."""
        ...


class LockProvider(Protocol):
    """Locks of one table."""

    def acquire(self, what: str, scope: str = "", patience: Patience = AT_ONCE) -> AbstractContextManager[Held]:
        """The lock, held inside the block. `what` is being done, for the message of who has to give way.

        Raises:
            Conflict: another holds it, for longer than the caller is patient. Unavailable: the storage does not answer.
        """
        ...


@runtime_checkable
class TellsHolders(Protocol):
    """A provider that can say who holds a lock, without taking it."""

    def holders(self, scope: str = "") -> tuple[LockHolder | None, ...]:
        """Who holds the lock, then who waits for it where that can be told, in their order; None stands for somebody
        who does not say who it is. Nobody holds it: empty. What is told may be over.

        Raises:
            Unavailable: the provider does not answer.
        """
        ...


@runtime_checkable
class HasLocks(Protocol):
    """A storage that says itself who keeps its writers apart, because it stands around another."""

    def lock_provider(self) -> LockProvider: ...


@dataclass(frozen=True, slots=True)
class EndsWithProcess:
    """A lock that is not lost while its holder lives: a `Held` that has nothing to say."""

    def ensure_held(self) -> None:
        """See `Held`."""

    def fenced(self, storage: S) -> S:
        """See `Held`."""
        return storage
