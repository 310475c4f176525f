"""The benchmark of storage paths works at a small scale, from measures to the page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long(turns=4)
def test_storage_paths_are_measured_and_stand_on_the_page(tmp_path: Path) -> None:
    found, page = tmp_path / "storage-paths.md", tmp_path / "page.md"
    small = ["--files", "300", "--rows", "800", "--rounds", "1", "--out", str(found)]
    subprocess.run([sys.executable, "bench/prefixes.py", *small], cwd=ROOT, check=True)
    subprocess.run([sys.executable, "bench/report.py", str(page), str(found)], cwd=ROOT, check=True)
    text = page.read_text()
    assert text.startswith("# Benchmarks")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| clean of")]
    assert [row[0] for row in rows] == ["| clean of 48 files", "| clean of 480 files"]
    assert all(float(row[3].rstrip(" |")) > 0 for row in rows)
    assert "| 256 prefixes | 1.6 s | 0 | 0 |" in text
