"""Markers of a write on Spark: executors ask the timeline server in the driver for them, over HTTP, unless options say
which markers there are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hoodie.server import Answer
from hoodie.server.embedded import stop_embedded
from hoodie.server.marker_folder import MarkerFolder
from hoodie.server.marker_service import MarkerService

pytestmark = pytest.mark.spark

WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "rides",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "day",
    "hoodie.metadata.enable": "false",
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Markers that the server of this process was asked to create."""
    found: list[str] = []
    create = MarkerFolder.create

    def heard(self: MarkerFolder, name: str) -> Future[bool]:
        found.append(name)
        return create(self, name)

    monkeypatch.setattr(MarkerFolder, "create", heard)
    stop_embedded()
    yield found
    stop_embedded()


def test_workers_have_the_server_of_the_driver_write_their_markers(
    spark: SparkSession, tmp_path: Path, made: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    frame = spark.createDataFrame([(key, f"d{key % 3}") for key in range(30)], "id long, day string").repartition(2)
    with caplog.at_level(logging.WARNING):
        frame.write.format("hudi").options(**OPTIONS).mode("append").save(str(tmp_path / "rides"))
    files = {path.relative_to(tmp_path / "rides").as_posix() for path in (tmp_path / "rides").rglob("*.parquet")}
    assert files
    assert {name.partition(".marker.")[0] for name in made} >= files
    assert not list((tmp_path / "rides" / ".hoodie" / ".temp").iterdir())
    assert not [one for one in caplog.records if "marker" in one.getMessage()]
    assert spark.read.format("hudi").load(str(tmp_path / "rides")).count() == 30


def test_a_server_that_writes_none_costs_one_warning_and_no_row(
    spark: SparkSession, tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: MarkerService, method: str, path: str, parameters: Mapping[str, str]) -> Answer:
        return Answer(503, b"it will not")

    monkeypatch.setattr(MarkerService, "answer", fails)
    frame = spark.createDataFrame([(key, f"d{key % 3}") for key in range(30)], "id long, day string").repartition(2)
    frame.write.format("hudi").options(**OPTIONS).mode("append").save(str(tmp_path / "rides"))
    assert made == []
    assert not list((tmp_path / "rides" / ".hoodie" / ".temp").iterdir())
    assert spark.read.format("hudi").load(str(tmp_path / "rides")).count() == 30


@pytest.mark.parametrize(
    "options", [{"hoodie.write.markers.type": "DIRECT"}, {"hoodie.embed.timeline.server": "false"}], ids=["type", "off"]
)
def test_who_does_not_want_it_has_direct_ones(
    spark: SparkSession, tmp_path: Path, made: list[str], options: dict[str, str]
) -> None:
    frame = spark.createDataFrame([(key, f"d{key % 3}") for key in range(30)], "id long, day string").repartition(2)
    frame.write.format("hudi").options(**OPTIONS, **options).mode("append").save(str(tmp_path / "rides"))
    assert made == []
    assert not list((tmp_path / "rides" / ".hoodie" / ".temp").iterdir())
    assert spark.read.format("hudi").load(str(tmp_path / "rides")).count() == 30
