"""SparkEngine and FrameSource keep the promises of every engine and source."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hoodie.engine import Engine, Source
from hoodie.spark import FrameSource, SparkEngine
from hoodie.testing.engine_contract import EngineContract, SourceContract

pytestmark = pytest.mark.spark


class TestSparkEngine(EngineContract):
    @pytest.fixture(autouse=True)
    def _session(self, spark: SparkSession) -> None:
        self.spark = spark

    def make_engine(self) -> Engine:
        return SparkEngine(self.spark)


class TestFrameSource(SourceContract):
    @pytest.fixture(autouse=True)
    def _session(self, spark: SparkSession) -> None:
        self.spark = spark

    def make_source(self, table: pa.Table) -> Source:
        return FrameSource(self.spark.createDataFrame(table).repartition(3))
