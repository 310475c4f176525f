"""Fixtures of the golden tests: the tables, unpacked once each, and the engines that read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.env import SystemEnv
from hoodie.handle import TableHandle
from hoodie.read import ReadOptions, load_read_plan, run_read
from hoodie.spec import profile_of
from hoodie.storage import open_storage
from hoodie.testing.golden import GoldenRead, GoldenTable
from hoodie.timeline import load_table_config, load_timeline

Reader = Callable[[Path, GoldenRead], pa.Table]


def read_locally(path: Path, read: GoldenRead) -> pa.Table:
    """The rows of the query, by threads of this process."""
    handle = opened(path)
    timeline = load_timeline(handle.storage, handle.profile, handle.config.timezone)
    plan = load_read_plan(handle.storage, handle.config, timeline, ReadOptions(**read.options))
    return run_read(plan, handle.storage).read_all()


def opened(path: Path) -> TableHandle:
    """The table at `path`, without the façade: what is tested here is below it."""
    storage = open_storage(str(path))
    config = load_table_config(storage)
    return TableHandle(storage, config, profile_of(config), SystemEnv())


@pytest.fixture(scope="session", name="opened")
def _opened() -> Callable[[Path], TableHandle]:
    return opened


READERS: dict[str, Reader] = {"local": read_locally}
"""Engines the golden reads run on. An adapter adds its own."""


@pytest.fixture(params=sorted(READERS))
def engine(request: pytest.FixtureRequest) -> Reader:
    return READERS[request.param]


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[GoldenTable], Path]:
    """Base path of a golden table in a copy that all tests share: do not write to it."""
    folder = tmp_path_factory.mktemp("golden")
    known: dict[str, Path] = {}

    def unpack(table: GoldenTable) -> Path:
        if table.name not in known:
            known[table.name] = table.unpack(folder)
        return known[table.name]

    return unpack
