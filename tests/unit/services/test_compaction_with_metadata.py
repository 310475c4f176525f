"""A compaction and the metadata table: it knows new base files once they count, and forgets those that never did."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.locks import held_lock
from hoodie.query import ReadOptions, load_read_plan, run_read, validate_table
from hoodie.services.compaction.admin import unschedule_compaction
from hoodie.services.compaction.compact import run_compaction, schedule_compaction
from hoodie.spec import COMPACTION
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.storage import Storage, open_storage
from hoodie.table import as_source, write
from hoodie.testing.counting_storage import CountingStorage, Crash

WRITE = "hoodie.datasource.write."
MADE = {
    WRITE + "table.type": "MERGE_ON_READ",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "part",
    WRITE + "precombine.field": "qty",
    "hoodie.table.name": "kept",
    "hoodie.metadata.enable": "true",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
CONFIG = resolve({"hoodie.index.bloom.num_entries": "100"})
ENGINE = LocalEngine(1)
ROWS = [("k0", 9), ("k1", 9), ("k2", 1), ("k3", 1)]


@pytest.fixture
def table(version: int, tmp_path: Path) -> Path:
    """Two updates in logs; its metadata table knows all of it."""
    base = tmp_path / "table"
    for operation, keys, qty in (("insert", range(4), 1), ("upsert", range(2), 9)):
        rows = pa.table({"id": [f"k{n}" for n in keys], "part": ["p"] * len(keys), "qty": [qty] * len(keys)})
        options = {**MADE, "hoodie.write.table.version": str(version), WRITE + "operation": operation}
        write(as_source(rows), str(base), options, "append")
    return base


def handle_on(storage: Storage) -> TableHandle:
    return load_handle(storage, SystemEnv())


def rows_of(handle: TableHandle, query: str = "snapshot") -> list[tuple[object, object]]:
    plan = load_read_plan(handle.storage, handle.config, timeline_of(handle), ReadOptions(query=query))  # type: ignore[arg-type]
    got = run_read(plan, handle.storage).read_all()
    return sorted(zip(got["id"].to_pylist(), got["qty"].to_pylist(), strict=True))


def schedule(handle: TableHandle) -> str:
    with held_lock(handle.storage, "plan"):
        planned = schedule_compaction(handle, CONFIG, ENGINE, when_due=False)
    assert planned is not None
    return planned.requested


def calls_to_run(table: Path, scratch: Path) -> list[str]:
    shutil.copytree(table, scratch)
    counting = CountingStorage(open_storage(str(scratch)))
    run_compaction(handle_on(counting), CONFIG, ENGINE)
    return [f"{call.op} {call.path}" for call in counting.calls]


def test_the_new_base_file_is_listed(table: Path) -> None:
    handle = handle_on(open_storage(str(table)))
    assert handle.config.metadata_partitions
    schedule(handle)
    assert run_compaction(handle, CONFIG, ENGINE) is not None
    assert validate_table(handle, ENGINE) == []
    assert rows_of(handle) == rows_of(handle, "read_optimized") == ROWS


@pytest.mark.parametrize("then", ["retry", "unschedule"])
def test_death_between_the_metadata_table_and_the_commit(table: Path, tmp_path: Path, then: str) -> None:
    """The metadata table has been told, and the compaction never completes, or does by the next run."""
    plain = open_storage(str(table))
    instant = schedule(handle_on(plain))
    calls = calls_to_run(table, tmp_path / "scratch")
    done = next(
        at
        for at, call in enumerate(calls, 1)
        if call.startswith("create ") and "/metadata/" not in call and call.endswith(".commit") and instant in call
    )
    with pytest.raises(Crash):
        run_compaction(handle_on(CountingStorage(plain, crash_at=done)), CONFIG, ENGINE)
    handle = handle_on(plain)
    assert rows_of(handle) == ROWS
    if then == "retry":
        assert run_compaction(handle, CONFIG, ENGINE) is not None
    else:
        with held_lock(plain, "unschedule"):
            unschedule_compaction(handle, ENGINE, instant)
        assert not [one for one in timeline_of(handle).pending() if one.action == COMPACTION]
    assert validate_table(handle, ENGINE) == []
    assert rows_of(handle) == ROWS
    if then == "unschedule":
        schedule(handle)
        run_compaction(handle, CONFIG, ENGINE)
    assert rows_of(handle, "read_optimized") == ROWS
    assert validate_table(handle, ENGINE) == []
