"""Columns that have taken a wider type: Spark gives and filters rows as the local engine does."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hoodie import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
WRITE = "hoodie.datasource.write."


def made(tmp_path: Path, kind: str, *columns: tuple[pa.DataType, list[Any]]) -> Table:
    """A table of two file groups, whose second has the column `v` in a wider type."""
    options = {"hoodie.table.name": "t", WRITE + "recordkey.field": "id", WRITE + "partitionpath.field": "part"}
    table = Table.create(
        str(tmp_path / "t"),
        options={**options, WRITE + "table.type": kind, "hoodie.clean.automatic": "false"},
        schema=pa.schema([("id", pa.string()), ("part", pa.string()), ("v", columns[0][0])]),
    )
    for number, (data_type, values) in enumerate(columns):
        ids = [f"{number}{at}" for at in range(len(values))]
        table.upsert(pa.table({"id": ids, "part": [f"p{number}"] * len(ids), "v": pa.array(values, data_type)}))
    return table


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("narrow", "wide", "values", "more", "conditions"),
    [
        (pa.float32(), pa.float64(), [0.1, 2.7, None], [9.0], ["v = 0.1", "v >= 2.7", "v < 0.1", "v in (0.1, 9)"]),
        (
            pa.struct([("f", pa.float32())]),
            pa.struct([("f", pa.float64())]),
            [{"f": 0.1}, None],
            [{"f": 9.0}],
            ["v.f = 0.1"],
        ),
        (pa.list_(pa.float32()), pa.list_(pa.float64()), [[0.1, None], []], [[9.0]], ["array_contains(v, 0.1D)"]),
        *(
            (
                pa.decimal128(digits, 2),
                pa.decimal128(wider, 2),
                [Decimal("1.50"), Decimal("-9999.99")],
                [Decimal("12345678901.25")],
                ["v <= 123456789012.10", "v < 21474836.48", "v <> 42949672.96", "v in (1.50, 12345678901.25)"],
            )
            for digits, wider in ((9, 18), (9, 20), (6, 13))
        ),
    ],
)
def test_spark_reads_and_filters_a_column_of_wider_type_as_the_local_engine(
    spark: SparkSession,
    tmp_path: Path,
    kind: str,
    narrow: pa.DataType,
    wide: pa.DataType,
    values: list[Any],
    more: list[Any],
    conditions: list[str],
) -> None:
    table = made(tmp_path, kind, (narrow, values), (wide, more))
    frame = spark.read.format("hudi").load(table.storage.absolute(""))
    local = {row["id"]: row["v"] for row in table.scan(columns=["id", "v"]).read_all().to_pylist()}
    rows = {row["id"]: row["v"] for row in (one.asDict(recursive=True) for one in frame.select("id", "v").collect())}
    assert rows == local
    for condition in conditions:
        found = sorted(row[0] for row in frame.where(condition).select("id").collect())
        if "array" in condition:
            assert found == ["00"]
        else:
            assert found == sorted(table.scan(columns=["id"], filter=condition).read_all().column("id").to_pylist())
