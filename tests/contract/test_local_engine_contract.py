from __future__ import annotations

import signal
import threading
import time

import pyarrow as pa
import pytest

from hoodie.engine import ArrowSource, Engine, LocalEngine, Source, TaskId
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


def test_no_task_outlives_a_run_that_is_interrupted_again_and_again() -> None:
    main, ended = threading.get_ident(), []

    def work(_: TaskId, n: int) -> None:
        for _ in range(3):
            time.sleep(0.05)
            if n == 0:
                signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.1)
        ended.append(n)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever an earlier test has left there
    try:
        with pytest.raises(KeyboardInterrupt):
            LocalEngine(2).run(work, [0, 1], "interrupted")
    finally:
        signal.signal(signal.SIGINT, before)
    found = sorted(ended)
    time.sleep(0.3)
    assert found == sorted(ended) == [0, 1]
