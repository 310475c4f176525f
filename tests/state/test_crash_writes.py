"""A writer that dies anywhere leaves the table as it was or as it should become; the next write works.

The writer is a process that is killed before a change of the disk, or in the middle of a write (`testing.killed`), of a
table with all files in its own folder, or with data files under sixteen prefixes of another.
`HOODIE_CRASH_EVERY` thins the points out (`make test-deep` takes a sample, `make crash` every change).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.engine import LocalEngine
from hoodie.table import Table, as_source, write
from hoodie.testing.killed import Killer, unsynced

EVERY = int(os.environ.get("HOODIE_CRASH_EVERY", "13"))
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


def opened(path: str) -> Table:
    """The table in a folder, which may keep its files in the folder beside it."""
    options = {**BLOOM, "hoodie.storage.allowed.roots": f"{path}/root"}
    return Table.open(f"{path}/table", options=options, engine=LocalEngine(2))


def upsert(path: str) -> object:
    return opened(path).upsert(rows([2, 3, 11], "new"))


def bulk_insert(path: str) -> object:
    return opened(path).bulk_insert(rows([20, 21], "bulk"))


def insert_overwrite(path: str) -> object:
    return opened(path).insert_overwrite(rows([40], "over"))


def delete(path: str) -> object:
    return opened(path).delete(rows([1, 2], ""))


def delete_partition(path: str) -> object:
    return opened(path).delete_partition("odd")


def content(path: Path) -> dict[int, str]:
    table = opened(str(path)).scan(columns=["id", "label"]).read_all()
    ids = table.column("id").to_pylist()
    assert len(ids) == len(set(ids)), "a key occurs twice"
    return dict(zip(ids, table.column("label").to_pylist(), strict=True))


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as one, unsynced():
        yield one


@pytest.fixture
def folder(tmp_path: Path, version: int, strategy: str) -> Path:
    """A folder with a table, and what it keeps elsewhere."""
    path = tmp_path / "lake"
    options = {
        "hoodie.table.name": "crash",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.write.table.version": str(version),
        **BLOOM,
    }
    if strategy:
        options |= {"hoodie.storage.path": f"{path}/root", "hoodie.storage.strategy": strategy}
    write(as_source(rows([1, 2, 3, 4], "")), f"{path}/table", options, "append")
    return path


def mend(path: Path) -> None:
    """What a user does whose table with storage paths lost its metadata table to a write that was killed."""
    table = opened(str(path))
    if table.config.is_federated and not table.config.is_metadata_table_ready:
        table.indexes.rebuild()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("version", "strategy"), [(6, ""), (8, ""), (9, ""), (6, "bits:4"), (9, "bits:4")], ids=str)
@pytest.mark.parametrize("action", [upsert, delete, bulk_insert, insert_overwrite, delete_partition])
def test_killed_writer_leaves_before_or_after_and_next_write_succeeds(
    action: Callable[[str], object], folder: Path, strategy: str, killer: Killer, tmp_path: Path
) -> None:
    before = content(folder)
    kept = tmp_path / "kept"  # a copy would still name the storage path of the first
    shutil.copytree(folder, kept)
    count = len(killer.changes(action, str(folder)))
    after = content(folder)
    seen = set()
    for at in [*range(1, count + 1, EVERY * (3 if strategy else 1)), count + 1]:
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)
        killed_at = killer.kill(action, str(folder), at)
        mend(folder)
        found = content(folder)
        assert found in (before, after), f"between states, killed at: {killed_at}"
        seen.add("after" if found == after else "before")
        opened(str(folder)).upsert(rows([1, 90], "next"))
        assert content(folder) == {**found, 1: "next1", 90: "next90"}, f"killed at: {killed_at}"
        assert opened(str(folder)).validate() == [], f"killed at: {killed_at}"
    assert seen == {"before", "after"}
