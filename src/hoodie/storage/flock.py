"""Locks of a table on a POSIX file system: `flock` on files that only those can open who may write beside them.

1. A lock ends with its process. The file is removed when the lock is given back: who opened it before sees that it is
   not the file of that name any more, and tries again.
2. Whoever can open a file can lock it. So the file may be read by nobody who may not write to its folder (as far as the
   folder's mode tells; access lists are not looked at).
3. A child that is forked meanwhile would keep the lock after its parent was killed, and could give it back while its
   parent works. So it closes its copy right after the fork, and knows of no lock. Programs that are started get none.
4. On NFS other machines may see a removed file for a while. There (it cannot lock folders, which tells) the file stays.

They raise `OSError`, which `local` translates.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
from collections.abc import Collection
from contextlib import suppress

from hoodie.env import SystemEnv
from hoodie.errors import Conflict
from hoodie.storage.posix import FOLDER, NEW_FILE, TEMP_PREFIX, is_same_file, make_folder, name_if_absent, remove

SUFFIX = ".flock"

_NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
_ENV = SystemEnv()

_held: dict[int, str] = {}
_guard = threading.Lock()


def take_lock(full: str) -> int:
    """The descriptor of the lock file `full`, which is locked now; its folder is made if need be.

    Raises:
        OSError: another holds it (EWOULDBLOCK, EACCES), or it cannot be opened.
    """
    while True:
        with suppress(FileNotFoundError):  # folders may go, too, when another gives it back
            _make_folder(os.path.dirname(full))
        with _guard, suppress(FileNotFoundError):
            lock = _opened(full)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                raise
            if is_same_file(lock, full):
                _held[lock] = full
                return lock
            os.close(lock)  # its holder removed it while we opened it


def store_content(lock: int, data: bytes) -> None:
    """Make `data` the content of a lock file that is held, for `load_content`. A disk that is full is no reason to
    give the lock back.
    """
    with suppress(OSError):
        os.ftruncate(lock, 0)
        os.pwrite(lock, data, 0)


def load_content(full: str) -> bytes:
    """What the holder of a lock file says in it; nothing where it is gone, or may not be read."""
    try:
        lock = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(lock, 4096, 0)
    except OSError:
        return b""
    finally:
        os.close(lock)


def give_back(lock: int, full: str, *, stays: bool = False) -> bool:
    """Whether this process held the lock on the file; it is free now, and its file gone unless it `stays`."""
    with _guard:
        if _held.get(lock) != full:
            return False
        del _held[lock]
        if not stays:
            with suppress(OSError):
                remove(full)  # still locked
        os.close(lock)
    return True


def held_below(folder: str) -> Collection[str]:
    """The lock files below a folder that this process holds."""
    with _guard:
        return [full for full in _held.values() if full.startswith(folder + os.sep)]


def remove_free_locks(folder: str, kept: str) -> None:
    """Remove the lock files in a folder that nobody holds, but for the one named `kept`."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX) and entry.name != kept:
                with suppress(OSError):
                    _remove_if_free(entry.path)


def locks_folders(folder: str) -> bool:
    """Whether the file system can lock folders; NFS cannot."""
    try:
        opened = os.open(folder, FOLDER)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _NO_LOCKS
    finally:
        os.close(opened)
    return True


def _make_folder(folder: str) -> None:
    """Make the folder of lock files unless it is there: for those who may write to the folder above it."""
    if not os.path.isdir(folder):
        make_folder(folder)
        with suppress(OSError):
            above = os.stat(os.path.dirname(folder))
            os.chown(folder, -1, above.st_gid)
            os.chmod(folder, stat.S_IMODE(above.st_mode))


def _opened(full: str) -> int:
    how = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(full, how)
    except FileNotFoundError:
        with suppress(Conflict):
            _make(full)
        return os.open(full, how)


def _make(full: str) -> None:
    """Make the file, which has its mode from the first moment on. Raises: Conflict: it is there."""
    folder = os.path.dirname(full)
    temp = os.path.join(folder, TEMP_PREFIX + _ENV.uuid())
    file = os.open(temp, NEW_FILE, 0o600)
    try:
        _open_to_writers(file, os.stat(folder))
        name_if_absent(temp, full)
    finally:
        os.close(file)
        remove(temp)


def _open_to_writers(file: int, folder: os.stat_result) -> None:
    """Let those read and write a file who may write to its folder, and nobody else."""
    with suppress(OSError):  # some mounts have no modes
        for user, group in ((folder.st_uid, folder.st_gid), (-1, folder.st_gid)):
            with suppress(PermissionError):
                os.fchown(file, user, group)
                break
        mode = 0o600
        if folder.st_mode & stat.S_IWGRP:
            mode |= 0o060 if os.fstat(file).st_gid == folder.st_gid else 0o066
        if folder.st_mode & stat.S_IWOTH:
            mode |= 0o066
        os.fchmod(file, mode)


def _remove_if_free(full: str) -> None:
    lock = os.open(full, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_same_file(lock, full):
            remove(full)
    finally:
        os.close(lock)


def _forget_all() -> None:
    """In a forked child: its copies are closed, which does not unlock."""
    for lock in _held:
        with suppress(OSError):
            os.close(lock)
    _held.clear()
    _guard.release()


os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_forget_all)
