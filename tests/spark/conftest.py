"""One small Spark session for all tests of this folder: starting it costs more than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    import hoodie.spark  # noqa: PLC0415

    session = hoodie.spark.session(
        "hoodie-tests",
        master="local[2]",
        **{
            "spark.driver.memory": "1g",
            "spark.ui.enabled": False,
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.session.timeZone": "UTC",
        },
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
