"""The core of the adapter where executors are processes of their own, and on an object store Spark does not know."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hoodie.testing.s3_server import S3Server, s3_bucket, s3_server  # noqa: F401  (fixtures)

pytestmark = [pytest.mark.spark, pytest.mark.long]

PROGRAMS = Path(__file__).parent / "programs"
CORE = PROGRAMS / "core_subset.py"
ROWS = 20_000
LAID_OUT_ROWS = int(os.environ.get("HOODIE_LAID_OUT_ROWS", "200000"))
"""A million were laid out as well, by hand."""
CHANGED = 200
MORE = 50


def _run(program: Path, *arguments: str) -> dict[str, Any]:
    run = subprocess.run(
        [sys.executable, program, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return json.loads(run.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def _ensure_right(said: dict[str, Any]) -> None:
    kept = range(10, ROWS)
    assert said["count"] == ROWS + MORE - 10
    assert said["changed"] == CHANGED - 1
    assert said["new partition"] == MORE
    assert said["sum"] == sum(-1 if n % 100 == 7 else 2 * n for n in kept) - 2 * MORE
    assert said["before"] == ROWS
    assert said["incremental"] == CHANGED - 1 + MORE
    assert "id" in said["null key"]
    assert said["after the failure"] == said["count"]
    assert said["findings"] == []


def test_core_subset_on_a_local_cluster(tmp_path: Path) -> None:
    said = _run(CORE, "local-cluster[2,1,1024]", str(tmp_path / "core"), "{}")
    _ensure_right(said)
    assert said["pids"] >= 2
    assert said["binding"] in ("127.0.0.1", "localhost")


def test_core_subset_on_s3(s3_server: S3Server, s3_bucket: str) -> None:  # noqa: F811
    said = _run(CORE, "local[2]", f"s3://{s3_bucket}/tables/core", json.dumps(s3_server.options))
    _ensure_right(said)


def test_rows_are_appended_stitched_and_clustered_on_a_local_cluster(tmp_path: Path) -> None:
    """The larger data set of RFC-19's test plan: rows, commit times and the record index stay, files become few."""
    rows = LAID_OUT_ROWS
    said = _run(PROGRAMS / "laid_out.py", "local-cluster[2,1,1024]", str(tmp_path / "events"), str(rows))
    assert said["appended"]["n"] == said["appended"]["ids"] == rows
    assert said["appended"]["v"] == sum(range(rows))
    assert said["appended"]["commits"] == 4
    assert said["stitched"] == said["clustered"] == said["before"] == said["appended"]
    assert said["kinds"] == ["ClusteringResult", "ClusteringResult"]
    appended, stitched, clustered = said["files"]
    assert appended >= 8 > stitched
    assert clustered >= 8  # on a curve
    assert said["new since"] == 0
    assert 0 < said["corner"] < rows // 100
    assert said["corner files"] <= clustered // 4
    assert said["found"] == 2
    assert said["findings"] == []
