"""A Spark driver for a test to kill: carries out one write for each line of its input.

A line is a JSON object: `base`, `operation`, `first` and `last` (the ids of the rows). The answer is a line with the
number of tasks that failed so far; a line is printed before the first job, too. Every step runs in Spark's workers.
"""

from __future__ import annotations

import json
import sys

import hoodie

OPTIONS = {
    "hoodie.table.name": "killed",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.engine.local.max.bytes": "0",
}
MOST_STAGES = 100


def main() -> None:
    spark = hoodie.session(
        "to be killed",
        master="local[2,4]",  # a task may fail four times
        **{"spark.driver.memory": "1g", "spark.ui.enabled": False, "spark.sql.shuffle.partitions": 2},
    )
    spark.sparkContext.setLogLevel("OFF")
    tracker = spark.sparkContext.statusTracker()
    print("ready", flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        rows = spark.range(job["first"], job["last"], 1, 2)
        frame = rows.selectExpr("id", "concat('p', id % 2) part", "2L ts", "concat('new ', id) v")
        options = {**OPTIONS, "hoodie.datasource.write.operation": job["operation"]}
        frame.write.format("hudi").options(**options).mode("append").save(job["base"])
        stages = (tracker.getStageInfo(stage) for stage in range(MOST_STAGES))
        print(sum(stage.numFailedTasks for stage in stages if stage is not None), flush=True)


if __name__ == "__main__":
    main()
