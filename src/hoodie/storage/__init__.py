"""Where bytes live: one contract, and the storages that keep it. See docs/design/0003-storage.md."""

from hoodie.storage.contract import FileInfo, Listing, OutputFile, Storage, checked_path
from hoodie.storage.failures import translated
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from hoodie.storage.nested import NestedStorage
from hoodie.storage.open import open_storage
from hoodie.storage.range_input import RangeInput
from hoodie.storage.snapshot import Listable, Snapshot, snapshot_of

__all__ = [
    "FileInfo",
    "Listable",
    "Listing",
    "LocalStorage",
    "MemoryStorage",
    "NestedStorage",
    "OutputFile",
    "RangeInput",
    "Snapshot",
    "Storage",
    "checked_path",
    "open_storage",
    "snapshot_of",
    "translated",
]
