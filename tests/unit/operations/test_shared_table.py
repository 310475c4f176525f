"""One `Table` that threads share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from hoodie.errors import Conflict
from hoodie.handle import TableHandle
from hoodie.table import Table
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
    table = lake.table
    old = table._opened.handle
    monkeypatch.setattr(Table, "_handle", property(lambda _: old, lambda _, handle: None), raising=False)
    with table._opened.held("test") as handle:
        assert isinstance(handle, TableHandle)
        assert handle is not old
