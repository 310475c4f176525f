"""Locks on an object store: leases that are only ever replaced conditionally, as Hudi's storage-based lock provider
keeps them, so that such a Hudi writer and we exclude each other. The rules are those of `hoodie.storage.lease`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from hoodie.storage.lease import held_lease


@dataclass(frozen=True, slots=True)
class StorageBasedLocks:
    """The lease `.hoodie/.locks/table_lock.json` of a table, and `<scope>.json` beside it, which goes at the end."""

    storage: Any

    def acquire(self, what: str, scope: str = "") -> AbstractContextManager[None]:
        """The lease, held inside the block; see `LockProvider`."""
        return held_lease(self.storage, what, self.storage.env, scope=scope)
