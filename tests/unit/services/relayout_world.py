"""A table and two storage paths in one memory storage, for tests of relayouts."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pyarrow as pa

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.layout import FederatedStorage
from hoodie.layout.access import Access
from hoodie.services.ingest import Request
from hoodie.services.save import save_rows
from hoodie.state.handle import load_handle
from hoodie.storage import MemoryStorage, NestedStorage
from hoodie.table import Table, as_source
from hoodie.testing.env import FakeEnv
from hoodie.testing.two_stores import RIDES

_names = itertools.count()
ENGINE = LocalEngine(1)
ROOTS = ("one", "two")


class World:
    """A table and two storage paths in one memory storage, all of whose calls can be counted and stopped."""

    def __init__(self, files: dict[str, bytes] | None = None, env: FakeEnv | None = None) -> None:
        self.env = env or FakeEnv(datetime(2020, 1, 1, tzinfo=UTC))
        self.memory = MemoryStorage(f"relayout-{next(_names)}", self.env)
        for path, data in (files or {}).items():
            self.memory.put(path, data)

    def root(self, name: str) -> str:
        return f"memory://lake/{name}"

    def laid(self, storage: object = None) -> FederatedStorage:
        inner = storage or self.memory
        stores = {self.root(name): NestedStorage(inner, name) for name in ROOTS}  # type: ignore[arg-type]
        return FederatedStorage(NestedStorage(inner, "table"), Access(tuple(stores), stores=stores))  # type: ignore[arg-type]

    def table(self, storage: object = None) -> Table:
        return Table(load_handle(self.laid(storage), self.env), RIDES, ENGINE)

    def made(self, **more: str) -> Table:
        config = resolve(RIDES | more)
        save_rows(self.laid(), Request("upsert", as_source(rows(*range(12))), config, ENGINE), "append", self.env)
        table = self.table()
        table.upsert(rows(0, 1, 2, v=1), **more)
        return table

    def files(self) -> dict[str, bytes]:
        return {f.path: self.memory.read(f.path) for f in self.memory.list("")}

    def data(self, top: str) -> list[str]:
        found = (f.path for f in self.memory.list(top))
        return [path for path in found if ".hoodie" not in path.replace(".hoodie_owners", ".hoodie")]


def rows(*ids: int, v: int = 0) -> pa.Table:
    return pa.table({"id": list(ids), "p": [f"p{i % 2}" for i in ids], "v": [v for _ in ids]})


def content(table: Table) -> dict[int, int]:
    found = table.scan(columns=["id", "v"]).read_all().to_pydict()
    return dict(zip(found["id"], found["v"], strict=True))


EXPECTED = {i: int(i < 3) for i in range(12)}
