"""One `Table` that threads share."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from hoodie.engine import LocalEngine
from hoodie.env import Env
from hoodie.errors import Conflict
from hoodie.locks import LockOptions, held_lock
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage
from hoodie.table import Table, opened
from hoodie.testing.lake import Lake, row, table_of


def test_threads_read_whole_commits_while_one_writes(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a", "0"), row("b", "0"))
    table = lake.table

    def read(_: int) -> set[str]:
        return set(table.scan(["v"]).read_all()["v"].to_pylist())

    with ThreadPoolExecutor(6) as pool:
        reads = pool.map(read, range(60))
        for number in range(1, 6):
            table.upsert(table_of([row("a", str(number), number), row("b", str(number), number)]))
        found = list(reads)
    assert all(len(values) == 1 for values in found)
    assert read(0) == {"5"}


def test_threads_that_write_meet_as_processes_do(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("first"))
    table = lake.table

    def write(number: int) -> bool:
        try:
            table.upsert(table_of([row(f"k{number}")]))
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(write, range(8)))
    assert any(done)
    assert set(lake.values()) == {"first", *(f"k{number}" for number, ok in enumerate(done) if ok)}
    assert table.validate() == []


def test_a_service_goes_on_from_the_table_as_it_was_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread's look at the table in between does not count."""
    lake = Lake()
    lake.upsert(row("a"))
    locked: list[TableHandle] = []
    held_table = opened.held_table

    @contextmanager
    def held(storage: Storage, what: str, env: Env, options: LockOptions) -> Iterator[TableHandle]:
        with held_table(storage, what, env, options) as handle:
            locked.append(handle)
            yield handle

    class Raced(opened.OpenedTable):
        """Another thread always looks last."""

        @property
        def handle(self) -> TableHandle:
            return old

        @handle.setter
        def handle(self, handle: TableHandle) -> None:
            del handle

    old = lake.handle()
    monkeypatch.setattr(opened, "held_table", held)
    with Raced(old, dict(lake.options), LocalEngine(1)).held("test") as handle:
        assert handle is not old
        assert [handle] == locked


def test_of_32_threads_on_one_table_each_gets_through() -> None:
    lake = Lake(options={"hoodie.metadata.enable": "false"})
    lake.upsert(row("first"))
    table = Table.open(lake.uri, options=lake.options, wait=60)

    def write(number: int) -> None:
        table.upsert(table_of([row(f"k{number}")]))

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(write, range(32)))
    assert set(lake.values()) == {"first", *(f"k{number}" for number in range(32))}


def test_who_does_not_wait_hears_who_is_at_work() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    table = Table.open(lake.uri, options=lake.options, wait=0)
    with held_lock(lake.storage, "a backfill"), pytest.raises(Conflict, match="a backfill by process .* since .*clean"):
        table.services.clean()
