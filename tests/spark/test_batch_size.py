"""Arrow batches from Spark to Python workers: large ones of narrow rows, and never much memory for wide ones."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hoodie
from hoodie.engine import TaskId
from hoodie.spark import FrameSource
from hoodie.spark.batch_size import BATCH_BYTES, joined, large_batches, unless_wide

pytestmark = pytest.mark.spark

KEYS = [f"spark.sql.execution.arrow.max{what}PerBatch" for what in ("Records", "Bytes")]
WRITE = "hoodie.datasource.write."


def _rows(_: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held = list(batches)
    if held:
        yield pa.Table.from_batches(held)


def _sizes(_: TaskId, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, int]]:
    for batch in batches:
        yield batch.num_rows, batch.nbytes


def test_narrow_rows_of_files_come_in_large_batches_and_settings_are_given_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    numbers = spark.range(0, 50_000, 1, 1)
    numbers.selectExpr("id", "cast(id as decimal(9, 2)) as d", "cast(id as string) as t").write.parquet(
        f"{tmp_path}/in"
    )
    before = [spark.conf.get(key) for key in KEYS]
    frame = spark.read.parquet(f"{tmp_path}/in").where("id >= 1").selectExpr("id", "d", "nullif(t, '7') as `ä b`")
    assert unless_wide(frame) is not None
    with large_batches(spark, counted=False):
        assert [spark.conf.get(key) for key in KEYS] == ["1024", str(2**31 - 1)]
    assert [spark.conf.get(key) for key in KEYS] == before
    (rows,) = FrameSource(frame).consume(_rows, "rows")
    assert [spark.conf.get(key) for key in KEYS] == before
    assert rows.column_names == ["id", "d", "ä b"]
    assert rows.column("id").num_chunks == 1
    assert rows.column("id").to_pylist() == list(range(1, 50_000))
    assert rows.column("d").to_pylist()[-1] == decimal.Decimal("49999.00")
    assert rows.column("ä b").to_pylist() == [None if n == 7 else str(n) for n in range(1, 50_000)]


def test_bytes_are_counted_where_a_frame_is_no_scan_of_narrow_columns_or_the_user_has_a_limit(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.range(10).selectExpr("id", "'x' as text").write.parquet(f"{tmp_path}/in")
    scan = spark.read.parquet(f"{tmp_path}/in")
    others = [
        scan.selectExpr("array(id) as ids"),
        scan.selectExpr("struct(text) as inner"),
        scan.repartition(2),
        scan.selectExpr("explode(array(text, text)) as text"),
        scan.groupBy("text").count(),
        spark.range(10),
        spark.read.schema(", ".join(f"c{n} long" for n in range(4100))).parquet(f"{tmp_path}/in"),
    ]
    assert [unless_wide(frame) for frame in others] == [None] * len(others)
    spark.conf.set(KEYS[1], "1048576")
    try:
        assert unless_wide(scan) is None
    finally:
        spark.conf.unset(KEYS[1])


def test_texts_of_which_a_file_has_few_copies_come_in_batches_of_few_bytes(spark: SparkSession, tmp_path: Path) -> None:
    texts = pa.array([letter * 300_000 for letter in "abc"])
    number = pa.array([n % 3 for n in range(4_000)], pa.int32())
    rows = pa.table({"text": pa.DictionaryArray.from_arrays(number, texts), "n": pa.array(range(4_000), pa.int64())})
    pq.write_table(rows, tmp_path / "in.parquet")
    assert (tmp_path / "in.parquet").stat().st_size < 1_000_000
    frame = spark.read.parquet(f"{tmp_path}/in.parquet")
    assert unless_wide(frame) is not None
    sizes = FrameSource(frame).consume(_sizes, "sizes")
    assert sum(count for count, _ in sizes) == 4_000
    assert max(size for _, size in sizes) < BATCH_BYTES + 2 * 300_000


def test_one_wide_row_among_narrow_ones_is_written_and_nothing_twice(spark: SparkSession, tmp_path: Path) -> None:
    path, wide = str(tmp_path / "table"), 40_000
    spark.range(0, 30_000, 1, 4).withColumn("text", F.expr(f"repeat('é', if(id = 20011, {wide}, 3))")).write.parquet(
        f"{tmp_path}/in"
    )
    options = {"hoodie.table.name": "t", WRITE + "recordkey.field": "id", WRITE + "operation": "bulk_insert"}
    spark.read.parquet(f"{tmp_path}/in").write.format("hudi").options(**options).mode("append").save(path)
    found = hoodie.Table.open(path).scan(columns=["id", "text"]).read_all()
    assert sorted(found.column("id").to_pylist()) == list(range(30_000))
    lengths = dict(zip(found.column("id").to_pylist(), map(len, found.column("text").to_pylist()), strict=True))
    assert {n for n, length in lengths.items() if length != 3} == {20_011}
    assert lengths[20_011] == wide
    assert hoodie.Table.open(path).files()
    assert len(list(Path(path).glob("*.parquet"))) == len(hoodie.Table.open(path).files())


def test_small_batches_are_joined_up_to_rows_and_bytes() -> None:
    numbers = pa.record_batch({"n": pa.array(range(1000), pa.int64())})
    together = list(joined(iter([numbers] * 300)))
    assert [batch.num_rows for batch in together] == [131_000, 131_000, 38_000]
    assert together[0]["n"].to_pylist()[999:1001] == [999, 0]
    wide = pa.record_batch({"t": pa.array(["x" * (20 << 20)])})
    assert [batch.num_rows for batch in joined(iter([wide, wide, wide]))] == [1, 1, 1]
    assert list(joined(iter([]))) == []
