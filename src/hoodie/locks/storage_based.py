"""Locks on an object store: leases that are only ever replaced conditionally, as Hudi's storage-based lock provider
keeps them, so that such a Hudi writer and we exclude each other. The rules are those of `hoodie.storage.lease`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from hoodie.errors import Conflict
from hoodie.locks.letting_pass import let_pass, note_given_back, note_refused, note_taken
from hoodie.locks.lock_provider import Held
from hoodie.locks.waiting import AT_ONCE, Patience, in_line
from hoodie.storage.fence import with_fence
from hoodie.storage.lease import HeldLease, VersionedStorage, held_lease, lease_holders
from hoodie.storage.lock_holder import LockHolder

S = TypeVar("S")

_LONGEST_PAUSE_S = 1.0
"""Each look is a request, and Hudi's writers look as often. `letting_pass` rests on it."""


@dataclass(frozen=True, slots=True)
class StorageBasedLocks:
    """The lease `.hoodie/.locks/table_lock.json` of a table, and `<scope>.json` beside it, which goes at the end."""

    storage: VersionedStorage

    @contextmanager
    def acquire(self, what: str, scope: str = "", patience: Patience = AT_ONCE) -> Iterator[Held]:
        """The lease, held inside the block; see `LockProvider`."""
        lock = self.storage.absolute(scope)
        with ExitStack() as after, ExitStack() as block:

            def attempt() -> HeldLease:
                let_pass(lock, patience)
                try:
                    return block.enter_context(held_lease(self.storage, what, self.storage.env, scope=scope))
                except Conflict as conflict:
                    note_refused(lock, patience, conflict)
                    raise

            lease = in_line(("lease", lock), patience, _LONGEST_PAUSE_S, attempt)
            note_taken(lock, patience, lease.owner, lease.before)
            after.callback(note_given_back, lock, patience)
            yield _Leased(lease)

    def holders(self, scope: str = "") -> tuple[LockHolder | None, ...]:
        """See `TellsHolders`: one request."""
        return lease_holders(self.storage, self.storage.env, scope)


@dataclass(frozen=True, slots=True)
class _Leased:
    lease: HeldLease

    def ensure_held(self) -> None:
        """See `Held`."""
        self.lease.ensure_held()

    def fenced(self, storage: S) -> S:
        """See `Held`."""
        return with_fence(storage, self.lease)
