"""What an operating system error means to the caller: the one place that translates `OSError`.

Each error names the path, says what was seen in words and what to do. Nothing here opens or reads anything.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hoodie.errors import Conflict, HudiError, Invalid, Missing, Unavailable
from hoodie.storage.posix import is_absent

_UNAVAILABLE = {
    errno.ENOSPC: ("no space is left on its file system", "Free space there, then retry"),
    errno.EDQUOT: ("the disk quota is used up", "Free space or raise the quota, then retry"),
    errno.EACCES: ("permission is denied", "Give this process access to it, then retry"),
    errno.EPERM: ("the operation is not permitted", "Check owner, mode and attributes (immutable?), then retry"),
    errno.EROFS: ("its file system is read-only", "Mount it writable, or use another base path"),
    errno.EIO: ("the device gave an input/output error", "Check the disk or mount, then retry"),
    errno.ESTALE: ("its network mount is stale", "Mount it again, then retry"),
    errno.EMFILE: ("this process has too many open files", "Raise the limit (ulimit -n) or lower the parallelism"),
    errno.ENFILE: ("the system has too many open files", "Raise the system's limit, then retry"),
    errno.EFBIG: ("the file is larger than the limit allows", "Raise the limit (ulimit -f) or write smaller files"),
    errno.ETIMEDOUT: ("its file system did not answer in time", "Check the mount, then retry"),
}
_INVALID = {
    errno.ENAMETOOLONG: ("the name is too long for its file system", "Use shorter partition values or a shorter base"),
    errno.ELOOP: ("it goes through too many symbolic links", "Remove the loop of links"),
    errno.EILSEQ: ("its file system does not take this name", "Use other characters in partition values"),
}
_IN_THE_WAY = (errno.ENOTDIR, errno.EISDIR)


def os_failure(error: OSError, action: str, path: str, *, writes: bool) -> HudiError:
    """The error to raise for `error`, met while doing `action` ("read", "create" ...) to `path` (a full path)."""
    code = error.errno or 0
    facts = {"path": path, "errno": errno.errorcode.get(code, str(code))}
    if not writes and (code in _IN_THE_WAY or is_absent(error, path)):
        return Missing(f"{path} does not exist", **facts)
    if code == errno.ENOENT:
        return Unavailable(f"Cannot {action} {path}: its folder was removed meanwhile", remedy="Retry", **facts)
    if code == errno.EEXIST:
        return Conflict(f"{path} exists already", **facts)
    if code in _IN_THE_WAY:
        return Invalid(f"Cannot {action} {path}: a file is where a folder should be, or the reverse", **facts)
    if code in _INVALID:
        cause, remedy = _INVALID[code]
        return Invalid(f"Cannot {action} {path}: {cause}", remedy=remedy, **facts)
    seen = os.strerror(code) if code else str(error)
    cause, remedy = _UNAVAILABLE.get(code, (seen, "Remove the cause, then retry"))
    return Unavailable(f"Cannot {action} {path}: {cause}", remedy=remedy, **facts)


@contextmanager
def translated(action: str, path: str, *, writes: bool = False) -> Iterator[None]:
    """Turn an `OSError` of the block into ours. `hoodie` errors pass unchanged.

    Wrap with it what runs on a file from `open_input`, whose native reads raise `OSError` by themselves.
    """
    try:
        yield
    except OSError as error:
        raise os_failure(error, action, path, writes=writes) from error
    except UnicodeEncodeError as error:
        raise Invalid(
            f"Path {path!r} cannot be encoded for this file system", remedy="Use a name of whole characters", path=path
        ) from error
