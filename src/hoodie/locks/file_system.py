"""Locks on a POSIX file system: `flock` on files in `.hoodie/.locks`, which end with the process (`storage.flock`).

The file says who holds it (`storage.lock_holder`). Who waits for it holds the file `waiting.flock` beside it, one
process at a time; a process that comes then, or comes again, lets that one pass, for a second at most: a waiter that
was stopped holds nobody up for longer.

The file is removed when the lock is given back, with those of scopes that dead holders left, and so are the folders
that are empty then: what is no table does not look like one. The base itself stays where it was there before, and may
stay, empty, where two did this at the same time.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from hoodie.errors import Conflict
from hoodie.locks.lock_provider import EndsWithProcess, Held
from hoodie.locks.waiting import AT_ONCE, Patience, in_line
from hoodie.storage import LocalStorage, translated
from hoodie.storage.flock import (
    SUFFIX,
    give_back,
    load_content,
    locks_folders,
    remove_free_locks,
    store_content,
    take_lock,
)
from hoodie.storage.lock_holder import LockHolder, encode_holder, has_ended, in_words, parse_holder, this_holder

_HELD = (errno.EWOULDBLOCK,)
_WRITER = "writer"
_WAITING = "waiting"
_LONGEST_PAUSE_S = 0.02
_POLITE_S = 1.0


@dataclass(frozen=True, slots=True)
class FileSystemLocks:
    """The file `writer.flock` of a table, and `<scope>.flock`."""

    storage: LocalStorage

    @contextmanager
    def acquire(self, what: str, scope: str = "", patience: Patience = AT_ONCE) -> Iterator[Held]:
        """The lock, held inside the block; see `LockProvider`. Files that dead writers left go, a day old."""
        base = self.storage.base
        folder = os.path.join(base, ".hoodie")
        self.storage.ensure_own(".hoodie/.locks/any")
        was_there = os.path.lexists(folder) or not os.path.lexists(base)
        own = os.path.join(folder, ".locks", f"{scope or _WRITER}{SUFFIX}")
        lock = self._taken(own, folder, what, patience)
        stays = not (scope or locks_folders(folder))
        if not scope:
            self.storage.remove_stale_temps(folder)
        try:
            yield EndsWithProcess()
        finally:
            if give_back(lock, own, stays=stays):
                self._tidy(folder, with_base=was_there)

    def holders(self, scope: str = "") -> tuple[LockHolder | None, ...]:
        """See `TellsHolders`. To look whether the file is locked would lock it: what tells is whether the process that
        it names runs, which is known of this machine alone.
        """
        own = os.path.join(self.storage.base, ".hoodie", ".locks", f"{scope or _WRITER}{SUFFIX}")
        holder = parse_holder(load_content(own))
        return () if holder is None or has_ended(holder) else (holder,)

    def _taken(self, own: str, folder: str, what: str, patience: Patience) -> int:
        holder = encode_holder(this_holder(what))
        place = _Place(os.path.join(folder, ".locks", f"{_WAITING}{SUFFIX}"), patience)

        def attempt() -> int:
            with translated("lock", folder, writes=True):
                place.let_pass(self._held_by_another(own, what))
                try:
                    lock = take_lock(own)
                except OSError as error:
                    if error.errno not in _HELD:
                        raise
                    place.take()
                    raise self._held_by_another(own, what) from error
                store_content(lock, holder)
                return lock

        try:
            return in_line(own, patience, _LONGEST_PAUSE_S, attempt)
        finally:
            place.leave()

    def _held_by_another(self, own: str, what: str) -> Conflict:
        holder = parse_holder(load_content(own))
        return Conflict(
            f"Another writer holds {self.storage.base}{in_words(holder)}, so {what} cannot start",
            remedy="Retry when it has finished, or wait for longer (hoodie.write.lock.wait_time_ms)",
            path=self.storage.base,
            holder=holder,
        )

    def _tidy(self, folder: str, *, with_base: bool) -> None:
        locks = os.path.join(folder, ".locks")
        remove_free_locks(locks, _WRITER + SUFFIX)
        with suppress(OSError):
            os.rmdir(locks)
            os.rmdir(folder)
            if with_base and not os.path.islink(self.storage.base):
                os.rmdir(self.storage.base)


@dataclass(slots=True)
class _Place:
    """The place of a process in front of a lock that is held: the lock `path`, which one waiter holds at a time."""

    path: str
    patience: Patience
    own: int | None = None
    met_s: float | None = None

    def let_pass(self, refusal: Conflict) -> None:
        """Raises `refusal` while another process waits that was here before, for so long as is polite."""
        if self.own is not None or not self.patience.waits or not os.path.lexists(self.path):
            return
        now_s = self.patience.env.monotonic()
        self.met_s = now_s if self.met_s is None else self.met_s
        if now_s - self.met_s < _POLITE_S:
            self.take()
            if self.own is None:
                raise refusal

    def take(self) -> None:
        """The place is this process's now, unless another has it, or nobody waits here."""
        if self.own is None and self.patience.waits:
            try:
                self.own = take_lock(self.path)
            except OSError as error:
                if error.errno not in _HELD:
                    raise

    def leave(self) -> None:
        if self.own is not None:
            give_back(self.own, self.path)
