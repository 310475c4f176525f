"""A Spark driver for a test to kill: does one job for each line of its input, in a family that is watched.

A line is a JSON object. `service` names one of `killed_services.SERVICES`, to be run on the table at `path`; without it
`operation`, `first` and `last` (the ids of the rows) say what is written there, and `markers` of which type its markers
are, if it is not the default. The answer is the line `done`; the
first line is `ready`. All work goes to Spark's workers, however little.
"""

from __future__ import annotations

import json
import sys
from typing import Any
from unittest import mock

import hoodie
from hoodie.services.cleaning import clean
from hoodie.spark import SparkEngine
from hoodie.testing.killed_services import service_named
from hoodie.testing.killed_spark import DAEMON, join_family

OPTIONS = {
    "hoodie.table.name": "killed",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.engine.local.max.bytes": "0",
}


def main() -> None:
    join_family()
    spark = hoodie.session(
        "to be killed",
        master="local[2,4]",  # a task may fail four times
        **{
            "spark.driver.memory": "1g",
            "spark.python.daemon.module": DAEMON,
            "spark.sql.shuffle.partitions": 2,
            "spark.ui.enabled": False,
        },
    )
    spark.sparkContext.setLogLevel("OFF")
    print("ready", flush=True)
    with mock.patch.object(clean, "LOCAL_FILES", 0):
        for line in sys.stdin:
            do(spark, json.loads(line))
            print("done", flush=True)


def do(spark: Any, job: dict[str, Any]) -> None:
    if "service" in job:
        service_named(job["service"]).run(job["path"], SparkEngine(spark))
        return
    rows = spark.range(job["first"], job["last"], 1, 2)
    frame = rows.selectExpr("id", "concat('p', id % 2) part", "2L ts", "concat('new ', id) v")
    options = {**OPTIONS, "hoodie.datasource.write.operation": job["operation"]}
    if job["markers"] is not None:
        options["hoodie.write.markers.type"] = job["markers"]
    frame.write.format("hudi").options(**options).mode("append").save(job["path"])


if __name__ == "__main__":
    main()
