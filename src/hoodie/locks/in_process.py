"""Locks between the threads of one process, for tables that live in its memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hoodie.errors import Conflict
from hoodie.locks.lock_provider import EndsWithProcess, Held

_locks: dict[tuple[str, str], threading.Lock] = {}
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class InProcessLocks:
    """Locks by the URI of a table."""

    uri: str

    @contextmanager
    def acquire(self, what: str, scope: str = "") -> Iterator[Held]:
        """The lock, held inside the block; see `LockProvider`."""
        with _guard:
            lock = _locks.setdefault((self.uri, scope), threading.Lock())
        if not lock.acquire(blocking=False):
            raise Conflict(
                f"Another writer holds {self.uri}, so {what} cannot start",
                remedy="Retry when it has finished",
                uri=self.uri,
            )
        try:
            yield EndsWithProcess()
        finally:
            lock.release()
