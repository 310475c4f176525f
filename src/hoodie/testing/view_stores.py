"""Stores of views for tests: each kind, and a service that is started again with it, stopped or killed before."""

from __future__ import annotations

import gc
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from hoodie.server.kept_view import KeptView, open_view, resumed_view
from hoodie.server.stores.memory import MemoryStores
from hoodie.server.stores.rocks import FOLDER, RocksStores
from hoodie.server.stores.spill import SpillStores
from hoodie.server.stores.store import Stores
from hoodie.state.handle import TableHandle

KINDS: dict[str, Callable[[Path], Stores]] = {
    "memory": lambda folder: MemoryStores(),
    "spilled": lambda folder: SpillStores(str(folder), 300),  # so little that most has to be read again
    "rocksdb": lambda folder: RocksStores(str(folder / "views"), 1 << 20),
}


class Restarted:
    """The store of one service after the other, of one table, in `folder`."""

    def __init__(self, kind: str, folder: str | None = None) -> None:
        self.kind = kind
        self.folder = Path(folder or tempfile.mkdtemp())
        self.stores = KINDS[kind](self.folder)
        self.resumed = 0

    def opened(self, handle: TableHandle) -> KeptView:
        """The view a service starts with."""
        store = self.stores.open(handle.storage.uri)
        view = resumed_view(handle, store)
        self.resumed += view is not None
        return view or open_view(handle, store)

    def stop(self) -> None:
        """The service ends; the caller lets go of its view first."""
        self.stores.close()
        gc.collect()
        self.stores = KINDS[self.kind](self.folder)

    def kill(self, chance: random.Random) -> None:
        """The service and its system die: what a database wrote last is lost, as far as a random byte."""
        copy = Path(tempfile.mkdtemp())
        if (self.folder / "views").exists():
            shutil.copytree(self.folder / "views", copy / "views")
            for path in (copy / "views" / FOLDER).glob("*.log"):
                data = path.read_bytes()
                path.write_bytes(data[: chance.randrange(len(data) + 1)])
        self.close()
        self.folder = copy
        self.stores = KINDS[self.kind](copy)

    def close(self) -> None:
        """The end."""
        self.stores.close()
        gc.collect()
        shutil.rmtree(self.folder, ignore_errors=True)
