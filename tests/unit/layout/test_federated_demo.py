"""`make demo-federated` does what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[3] / "examples" / "federated_demo.py"


def test_the_demo_runs_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(DEMO))["main"](tmp_path)
    said = capsys.readouterr().out
    assert "at the table path: 0 data files" in said
    assert "4000 rows again; concerns: 0" in said
