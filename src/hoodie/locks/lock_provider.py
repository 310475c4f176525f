"""What a provider of locks promises to those who change a table.

1. One at a time: of all processes and threads that ask the same provider for the same scope of the same table, at most
   one is inside the block.
2. Scopes are names of pieces of work (a plan that is carried out); the empty one is the table itself. Holders of
   different scopes do not exclude each other.
3. `acquire` never waits; who wants to waits with `held_within`. A provider may be asked by any thread.
4. A holder that dies lets go: at once where the system ends locks with the process, else when its lease has run out.
   A lock is not a fence: a holder that stalls may lose it, which `hoodie.storage.lease.ensure_held` tells where it can
   happen. Commits do not rest on it alone.
5. Nothing is left behind by a lock that was given back, but for the one file that Hudi's own provider leaves.

Implemented by the modules of this package, and by storages around others in tests (`HasLocks`). The contract is the
class `LockProviderContract` in `hoodie.testing`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable


class LockProvider(Protocol):
    """Locks of one table."""

    def acquire(self, what: str, scope: str = "") -> AbstractContextManager[None]:
        """The lock, held inside the block. `what` is being done, for the message of who has to give way.

        Raises:
            Conflict: another holds it. Unavailable: the storage does not answer.
        """
        ...


@runtime_checkable
class HasLocks(Protocol):
    """A storage that says itself who keeps its writers apart, because it stands around another."""

    def lock_provider(self) -> LockProvider: ...
