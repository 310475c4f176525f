"""`hoodie query` and `hoodie files` on tables with log files, with change data, and by record key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hoodie.cli import main
from hoodie.spec import V9
from hoodie.testing.hand_logs import HandLogTable, at

GROUP = ("p0", "a")
Lines = Callable[..., list[dict[str, Any]]]


def row(key: str, qty: int) -> dict[str, object]:
    return {"id": key, "part": "p0", "qty": qty}


@pytest.fixture
def table(tmp_path: Path) -> str:
    """k1 inserted by 1 and updated by 2 in a log file, which adds k2; copied to a disk, where commands find it."""
    made = HandLogTable(V9, choices={"extra": {"hoodie.table.cdc.enabled": "true"}})
    made.commit(at(1), {GROUP: [row("k1", 1)]}, operation="INSERT", stats={"num_inserts": 1})
    made.delta(at(2), {GROUP: {"rows": [row("k1", 2), row("k2", 2)]}})
    for file in made.storage.list(""):
        path = tmp_path / "t" / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made.storage.read(file.path))
    return str(tmp_path / "t")


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Lines:
    def run(*arguments: str) -> list[dict[str, Any]]:
        assert main([*arguments, "--json"]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def test_query_merges_log_files(table: str, lines: Lines) -> None:
    assert lines("query", table, "--columns", "id,qty") == [{"id": "k1", "qty": 2}, {"id": "k2", "qty": 2}]
    assert lines("query", table, "--columns", "id,qty", "--type", "read_optimized") == [{"id": "k1", "qty": 1}]
    asked = ("--type", "incremental", "--begin", at(1, 500))
    assert len(lines("query", table, *asked)) == 2


def test_query_by_key(table: str, lines: Lines, capsys: pytest.CaptureFixture[str]) -> None:
    assert lines("query", table, "--key", "k2", "--key", "none", "--columns", "id,qty") == [{"id": "k2", "qty": 2}]
    assert main(["query", table, "--key", "k2", "--where", "qty = 2"]) == 2
    assert "--key belongs to snapshot queries" in capsys.readouterr().err


def test_query_of_changes(table: str, lines: Lines) -> None:
    found = lines("query", table, "--type", "cdc", "--begin", at(1, 500))
    assert sorted((one["op"], json.loads(one["after"])["qty"]) for one in found) == [("i", 2), ("u", 2)]


def test_files_shows_log_files(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["files", table, "--json"]) == 0
    (part,) = json.loads(capsys.readouterr().out)
    assert part["log_files"] == [f".a_{at(2)}.log.1_0-1-2"]
    assert main(["files", table]) == 0
    assert "1 (" in capsys.readouterr().out
