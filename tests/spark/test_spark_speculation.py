"""Speculation on a real cluster: the attempt that lost leaves neither rows nor files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from hoodie.spark.java import java_home

pytestmark = [pytest.mark.spark, pytest.mark.long]

PROGRAM = Path(__file__).parent / "programs" / "speculation.py"
DEPLOY = "org.apache.spark.deploy"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The master of a cluster of two workers on hosts of their own: no copy of a task runs on the host of the first."""
    home = Path(pyspark.__file__).parent
    environ = {
        **os.environ,
        "JAVA_HOME": str(java_home(os.environ)),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "PYSPARK_PYTHON": sys.executable,
    }
    run: list[subprocess.Popen[bytes]] = []

    def start(log: Path, *arguments: str) -> None:
        with log.open("wb") as out:
            run.append(
                subprocess.Popen(
                    [home / "bin" / "spark-class", *arguments], env=environ, stdout=out, stderr=subprocess.STDOUT
                )
            )

    try:
        log = tmp_path / "master.log"
        start(log, f"{DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = _waited(log, r"Starting Spark master at (spark://\S+)")
        for number in (2, 3):
            worker = tmp_path / f"worker{number}.log"
            host = ["--host", f"127.0.0.{number}", "--webui-port", "0", "--cores", "2", "--memory", "600m"]
            start(worker, f"{DEPLOY}.worker.Worker", *host, master)
            _waited(worker, "Successfully registered with master")
        yield master
    finally:
        for process in reversed(run):
            process.terminate()
        for process in run:
            process.wait(30)


def _waited(log: Path, words: str) -> str:
    """The first group (or all) of what the log says, as soon as it does."""
    for _ in range(600):
        found = re.search(words, log.read_text(errors="replace"))
        if found is not None:
            return found[found.re.groups]
        time.sleep(0.1)
    raise AssertionError(log.read_text(errors="replace"))


def test_the_attempt_that_lost_leaves_neither_rows_nor_files(cluster: str, tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    run = subprocess.run(
        [sys.executable, PROGRAM, cluster, str(tmp_path / "table"), traces],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    said = json.loads(run.stdout.splitlines()[-1])
    assert said["traces"] == ["bulk_insert-0", "bulk_insert-1", "upsert-0", "upsert-1"]
    assert (said["rows"], said["right"], said["by spark"]) == (4000, True, 4000)
    assert said["findings"] == []
