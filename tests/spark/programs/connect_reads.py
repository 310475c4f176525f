"""Reads golden tables over Spark Connect and tries what is refused there. Prints one JSON object; run by a test.

Arguments: paths of tables.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException

import hoodie
from hoodie.engine import LocalEngine, TaskId
from hoodie.query import run_read
from hoodie.spark.worker_frame import worker_frame
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
        by_workers = worker_frame(spark, table.storage, table.read_plan()).toArrow()
        by_sql = spark.sql(f"select * from hudi.`{path}`").toArrow()
        said[path] = [difference(one, expected) for one in (got, by_workers, by_sql)]
    said["view"] = _view(spark, paths[0])
    said["stream"] = _stream(spark, paths[0])
    said["changed"] = [change for path in paths for change in _changes(spark, path)]
    said["engine"] = hoodie.spark.SparkEngine(spark).run(_double, [1, 2, 3], "doubling")
    frame = spark.range(3)
    said["save"] = _refusal(lambda: frame.write.format("hudi").save("/nowhere"))
    said["save_as_table"] = _refusal(lambda: frame.write.format("hudi").saveAsTable("t"))
    said["write_to"] = _refusal(lambda: frame.writeTo("t").using("hudi").create())
    said["sql"] = _refusal(lambda: spark.sql("create table t (a int) using hudi"))
    stream = spark.readStream.format("rate").load().writeStream.format("hudi")
    said["write_stream"] = _refusal(lambda: stream.option("checkpointLocation", "/nowhere").start("/nowhere"))
    said["missing"] = _refusal(lambda: spark.read.format("hudi").load("/nowhere"))
    spark.stop()
    return said


def _view(spark: Any, path: str) -> bool:
    """Whether a view made by the server, over the Python data source, has the rows of the reader."""
    spark.sql(f"create temporary view by_server using hudi options (path '{path}')")
    rows = spark.sql("select _hoodie_record_key from by_server where _hoodie_record_key is not null").collect()
    return sorted(rows) == sorted(spark.read.format("hudi").load(path).select("_hoodie_record_key").collect())


def _changes(spark: Any, path: str) -> list[str]:
    """Statements that wrote into a view of the table, or were let pass. There are none."""
    spark.read.format("hudi").load(path).createOrReplaceTempView("by_files")
    spark.sql(f"create or replace temporary view by_source using hudi options (path '{path}')")
    before, found = _files(path), []
    for view in ("by_files", "by_source"):
        for verb in ("insert into", "insert overwrite"):
            try:
                spark.sql(f"{verb} {view} select * from by_files")
                found.append(f"{verb} {view} passed")
            except (PySparkException, hoodie.HudiError):
                pass
            if _files(path) != before:
                found.append(f"{verb} {view} changed files")
    return found


def _files(path: str) -> dict[str, str]:
    return {
        str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in Path(path).rglob("*") if file.is_file()
    }


def _stream(spark: Any, path: str) -> bool:
    """Whether a stream gives as many rows as an incremental query from the start."""
    stream = spark.readStream.format("hudi").load(path).writeStream.format("memory").queryName("rows_of_stream")
    stream.trigger(availableNow=True).start().awaitTermination()
    incremental = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "earliest",
    }
    expected = spark.read.format("hudi").options(**incremental).load(path).count()
    return bool(expected and spark.table("rows_of_stream").count() == expected)


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
