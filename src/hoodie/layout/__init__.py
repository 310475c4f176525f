"""Where the data files of a table lie: hashed prefixes, several stores. See docs/design/0025-storage-layouts.md."""

from hoodie.layout.federated import FederatedStorage, physical, physicals, stores_of
from hoodie.layout.layout import Layout, LayoutVersion
from hoodie.layout.opening import laid_out, open_table_storage
from hoodie.layout.strategy import StorageStrategy

__all__ = [
    "FederatedStorage",
    "Layout",
    "LayoutVersion",
    "StorageStrategy",
    "laid_out",
    "open_table_storage",
    "physical",
    "physicals",
    "stores_of",
]
