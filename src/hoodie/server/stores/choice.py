"""Which store a service keeps its views in, by the keys of Hudi."""

from __future__ import annotations

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.server.stores.memory import MemoryStores
from hoodie.server.stores.spill import SpillStores
from hoodie.server.stores.store import Stores

TYPE = "hoodie.filesystem.view.type"
MEMORY_BYTES = "hoodie.filesystem.view.spillable.mem"
SPILL_FOLDER = "hoodie.filesystem.view.spillable.dir"
ROCKS_PATH = "hoodie.filesystem.view.rocksdb.base.path"

MEMORY, SPILLABLE_DISK, EMBEDDED_KV_STORE = "MEMORY", "SPILLABLE_DISK", "EMBEDDED_KV_STORE"


def stores_of(config: Config) -> Stores:
    """The store of `hoodie.filesystem.view.type`; in memory where that is none.

    Raises:
        Invalid: its folder cannot be, or rocksdict is not installed. Unavailable: another service uses the folder.
    """
    kind, memory_bytes = config.text(TYPE), config.integer(MEMORY_BYTES)
    if kind == SPILLABLE_DISK:
        return SpillStores(config.text(SPILL_FOLDER), memory_bytes)
    if kind != EMBEDDED_KV_STORE:
        return MemoryStores()
    try:
        from hoodie.server.stores.rocks import RocksStores  # noqa: PLC0415 - optional: needs the extra `rocksdb`
    except ModuleNotFoundError as error:
        raise Invalid(f"{error.name} is not installed", remedy="pip install 'hoodie[rocksdb]'") from error
    return RocksStores(config.text(ROCKS_PATH), memory_bytes)
