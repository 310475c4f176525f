"""How often an operation calls the storage, and how many of the calls wait for one another: exactly as
docs/storage-calls.md says. The numbers may only fall.
"""

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
from hoodie.testing.round_trips import counted_depth

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

    def one_after_the_other(self, act: Callable[[Table], object]) -> int:
        with counted_depth(self.counting) as depth:
            act(self.table)
        return depth.now


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
    """The table of the page by operation: calls, copy-on-write first, then those one after the other, where it has
    them.
    """
    found = re.findall(r"^\| ([a-z].*?) ((?:\| (?:\d+|-) )+)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: [int(one) for one in re.findall(r"\d+", counts)] for name, counts in found}


@pytest.mark.parametrize("at", [0, 1], ids=KINDS)
@pytest.mark.parametrize("name", list(OPERATIONS))
def test_an_operation_calls_the_storage_as_often_as_the_page_says(name: str, at: int) -> None:
    partitions, act = OPERATIONS[name]
    assert world(KINDS[at], partitions).counted(act) == said()[name][at]


@pytest.mark.parametrize("at", [0, 1], ids=KINDS)
@pytest.mark.parametrize("name", [name for name in OPERATIONS if name.startswith("upsert")])
def test_no_more_round_trips_of_a_write_follow_one_another_than_the_page_says(name: str, at: int) -> None:
    partitions, act = OPERATIONS[name]
    assert world(KINDS[at], partitions).one_after_the_other(act) == said()[name][2 + at]


def test_the_page_has_every_operation_and_no_other() -> None:
    assert set(said()) == set(OPERATIONS)
