"""What lies in a table's folders and belongs to nothing: files that dead processes left and nobody took away."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from hoodie.env import SystemEnv
from hoodie.fileview import FolderView
from hoodie.layout import FederatedStorage
from hoodie.metadata_writer import open_metadata_handle
from hoodie.spec import is_partition_metafile, keys
from hoodie.state.handle import open_handle, timeline_of
from hoodie.storage.lease import LEASE_PATH
from hoodie.storage.posix import TEMP_PREFIX
from hoodie.view import FileSlice

_TEMPORARY = (keys.TEMP_DIR, f"{keys.HOODIE_DIR}/.locks", f"{keys.HOODIE_DIR}/.heartbeat")


def orphans(path: str, options: Mapping[str, object] | None = None) -> list[str]:
    """Files below the table's folder, and its storage paths, that the table does not know, sorted: data files in no
    slice a snapshot reads, those in no slice of its metadata table, whatever is temporary, or where nobody looks.

    The table has to be cleaned up to the newest slices before, and nobody may be at work on it.
    """
    handle = open_handle(path, {key: str(value) for key, value in (options or {}).items()}, SystemEnv())
    view = FolderView(handle.storage, timeline_of(handle)).load()
    known = set(_files_of(view.slices_at()))
    if handle.config.has_metadata_table:
        own = open_metadata_handle(handle)
        own_view = FolderView(own.storage, timeline_of(own)).load()
        known.update(f"{keys.METADATA_TABLE_DIR}/{name}" for name in _files_of(own_view.all_slices()))
    names: Iterable[str] = files_on_disk(path)
    strays: list[str] = []
    if isinstance(handle.storage, FederatedStorage):
        names = [file.path for file in handle.storage.list("")]
        strays = [name for name, _ in handle.storage.strays()]
    return sorted([name for name in names if _must_be_known(name) and name not in known] + strays)


def let_days_pass(path: str) -> None:
    """Make temporary files old enough to be known as those of dead processes."""
    for name in files_on_disk(path):
        if name.rpartition("/")[2].startswith(TEMP_PREFIX):
            os.utime(os.path.join(path, name), (0, 0))


def files_on_disk(path: str) -> Iterator[str]:
    """Paths of all files below a folder, from there."""
    for folder, _, names in os.walk(path):
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), path)


def _files_of(slices: Iterable[FileSlice]) -> Iterator[str]:
    for one in slices:
        if one.base is not None:
            yield one.base.path
        yield from (log.path for log in one.logs)


def _must_be_known(path: str) -> bool:
    """Whether a file is something only as part of a slice, or nothing at all."""
    folder, _, name = path.rpartition("/")
    if path == LEASE_PATH:  # it stays where the table is, given back
        return False
    if name.startswith(TEMP_PREFIX) or folder.startswith(_TEMPORARY):
        return True
    if is_partition_metafile(name):
        return False
    if folder.startswith(f"{keys.METADATA_TABLE_DIR}/"):
        return not folder.startswith(f"{keys.METADATA_TABLE_DIR}/{keys.HOODIE_DIR}")
    return not folder.startswith(keys.HOODIE_DIR)
