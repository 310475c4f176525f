"""Spark on a table whose files lie under prefixes of another folder: written, read natively and by workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import Invalid

pytestmark = pytest.mark.spark


def test_frames_are_written_and_read_with_filters_on_physical_files(spark: SparkSession, tmp_path: Path) -> None:
    base, data = str(tmp_path / "rides"), str(tmp_path / "data")
    options = {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.storage.path": data,
    }
    allowed = {"hoodie.storage.allowed.roots": data}
    rows = [(f"r{n}", ("sf", "la", "ny")[n % 3], n) for n in range(30)]
    frame = spark.createDataFrame(rows, "id string, city string, v long")
    frame.write.format("hudi").options(**options).mode("append").save(base)
    read = spark.read.format("hudi").options(**allowed).load(base)
    assert read.inputFiles()
    assert all(data in one and len(Path(one).parts) > 3 for one in read.inputFiles())
    plan = read.where("city = 'sf' and v > 3")._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    assert "FileScan parquet" in plan
    assert sorted(row.v for row in read.where("city = 'sf' and v > 3").collect()) == list(range(6, 30, 3))
    newer = spark.createDataFrame([("r0", "sf", 100)], "id string, city string, v long")
    newer.write.format("hudi").options(**options).mode("append").save(base)  # a log file: read by workers
    again = spark.read.format("hudi").options(**allowed).load(f"{base}/*")
    assert {row.id: row.v for row in again.collect()} == {f"r{n}": n or 100 for n in range(30)}
    assert not hoodie.Table.open(base, options=allowed).doctor().concerns
    for path, more, match in ((f"{base}/*/x", allowed, "wildcards"), (base, {}, "not allowed")):
        with pytest.raises(Invalid, match=match):
            spark.read.format("hudi").options(**more).load(path)
