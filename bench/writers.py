"""Commits a second of writers on partitions of their own, in optimistic concurrency on a local disk, against one.

    python -m bench.writers [--writers 1 4] [--commits 100] [--type COPY_ON_WRITE MERGE_ON_READ]

1. Each writer is a process that upserts ten rows in its own partition again and again; all begin at once.
2. Beside the clock stands the processor time of a commit, of all processes, and what of it is spent between taking the
   lock to commit and giving it back: of that only one writer at a time can do any.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import tempfile
import time
from dataclasses import dataclass
from functools import wraps
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pyarrow as pa

from hoodie.engine import LocalEngine
from hoodie.table import Table
from hoodie.transaction.transaction import Transaction

ROWS = 10
COLUMNS = 12
SCHEMA = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())]
    + [(f"c{number}", pa.string() if number % 3 == 0 else pa.int64()) for number in range(COLUMNS)]
)


def options_of(kind: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "writers",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    }


def rows(writer: int, turn: int) -> pa.Table:
    keys = [f"w{writer}-{number}" for number in range(ROWS)]
    values = {name: [str(turn) if SCHEMA.field(name).type == pa.string() else turn] * ROWS for name in SCHEMA.names[3:]}
    return pa.table({"id": keys, "part": [f"p{writer}"] * ROWS, "ts": [turn] * ROWS, **values}, schema=SCHEMA)


@dataclass(frozen=True, slots=True)
class Work:
    """What each of the writers does."""

    folder: str
    kind: str
    commits: int


def run_writer(work: Work, writer: int, start: Barrier, told: Any) -> None:
    spent: list[float] = []
    commit = Transaction.commit

    @wraps(commit)
    def timed(*given: Any, **named: Any) -> Any:
        before = time.process_time()
        try:
            return commit(*given, **named)
        finally:
            spent.append(time.process_time() - before)

    Transaction.commit = timed  # type: ignore[method-assign]
    table = Table.open(work.folder, options=options_of(work.kind), engine=LocalEngine(1), wait=600)
    start.wait()
    began, cpu = time.monotonic(), time.process_time()
    for turn in range(work.commits):
        table.upsert(rows(writer, turn + 2))
    told.put((began, time.monotonic(), time.process_time() - cpu, sum(spent)))


def measure(writers: int, commits: int, kind: str) -> dict[str, object]:
    folder = tempfile.mkdtemp(prefix="writers_")
    spawn = multiprocessing.get_context("spawn")
    try:
        table = Table.create(f"{folder}/table", schema=SCHEMA, options=options_of(kind), engine=LocalEngine(1))
        table.insert(pa.concat_tables([rows(writer, 1) for writer in range(writers)]))
        start, told = spawn.Barrier(writers), spawn.Queue()
        work = Work(f"{folder}/table", kind, commits // writers)
        running = [spawn.Process(target=run_writer, args=(work, writer, start, told)) for writer in range(writers)]
        for process in running:
            process.start()
        found = [told.get(timeout=3600) for _ in running]
        for process in running:
            process.join()
        last = Table.open(work.folder).scan(columns=["ts"]).read_all().column("ts")
        assert last.to_pylist() == [work.commits + 1] * writers * ROWS
    finally:
        shutil.rmtree(Path(folder), ignore_errors=True)
    done = work.commits * writers
    seconds = max(end for _, end, _, _ in found) - min(began for began, _, _, _ in found)
    return {
        "type": kind,
        "writers": writers,
        "commits": done,
        "commits per second": round(done / seconds, 2),
        "CPU ms per commit": round(sum(cpu for _, _, cpu, _ in found) / done * 1000, 1),
        "of it under the lock": round(sum(spent for *_, spent in found) / done * 1000, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--commits", type=int, default=100, help="of all writers together")
    parser.add_argument("--type", nargs="+", default=["COPY_ON_WRITE", "MERGE_ON_READ"])
    asked = parser.parse_args()
    for kind in asked.type:
        for writers in asked.writers:
            print(json.dumps(measure(writers, asked.commits, kind)), flush=True)


if __name__ == "__main__":
    main()
