"""A table that is appended to, stitched and clustered on some Spark master, every step in Spark's workers.

Arguments: master, base path, number of rows. Prints one JSON object; run by a test.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import hoodie

BATCHES = 4
PARTITIONS = 2
OPTIONS = {
    "hoodie.table.name": "events",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.engine.local.max.bytes": "0",
    "hoodie.metadata.record.index.enable": "true",
}
CURVE = {
    "hoodie.clustering.plan.strategy.sort.columns": "x,y",
    "hoodie.layout.optimize.strategy": "z-order",
    "hoodie.clustering.plan.strategy.small.file.limit": str(1 << 30),
}


def main(master: str, base: str, rows: int) -> dict[str, Any]:
    spark = hoodie.session(
        "laid out",
        master=master,
        **{"spark.driver.memory": "1g", "spark.ui.enabled": False, "spark.sql.shuffle.partitions": 4},
    )
    batch = rows // BATCHES

    def append(number: int) -> None:
        made = spark.range(number * batch, (number + 1) * batch).selectExpr(
            "cast(id as string) id",
            f"concat('d', id % {PARTITIONS}) day",
            "cast(hash(id) & 1048575 as long) x",
            "cast(hash(id, 1L) & 1048575 as long) y",
            "id as v",
            "1L as ts",
        )
        made.write.format("hudi").options(**OPTIONS).mode("append").save(base)

    def seen(**query: str) -> dict[str, Any]:
        frame = spark.read.format("hudi").options(**query).load(base)
        found = frame.selectExpr(
            "count(*) n", "count(distinct id) ids", "sum(v) v", "sum(x) x", "sum(y) y",
            "count(distinct _hoodie_commit_time) commits",
        ).first()  # fmt: skip
        return {name: found[name] for name in ("n", "ids", "v", "x", "y", "commits")}

    for number in range(BATCHES):
        append(number)
    table = hoodie.Table.open(base, spark=spark)
    said: dict[str, Any] = {"appended": seen(), "files": [len(list(table.files()))]}
    newest = table.timeline().last_completed_write()
    assert newest is not None

    stitched = table.services.compact_base_files()
    said["stitched"] = seen()
    said["files"].append(len(list(table.files())))
    target = {"hoodie.clustering.plan.strategy.target.file.max.bytes": str(rows)}
    clustered = table.services.cluster(**CURVE, **target)
    said["clustered"] = seen()
    said["files"].append(len(list(table.files())))
    said["kinds"] = [type(one).__name__ for one in (stitched, clustered)]
    said["before"] = seen(**{"as.of.instant": newest.requested})
    said["new since"] = (
        spark.read.format("hudi")
        .options(
            **{
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.read.begin.instanttime": str(newest.completed or newest.requested),
            }
        )
        .load(base)
        .count()
    )
    corner = spark.read.format("hudi").load(base).where("x < 65536 and y < 65536")
    said["corner"] = corner.count()
    said["corner files"] = len({row[0] for row in corner.select("_hoodie_file_name").distinct().collect()})
    said["found"] = len(table.lookup(["0", str(rows - 1)]).read_all())
    said["findings"] = [str(finding) for finding in table.validate()]
    spark.stop()
    return said


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
