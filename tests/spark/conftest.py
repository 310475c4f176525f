"""One small Spark session for all tests of this folder: starting it costs more than most of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    import hoodie.spark  # noqa: PLC0415

    # Work functions of the test modules travel by name: workers must find these modules, too.
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *([known] if known else [])])
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
