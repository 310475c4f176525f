"""The benchmark works from inputs to report, at a small scale and without a time limit: ours beside plain parquet."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STEPS = ["bulk_insert", "upsert_1pct", "upsert_10pct", "upsert_100", "small_upserts", "small_log_upserts"]
READS = ["scan_cold", "scan_warm", "scan_plain", "point_query", "incremental"]

FAR = ["far_upsert", "far_local_upsert"]


@pytest.mark.spark
@pytest.mark.long(turns=4)
def test_a_small_benchmark_runs_all_steps_and_writes_its_page(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    folders = ["--data", str(tmp_path / "data"), "--work", str(tmp_path / "work"), "--out", str(results)]
    size = ["--scale", "0.002", "--rounds", "1", "--repeats", "2", "--memory-gb", "0.01", "--memory", "1g"]
    command = [sys.executable, "bench/run.py", "--peers", "ours,plain", *size, *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    measured = json.loads(results.read_text())
    ours = {measure["step"]: measure for measure in measured["measures"] if measure["peer"] == "ours"}
    assert all(ours[step]["seconds"] for step in [*STEPS, *READS, "memory_upsert"])
    assert ours["bulk_insert"]["memory_mib"]["total"] > 0
    assert measured["disagreements"] == []

    page = tmp_path / "benchmarks.md"
    subprocess.run([sys.executable, "bench/report.py", str(page), str(results)], cwd=ROOT, check=True)
    assert "## Seconds (median)" in page.read_text()


@pytest.mark.spark
@pytest.mark.long(turns=4)
def test_small_upserts_on_a_store_far_away_take_turns_and_their_requests_are_counted(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    folders = ["--data", str(tmp_path / "data"), "--work", str(tmp_path / "work"), "--out", str(results)]
    size = ["--scale", "0.002", "--rounds", "1", "--repeats", "2", "--memory", "1g"]
    command = [sys.executable, "bench/run.py", "--peers", "ours", "--part", "s3", *size, *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    measured = json.loads(results.read_text())
    for step in FAR:
        upserts = [measure for measure in measured["measures"] if measure["step"] == step]
        assert len(upserts) == 2
        for upsert in upserts:
            assert 1 < upsert["one_after_the_other"] < upsert["requests"]
            assert upsert["seconds"][0] > 0.030 * upsert["one_after_the_other"]
    rows = {json.dumps(measure["check"]) for measure in measured["measures"] if measure["step"].endswith("_rows")}
    assert len(rows) == 1
    assert measured["disagreements"] == []

    page = tmp_path / "benchmarks.md"
    subprocess.run([sys.executable, "bench/report.py", str(page), str(results)], cwd=ROOT, check=True)
    assert "requests one after the other | <= 25 |" in page.read_text()


@pytest.mark.spark
@pytest.mark.long(turns=4)
def test_bulk_inserts_into_many_partitions_are_held_against_few(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    folders = ["--data", str(tmp_path / "data"), "--work", str(tmp_path / "work"), "--out", str(results)]
    size = ["--scale", "0.001", "--rounds", "1", "--memory", "1g", "--partitions", "150"]
    command = [sys.executable, "bench/run.py", "--peers", "ours", "--part", "partitions", *size, *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    took = {measure["step"]: measure["seconds"] for measure in json.loads(results.read_text())["measures"]}
    steps = [f"{count}_partitions{engine}" for count in ("many", "few") for engine in ("", "_spark")]
    assert [len(took[step]) for step in steps] == [1, 1, 1, 1]

    page = tmp_path / "benchmarks.md"
    subprocess.run([sys.executable, "bench/report.py", str(page), str(results)], cwd=ROOT, check=True)
    assert page.read_text().count("against 100 partitions | <= 2.0x |") == 2
