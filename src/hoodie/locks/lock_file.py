"""Locks as Hudi's file-system lock provider makes them, on a local disk: a file `lock`, which is there while somebody
holds it. So a Hudi writer on the same disk and we exclude each other.

1. Only one can make the file. Whoever made it removes it, and looks first whether it is still the same: Hudi's provider
   does not look. A Hudi writer that gave up waiting removes the file of whoever holds the lock when it ends.
2. Therefore the holder looks before each step that cannot be taken back whether its file is there. Hudi's writers do
   not: between them the lock is only as good as their patience. A lock in ZooKeeper has none of this.
3. A file of a process of ours that has ended on this machine is removed by who comes next; one that is older than an
   expiry, as Hudi's option says it, as well. A holder of ours keeps its file young. Who removes one holds a lock of its
   own for it (`flock`), so of two that see a dead holder one is not taken in by the other's new file.

The file says who holds it (`storage.lock_holder`); Hudi's says when it was made, and by which thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from hoodie.env import SystemEnv
from hoodie.errors import Conflict, Fenced
from hoodie.locks.lock_provider import Held
from hoodie.locks.waiting import AT_ONCE, Patience, in_line
from hoodie.storage import translated
from hoodie.storage.fence import is_own_step, with_fence
from hoodie.storage.flock import SUFFIX, give_back, take_lock
from hoodie.storage.lock_holder import LockHolder, encode_holder, has_ended, in_words, parse_holder, this_holder

S = TypeVar("S")

_ENV = SystemEnv()
_NAME = "lock"
_LONGEST_PAUSE_S = 0.2
_LARGEST_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class LockFiles:
    """The file `lock` in a folder. `expires_ms`: an older one is taken over (0: never). `own_path`: the file as the
    table's storage names it, where it lies in the table.
    """

    folder: str
    expires_ms: int = 0
    own_path: str | None = None

    @contextmanager
    def acquire(self, what: str, scope: str = "", patience: Patience = AT_ONCE) -> Iterator[Held]:
        """The lock, held inside the block; see `LockProvider`."""
        lock = _LockFile(self, self._path(scope))
        made = not os.path.lexists(self.folder)
        in_line(("file", lock.path), patience, _LONGEST_PAUSE_S, lambda: lock.take(what))
        stop = threading.Event()
        keeper = threading.Thread(target=lock.keep, args=(stop,), name="lock file", daemon=True)
        if self.expires_ms:
            keeper.start()
        try:
            yield lock
        finally:
            stop.set()
            if self.expires_ms:
                keeper.join()
            lock.give_back()
            if made:
                with suppress(OSError):  # it is no table's that stays
                    os.rmdir(self.folder)

    def holders(self, scope: str = "") -> tuple[LockHolder | None, ...]:
        """See `TellsHolders`."""
        found = _content(self._path(scope))
        holder = None if found is None else parse_holder(found.partition(b"\n")[0])
        return () if found is None or (holder is not None and has_ended(holder)) else (holder,)

    def _path(self, scope: str) -> str:
        return os.path.join(self.folder, f"{_NAME}.{scope}" if scope else _NAME)


@dataclass(slots=True, eq=False)
class _LockFile:
    """One hold: a `Held`, and a `hoodie.storage.fence.Fence`."""

    locks: LockFiles
    path: str
    content: bytes = b""
    is_over: bool = False
    deletes_own: bool = False
    reopens: bool = False

    def take(self, what: str) -> None:
        """The file is this one's now. Raises: Conflict: another has made it."""
        content = encode_holder(this_holder(what)) + b"\n" + _ENV.uuid().encode()
        with translated("lock", self.path, writes=True):
            os.makedirs(self.locks.folder, exist_ok=True)
            for _ in range(2):
                if _made(self.path, content):
                    self.content = content
                    return
                if not self._removed_dead():
                    break
        found = _content(self.path) or b""
        holder = parse_holder(found.partition(b"\n")[0])
        raise Conflict(
            f"Another writer{in_words(holder)} holds {self.path}, so {what} cannot start",
            remedy="Retry when it has finished, or wait for longer (hoodie.write.lock.wait_time_ms); if it died, "
            "remove the file, or let it expire (hoodie.write.lock.filesystem.expire)",
            path=self.path,
            holder=holder,
        )

    def keep(self, stop: threading.Event) -> None:
        """Keeps the file young until told to stop."""
        while not stop.wait(self.locks.expires_ms / 3000):
            with suppress(OSError):
                if self._is_own():
                    os.utime(self.path)

    def give_back(self) -> None:
        """Removes the file, if it is still this one's."""
        if self._is_own():
            with suppress(OSError):
                os.unlink(self.path)
        self.is_over = True

    def ensure_held(self, *, to_delete: bool = False) -> None:
        """See `Held` and `Fence`."""
        if not (self.is_over or is_own_step(self, to_delete=to_delete) or self._is_own()):
            raise Fenced(
                f"The lock file {self.path} is gone or another's, so another writer may be at work",
                remedy="Read the table again and repeat what you did",
                path=self.path,
            )

    def keeps(self, path: str) -> bool:
        """See `Fence`."""
        return not self.is_over and path == self.locks.own_path

    def fenced(self, storage: S) -> S:
        """See `Held`."""
        return with_fence(storage, self)

    def _is_own(self) -> bool:
        return _content(self.path) == self.content

    def _removed_dead(self) -> bool:
        """Whether the file was of a holder that is no more, and is gone now."""
        if not self._is_dead():
            return False
        guard = self.path + SUFFIX
        try:
            lock = take_lock(guard)
        except OSError:
            return False  # another is about to
        try:
            if self._is_dead():
                with suppress(FileNotFoundError):
                    os.unlink(self.path)
            return True
        finally:
            give_back(lock, guard)

    def _is_dead(self) -> bool:
        found = _content(self.path)
        if found is None:
            return False
        holder = parse_holder(found.partition(b"\n")[0])
        if holder is not None and has_ended(holder):
            return True
        with suppress(OSError):
            age_s = _ENV.now().timestamp() - os.stat(self.path).st_mtime
            return 0 < self.locks.expires_ms < age_s * 1000
        return False


def _made(path: str, content: bytes) -> bool:
    """Whether the file was made here: it has its content from the first moment on."""
    temp = f"{path}.{_ENV.uuid()}"
    file = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.write(file, content)
        os.link(temp, path)
    except FileExistsError:
        return False
    finally:
        os.close(file)
        os.unlink(temp)
    return True


def _content(path: str) -> bytes | None:
    """What a lock file says; None where it is gone."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        return b""
    try:
        return os.read(file, _LARGEST_BYTES)
    finally:
        os.close(file)
