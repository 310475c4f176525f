"""Workers of a local session: forked from a process that has loaded hoodie, unless the user says otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DAEMON = "hoodie.spark.worker_daemon"
SAY = """
import sys
import hoodie
conf = dict(pair.split("=") for pair in sys.argv[1:])
spark = hoodie.session("said", **{"spark.ui.enabled": False, "spark.driver.memory": "1g", **conf})
print(spark.sparkContext.getConf().get("spark.python.daemon.module"))
"""
BEFORE_FORKS = """
import sys, threading
from hoodie.spark.worker_daemon import load
load()
print("hoodie.read" in sys.modules, "pandas" in sys.modules, threading.active_count())
"""


def test_workers_are_forked_from_our_daemon(spark: SparkSession) -> None:
    def parents(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            command = Path(f"/proc/{os.getppid()}/cmdline").read_text()
            yield pa.RecordBatch.from_pydict({"command": [command]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(parents, "command string").collect()
    assert DAEMON in row.command.split("\0")


def test_the_daemon_loads_no_pandas_and_starts_no_thread() -> None:
    assert _printed(BEFORE_FORKS) == "True False 1"


@pytest.mark.parametrize(
    ("environment", "said", "module"),
    [
        ({}, (), DAEMON),
        ({}, ("spark.python.daemon.module=pyspark.daemon",), "pyspark.daemon"),
        ({}, ("spark.pyspark.python=/usr/bin/python3",), "None"),
        ({"PYSPARK_PYTHON": "/usr/bin/python3"}, (), "None"),
    ],
)
def test_what_the_user_says_about_workers_wins(environment: dict[str, str], said: tuple[str, ...], module: str) -> None:
    assert _printed(SAY, *said, environment=environment) == module


def _printed(program: str, *arguments: str, environment: dict[str, str] | None = None) -> str:
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**known, **(environment or {})},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()[-1]
