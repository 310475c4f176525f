"""The core of a table's life on some Spark master and storage: write, update, delete, read, look back.

Arguments: master, base URI, options of the storage as JSON. Prints one JSON object; run by a test. Nothing is done in
the driver's threads: `hoodie.engine.local.max.bytes` is 0, so that every step runs in Spark's workers.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import hoodie
from hoodie.engine import TaskId

ROWS = 20_000
KEYS = {
    "hoodie.table.name": "core",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.engine.local.max.bytes": "0",
}


def main(master: str, base: str, storage: dict[str, str]) -> dict[str, Any]:
    spark = hoodie.session(
        "core subset",
        master=master,
        **{"spark.driver.memory": "1g", "spark.ui.enabled": False, "spark.sql.shuffle.partitions": 2},
    )
    options = {**KEYS, **storage}
    rows = spark.range(ROWS).selectExpr("cast(id as string) id", "concat('p', id % 3) part", "id * 2 as v", "1L as ts")
    said: dict[str, Any] = {"binding": spark.sparkContext.getConf().get("spark.driver.host")}
    said["pids"] = len(set(hoodie.spark.SparkEngine(spark).run(_pid, list(range(8)), "pids")))

    def write(frame: Any, operation: str, mode: str = "append") -> None:
        named = {**options, "hoodie.datasource.write.operation": operation}
        frame.write.format("hudi").options(**named).mode(mode).save(base)

    def read(**query: str) -> Any:
        return spark.read.format("hudi").options(**storage, **query).load(base)

    write(rows, "bulk_insert", "overwrite")
    first = hoodie.Table.open(base, options=storage).timeline().last_completed_write()
    assert first is not None
    changed = rows.where("cast(id as long) % 100 = 7").selectExpr("id", "part", "-1L as v", "2L as ts")
    more = spark.range(ROWS, ROWS + 50).selectExpr("cast(id as string) id", "'p9' part", "-2L as v", "2L as ts")
    write(changed.union(more), "upsert")
    write(read().where("cast(id as long) < 10"), "delete")

    found = read()
    said["count"] = found.count()
    said["changed"] = found.where("v = -1").count()
    said["new partition"] = found.where("part = 'p9'").count()
    said["sum"] = found.agg({"v": "sum"}).first()[0]
    said["before"] = read(**{"as.of.instant": first.requested}).count()
    said["incremental"] = read(
        **{
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": str(first.completed or first.requested),
        }
    ).count()
    try:
        write(spark.createDataFrame([(None, "p1", 1, 1)], "id string, part string, v long, ts long"), "upsert")
    except hoodie.Invalid as error:
        said["null key"] = str(error)
    said["after the failure"] = read().count()
    said["findings"] = [str(finding) for finding in hoodie.Table.open(base, options=storage).validate()]
    spark.stop()
    return said


def _pid(_: TaskId, number: int) -> int:
    return os.getpid()


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
