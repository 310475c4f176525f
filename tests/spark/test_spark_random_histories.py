"""Tables that random sequences of writes, services and faults have made: Spark gives the rows of the model, as the
local engine does.

`HOODIE_MACHINE_SPARK` (default 4) is the number of sequences, `HOODIE_MACHINE_SEED` the seed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hoodie.testing import table_laws as laws
from hoodie.testing.table_machine import TableMachine, run_machine

SEQUENCES = int(os.environ.get("HOODIE_MACHINE_SPARK", "4"))
SEED = int(os.environ.get("HOODIE_MACHINE_SEED", "20261123"))
OPTIONS = {
    "as_of": "as.of.instant",
    "begin": "hoodie.datasource.read.begin.instanttime",
    "end": "hoodie.datasource.read.end.instanttime",
}

pytestmark = [pytest.mark.spark, pytest.mark.long]


class SparkReadMachine(TableMachine):
    """Has Spark read the table at the end."""

    spark: ClassVar[SparkSession]
    folders: ClassVar[Iterator[Path]]
    read: ClassVar[int] = 0

    def at_the_end(self) -> None:
        path = next(self.folders)
        self.table.copy_to(str(path))

        def read(query: str = "snapshot", filter: str | None = None, **bounds: Any) -> pa.Table:
            reader = self.spark.read.format("hudi")
            reader = reader.options(**{OPTIONS[name]: value for name, value in bounds.items() if value is not None})
            if query != "snapshot":
                reader = reader.option("hoodie.datasource.query.type", "incremental")
            if query == "cdc":
                reader = reader.option("hoodie.datasource.query.incremental.format", "cdc")
            frame = reader.load(str(path))
            return (frame if filter is None else frame.where(filter)).toArrow()

        table = self.table.opened()
        laws.ensure_snapshot(read, self.rows)
        begin = sorted(self.states)[len(self.states) // 2]
        laws.ensure_state(read, begin, self.states[begin], may_refuse=self.cleaned)
        laws.ensure_changes(read, table, begin, None, self.states, losers_too=self.shows_losers)
        if self.changes:
            laws.ensure_change_data(read, table, begin, self.states, may_refuse=self.cleaned)
        for condition in ("ts > 3", "id IN ('k1', 'k99')", "part = 'p1'", "v NOT LIKE '1-%'"):
            expected = laws.local_reader(table)(filter=condition).select(laws.COLUMNS)
            found = read(filter=condition).select(laws.COLUMNS)
            assert found.sort_by("id").to_pylist() == expected.sort_by("id").to_pylist(), condition
        type(self).read += 1


def test_spark_reads_what_random_histories_left(spark: SparkSession, tmp_path: Path) -> None:
    SparkReadMachine.spark = spark
    SparkReadMachine.folders = (tmp_path / f"table-{number}" for number in range(1_000_000))
    run_machine(SparkReadMachine, SEED, SEQUENCES, 8)
    assert next(SparkReadMachine.folders).name == f"table-{SEQUENCES}"
