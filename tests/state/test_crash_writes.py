"""A writer that dies after any storage call leaves the table as it was or as it should become; the next write works.

`HOODIE_CRASH_EVERY` thins the points out (`make test` takes a sample, `make crash` every call).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.handle import load_handle
from hoodie.storage import Storage, open_storage
from hoodie.table import Table, as_source, write
from hoodie.testing.crash import crash_points

EVERY = int(os.environ.get("HOODIE_CRASH_EVERY", "7"))
BLOOM = {"hoodie.index.bloom.num_entries": "100"}


def rows(ids: list[int], label: str) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "label": [f"{label}{one}" for one in ids],
            "ts": pa.array([len(label)] * len(ids), pa.int64()),
            "part": ["even" if one % 2 == 0 else "odd" for one in ids],
        }
    )


def opened(storage: Storage) -> Table:
    return Table(load_handle(storage, SystemEnv()), BLOOM, LocalEngine(2))


def upsert(storage: Storage) -> object:
    return opened(storage).upsert(rows([2, 3, 11], "new"))


def bulk_insert(storage: Storage) -> object:
    return opened(storage).bulk_insert(rows([20, 21], "bulk"))


def insert_overwrite(storage: Storage) -> object:
    return opened(storage).insert_overwrite(rows([40], "over"))


def delete(storage: Storage) -> object:
    return opened(storage).delete(rows([1, 2], ""))


def delete_partition(storage: Storage) -> object:
    return opened(storage).delete_partition("odd")


def content(path: Path) -> dict[int, str]:
    table = Table.open(str(path)).scan(columns=["id", "label"]).read_all()
    ids = table.column("id").to_pylist()
    assert len(ids) == len(set(ids)), "a key occurs twice"
    return dict(zip(ids, table.column("label").to_pylist(), strict=True))


@pytest.fixture
def table(tmp_path: Path, version: int) -> Path:
    path = tmp_path / "table"
    options = {
        "hoodie.table.name": "crash",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.write.table.version": str(version),
        **BLOOM,
    }
    write(as_source(rows([1, 2, 3, 4], "")), str(path), options, "append")
    return path


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("action", [upsert, delete, bulk_insert, insert_overwrite, delete_partition])
def test_killed_writer_leaves_before_or_after_and_next_write_succeeds(action, table: Path, tmp_path: Path) -> None:
    before = content(table)
    done = tmp_path / "done"
    shutil.copytree(table, done)
    action(open_storage(str(done)))
    after = content(done)
    seen = set()
    for remains in crash_points(table, action, tmp_path, every=EVERY):
        found = content(remains.path)
        assert found in (before, after), f"between states, killed before {remains.call}"
        seen.add("after" if found == after else "before")
        opened(open_storage(str(remains.path))).upsert(rows([1, 90], "next"))
        assert content(remains.path) == {**found, 1: "next1", 90: "next90"}, f"killed before {remains.call}"
        assert Table.open(str(remains.path)).validate() == [], f"killed before {remains.call}"
    assert seen == {"before", "after"}
