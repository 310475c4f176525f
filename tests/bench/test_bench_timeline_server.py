"""What timeline servers were asked becomes a part of the page of benchmarks; our servers are asked at a small scale."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("uvicorn", reason="needs the extra `server`")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark, in which another server of ours stands for that of Hudi."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    spec = importlib.util.spec_from_file_location("bench_timeline_server", ROOT / "bench" / "timeline_server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_timeline_server", module)
    spec.loader.exec_module(module)

    @contextmanager
    def instead(root: Path, **options: bool) -> Iterator[object]:
        with module.ours(root, "memory", *(["--markers"] if options.get("markers") else [])) as server:
            yield server

    monkeypatch.setattr(module, "theirs", instead)
    monkeypatch.setattr(module, "STORES", {"memory": "hoodie, in memory", "disk": "hoodie, on disk"})
    monkeypatch.setattr(module, "ASKED", 5)
    return module


def test_a_small_run_has_all_figures_and_its_part_of_the_page(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, page = tmp_path / "results.json", tmp_path / "page.md"
    size = ["--files", "300", "--touched", "2", "--rounds", "1", "--seconds", "0.5", "--connections", "4"]
    monkeypatch.setattr(sys, "argv", ["timeline_server.py", *size, "--into", str(results)])
    bench.main()
    found = json.loads(results.read_text())["timeline_server"]
    assert [one["server"] for one in found["views"]] == ["hoodie, in memory", "hoodie, on disk"]
    assert all(one["look_up_p99_ms"] >= one["look_up_ms"] > 0 for one in found["views"])
    assert all(one["whole_ms"] > 0 and one["sync_ms"] > 0 for one in found["views"])
    assert {one["server"] for one in found["markers"]} == {"hoodie", bench.HUDI}
    assert all(one["a_second"] > 0 for one in found["markers"])
    subprocess.run([sys.executable, "bench/report.py", str(page), str(results)], cwd=ROOT, check=True)
    told = page.read_text()
    assert "## Timeline servers" in told
    assert "the first look-up after a commit of 2 files" in told
    assert "| hoodie, in memory: all slices to one client | <= 300 ms |" in told
