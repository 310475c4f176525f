"""`hoodie compact` with `--dry-run`: nothing is written, whatever else is asked for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli import main

OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.enable": "false",
}


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    """A table with one log file to compact."""
    made = hoodie.Table.create(str(tmp_path / "trips"), options=OPTIONS)
    for value in (1, 2):
        made.upsert(pa.table({"id": [1], "value": [value]}))
    return made


def test_a_dry_run_of_planning_shows_the_plan_and_stores_none(
    table: hoodie.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compact", table.uri, "--schedule", "--dry-run"]) == 0
    assert "would touch" in capsys.readouterr().out
    assert not table.timeline().pending()


@pytest.mark.parametrize("deed", [["--repair"], ["--unschedule", "20260101000000000"]])
def test_what_has_no_dry_run_says_so(table: hoodie.Table, deed: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compact", table.uri, "--dry-run", *deed]) == 2
    assert "--dry-run" in capsys.readouterr().err
