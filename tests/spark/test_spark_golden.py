"""Spark reads every golden table as LocalEngine does (which `tests/golden` compares with the real Hudi): natively and
by workers, and as a Python data source.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hoodie import HudiError
from hoodie.engine import LocalEngine
from hoodie.read import ReadPlan, run_read
from hoodie.spark.arrow_types import spark_schema
from hoodie.spark.data_source import HudiSource
from hoodie.spark.reader import plan_frame
from hoodie.spark.worker_frame import worker_frame
from hoodie.storage import Storage
from hoodie.table import Table
from hoodie.testing.golden import GoldenRead, GoldenTable, difference, golden_tables

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
FULL = os.environ.get("HOODIE_GOLDEN_DIR")
TABLES = golden_tables((ROOT / FULL).resolve() if FULL else ROOT / "tests" / "golden" / "tables")
READS = tuple(read for table in TABLES for read in table.reads())

# What a native scan gives, workers give as well: a few tables with many types and partitionings are enough.
WORKER_SCENARIOS = ("cow_all_types", "cow_timestamp_keygen", "cow_drop_partition_columns", "cow_type_promotion")
BY_WORKERS = tuple(read for read in READS if read.table.scenario in WORKER_SCENARIOS)

Planned = tuple[Storage, ReadPlan]


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Callable[[GoldenRead], Planned]:
    folder = tmp_path_factory.mktemp("golden")
    known: dict[str, Path] = {}

    def plan(read: GoldenRead) -> Planned:
        if read.table.name not in known:
            known[read.table.name] = GoldenTable(read.table.folder).unpack(folder)
        table = Table.open(str(known[read.table.name]))
        return table.storage, table.read_plan(**read.options)

    return plan


@pytest.mark.parametrize("read", READS, ids=lambda read: read.id)
def test_native_rows_are_those_of_the_local_engine(
    read: GoldenRead, planned: Callable[[GoldenRead], Planned], spark: SparkSession
) -> None:
    storage, plan = _planned_or_skipped(read, planned)
    frame = plan_frame(spark, storage, plan)
    _ensure_same(frame.toArrow(), run_read(plan, storage, LocalEngine()).read_all())


@pytest.mark.parametrize("read", BY_WORKERS, ids=lambda read: read.id)
def test_rows_read_by_workers_are_those_of_the_local_engine(
    read: GoldenRead, planned: Callable[[GoldenRead], Planned], spark: SparkSession
) -> None:
    storage, plan = _planned_or_skipped(read, planned)
    frame = worker_frame(spark, storage, plan)
    _ensure_same(frame.toArrow(), run_read(plan, storage, LocalEngine()).read_all())


@pytest.mark.parametrize("read", READS, ids=lambda read: read.id)
def test_rows_of_the_data_source_are_those_of_the_local_engine(
    read: GoldenRead, planned: Callable[[GoldenRead], Planned]
) -> None:
    """The source as Spark's planning process and its workers call it, in this process."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    storage, plan = _planned_or_skipped(read, planned)
    source = HudiSource({"path": storage.absolute(""), **_option_keys(read)})
    schema = source.schema()
    assert schema == spark_schema(plan.schema)
    reader = source.reader(schema)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    strict = to_arrow_schema(schema, timezone="UTC")  # Spark compares the first batch with it
    assert all(strict.equals(batch.schema) for batch in batches)
    got = pa.Table.from_batches(batches, strict)
    _ensure_same(got, run_read(plan, storage, LocalEngine()).read_all())


def _option_keys(read: GoldenRead) -> dict[str, str]:
    query = {
        "query": "hoodie.datasource.query.type",
        "as_of": "as.of.instant",
        "begin": "hoodie.datasource.read.begin.instanttime",
        "end": "hoodie.datasource.read.end.instanttime",
    }
    keys = {query[name]: value for name, value in read.options.items()}
    if read.kind == "cdc":
        keys |= {query["query"]: "incremental", "hoodie.datasource.query.incremental.format": "cdc"}
    return keys


def _planned_or_skipped(read: GoldenRead, planned: Callable[[GoldenRead], Planned]) -> Planned:
    try:
        return planned(read)
    except HudiError as error:
        pytest.skip(f"refused on every engine: {error}")


def _ensure_same(got: pa.Table, expected: pa.Table) -> None:
    assert difference(got, expected) is None
