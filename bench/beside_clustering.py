"""What commits cost while a clustering of other file groups runs beside them, against the same commits alone.

`python -m bench.beside_clustering [--rows 3000000] [--files 200] [--commits 20] [--nice 10]` prints seconds of the
commits. A table has a partition of many small files, which a process clusters by a column, and another one into which
this process upserts a hundred rows at a time. Both share the machine: processor time tells what the commits do more,
the clock what they wait for as well. With `--nice` the clustering runs at a lower priority, as by
`nice -n 10 hoodie cluster`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from hoodie import Table

OPTIONS = {
    "hoodie.table.name": "beside",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}
CLUSTERING = {
    "hoodie.clustering.plan.strategy.sort.columns": "x",
    "hoodie.clustering.plan.strategy.partition.selected": "many",
}
TOUCHED = 100
WARM_UP = 3


def rows_of(start: int, count: int, part: str, ts: int) -> pa.Table:
    """Rows with these numbers as keys."""
    ids = np.arange(start, start + count)
    values = np.random.default_rng(abs(start) + ts).integers(0, 1 << 40, count)
    texts = pa.array(ids).cast(pa.string())
    return pa.table(
        {
            "id": texts,
            "part": pa.array([part] * count),
            "ts": pa.array(np.full(count, ts)),
            "x": pa.array(values),
            "text": texts,
        }
    )


def commit(table: Table, number: int) -> tuple[float, float]:
    """Seconds of the clock and of the processor for one upsert."""
    clock, processor = time.perf_counter(), time.process_time()
    table.upsert(rows_of(-TOUCHED, TOUCHED, "few", number))
    return time.perf_counter() - clock, time.process_time() - processor


def cluster(uri: str, begun: multiprocessing.synchronize.Event, niceness: int) -> None:
    """Clusters the partition of many files."""
    os.nice(niceness)
    table = Table.open(uri, options=OPTIONS)
    begun.set()
    assert table.services.cluster(**CLUSTERING) is not None


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--commits", type=int, default=20)
    parser.add_argument("--nice", type=int, default=0)
    asked = parser.parse_args()
    uri = str(Path(tempfile.mkdtemp()) / "table")
    batch = asked.rows // asked.files
    table = Table.create(uri, schema=rows_of(0, 1, "many", 0).schema, options=OPTIONS)
    for number in range(asked.files):
        table.append(rows_of(number * batch, batch, "many", 0))
    table.upsert(rows_of(-TOUCHED, TOUCHED, "few", 0))
    for number in range(WARM_UP):
        commit(table, number)
    alone = [commit(table, number) for number in range(asked.commits)]
    spawn = multiprocessing.get_context("spawn")
    begun = spawn.Event()
    other = spawn.Process(target=cluster, args=(uri, begun, asked.nice))
    other.start()
    begun.wait()
    beside = []
    while other.is_alive():
        beside.append(commit(table, len(beside)))
    other.join()
    after = [commit(table, number) for number in range(asked.commits)]
    assert other.exitcode == 0
    for name, found in (("alone", alone), ("beside", beside), ("after", after)):
        clock, processor = (statistics.median(one[at] for one in found) for at in (0, 1))
        print(f"{name}: {len(found)} commits, {clock:.3f} s by the clock, {processor:.3f} s of the processor")


if __name__ == "__main__":
    main()
