from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.engine import ArrowSource, Engine, LocalEngine, Source
from hoodie.testing.engine_contract import EngineContract, SourceContract


class TestLocalEngine(EngineContract):
    def make_engine(self) -> Engine:
        return LocalEngine(4)


class TestTableSource(SourceContract):
    @pytest.fixture(autouse=True)
    def _small_tasks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("hoodie.engine.ROWS_PER_LOCAL_TASK", 300)

    def make_source(self, table: pa.Table) -> Source:
        return ArrowSource(table, LocalEngine(4))


class TestReaderSource(SourceContract):
    def make_source(self, table: pa.Table) -> Source:
        return ArrowSource(pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=300)))
