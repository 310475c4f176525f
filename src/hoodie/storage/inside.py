"""Changes below a base folder that no symbolic link can lead out of it.

1. The base itself may be, or lie behind, a link: that is the user's own. Below it no *change* passes a link, whether it
   leads out of the table or not; reads and listings may (docs/design/0003-storage.md says why).
2. A link that is itself named, as a file or as a folder, is removed; what it leads to stays.
3. Removing goes from open folder to open folder: one that is replaced by a link meanwhile is not entered either.

Raises `OSError`, which `local` translates, and `Invalid` for a link in the way.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from hoodie.errors import Invalid
from hoodie.storage.contract import crc_sibling
from hoodie.storage.posix import FOLDER, TEMP_PREFIX, absent, is_absent


def ensure_inside(base: str, path: str) -> None:
    """Raises: Invalid: a folder above `path` is a link."""
    folder = base
    for name in path.split("/")[:-1]:
        folder = os.path.join(folder, name)
        if os.path.islink(folder):
            raise _in_the_way(folder)


def is_inside(base: str, folder: str) -> bool:
    """Whether no folder on the way from the base to `folder`, itself included, is a link."""
    try:
        ensure_inside(base, f"{folder}/")
    except Invalid:
        return False
    return True


def is_around(base: str, path: str, found: os.stat_result) -> bool:
    """Whether a folder that was found in the folder `path` is that one or one above it: a loop of links."""
    above = base
    for name in ("", *filter(None, path.split("/"))):
        above = os.path.join(above, name)
        with suppress(OSError):
            if os.path.samestat(os.stat(above), found):
                return True
    return False


def remove_file(base: str, path: str) -> bool:
    """Whether the file, or link, was there; it is gone now, and before it Hadoop's checksum of it. A folder stays."""
    name = path.rpartition("/")[2]
    with absent(os.path.join(base, path)), _opened_above(base, path) as opened:
        if not _is(stat.S_ISDIR, name, opened):
            _remove(crc_sibling(name), opened)
            return _remove(name, opened)
    return False


def remove_tree(base: str, path: str, kept: Collection[str] = ()) -> int:
    """How many files were removed with the folder `path`, 0 when it was not there. `""` empties the base. The files
    `kept` (full names) stay, and the folders they are in.
    """
    name = path.rpartition("/")[2]
    with absent(os.path.join(base, path)), _opened_above(base, path) as opened:
        above = os.path.join(base, os.path.dirname(path))
        if path:
            removed = 0 if _is(stat.S_ISLNK, name, opened) else _empty(name, opened, above, kept)
            if not _has_some(os.path.join(base, path), kept):
                _remove_folder(name, opened)
        else:
            removed = _empty(".", opened, above, kept)
            if not os.path.islink(base) and not kept:
                with suppress(FileNotFoundError):
                    os.rmdir(base)
        return removed
    return 0


def _empty(name: str, parent: int, above: str, kept: Collection[str]) -> int:
    removed = 0
    for here, folders, files, opened in os.fwalk(name, topdown=False, onerror=_raise_unless_gone, dir_fd=parent):
        full = os.path.normpath(os.path.join(above, here))
        for file in files:
            if os.path.join(full, file) not in kept:
                removed += _remove(file, opened) and not file.startswith(TEMP_PREFIX)
        for folder in folders:
            if not _has_some(os.path.join(full, folder), kept):
                _remove_folder(folder, opened)
    return removed


def _has_some(folder: str, kept: Collection[str]) -> bool:
    return any(full.startswith(folder + os.sep) for full in kept)


@contextmanager
def _opened_above(base: str, path: str) -> Iterator[int]:
    """The folder of `path`, open. Each step is taken from the open folder before it, and never through a link: that is
    an error where there is something at `path`.
    """
    opened = os.open(base, FOLDER)
    try:
        for name in path.split("/")[:-1]:
            above = opened
            try:
                opened = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=above)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is(stat.S_ISLNK, name, above):
                    if not os.path.lexists(os.path.join(base, path)):
                        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
                    raise _in_the_way(os.path.join(base, os.path.dirname(path))) from error
                raise
            os.close(above)
        yield opened
    finally:
        os.close(opened)


def _is(kind: Callable[[int], bool], name: str, parent: int) -> bool:
    with absent(name):
        return kind(os.lstat(name, dir_fd=parent).st_mode)
    return False


def _remove(name: str, parent: int) -> bool:
    with absent(name):
        os.unlink(name, dir_fd=parent)
        return True
    return False


def _remove_folder(name: str, parent: int) -> None:
    """Remove an empty folder, or a link to a folder but not what it leads to."""
    try:
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        if _is(stat.S_ISLNK, name, parent):
            _remove(name, parent)


def _raise_unless_gone(error: OSError) -> None:
    if not is_absent(error, str(error.filename)):
        raise error


def _in_the_way(folder: str) -> Invalid:
    return Invalid(
        f"{folder} is or lies behind a symbolic link, and nothing is changed behind a link",
        remedy="Put a real folder in the place of the link (a bind mount may lead elsewhere)",
        path=folder,
    )
