"""How often an operation calls the storage: exactly as docs/storage-calls.md says. The numbers may only fall."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hoodie.engine import LocalEngine
from hoodie.state.handle import load_handle
from hoodie.table import Table
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lake import Awake

PAGE = Path(__file__).parents[3] / "docs" / "storage-calls.md"
ROWS = 10_000
FEW, MANY = 3, 50
_NAMES = count()


def rows(keys: range, partitions: int, value: int) -> pa.Table:
    found = np.arange(keys.start, keys.stop, keys.step)
    return pa.table(
        {
            "id": [f"k{key:08d}" for key in found],
            "p": [f"p{key % partitions:03d}" for key in found],
            "v": pa.array(np.full(len(found), value)),
            "ts": pa.array(np.full(len(found), value)),
        }
    )


def hundred(partitions: int, value: int) -> pa.Table:
    """A hundred rows in all partitions."""
    return rows(range(0, ROWS, 100) if partitions == FEW else range(100), partitions, value)


class World:
    """A table of 10 000 rows after two upserts of a hundred rows, with services and statistics as by default."""

    def __init__(self, kind: str, partitions: int) -> None:
        uri = f"memory://calls-{next(_NAMES)}"
        options = {
            "hoodie.table.name": "calls",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.metadata.index.partition.stats.enable": "true",
        }
        table = Table.create(uri, schema=rows(range(1), partitions, 0).schema, options=options, env=Awake())
        table.bulk_insert(rows(range(ROWS), partitions, 0))
        for value in (1, 2):
            table.upsert(hundred(partitions, value))
        self.counting = CountingStorage(table.storage)
        self.table = Table(load_handle(self.counting, Awake()), options, LocalEngine(1))

    def counted(self, act: Callable[[Table], object]) -> int:
        before = self.counting.count
        act(self.table)
        return self.counting.count - before


@cache
def world(kind: str, partitions: int) -> World:
    return World(kind, partitions)


def small_upsert(partitions: int) -> Callable[[Table], object]:
    return lambda table: table.upsert(hundred(partitions, 3))


OPERATIONS: dict[str, tuple[int, Callable[[Table], object]]] = {
    "snapshot scan of 3 files": (FEW, lambda table: table.scan().read_all()),
    "snapshot scan of 50 files": (MANY, lambda table: table.scan().read_all()),
    "upsert of 100 rows into 3 files": (FEW, small_upsert(FEW)),
    "upsert of 100 rows into 50 files": (MANY, small_upsert(MANY)),
}
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


def said() -> dict[str, list[int]]:
    """The table of the page: counts by operation, copy-on-write first."""
    found = re.findall(r"^\| ([a-z].*?) \| (\d+) \| (\d+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: [int(first), int(second)] for name, first, second in found}


@pytest.mark.parametrize("at", [0, 1], ids=KINDS)
@pytest.mark.parametrize("name", list(OPERATIONS))
def test_an_operation_calls_the_storage_as_often_as_the_page_says(name: str, at: int) -> None:
    partitions, act = OPERATIONS[name]
    assert world(KINDS[at], partitions).counted(act) == said()[name][at]


def test_the_page_has_every_operation_and_no_other() -> None:
    assert set(said()) == set(OPERATIONS)
