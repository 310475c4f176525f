"""Locks on a POSIX file system: `flock` on files in `.hoodie/.locks`, which end with the process (`storage.flock`).

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
from hoodie.storage import LocalStorage, translated
from hoodie.storage.flock import SUFFIX, give_back, locks_folders, remove_free_locks, take_lock

_HELD = (errno.EWOULDBLOCK,)
_WRITER = "writer"


@dataclass(frozen=True, slots=True)
class FileSystemLocks:
    """The file `writer.flock` of a table, and `<scope>.flock`."""

    storage: LocalStorage

    @contextmanager
    def acquire(self, what: str, scope: str = "") -> Iterator[Held]:
        """The lock, held inside the block; see `LockProvider`. Files that dead writers left go, a day old."""
        base = self.storage.base
        folder = os.path.join(base, ".hoodie")
        self.storage.ensure_own(".hoodie/.locks/any")
        was_there = os.path.lexists(folder) or not os.path.lexists(base)
        own = os.path.join(folder, ".locks", f"{scope or _WRITER}{SUFFIX}")
        with translated("lock", folder, writes=True):
            lock = self._taken(own, what)
        stays = not (scope or locks_folders(folder))
        if not scope:
            self.storage.remove_stale_temps(folder)
        try:
            yield EndsWithProcess()
        finally:
            if give_back(lock, own, stays=stays):
                self._tidy(folder, with_base=was_there)

    def _taken(self, own: str, what: str) -> int:
        try:
            return take_lock(own)
        except OSError as error:
            if error.errno not in _HELD:
                raise
            raise Conflict(
                f"Another writer holds {self.storage.base}, so {what} cannot start",
                remedy="Retry when it has finished",
                path=self.storage.base,
            ) from error

    def _tidy(self, folder: str, *, with_base: bool) -> None:
        locks = os.path.join(folder, ".locks")
        remove_free_locks(locks, _WRITER + SUFFIX)
        with suppress(OSError):
            os.rmdir(locks)
            os.rmdir(folder)
            if with_base and not os.path.islink(self.storage.base):
                os.rmdir(self.storage.base)
