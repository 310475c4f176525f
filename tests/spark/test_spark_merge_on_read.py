"""Merge-on-read tables in Spark: native where one file is all, workers elsewhere, pruned by what the query asks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import hoodie
from hoodie.testing.golden import golden_tables
from hoodie.testing.lake import Lake, row

pytestmark = pytest.mark.spark

TABLES = {table.name: table for table in golden_tables(Path(__file__).parents[1] / "golden" / "tables")}
META = "_hoodie_record_key"


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def _slices(frame: DataFrame) -> tuple[int, int]:
    """Slices that workers will read, and all they could have."""
    found = re.search(r"slices: (\d+) of (\d+)", _plan(frame))
    assert found is not None
    return int(found[1]), int(found[2])


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(TABLES["1.2.0/mor_part"].unpack(tmp_path))


def test_only_asked_columns_and_matching_partitions_reach_workers(spark: SparkSession, path: str) -> None:
    table = hoodie.Table.open(path)
    (partition,) = table.config.partition_fields
    value = table.scan([partition]).read_all().column(0)[0].as_py()
    frame = spark.read.format("hudi").load(path).where(f"{partition} = '{value}'").select(META)
    assert sorted(row[0] for row in frame.collect()) == sorted(
        table.scan([META], f"{partition} = '{value}'").read_all().column(0).to_pylist()
    )
    kept, everything = _slices(frame)
    assert 0 < kept < everything
    assert f"[{META}#" in _plan(frame).split("BatchScan")[1]
    assert "_hoodie_commit_time" not in _plan(frame)


def test_slices_without_logs_stay_native(spark: SparkSession, path: str) -> None:
    table = hoodie.Table.open(path)
    assert {file.is_plain for file in table.read_plan().files} == {True, False}
    frame = spark.read.format("hudi").load(path)
    assert "FileScan parquet" in _plan(frame)
    assert "BatchScan hudi" in _plan(frame)
    assert frame.count() == table.scan([META]).read_all().num_rows
    optimised = spark.read.format("hudi").option("hoodie.datasource.query.type", "read_optimized").load(path)
    assert "BatchScan" not in _plan(optimised)


@pytest.mark.parametrize("condition", [f"{META} = '~ no such key'", f"{META} < ' '"])
def test_statistics_of_the_metadata_table_rule_slices_out(spark: SparkSession, tmp_path: Path, condition: str) -> None:
    path = str(TABLES["1.2.0/mor_colstats_mdt"].unpack(tmp_path))
    frame = spark.read.format("hudi").load(path)
    assert _slices(frame.where(condition))[0] == 0
    assert frame.where(condition).collect() == []
    unasked = spark.read.format("hudi").option("hoodie.enable.data.skipping", "false").load(path)
    assert _slices(unasked.where(condition)) == (3, 3)


def test_native_scans_skip_files_by_statistics(spark: SparkSession, tmp_path: Path) -> None:
    path = str(TABLES["1.2.0/cow_colstats_bloom_mdt"].unpack(tmp_path))
    frame = spark.read.format("hudi").load(path)
    everything = sorted(frame.collect(), key=str)
    key = everything[0][META]
    assert [row[META] for row in frame.where(f"{META} = '{key}'").collect()] == [key]
    for file in Path(path).rglob("*.parquet"):  # whoever opened a file now would fail
        file.write_bytes(b"")
    assert frame.where(f"{META} = '~'").collect() == []


@pytest.mark.parametrize("metadata", ["true", "false"])
def test_scans_read_the_files_of_the_buckets_that_a_filter_names(
    spark: SparkSession, tmp_path: Path, metadata: str
) -> None:
    buckets = {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "4",
        "hoodie.metadata.enable": metadata,
        "hoodie.metadata.index.column.stats.enable": "false",
    }
    keys = [f"k{n}" for n in range(20)]
    plain = Lake(9, buckets, uri=str(tmp_path / "plain"))
    plain.upsert(*map(row, keys))
    frame = spark.read.format("hudi").load(plain.uri)
    files = {found["id"]: Path(plain.uri, "p", found["_hoodie_file_name"]) for found in frame.collect()}
    assert len(set(files.values())) == 4
    kept = files["k7"]
    for file in {*files.values()} - {kept}:  # whoever opened another file now would fail
        file.write_bytes(b"")
    for condition in ("id = 'k7'", "id IN ('k7') AND v = 'a'", "_hoodie_record_key = 'k7'"):
        assert [found["id"] for found in frame.where(condition).collect()] == ["k7"]

    logged = Lake(9, {**buckets, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}, uri=str(tmp_path / "logged"))
    logged.upsert(*map(row, keys))
    logged.upsert(*(row(key, "b", 2) for key in keys))
    frame = spark.read.format("hudi").load(logged.uri)
    assert _slices(frame.where("id = 'k7'"))[0] == 1
    assert [found["v"] for found in frame.where("id = 'k7'").collect()] == ["b"]
    unasked = spark.read.format("hudi").option("hoodie.bucket.index.query.pruning", "false").load(logged.uri)
    assert _slices(unasked.where("id = 'k7'"))[0] == 4


def test_a_query_in_sql_joins_and_aggregates_merged_rows(spark: SparkSession, path: str) -> None:
    table = hoodie.Table.open(path)
    rows = spark.sql(f"SELECT count(*) AS n, count(DISTINCT {META}) AS keys FROM hudi.`{path}`").first()
    assert rows is not None
    assert rows.n == rows.keys == table.scan([META]).read_all().num_rows
    joined = spark.sql(f"SELECT count(*) AS n FROM hudi.`{path}` a JOIN hudi.`{path}` b USING ({META})").first()
    assert joined is not None
    assert joined.n == rows.n
