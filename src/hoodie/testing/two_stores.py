"""One storage as two, a table path and a storage path: all calls of a table with both are calls of the one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.layout import FederatedStorage
from hoodie.layout.access import Access
from hoodie.storage import NestedStorage, Storage

TABLE: Final = "table"
ROOT: Final = "root"


def root_of(storage: Storage) -> str:
    """The URL of the storage path in `storage`."""
    return f"{storage.uri}/{ROOT}"


def two_stores(storage: Storage) -> FederatedStorage:
    """What a caller opens that allows the storage path: a table there finds its files whatever stands around."""
    root = root_of(storage)
    stores = {root: NestedStorage(storage, ROOT)}
    return FederatedStorage(NestedStorage(storage, TABLE), Access((root,), stores=stores))


def options_of(storage: Storage, strategy: str = "bits:4") -> Mapping[str, str]:
    """The options that make a table in it keep its files under the storage path."""
    return {"hoodie.storage.path": root_of(storage), "hoodie.storage.strategy": strategy}
