"""Workers of a local session: forked from a process that has loaded hoodie, unless the user says otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import hoodie

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DAEMON = "hoodie.spark.worker_daemon"
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
SESSIONS = """
import json, os, sys
import hoodie
for environment, said in json.loads(sys.argv[1]):
    os.environ.pop("PYSPARK_PYTHON", None)
    os.environ.update(environment)
    spark = hoodie.session("said", **{"spark.ui.enabled": False, "spark.driver.memory": "1g", **said})
    print(spark.sparkContext.getConf().get("spark.python.daemon.module"))
    spark.stop()
"""
BEFORE_FORKS = """
import os, sys
from hoodie.spark.worker_daemon import load
load()
threads = {open(f"/proc/self/task/{one}/comm").read().strip() for one in os.listdir("/proc/self/task")}
count = len(os.listdir("/proc/self/task"))
print("hoodie.slices" in sys.modules, "pandas" in sys.modules, count - ("jemalloc_bg_thd" in threads))
"""
RANDOM = """
import os, sys
import numpy.random
from hoodie.spark.worker_daemon import load
load()
for _ in range(2):
    if os.fork() == 0:
        os.write(1, f"{numpy.random.rand()} ".encode())
        os._exit(0)
    os.wait()
"""
IMPORTING = """
import hoodie

def found(batches):
    import pyarrow
    for batch in batches:
        try:
            import mine
            text = str(mine.number)
        except ImportError:
            text = "nothing"
        yield pyarrow.RecordBatch.from_pydict({"found": [text]})

spark = hoodie.session("importing", **{"spark.ui.enabled": False, "spark.driver.memory": "1g"})
(row,) = spark.range(0, 1, 1, 1).mapInArrow(found, "found string").collect()
print(spark.sparkContext.getConf().get("spark.python.daemon.module"), row.found)
spark.stop()
"""
BROKEN = """
import sys
from unittest import mock
from hoodie.spark import worker_daemon
print("loads", flush=True)
with mock.patch.object(worker_daemon, "WORKERS_LOAD", ("nobody_has_this", "this")):
    worker_daemon.load()
print("this" in sys.modules)
"""


def test_workers_are_forked_from_our_daemon_which_has_loaded_arrow(spark: SparkSession) -> None:
    def parents(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            parent = Path(f"/proc/{os.getppid()}")
            command, loaded = ((parent / name).read_text() for name in ("cmdline", "maps"))
            yield pa.RecordBatch.from_pydict({"command": [command], "has_arrow": ["libarrow" in loaded]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(parents, "command string, has_arrow boolean").collect()
    assert DAEMON in row.command.split("\0")
    assert row.has_arrow


def test_the_daemon_loads_no_pandas_and_starts_no_thread() -> None:
    assert _printed(BEFORE_FORKS, environment=ONE_THREAD) == "True False 1"


@pytest.mark.parametrize("said", [{"OMP_NUM_THREADS": "2"}, {**ONE_THREAD, "OPENBLAS_NUM_THREADS": "8"}], ids=str)
def test_where_numpy_may_start_threads_nothing_is_loaded(said: dict[str, str]) -> None:
    assert _printed(BEFORE_FORKS, environment=said).startswith("False False")


def test_workers_draw_numbers_of_their_own() -> None:
    first, second = _printed(RANDOM, environment=ONE_THREAD).split()
    assert first != second


def test_a_module_that_cannot_be_loaded_or_that_prints_does_not_end_the_daemon() -> None:
    assert _printed(BROKEN, environment=ONE_THREAD) == "loads\nTrue"  # `import this` prints a poem


def test_what_the_user_says_about_workers_wins() -> None:
    cases = {
        DAEMON: ({}, {}),
        "pyspark.daemon": ({}, {"spark.python.daemon.module": "pyspark.daemon"}),
        "None": ({}, {"spark.pyspark.python": "/usr/bin/python3"}),
        "None ": ({"PYSPARK_PYTHON": "/usr/bin/python3"}, {}),
    }
    assert _printed(SESSIONS, json.dumps(list(cases.values()))).split() == [one.strip() for one in cases]


def test_a_hoodie_that_only_the_driver_finds_is_not_asked_of_the_daemon(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "hoodie").symlink_to(Path(hoodie.__file__).parent)
    program = f"import sys; sys.path.insert(0, {str(code)!r})" + SESSIONS
    assert _printed(program, json.dumps([({}, {})])) == "None"


def test_workers_import_nothing_from_a_folder_that_the_driver_does_not_import_from(tmp_path: Path) -> None:
    (here := tmp_path / "here").mkdir()
    for name in ("json", "pyarrow", "pyspark", "numpy", "hoodie", "importlib"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    (here / "mine.py").write_text("number = 7")
    program = tmp_path / "program.py"
    program.write_text(IMPORTING)
    assert _run([str(program)], cwd=here) == f"{DAEMON} nothing"
    assert not (tmp_path / "ran").exists()
    for path in here.iterdir():
        if path.name != "mine.py":
            path.unlink()
    assert _run(["-c", IMPORTING], cwd=here) == f"{DAEMON} 7"


def _printed(program: str, *arguments: str, environment: dict[str, str] | None = None) -> str:
    return _run(["-c", program, *arguments], environment=environment)


def _run(arguments: list[str], *, environment: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=cwd,
        env={**known, **(environment or {})},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()
