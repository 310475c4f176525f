"""The benchmark of the metadata table works at a small scale."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_a_small_metadata_table_is_made_listed_and_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("bench_metadata", ROOT / "bench" / "metadata.py")
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    bench.PARTITIONS, bench.FILES, bench.KEYS, bench.GROUPS, bench.ASKED = 3, 30, 500, 2, 10
    bench.main(tmp_path)
    said = capsys.readouterr().out
    assert "30 files in 3 partitions" in said
    assert said.count("10 found") + said.count(", 9 found") + said.count(", 8 found") == 3
