"""Creation, writes, rollback and clean of a table with a storage path, stopped at each call over both stores."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.services.ingest import Request
from hoodie.services.save import save_rows
from hoodie.state.handle import load_handle
from hoodie.storage import MemoryStorage
from hoodie.table import Table, as_source
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.env import FakeEnv
from hoodie.testing.two_stores import RIDES, layout_options, two_stores

pytestmark = pytest.mark.deep

_names = itertools.count()
ENGINE = LocalEngine(1)
START = datetime(2020, 1, 1, tzinfo=UTC)
NEWEST = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
EVERY = 7


def rows(v: int) -> pa.Table:
    return pa.table({"id": list(range(8)), "p": [f"p{i % 2}" for i in range(8)], "v": [v] * 8})


def opened(storage: object, env: FakeEnv) -> Table:
    return Table(load_handle(two_stores(storage), env), RIDES, ENGINE)  # type: ignore[arg-type]


def created(storage: object, env: FakeEnv) -> None:
    config = resolve(RIDES | layout_options())
    save_rows(two_stores(storage), Request("upsert", as_source(rows(0)), config, ENGINE), "append", env)  # type: ignore[arg-type]


def values(table: Table) -> set[int]:
    found = table.scan(columns=["id", "v"]).read_all()
    assert sorted(found["id"].to_pylist()) == list(range(8))
    return set(found["v"].to_pylist())


@pytest.fixture(scope="module")
def world() -> dict[str, bytes]:
    """Three commits, two of them compacted."""
    env, storage = FakeEnv(START), MemoryStorage(f"crashes-{next(_names)}")
    created(storage, env)
    for v in (1, 2):
        opened(storage, env).upsert(rows(v))
        opened(storage, env).services.compact()
    opened(storage, env).upsert(rows(3))
    files = {f.path: storage.read(f.path) for f in storage.list("")}
    storage.forget()
    return files


def begun(files: dict[str, bytes]) -> tuple[MemoryStorage, FakeEnv]:
    env = FakeEnv(datetime(2030, 1, 1, tzinfo=UTC))
    storage = MemoryStorage(f"crashes-{next(_names)}", env)
    for path, data in files.items():
        storage.put(path, data)
    return storage, env


ACTS = {
    "upsert": (lambda table: table.upsert(rows(4)), {3, 4}),
    "rollback": (lambda table: table.services.rollback(table.timeline().completed_writes()[-1].requested), {2, 3}),
    "clean": (lambda table: table.services.clean(**NEWEST), {3}),
    "compact": (lambda table: table.services.compact(), {3}),
}


@pytest.mark.parametrize("name", list(ACTS))
def test_action_that_dies_at_any_call_leaves_the_rows_before_or_after_it(world: dict[str, bytes], name: str) -> None:
    act, allowed = ACTS[name]
    storage, env = begun(world)
    counted = CountingStorage(storage)
    act(opened(counted, env))
    assert values(opened(storage, env)) <= allowed
    for at in range(1 + len(name) % EVERY, len(counted.calls) + 1, EVERY):
        storage, env = begun(world)
        with pytest.raises(Crash):
            act(opened(CountingStorage(storage, crash_at=at, torn=True), env))
        table = opened(storage, env)
        if not table.config.is_metadata_table_ready:
            table.indexes.rebuild()
        assert values(table) <= allowed, at
        assert len(values(table)) == 1, at
        table.upsert(rows(9))
        table.services.compact()
        assert values(opened(storage, env)) == {9}, at
        assert {one.kind for one in opened(storage, env).doctor().concerns} <= {"old versions", "orphan"}, at
        storage.forget()


def test_creation_that_dies_at_any_call_can_be_repeated() -> None:
    storage, env = begun({})
    counted = CountingStorage(storage)
    created(counted, env)
    for at in range(2, len(counted.calls) + 1, EVERY):
        storage, env = begun({})
        with pytest.raises(Crash):
            created(CountingStorage(storage, crash_at=at, torn=True), env)
        try:
            created(storage, env)
        except Invalid:  # it was there already, and is written to
            opened(storage, env).upsert(rows(0))
        assert values(opened(storage, env)) == {0}, at
        assert not {one.kind for one in opened(storage, env).doctor().concerns} - {"orphan"}, at
        storage.forget()
