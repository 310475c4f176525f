"""A read during which somebody else changes the table, at each of its storage calls: it gives the rows from before or
from after, or says that what it was reading is no longer there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt, HudiError, Unavailable
from hoodie.metadata.index_definitions import DEFAULT_PATH
from hoodie.state.handle import TableHandle, load_handle
from hoodie.table import Table
from hoodie.testing.counting_storage import Call, CountingStorage
from hoodie.testing.lake import Awake, Lake, logged_lake, row

pytestmark = [pytest.mark.deep, pytest.mark.sampled(4)]

EACH = int(os.environ.get("HOODIE_EACH_CALL", "5"))
COLUMNS = ("id", "v")
Rows = list[tuple[Any, ...]]


def world(version: int) -> Lake:
    lake = logged_lake(version, **{"hoodie.compact.inline": "false", "hoodie.clean.automatic": "false"})
    lake.upsert(row("a", "1"), row("b", "1"), row("c", "1", part="q"))
    lake.upsert(row("a", "2", 2), row("c", "2", 2, part="q"))
    lake.table.services.compact()
    lake.upsert(row("a", "3", 3), row("d", "3", part="q"))
    lake.upsert(row("b", "4", 4))
    return lake


def restore(lake: Lake) -> None:
    lake.table.services.restore(lake.table.timeline().completed_writes()[-3].requested)


def rollback(lake: Lake) -> None:
    lake.table.services.rollback(lake.table.timeline().completed_writes()[-1].requested)


def other_version(lake: Lake) -> None:
    lake.table.services.upgrade({6: 9, 8: 9, 9: 6}[lake.version])


def overwrite_partition(lake: Lake) -> None:
    lake.write("insert_overwrite", [row("n", "9", 9)])
    lake.table.services.clean(**CLEAN)


def overwrite_by_another_kind(lake: Lake) -> None:
    lake.save([row("n", "9", 9)], "overwrite", hoodie__datasource__write__table__type="COPY_ON_WRITE")


def rebuild(lake: Lake) -> None:
    lake.table.indexes.rebuild()


def compact_and_clean(lake: Lake) -> None:
    lake.table.services.compact()
    lake.table.services.clean(**CLEAN)


CLEAN = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
ACTIONS = [restore, rollback, other_version, overwrite_partition, overwrite_by_another_kind, rebuild, compact_and_clean]


def snapshot(table: Table) -> Rows:
    return rows_of(table.scan(columns=list(COLUMNS)))


def lookup(table: Table) -> Rows:
    return rows_of(table.lookup(["a", "b", "d", "n"], columns=list(COLUMNS)))


def incremental(table: Table) -> Rows:
    return rows_of(table.scan(columns=list(COLUMNS), query="incremental", begin="0"))


def rows_of(rows: Any) -> Rows:
    return sorted((one["id"], one["v"]) for one in rows.read_all().to_pylist())


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
@pytest.mark.parametrize("read", [snapshot, lookup, incremental], ids=lambda read: read.__name__)
def test_a_read_beside_a_change_sees_one_state_or_says_why_not(
    version: int, action: Callable[[Lake], None], read: Callable[[Table], Rows]
) -> None:
    lake = world(version)
    files = lake.files()
    before = read(lake.table)
    action(lake)
    after = read(lake.table)
    k = 1 + (version + len(action.__name__) + len(read.__name__)) % EACH
    while True:
        again = Lake(version, lake.options)
        for path, data in files.items():
            again.storage.put(path, data)

        def strike(call: Call, at: int = k, again: Lake = again) -> None:
            if call.n == at:
                action(again)

        counted = CountingStorage(again.storage, on_call=strike)
        try:
            found = read(opened(counted, again))
            assert found in (before, after), k
        except HudiError as error:
            assert isinstance(error, Unavailable), (k, error)
            assert "read" in str(error), k
        if k > counted.count:
            break
        k += EACH


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("query", ["as_of", "range", "changes"])
def test_a_read_of_the_past_beside_a_clean_gives_all_of_it_or_what_a_read_after_the_clean_gives(
    version: int, metadata: str, kind: str, query: str
) -> None:
    lake = past_world(version, kind, metadata)
    files, (first, second, _) = lake.files(), [one.requested for one in lake.table.timeline().completed_writes()][:3]
    ends = {"begin": first, "end": second}
    if version > 6:  # ranges go by the time of completion
        clock = {one.requested: one.completed for one in lake.table.timeline().completed_writes()}
        ends = {name: clock[time] for name, time in ends.items()}
    asked: dict[str, Any] = {
        "as_of": {"as_of": second},
        "range": {"query": "incremental", **ends},
        "changes": {"query": "cdc", **ends},
    }[query]
    before = answer(lake.table, asked)
    lake.table.services.clean(**CLEAN)
    after = answer(lake.table, asked)
    assert before != after
    at = 0
    while True:
        at += 1
        again = Lake(version, lake.options)
        for path, data in files.items():
            again.storage.put(path, data)

        def strike(call: Call, at: int = at, again: Lake = again) -> None:
            if call.n == at:
                again.table.services.clean(**CLEAN)

        counted = CountingStorage(again.storage, on_call=strike)
        found = answer(opened(counted, again), asked)
        assert found in (before, after) or str(found).startswith("Unavailable"), at
        if at > counted.count:
            break


def past_world(version: int, kind: str, metadata: str) -> Lake:
    """Three writes of one key, of which a clean that keeps one version leaves the last."""
    more = {"hoodie.metadata.enable": metadata, "hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
    more["hoodie.table.cdc.enabled"] = "true"
    lake = logged_lake(version, **more) if kind == "mor" else Lake(version, more)
    for seq, value in enumerate(("1", "2", "3"), 1):
        lake.upsert(row("a", value, seq), *([row("b", value, seq)] if seq == 1 else []))
        if kind == "mor" and seq > 1:
            lake.table.services.compact()
    return lake


def answer(table: Table, asked: dict[str, Any]) -> object:
    """The rows, or what is said in their place."""
    try:
        columns = None if asked.get("query") == "cdc" else list(COLUMNS)
        rows = table.scan(columns=columns, **asked).read_all().to_pylist()
        return sorted(str(one) for one in rows)
    except HudiError as error:
        return f"{type(error).__name__}: {error}"


def opened(storage: CountingStorage, lake: Lake) -> Table:
    handle = load_handle(lake.storage, Awake())
    return Table(TableHandle(storage, handle.config, handle.profile, Awake()), lake.options, LocalEngine(1))


def test_a_read_waits_for_index_definitions_that_hudi_is_writing() -> None:
    lake = world(9)
    expected = lake.rows()
    whole = lake.storage.read(DEFAULT_PATH)
    lake.storage.put(DEFAULT_PATH, b"")

    class Writing(Awake):
        naps = 0

        def sleep(self, seconds: float) -> None:
            self.naps += 1
            if self.naps == 3:
                lake.storage.put(DEFAULT_PATH, whole)

    found = Table.open(lake.uri, options=lake.options, env=Writing()).scan(columns=list(COLUMNS))
    assert rows_of(found) == expected


def test_index_definitions_that_stay_damaged_are_corrupt() -> None:
    lake = world(9)
    lake.storage.put(DEFAULT_PATH, b"{")
    with pytest.raises(Corrupt, match="index.json is damaged"):
        lake.rows()


@pytest.mark.parametrize("version", [6, 9])
def test_a_read_waits_while_archiving_takes_one_write_after_the_other(version: int) -> None:
    lake = Lake(version, {"hoodie.metadata.enable": "false"})
    for n in range(24):
        lake.upsert(row("a", str(n), n))
    oldest = [instant.requested for instant in lake.table.timeline().completed_writes()]
    naps: list[float] = []

    class Watched(Awake):
        def sleep(self, seconds: float) -> None:
            naps.append(seconds)

    def strike(call: Call) -> None:
        if call.op.startswith("list") and sum(naps) < 1 and len(oldest) > 4:
            first = str(oldest.pop(0))
            for path in lake.files():
                if path.startswith(".hoodie/") and f"/{first}" in path and "archived" not in path:
                    lake.storage.delete(path)

    handle = load_handle(lake.storage, Awake())
    beside = TableHandle(CountingStorage(lake.storage, on_call=strike), handle.config, handle.profile, Watched())
    assert snapshot(Table(beside, lake.options, LocalEngine(1))) == [("a", "23")]
    assert sum(naps) >= 1
