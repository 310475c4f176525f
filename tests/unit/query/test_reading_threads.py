"""Rows are read by as many threads as the engine given to `open` has; plans that never hold are refused."""

from __future__ import annotations

import importlib

import pytest

from hoodie.engine import LocalEngine
from hoodie.errors import Unavailable
from hoodie.table import Table
from hoodie.testing.lake import Lake, row

READING = importlib.import_module("hoodie.query.run_read")  # the package exports a function of this name


@pytest.fixture
def lake() -> Lake:
    made = Lake()
    made.upsert(*(row(f"k{n}", part=f"p{n}") for n in range(4)))
    return made


def test_scan_and_lookup_read_with_the_engine_of_open(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    inner = READING.stream

    def watched(files, rows, storage, parallelism, watch):
        asked.append(parallelism)
        return inner(files, rows, storage, parallelism, watch)

    monkeypatch.setattr(READING, "stream", watched)
    for threads in (1, 3):
        table = Table.open(lake.uri, engine=LocalEngine(threads))
        assert table.scan().read_all().num_rows == 4
        assert table.lookup(["k1", "k2"]).read_all().num_rows == 2
    assert asked == [1, 1, 3, 3]


def test_a_plan_under_which_the_table_changes_each_time_is_not_used(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hoodie.query.settled._holds", lambda *_: False)
    with pytest.raises(Unavailable, match="changed while it was looked at, 8 times"):
        lake.table.scan()
