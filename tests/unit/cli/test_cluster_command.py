"""`hoodie cluster` with `--dry-run`: nothing is written, and what is shown is what the same command would do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli import main
from hoodie.table import Table

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = hoodie.Table.create(str(tmp_path / "trips"), options=OPTIONS)
    for number in range(3):
        made.append(pa.table({"id": [number], "city": ["rome"], "value": [number]}))
    return made


def plan(table: Table, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    before = sorted(Path(table.uri).rglob("*"))
    assert main(["cluster", table.uri, "--dry-run", "--json", *arguments]) == 0
    assert sorted(Path(table.uri).rglob("*")) == before
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("op", ["list", "expire", "unschedule"])
def test_what_makes_no_plan_has_no_dry_run(table: Table, op: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", table.uri, "--dry-run", "--op", op]) == 2
    assert "list only tells what is pending" in " ".join(capsys.readouterr().err.split())


def test_a_pending_plan_is_what_would_be_carried_out_but_for_a_new_one(
    table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(plan(table, capsys)["steps"]) == 1
    assert plan(table, capsys, "--op", "execute")["notes"] == ["no plan is pending"]
    assert main(["cluster", table.uri, "--op", "schedule", "--json"]) == 0
    instant = json.loads(capsys.readouterr().out)["instant"]
    for asked in ([], ["--op", "execute"], ["--instant", instant]):
        assert instant in plan(table, capsys, *asked)["notes"][0]
    assert plan(table, capsys, "--op", "schedule")["notes"] == ["no files are worth rewriting"]
    assert main(["cluster", table.uri, "--dry-run", "--instant", "20200101000000000"]) == 2
    assert f"Pending are: {instant}" in " ".join(capsys.readouterr().err.split())


def test_an_append_waits_as_long_as_it_is_told(
    table: Table, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("id,city,value\n9,rome,9\n")
    assert main(["append", table.uri, "--input", str(rows), "--wait", "0"]) == 0
    assert main(["append", table.uri, "--input", str(rows), "--wait", "-1"]) == 2
    assert "-1" in capsys.readouterr().err
