"""Spark gives for every golden query what LocalEngine gives: the same rows, columns and types, or the same refusal.
`tests/golden/test_golden_reads.py` compares LocalEngine with the real Hudi.

A query is read in the four ways that Spark has. `HOODIE_GOLDEN_EVERY=1` asks all queries in all ways (`make golden`),
`=n` every n-th one. Without it those of the project's tables are asked, and a sample of a fuller set.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrameReader, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from hoodie import HudiError
from hoodie.engine import LocalEngine
from hoodie.query import run_read
from hoodie.spark.arrow_types import spark_schema
from hoodie.spark.data_source import HudiSource, register
from hoodie.spark.failures import ErrorInTransit
from hoodie.spark.worker_frame import worker_frame
from hoodie.table import Table
from hoodie.testing.golden import GoldenRead, GoldenTable, difference, golden_tables

pytestmark = pytest.mark.spark

Reader = Callable[[SparkSession, str, Mapping[str, str]], pa.Table]
"""Reads the table at a path, as options of Hudi's ask."""

KEYS = {
    "query": "hoodie.datasource.query.type",
    "as_of": "as.of.instant",
    "begin": "hoodie.datasource.read.begin.instanttime",
    "end": "hoodie.datasource.read.end.instanttime",
}
CHANGES = {KEYS["query"]: "incremental", "hoodie.datasource.query.incremental.format": "cdc"}


def by_reader(spark: SparkSession, path: str, options: Mapping[str, str]) -> pa.Table:
    """`spark.read`: native scans where they can be, else workers."""
    return spark.read.format("hudi").options(**options).load(path).toArrow()


def by_workers(spark: SparkSession, path: str, options: Mapping[str, str]) -> pa.Table:
    """Workers alone, as on a storage that the JVM does not know."""
    table = Table.open(path, options=options)
    return worker_frame(spark, table.storage, table.read_plan()).toArrow()


def by_source(spark: SparkSession, path: str, options: Mapping[str, str]) -> pa.Table:
    """The Python data source, which Spark itself asks where no wrapped reader stands in between."""
    register(spark)
    reader = spark.read.format("hudi").options(**options)
    return DataFrameReader.load.__wrapped__(reader, path).toArrow()


def by_source_here(_: SparkSession, path: str, options: Mapping[str, str]) -> pa.Table:
    """The same source as Spark's planning process and its workers call it, in this process."""
    source = HudiSource({"path": path, **options})
    try:
        schema = source.schema()
        reader = source.reader(schema)
        batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    except ErrorInTransit as error:
        raise error.__cause__ from None
    assert schema == spark_schema(Table.open(path, options=options).read_plan().schema)
    strict = to_arrow_schema(schema, timezone="UTC")  # Spark compares the first batch with it
    assert all(strict.equals(batch.schema) for batch in batches)
    return pa.Table.from_batches(batches, strict)


ROOT = Path(__file__).parents[2]
FULL = os.environ.get("HOODIE_GOLDEN_DIR")
EVERY = int(os.environ.get("HOODIE_GOLDEN_EVERY", "0"))
TABLES = golden_tables((ROOT / FULL).resolve() if FULL else ROOT / "tests" / "golden" / "tables")
READS = tuple(sorted((read for table in TABLES for read in table.reads()), key=lambda read: read.kind))

SHARE = 3 if FULL else 1
"""Of the fuller set, which takes half an hour, one in so many."""
# What a native scan gives, workers give as well: a few tables with many types and partitionings are enough.
WORKER_SCENARIOS = ("cow_all_types", "cow_timestamp_keygen", "cow_drop_partition_columns", "cow_type_promotion")
SAMPLES: dict[Reader, tuple[GoldenRead, ...]] = {
    by_reader: READS[::SHARE],
    by_source_here: READS[1 :: 2 * SHARE],
    by_source: READS[:: 13 * SHARE],
    by_workers: tuple(read for read in READS if read.table.scenario in WORKER_SCENARIOS),
}
CASES = tuple(
    pytest.param(reader, read, id=f"{reader.__name__}-{read.id}")
    for reader, sample in SAMPLES.items()
    for read in (READS[::EVERY] if EVERY else sample)
)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[GoldenTable], str]:
    """Base path of a golden table in a copy that all tests share: do not write to it."""
    folder = tmp_path_factory.mktemp("golden")
    known: dict[str, str] = {}

    def unpack(table: GoldenTable) -> str:
        if table.name not in known:
            known[table.name] = str(table.unpack(folder))
        return known[table.name]

    return unpack


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("reader", "read"), CASES)
def test_spark_gives_what_the_local_engine_gives(
    reader: Reader, read: GoldenRead, unpacked: Callable[[GoldenTable], str], spark: SparkSession
) -> None:
    path = unpacked(read.table)
    try:
        table = Table.open(path)
        expected = run_read(table.read_plan(**read.options), table.storage, LocalEngine()).read_all()
    except HudiError as refusal:
        with pytest.raises(type(refusal)) as refused:
            reader(spark, path, _options(read))
        assert str(refused.value) == str(refusal)
    else:
        assert difference(reader(spark, path, _options(read)), expected) is None


def _options(read: GoldenRead) -> dict[str, str]:
    """The query as a user of Spark asks it."""
    asked = {KEYS[name]: value for name, value in read.options.items()}
    return {**asked, **CHANGES} if read.kind == "cdc" else asked
