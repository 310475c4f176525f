"""What lay below a folder at one moment: several listings of it that are due at that moment cost one request.

1. Everything below the folder is listed at once, which is one request as long as it fits a page. Where there is more,
   or something that may not be listed, nothing is kept, and each listing is asked for when it is wanted: one request
   too many, and no more.
2. It says what was there then. Who decides by it holds what keeps others from changing it, or looks again.
3. Folders without a file in them are not there, as on an object store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Protocol

from hoodie.errors import HudiError
from hoodie.storage.contract import FileInfo, Listing, Storage
from hoodie.storage.nested import NestedStorage

_PAGE: Final = 1000
"""Files that an object store lists with one request."""


class Listable(Protocol):
    """What lists folders: a storage, or a snapshot of one."""

    def list_dir(self, path: str) -> Listing:
        """Direct children of a folder. A folder that is not there has none."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """`files` are all below `folder` of `storage`, in path order; None: they were too many, or nobody has looked."""

    storage: Storage
    folder: str
    files: Sequence[FileInfo] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether listings below the folder make no call."""
        return self.files is not None

    def may_have(self, path: str) -> bool:
        """Whether there may have been a file of this path."""
        return self.files is None or any(file.path == path for file in self.files)

    def list_dir(self, path: str) -> Listing:
        """Direct children of a folder, as they were; as they are now, where that is not known."""
        inside = _below(path)
        if self.files is None or not inside.startswith(_below(self.folder)):
            return self.storage.list_dir(path)
        below = (file for file in self.files if file.path.startswith(inside))
        found = [(file, *file.path[len(inside) :].partition("/")) for file in below]
        folders = {inside + first for _, first, slash, _ in found if slash}
        return Listing(tuple(file for file, _, slash, _ in found if not slash), tuple(sorted(folders)))

    def inside(self, folder: str) -> Snapshot:
        """The same of a folder below, as `NestedStorage` has its paths."""
        found = self.files
        if found is not None:
            start = _below(folder)
            found = [replace(file, path=file.path[len(start) :]) for file in found if file.path.startswith(start)]
        return Snapshot(NestedStorage(self.storage, folder), "", found)


def snapshot_of(storage: Storage, folder: str) -> Snapshot:
    """What is below the folder now: one listing, of at most a page."""
    try:
        files = tuple(islice(storage.list(folder), _PAGE))
    except HudiError:  # in a folder that is nothing to us, perhaps: who lists one of ours is told
        return Snapshot(storage, folder)
    return Snapshot(storage, folder, files if len(files) < _PAGE else None)


def _below(folder: str) -> str:
    return f"{folder}/" if folder else ""
