"""Rollbacks of writes that were there when the metadata table, or an index in it, was made: it was made of them, and no
delta commit of it says so.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.services.rollback.rollback import roll_back_instant
from hoodie.state.handle import load_handle
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import Lake, row

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
INDEXED = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.record.index.update.partition.path": "true",
}
UNTIL_THEN = {"a": "1", "b": "1"}


def inserted(lake: Lake) -> None:
    lake.write("insert", [row("c", "1", part="q"), row("d", "1", part="q")])


def moved(lake: Lake) -> None:
    lake.upsert(
        row("a", "2", 2, part="q"),
        hoodie__index__type="GLOBAL_SIMPLE",
        hoodie__simple__index__update__partition__path="true",
    )


def clustered(lake: Lake) -> None:
    assert lake.table.services.cluster(**{"hoodie.clustering.plan.strategy.sort.columns": "v"})


def indexed(lake: Lake) -> None:
    lake.table.indexes.create("record_index")


def rebuilt(lake: Lake) -> None:
    indexed(lake)
    lake.table.indexes.rebuild()


def upgraded(lake: Lake) -> None:
    indexed(lake)
    lake.options = {**lake.options, "hoodie.write.table.version": 9}
    lake.table.services.upgrade(9)


def lake_of(version: int, kind: str) -> Lake:
    lake = Lake(
        version, {"hoodie.datasource.write.table.type": kind, "hoodie.merge.small.file.group.candidates.limit": 0}
    )
    lake.upsert(row("a", "1"))
    lake.upsert(row("b", "1"))
    return lake


def ensure_as_before(lake: Lake) -> None:
    """The table is as if the write had never been, for readers and for the next writer."""
    assert lake.values() == UNTIL_THEN
    lake.ensure_sound()
    by_index = {**INDEXED, "hoodie.index.type": "RECORD_INDEX"}
    lake.write("upsert", [row("a", "3", 3), row("c", "3", 3)], by_index)
    assert lake.values() == {"a": "3", "b": "1", "c": "3"}
    assert sorted(lake.table.lookup(["a", "b", "c"]).read_all()["id"].to_pylist()) == ["a", "b", "c"]
    lake.ensure_sound()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("made", [indexed, rebuilt, upgraded])
@pytest.mark.parametrize("write", [inserted, moved, clustered])
def test_nothing_is_left_of_a_write_that_an_index_was_made_of(
    version: int, kind: str, made: Callable[[Lake], None], write: Callable[[Lake], None]
) -> None:
    if made is upgraded and version == 9:
        pytest.skip("9 is the newest version")
    if made is upgraded and write is moved and kind == "MERGE_ON_READ":
        pytest.skip("the upgrade compacts log files, and only the newest write can be rolled back")
    lake = lake_of(version, kind)
    write(lake)
    target = lake.table.timeline().completed_writes()[-1].requested
    made(lake)
    lake.table.services.rollback(target)
    ensure_as_before(lake)


@pytest.mark.deep
@pytest.mark.parametrize("made", [indexed, rebuilt])
def test_nothing_is_left_of_it_wherever_the_rollback_dies(version: int, made: Callable[[Lake], None]) -> None:
    def prepared() -> tuple[Lake, str]:
        lake = lake_of(version, "COPY_ON_WRITE")
        moved(lake)
        target = lake.table.timeline().completed_writes()[-1].requested
        made(lake)
        return lake, target

    lake, target = prepared()
    counted = CountingStorage(lake.storage)
    roll_back_instant(load_handle(counted, SystemEnv()), resolve({}), LocalEngine(1), target)
    for call in range(1, counted.count + 1, 3):
        lake, target = prepared()
        dying = CountingStorage(lake.storage, crash_at=call)
        with pytest.raises(Crash):
            roll_back_instant(load_handle(dying, SystemEnv()), resolve({}), LocalEngine(1), target)
        if lake.table.timeline().find(target) is not None:
            lake.table.services.rollback(target)
        ensure_as_before(lake)
