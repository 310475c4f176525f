"""Spark drivers and Python workers killed by SIGKILL in the middle of a write.

A driver dies with its JVM and its workers when a certain file appears on disk. What it left is read, healed and
continued by this process. When workers only die, Spark runs their tasks again: every row is there once, and of the
first attempts nothing is left.
"""

from __future__ import annotations

import glob
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie import Table
from hoodie.table import as_source, write
from hoodie.testing.orphans import orphans

pytestmark = pytest.mark.spark

PROGRAM = Path(__file__).parent / "programs" / "killed_driver.py"
OLD = range(40_000)
NEW = {"upsert": range(10_000, 40_000), "bulk_insert": range(40_000, 80_000)}
"""The ids of the rows of a write. An upsert brings no new ones: they would go to base files."""
DATA, LOG = "p*/*.parquet", "p*/.*.log.*"
MARKER, INFLIGHT = ".hoodie/.temp/*/p*/*", ".hoodie/timeline/*.inflight"
BEFORE = {n: f"old {n}" for n in OLD}
LIMIT_S = 120
POLL_S = 0.004
NEWEST_ONLY = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


@dataclass
class Driver:
    """A process of `killed_driver.py`."""

    process: subprocess.Popen[str]

    def write(self, base: str, operation: str) -> None:
        """Begin a write of the rows `NEW` says."""
        assert self.process.stdin is not None
        ids = NEW[operation]
        job = {"base": base, "operation": operation, "first": ids.start, "last": ids.stop}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()

    def said(self) -> str:
        """Its next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the driver ended with {self.process.wait()}"
        return line.strip()

    def kill(self) -> None:
        """End it, its JVM and its workers, and wait until they are gone."""
        doomed = [self.process.pid, *_descendants(self.process.pid)]
        for pid in doomed:
            _kill(pid)
        self.process.wait()
        _wait_until(lambda: not any(map(_is_alive, doomed)), "the driver's processes are gone")

    def kill_workers(self) -> int:
        """How many Python workers there were; they are killed."""
        family = _descendants(self.process.pid)
        daemons = {pid for pid, command in family.items() if "pyspark.daemon" in command}
        workers = [pid for pid in daemons if _parent(pid) in daemons]
        for pid in workers:
            _kill(pid)
        return len(workers)


class Drivers:
    """One driver at a time, used until it is killed."""

    def __init__(self) -> None:
        self._last: Driver | None = None

    def running(self) -> Driver:
        if self._last is None or self._last.process.poll() is not None:
            command = [sys.executable, PROGRAM]
            self._last = Driver(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            assert self._last.said() == "ready"
        return self._last

    def stop(self) -> None:
        if self._last is not None:
            self._last.kill()


@pytest.fixture(scope="module")
def drivers() -> Iterator[Drivers]:
    made = Drivers()
    try:
        yield made
    finally:
        made.stop()


def _table(base: Path, table_type: str, version: int) -> str:
    """A table with the rows `OLD`."""
    options = {
        "hoodie.table.name": "killed",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.write.table.version": str(version),
    }
    write(as_source(_rows(OLD, "old", 1)), str(base), options, "append")
    return str(base)


def _rows(ids: range, text: str, ts: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "part": [f"p{n % 2}" for n in ids],
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "v": [f"{text} {n}" for n in ids],
        }
    )


def _values(base: str) -> dict[int, str]:
    found = Table.open(base).scan(columns=["id", "v"]).read_all().to_pydict()
    assert len(found["id"]) == len(set(found["id"])), "a key occurs twice"
    return dict(zip(found["id"], found["v"], strict=True))


def test_rows_of_killed_workers_are_written_once(drivers: Drivers, tmp_path: Path) -> None:
    driver = drivers.running()
    for number, (table_type, moment) in enumerate([("COPY_ON_WRITE", DATA), ("MERGE_ON_READ", LOG)], 1):
        base = _table(tmp_path / table_type, table_type, 9)
        _begin_and_wait(driver, base, "upsert", moment)
        assert driver.kill_workers() > 0
        assert int(driver.said()) >= number, "no task failed"
        assert _values(base) == _after("upsert")
        _ensure_healed(base, "upsert")


@pytest.mark.parametrize(
    ("table_type", "version", "operation", "moment"),
    [
        ("COPY_ON_WRITE", 9, "bulk_insert", DATA),
        ("COPY_ON_WRITE", 6, "upsert", MARKER),
        ("MERGE_ON_READ", 9, "upsert", LOG),
        ("MERGE_ON_READ", 8, "bulk_insert", INFLIGHT),
    ],
)
def test_what_a_killed_driver_left_is_healed(
    drivers: Drivers, table_type: str, version: int, operation: str, moment: str, tmp_path: Path
) -> None:
    base = _table(tmp_path / "table", table_type, version)
    driver = drivers.running()
    _begin_and_wait(driver, base, operation, moment)
    driver.kill()
    print(f"killed at {moment}: {len(Table.open(base).timeline().pending())} pending")
    _ensure_healed(base, operation)


def _after(operation: str) -> dict[int, str]:
    return {**BEFORE, **{n: f"new {n}" for n in NEW[operation]}}


def _begin_and_wait(driver: Driver, base: str, operation: str, moment: str) -> None:
    """A write of the driver has begun, and a file of this kind is new."""
    known = _matching(base, moment)
    driver.write(base, operation)
    _wait_until(lambda: _matching(base, moment) - known, f"there is a new {moment}")


def _ensure_healed(base: str, operation: str) -> None:
    found = _values(base)
    assert found in (BEFORE, _after(operation))
    table = Table.open(base)
    table.upsert(_rows(range(5), "next", 3))
    expected = {**found, **{n: f"next {n}" for n in range(5)}}
    assert _values(base) == expected
    assert table.validate() == []
    while table.config.is_merge_on_read and table.compact() is not None:
        pass
    table.clean(**NEWEST_ONLY)
    assert _values(base) == expected
    assert orphans(base) == []


def _matching(base: str, pattern: str) -> set[str]:
    return set(glob.glob(pattern, root_dir=base, include_hidden=True))


def _wait_until(holds: Any, what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(POLL_S)


def _descendants(pid: int) -> dict[int, str]:
    """The processes below `pid`, with their command lines."""
    parents = {int(name): _parent(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    found: dict[int, str] = {}
    young = {pid}
    while young:
        young = {child for child, parent in parents.items() if parent in young}
        found.update((child, _command(child)) for child in young)
    return found


def _parent(pid: int) -> int:
    """The parent of a process; 0 when it is gone."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def _is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
