"""Tables over several stores: one storage as two, a table path and a storage path, so that all calls of a table with
both are calls of the one; or stores that really are several (`Stores`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hoodie.layout import FederatedStorage
from hoodie.layout.access import Access
from hoodie.storage import NestedStorage, Storage
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
