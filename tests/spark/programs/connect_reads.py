"""Reads golden tables over Spark Connect and tries what is refused there. Prints one JSON object; run by a test.

Arguments: paths of tables.
"""

from __future__ import annotations

import json
import sys

import hoodie
from hoodie.engine import LocalEngine, TaskId
from hoodie.read import run_read
from hoodie.spark.reader import _worker_frame
from hoodie.testing.golden import difference


def main(paths: list[str]) -> dict[str, object]:
    spark = hoodie.session(
        "connect",
        **{
            "spark.remote": "local[2]",
            "spark.driver.memory": "1g",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
        },
    )
    said: dict[str, object] = {"module": type(spark).__module__}
    for path in paths:
        table = hoodie.Table.open(path)
        expected = run_read(table.read_plan(), table.storage, LocalEngine()).read_all()
        got = spark.read.format("hudi").load(path).toArrow()
        by_workers = _worker_frame(spark, table.storage, table.read_plan()).toArrow()
        said[path] = [difference(got, expected), difference(by_workers, expected)]
    said["engine"] = hoodie.spark.SparkEngine(spark).run(_double, [1, 2, 3], "doubling")
    frame = spark.range(3)
    said["save"] = _refusal(lambda: frame.write.format("hudi").save("/nowhere"))
    said["save_as_table"] = _refusal(lambda: frame.write.format("hudi").saveAsTable("t"))
    said["write_to"] = _refusal(lambda: frame.writeTo("t").using("hudi").create())
    said["sql"] = _refusal(lambda: spark.sql("create table t (a int) using hudi"))
    said["read_stream"] = _refusal(lambda: spark.readStream.format("hudi").load("/nowhere"))
    stream = spark.readStream.format("rate").load().writeStream.format("hudi")
    said["write_stream"] = _refusal(lambda: stream.option("checkpointLocation", "/nowhere").start("/nowhere"))
    said["missing"] = _refusal(lambda: spark.read.format("hudi").load("/nowhere"))
    spark.stop()
    return said


def _double(_: TaskId, number: int) -> int:
    return 2 * number


def _refusal(work: object) -> str:
    try:
        work()  # type: ignore[operator]
    except hoodie.HudiError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
