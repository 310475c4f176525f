"""A process that clusters a group of 2 GB stays below 1 GiB."""

from __future__ import annotations

import multiprocessing
import resource
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hoodie import Table
from hoodie.services.clustering import rewrite

ROWS = 500_000
TEXT = 216
TIMES = 19
OPTIONS = {
    "hoodie.table.name": "large",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.parquet.max.file.size": str(1 << 30),
}
CLUSTER = {
    "hoodie.clustering.plan.strategy.sort.columns": "a,b",
    "hoodie.memory.compaction.max.size": str(1 << 30),  # the default of any machine with more than some gigabytes
}


def rows():
    """Rows of some 250 bytes that no codec makes smaller."""
    chance = np.random.default_rng(1)
    offsets = pa.py_buffer((np.arange(ROWS + 1) * TEXT).astype(np.int32).tobytes())
    text = pa.Array.from_buffers(pa.binary(), ROWS, [None, offsets, pa.py_buffer(chance.bytes(ROWS * TEXT))])
    ids = np.arange(ROWS)
    numbers = {"a": chance.integers(0, 1 << 40, ROWS), "b": chance.random(ROWS)}
    return pa.table({"id": pa.array(ids).cast(pa.string()), "ts": ids, **numbers, "text": text})


def cluster(folder, curve, told):
    """Clusters a table whose group is read as if it had its slice TIMES, and tells sizes and rows."""
    task, read = rewrite.ClusterTask, []

    def many(target, partition, parts, *more):
        read.append(sum(part.size_bytes for part in parts) * TIMES)
        return task(target, partition, parts * TIMES, *more)

    rewrite.ClusterTask = many
    spill = {"hoodie.layout.optimize.strategy": curve, "hoodie.memory.spillable.map.path": folder}
    done = Table.open(f"{folder}/table").services.cluster(**CLUSTER, **spill)
    told.put((read[0], done.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10))


@pytest.mark.long(turns=4)
@pytest.mark.parametrize("curve", ["LINEAR", "HILBERT"])
def test_a_group_of_two_gigabytes_is_clustered_in_less_than_one(curve, tmp_path):
    data = rows()
    Table.create(str(tmp_path / "table"), schema=data.schema, options=OPTIONS).append(data)
    fresh = multiprocessing.get_context("spawn")
    told = fresh.Queue()
    process = fresh.Process(target=cluster, args=(str(tmp_path), curve, told))
    process.start()
    read, count, most = told.get(timeout=3600)
    process.join()
    print(f"{curve}: {read / 1e9:.2f} GB, peak {most >> 20} MiB")
    assert read > 2e9
    assert count == ROWS * TIMES
    assert most < 1 << 30
    assert {one.name for one in Path(tmp_path).iterdir()} == {"table"}
