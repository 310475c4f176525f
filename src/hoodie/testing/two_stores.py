"""Tables over several stores: one storage as two, a table path and a storage path, so that all calls of a table with
both are calls of the one (and two as one, `Joined`); or stores that really are several (`Stores`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hoodie.layout import FederatedStorage
from hoodie.layout.access import Access
from hoodie.locks import LockProvider, lock_provider_of
from hoodie.storage import FileInfo, Listing, NestedStorage, OutputFile, Storage
from hoodie.storage.fence import Fence, HasFences, with_fence
from hoodie.testing.counting_storage import CountingStorage

TABLE: Final = "table"
ROOT: Final = "root"
ROOT_URL: Final = "memory://two-stores/root"
"""The storage path, whatever the storage is called, so that its files can be copied to another."""
RIDES: Final[Mapping[str, str]] = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
"""Options of a merge-on-read table with columns `id` and `p`, whose services wait to be called."""


def two_stores(storage: Storage) -> FederatedStorage:
    """What a caller opens that allows the storage path: a table there finds its files whatever stands around."""
    access = Access((ROOT_URL,), stores={ROOT_URL: NestedStorage(storage, ROOT)})
    return FederatedStorage(NestedStorage(storage, TABLE), access)


def layout_options(strategy: str = "bits:4") -> Mapping[str, str]:
    """The options that make a table in two stores keep its files under the storage path."""
    return {"hoodie.storage.path": ROOT_URL, "hoodie.storage.strategy": strategy}


@dataclass(frozen=True)
class Joined:
    """Two stores as the one that `two_stores` takes apart: what lies below the folder `TABLE` and below `ROOT`."""

    table: Storage
    root: Storage

    @property
    def uri(self) -> str:
        return self.table.uri

    @property
    def scheme(self) -> str:
        return self.table.scheme

    @property
    def fences(self) -> tuple[Fence, ...]:
        return self.table.fences if isinstance(self.table, HasFences) else ()

    def with_fence(self, fence: Fence) -> Joined:
        return Joined(with_fence(self.table, fence), with_fence(self.root, fence))

    def lock_provider(self) -> LockProvider:
        """The locks of the table path."""
        return lock_provider_of(self.table)

    def absolute(self, path: str) -> str:
        _, store, inside = self._at(path)
        return store.absolute(inside)

    def list_dir(self, path: str) -> Listing:
        folder, store, inside = self._at(path)
        found = store.list_dir(inside)
        dirs = tuple(f"{folder}/{one}" for one in found.dirs)
        return Listing(tuple(_below(folder, file) for file in found.files), dirs)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[FileInfo]:
        if not prefix:
            assert start_after is None
            for folder in (ROOT, TABLE):
                yield from self.list(folder)
            return
        folder, store, inside = self._at(prefix)
        after = None if start_after is None else start_after.removeprefix(f"{folder}/")
        for file in store.list(inside, start_after=after):
            yield _below(folder, file)

    def head(self, path: str) -> FileInfo:
        folder, store, inside = self._at(path)
        return _below(folder, store.head(inside))

    def read(self, path: str) -> bytes:
        _, store, inside = self._at(path)
        return store.read(inside)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        _, store, inside = self._at(path)
        return store.read_range(inside, start, length)

    def create(self, path: str, data: bytes) -> None:
        _, store, inside = self._at(path)
        store.create(inside, data)

    def put(self, path: str, data: bytes) -> None:
        _, store, inside = self._at(path)
        store.put(inside, data)

    def delete(self, path: str) -> bool:
        _, store, inside = self._at(path)
        return store.delete(inside)

    def delete_dir(self, path: str) -> int:
        if not path:
            return self.table.delete_dir("") + self.root.delete_dir("")
        _, store, inside = self._at(path)
        return store.delete_dir(inside)

    def open_input(self, path: str) -> Any:
        _, store, inside = self._at(path)
        return store.open_input(inside)

    def open_output(self, path: str) -> OutputFile:
        _, store, inside = self._at(path)
        return store.open_output(inside)

    def forget(self) -> None:
        """Deletes all that is in them."""
        self.delete_dir("")

    def _at(self, path: str) -> tuple[str, Storage, str]:
        """The folder a path lies in, its store, and the path there."""
        folder, _, inside = path.partition("/")
        return folder, {TABLE: self.table, ROOT: self.root}[folder], inside


def _below(folder: str, file: FileInfo) -> FileInfo:
    return replace(file, path=f"{folder}/{file.path}")


@dataclass(frozen=True)
class Stores:
    """The stores of a table path and of its storage paths."""

    table: Storage
    roots: tuple[Storage, ...]

    def laid(self, table: Storage) -> FederatedStorage:
        """What a caller opens that allows the storage paths. `table` is the store of the table path; where its calls
        are counted, those of the others are counted with them.
        """
        beside = table.beside if isinstance(table, CountingStorage) else _as_it_is
        access = Access(tuple(root.uri for root in self.roots), stores={root.uri: beside(root) for root in self.roots})
        return FederatedStorage(table, access)

    def options(self, strategy: str) -> Mapping[str, str]:
        """The options that make a table there keep its files under the storage paths."""
        paths = ",".join(root.uri for root in self.roots)
        return {"hoodie.storage.path": paths, "hoodie.storage.strategy": strategy}

    def forget(self) -> None:
        """Deletes all that is in them."""
        for store in (self.table, *self.roots):
            store.delete_dir("")


def _as_it_is(storage: Storage) -> Storage:
    return storage
