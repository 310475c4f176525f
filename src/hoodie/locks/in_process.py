"""Locks between the threads of one process, for tables that live in its memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hoodie.errors import Conflict
from hoodie.locks.lock_provider import EndsWithProcess, Held
from hoodie.locks.waiting import AT_ONCE, Patience, in_line
from hoodie.storage.lock_holder import LockHolder, in_words, this_holder

_locks: dict[tuple[str, str], threading.Lock] = {}
_holders: dict[tuple[str, str], LockHolder] = {}
_guard = threading.Lock()
_LONGEST_PAUSE_S = 0.01


@dataclass(frozen=True, slots=True)
class InProcessLocks:
    """Locks by the URI of a table."""

    uri: str

    @contextmanager
    def acquire(self, what: str, scope: str = "", patience: Patience = AT_ONCE) -> Iterator[Held]:
        """The lock, held inside the block; see `LockProvider`."""
        name = (self.uri, scope)
        with _guard:
            lock = _locks.setdefault(name, threading.Lock())

        def attempt() -> None:
            if not lock.acquire(blocking=False):
                holder = _holders.get(name)
                raise Conflict(
                    f"Another writer holds {self.uri}{in_words(holder)}, so {what} cannot start",
                    remedy="Retry when it has finished, or wait for longer (hoodie.write.lock.wait_time_ms)",
                    uri=self.uri,
                    holder=holder,
                )

        in_line(("in process", *name), patience, _LONGEST_PAUSE_S, attempt)
        _holders[name] = this_holder(what)
        try:
            yield EndsWithProcess()
        finally:
            del _holders[name]
            lock.release()

    def holders(self, scope: str = "") -> tuple[LockHolder | None, ...]:
        """See `TellsHolders`."""
        holder = _holders.get((self.uri, scope))
        return () if holder is None else (holder,)
