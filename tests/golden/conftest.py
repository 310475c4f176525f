"""Fixtures of the golden tests: the tables, unpacked once each, and the engines that read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.query import ReadOptions, load_read_plan, run_read
from hoodie.state.handle import TableHandle, open_handle, timeline_of
from hoodie.testing.golden import GoldenRead, GoldenTable

Reader = Callable[[Path, GoldenRead], pa.Table]


def read_locally(path: Path, read: GoldenRead) -> pa.Table:
    """The rows of the query, by threads of this process."""
    handle = open_handle(str(path), {})
    plan = load_read_plan(handle.storage, handle.config, timeline_of(handle), ReadOptions(**read.options))
    return run_read(plan, handle.storage).read_all()


@pytest.fixture(scope="session", name="opened")
def _opened() -> Callable[[Path], TableHandle]:
    """The table at a path, without the façade: what is tested here is below it."""
    return lambda path: open_handle(str(path), {})


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
