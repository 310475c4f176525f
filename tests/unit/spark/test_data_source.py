"""The Python data source in one process: filters narrow what is planned, and errors carry their kind through text."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import EqualTo, GreaterThan, InputPartition

import hoodie
from hoodie.errors import Invalid
from hoodie.spark.data_source import FilteringSource, HudiSource
from hoodie.spark.failures import from_text

ROWS = pa.table({"id": ["a", "b", "c"], "city": ["sf", "sf", "la"], "fare": [1.0, 2.0, 3.0], "ts": [1, 1, 1]})
KEYS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}


@pytest.fixture
def base(tmp_path: Path) -> str:
    table = hoodie.Table.create(str(tmp_path / "rides"), schema=ROWS.schema, options=KEYS)
    table.upsert(ROWS)
    return str(tmp_path / "rides")


def _ids(source: HudiSource, *filters: object) -> list[str]:
    reader = source.reader(source.schema())
    if filters:
        assert list(reader.pushFilters(list(filters))) == list(filters)  # type: ignore[arg-type]
    parts = reader.partitions()
    return sorted(key for part in parts for batch in reader.read(part) for key in batch.column("id").to_pylist())


def test_filters_narrow_the_rows_and_are_given_back(base: str) -> None:
    source = FilteringSource({"path": base})
    assert _ids(source) == ["a", "b", "c"]
    assert _ids(source, GreaterThan(("fare",), 1.5)) == ["b", "c"]
    assert _ids(source, GreaterThan(("fare",), 1.5), EqualTo(("city",), "sf")) == ["b"]
    assert _ids(source, EqualTo(("city",), "nowhere")) == []


def test_a_partition_spark_makes_up_has_no_rows(base: str) -> None:
    source = HudiSource({"path": base})
    assert list(source.reader(source.schema()).read(InputPartition(None))) == []


def test_options_may_have_lost_their_case(base: str) -> None:
    options = {"PATH": base, "hoodie.datasource.query.type": "incremental", "maxfilespertrigger": "1"}
    begun = {**options, "hoodie.datasource.read.begin.instanttime": "earliest"}
    assert _ids(HudiSource(begun)) == ["a", "b", "c"]
    assert HudiSource(options).schema().names[-4:] == ROWS.column_names


def test_an_error_keeps_its_kind_in_the_text(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as caught:
        HudiSource({"path": str(tmp_path / "nothing")}).schema()
    assert isinstance(from_text(str(caught.value)), Invalid)
