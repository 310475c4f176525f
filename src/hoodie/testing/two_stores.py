"""One storage as two, a table path and a storage path: all calls of a table with both are calls of the one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.layout import FederatedStorage
from hoodie.layout.access import Access
from hoodie.storage import NestedStorage, Storage

TABLE: Final = "table"
ROOT: Final = "root"
ROOT_URL: Final = "memory://two-stores/root"
"""The storage path, whatever the storage is called, so that its files can be copied to another."""


def two_stores(storage: Storage) -> FederatedStorage:
    """What a caller opens that allows the storage path: a table there finds its files whatever stands around."""
    access = Access((ROOT_URL,), stores={ROOT_URL: NestedStorage(storage, ROOT)})
    return FederatedStorage(NestedStorage(storage, TABLE), access)


def layout_options(strategy: str = "bits:4") -> Mapping[str, str]:
    """The options that make a table in two stores keep its files under the storage path."""
    return {"hoodie.storage.path": ROOT_URL, "hoodie.storage.strategy": strategy}
