"""A bulk insert and an upsert in which the first attempt of a task lingers, on two hosts with speculation.

Prints what became of them. Arguments: master, folder of the table, folder where attempts of tasks leave their traces.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

import hoodie

MASTER, PATH, TRACES = sys.argv[1:]
ROWS = 4_000
LINGERS = 20.0
OPTIONS = {
    "hoodie.table.name": "speculated",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.bulkinsert.sort.mode": "NONE",
    "hoodie.engine.local.max.bytes": "0",
}


def lingering(step: str) -> object:
    """Work on batches: the first attempt of partition 1 lingers after its rows until a copy of it has won.

    Each waits for the other to have had its rows: on a busy machine a copy may end before the first attempt has begun.
    """
    traces, lingers = TRACES, LINGERS

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        attempt = context.attemptNumber()
        yield from batches
        if context.partitionId() == 1:
            Path(traces, f"{step}-{attempt}").touch()
            other = Path(traces, f"{step}-{1 - attempt}")
            waits_until = time.monotonic() + 120
            while not other.exists() and time.monotonic() < waits_until:
                time.sleep(0.1)
            if attempt == 0:
                time.sleep(lingers)
                Path(traces, f"{step}-{attempt}-woke").touch()

    return work


spark = hoodie.session(
    "speculation",
    master=MASTER,
    **{
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.cores": 2,
        "spark.speculation": True,
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": 1.1,
        "spark.speculation.quantile": 0.5,
        "spark.speculation.minTaskRuntime": "200ms",
        "spark.sql.execution.arrow.maxRecordsPerBatch": 100,
        "spark.sql.shuffle.partitions": 4,
        "spark.ui.enabled": False,
    },
)
rows = spark.range(0, ROWS, 1, 4).selectExpr("id", "1 AS ts", "id AS v")
for step, operation, frame in (
    ("bulk_insert", "bulk_insert", rows),
    ("upsert", "upsert", rows.selectExpr("id", "2 AS ts", "-id AS v")),
):
    slow = frame.mapInArrow(lingering(step), frame.schema)
    slow.write.format("hudi").options(**OPTIONS, **{"hoodie.datasource.write.operation": operation}).mode(
        "append"
    ).save(PATH)
table = hoodie.Table.open(PATH)
held = table.scan(["id", "v"]).read_all()
named = {slice.base.path for slice in table.files()}
print(
    json.dumps(
        {
            "rows": held.num_rows,
            "right": sorted(held["id"].to_pylist()) == list(range(ROWS))
            and all(one == -other for one, other in zip(held["id"].to_pylist(), held["v"].to_pylist(), strict=True)),
            "by spark": spark.read.format("hudi").load(PATH).count(),
            "findings": [str(one) for one in table.validate()],
            "traces": sorted(path.name for path in Path(TRACES).iterdir()),
            "files": len(list(Path(PATH).glob("*.parquet"))),
            "live": len(named),
        }
    )
)
