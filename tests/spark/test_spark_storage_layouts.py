"""Spark on a table whose files lie under prefixes of another folder: written, read natively and by workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import Invalid
from hoodie.query.read_plan import ReadPlan

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


def test_a_frame_that_is_planned_while_files_move_reads_them_where_they_are_now(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = str(tmp_path / "rides")
    where = {name: str(tmp_path / name) for name in ("old", "new")}
    allowed = {"hoodie.storage.allowed.roots": str(tmp_path)}
    options = {"hoodie.table.name": "rides", "hoodie.datasource.write.recordkey.field": "id", **allowed}
    frame = spark.createDataFrame([(f"r{n}", n) for n in range(9)], "id string, v long")
    more = {"hoodie.storage.path": where["old"]}
    frame.write.format("hudi").options(**options, **more).mode("append").save(base)
    planned = hoodie.Table.read_plan

    def plan_after_a_move(self: hoodie.Table, **query: Any) -> ReadPlan:
        other = hoodie.Table.open(base, options=allowed)
        other.services.relayout("bits:4", move=True, grace_hours=0, **{"hoodie.storage.path": where["new"]})
        return planned(self, **query)

    monkeypatch.setattr(hoodie.Table, "read_plan", plan_after_a_move)
    read = spark.read.format("hudi").options(**allowed).load(base)
    monkeypatch.undo()
    assert all(where["new"] in one for one in read.inputFiles())
    assert sorted(row.v for row in read.collect()) == list(range(9))
