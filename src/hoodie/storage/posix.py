"""Single steps on a POSIX file system that are atomic, durable, or both.

They raise `OSError`, which `local` translates, and say what a crash leaves behind if it is not nothing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from hoodie.env import SystemEnv
from hoodie.errors import CommitUnknown, Conflict, Unsupported

TEMP_PREFIX = ".hoodie-tmp-"
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
STALE_SECONDS = 24 * 3600
"""The age at which a temporary file, which has its name for milliseconds, is one that a dead writer left."""

_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV)
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_ENV = SystemEnv()


def write_all(file: int, data: Any) -> int:
    """Number of bytes written: all of `data`, however often the system takes less."""
    rest = memoryview(data).cast("B")
    size = len(rest)
    while rest:
        rest = rest[os.write(file, rest) :]
    return size


def write_temp(folder: str, data: bytes) -> str:
    """Path of a new, synced temporary file in `folder`, which is made if need be. A crash leaves the temporary file."""
    temp = os.path.join(folder, TEMP_PREFIX + _ENV.uuid())
    try:
        file = os.open(temp, NEW_FILE, 0o666)
    except FileNotFoundError:
        make_folder(folder)
        file = os.open(temp, NEW_FILE, 0o666)
    try:
        try:
            write_all(file, data)
            os.fsync(file)
        finally:
            os.close(file)
    except BaseException:
        with suppress(OSError):
            remove(temp)
        raise
    return temp


def name_if_absent(temp: str, full: str) -> None:
    """Give the file `temp` the name `full` too, unless that exists.

    Raises:
        Conflict: `full` exists and is another file.
        Unsupported: the file system has neither hard links nor a rename that refuses to replace.
    """
    try:
        os.link(temp, full)
    except FileExistsError as error:
        # A network mount may repeat a request whose answer was lost: then `full` is our own file.
        if not is_same_file(temp, full):
            raise Conflict(f"{full} exists already", path=full) from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _rename_if_absent(temp, full, error)


def _rename_if_absent(temp: str, full: str, no_link: OSError) -> None:
    code = _renameat2(temp, full)
    if code == errno.EEXIST:
        raise Conflict(f"{full} exists already", path=full)
    if code in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        raise Unsupported(
            f"The file system of {full} has neither hard links nor an exclusive rename, so a commit cannot be atomic",
            remedy="Keep the table on another file system, or use the object store's own URL",
            path=full,
        ) from no_link
    if code:
        raise OSError(code, os.strerror(code), full)


def _renameat2(temp: str, full: str) -> int:
    """Zero, or the error number, of a rename that refuses to replace (Linux)."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return errno.ENOSYS
    if call(_AT_FDCWD, os.fsencode(temp), _AT_FDCWD, os.fsencode(full), _RENAME_NOREPLACE) == 0:
        return 0
    return ctypes.get_errno()


def sync_named(full: str) -> None:
    """Sync the folder of a file that has just got its name.

    Raises:
        CommitUnknown: readers see the file, but a crash of the machine might undo it.
    """
    try:
        sync_folder(os.path.dirname(full))
    except OSError as error:
        raise CommitUnknown(
            f"{full} was created, but its folder could not be synced: {os.strerror(error.errno or 0)}",
            remedy="Check the disk, then look whether the file is there",
            path=full,
        ) from error


def sync_folder(folder: str) -> None:
    """Make the names in `folder` durable, where its file system can do that."""
    file = os.open(folder, FOLDER)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # some mounts cannot sync a folder
            raise
    finally:
        os.close(file)


def make_folder(folder: str) -> None:
    """Make `folder` and what is above it; each new name is synced."""
    if os.path.isdir(folder):
        return
    try:
        os.mkdir(folder)
    except FileNotFoundError:
        make_folder(os.path.dirname(folder))
        make_folder(folder)
        return
    except FileExistsError:
        try:
            is_folder = stat.S_ISDIR(os.stat(folder).st_mode)
        except FileNotFoundError:
            is_folder = False
            if not os.path.islink(folder):  # it went meanwhile
                make_folder(folder)
                return
        if not is_folder:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from None
    sync_folder(os.path.dirname(folder))


def remove(full: str) -> bool:
    """Whether the file was there; it is gone now. Not durable by itself."""
    with absent(full):
        os.unlink(full)
        return True
    return False


def is_absent(error: OSError, path: str) -> bool:
    """Whether an error says that there is nothing at a path, also because nothing can have such a name. A path that is
    too long as a whole may still lead to something, which has a shorter one.
    """
    if error.errno != errno.ENAMETOOLONG:
        return error.errno in (errno.ENOENT, errno.ENOTDIR)
    return not (os.path.isabs(path) and _is_reached(path))


def _is_reached(path: str) -> bool:
    """Whether steps from folder to folder lead to an absolute path, or cannot tell."""
    *above, last = [name for name in path.split("/") if name]
    folder = os.open("/", FOLDER)
    try:
        for name in above:
            deeper = os.open(name, FOLDER, dir_fd=folder)
            os.close(folder)
            folder = deeper
        os.lstat(last, dir_fd=folder)
    except OSError as error:
        return error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
    finally:
        os.close(folder)
    return True


@contextmanager
def absent(path: str) -> Iterator[None]:
    """Ends the block without an error where there is nothing at `path`, which it asks for."""
    try:
        yield
    except OSError as error:
        if not is_absent(error, path):
            raise


def remove_if_stale(temp: os.DirEntry[str]) -> None:
    """Remove a temporary file that a dead writer left. Who may read only leaves it."""
    with suppress(OSError):
        if temp.stat(follow_symlinks=False).st_mtime < _ENV.now().timestamp() - STALE_SECONDS:
            remove(temp.path)


def is_same_file(one: str | int, other: str) -> bool:
    """Whether both (paths, or an open descriptor first) are one file; False when one is not there."""
    try:
        return os.path.samestat(os.stat(one), os.stat(other))
    except FileNotFoundError:
        return False
