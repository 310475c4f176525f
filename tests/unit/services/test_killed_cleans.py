"""A clean that died, and what the next ones do.

Found by killing an upsert with all services: after a clean by versions with one version to keep, three old files were
left. The clean had finished the dead one and, as Hudi's, planned none of its own.
"""

from __future__ import annotations

import itertools

import pytest

from hoodie.engine import LocalEngine
from hoodie.spec import CLEAN
from hoodie.state.handle import load_handle
from hoodie.storage import MemoryStorage, Storage
from hoodie.table import Table
from hoodie.testing.counting_storage import Call, CountingStorage, Crash
from hoodie.testing.lake import Awake, Lake, row, table_of

pytestmark = pytest.mark.deep

BY_HAND = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.metadata.enable": "true",
}
SERVICES = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
NEWEST_ONLY = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
_NAMES = itertools.count()


def opened(storage: Storage, **options: str) -> Table:
    given = {**BY_HAND, "hoodie.index.bloom.num_entries": "50", **options}
    return Table(load_handle(storage, Awake()), given, LocalEngine(1))


def history(version: int, **more: str) -> dict[str, bytes]:
    """The files of a copy-on-write table with two file groups, each rewritten three times."""
    lake = Lake(version, {**BY_HAND, **more})
    for number in range(4):
        lake.upsert(row("a", str(number), number, "p0"), row("b", str(number), number, "p1"))
    return lake.files()


def copied(files: dict[str, bytes]) -> MemoryStorage:
    copy = MemoryStorage(f"cleans-{next(_NAMES)}", Awake())
    for path, data in files.items():
        copy.put(path, data)
    return copy


def write(storage: Storage) -> None:
    """An upsert into one of the groups, followed by a clean of all but the newest commit and the state before it."""
    opened(storage, **SERVICES).upsert(table_of([row("b", "up", 8, "p1")]))


def die_while_cleaning(files: dict[str, bytes], call: str) -> MemoryStorage:
    """The table after a write whose clean died before the first `call` on a data file, or on the clean's instant."""
    counted = CountingStorage(copied(files))
    write(counted)
    start = next(one.n for one in counted.calls if one.path.endswith(".clean.requested"))
    crash_at = next(
        one.n
        for one in counted.calls
        if one.n > start and one.op == call and one.path.endswith((".parquet", ".clean", ".clean.inflight"))
    )
    storage = copied(files)
    with pytest.raises(Crash):
        write(CountingStorage(storage, crash_at=crash_at))
    assert [one.action for one in opened(storage).timeline().pending()] == [CLEAN]
    return storage


def old_files(storage: Storage) -> dict[str, int]:
    """How many files of each partition are not in its newest slice."""
    newest = {one.base.path for one in opened(storage).files() if one.base is not None}
    found = {"p0": 0, "p1": 0}
    for info in storage.list(""):
        if info.path.endswith(".parquet") and info.path.startswith("p") and info.path not in newest:
            found[info.path.partition("/")[0]] += 1
    return found


@pytest.mark.parametrize("call", ["create", "delete"])
def test_a_clean_by_versions_after_a_dead_one_finishes_that_and_the_next_takes_the_rest(
    version: int, call: str
) -> None:
    storage = die_while_cleaning(history(version), call)
    table = opened(storage)
    (dead,) = table.timeline().pending()
    table.upsert(table_of([row("a", "next", 9, "p0"), row("b", "next", 9, "p1")]))
    finished = table.services.clean(**NEWEST_ONLY)
    assert finished is not None
    assert finished.instant == dead.requested, "another was planned"
    assert old_files(storage) == {"p0": 1, "p1": 2}, "what the dead clean had planned to keep, and the write after it"
    assert table.validate() == []
    assert table.services.clean(**NEWEST_ONLY) is not None
    assert old_files(storage) == {"p0": 0, "p1": 0}
    assert table.validate() == []
    assert table.scan(columns=["id", "v"]).read_all().to_pydict() == {"id": ["a", "b"], "v": ["next", "next"]}
    assert table.services.clean(**NEWEST_ONLY) is None


def test_one_call_does_both_where_that_is_asked_for(version: int) -> None:
    storage = die_while_cleaning(history(version), "delete")
    table = opened(storage)
    table.upsert(table_of([row("a", "next", 9, "p0"), row("b", "next", 9, "p1")]))
    done = table.services.clean(**NEWEST_ONLY, **{"hoodie.clean.multiple.enabled": "true"})
    assert done is not None
    assert len(done.finished) == 1
    assert old_files(storage) == {"p0": 0, "p1": 0}
    assert table.validate() == []


def test_the_commits_that_follow_leave_nothing_behind(version: int) -> None:
    """The clean after the next commit finishes the dead one; the one after that is as if nothing had happened."""
    storage = die_while_cleaning(history(version), "delete")
    write(storage)
    assert old_files(storage)["p1"] > 1
    write(storage)
    assert old_files(storage) == {"p0": 0, "p1": 1}, "but the state before the newest commit"
    assert opened(storage).validate() == []


@pytest.mark.parametrize("call", ["create", "delete"])
def test_a_dead_clean_is_finished_after_a_restore(version: int, call: str) -> None:
    """It was "taken away by the restore" for ever, and no clean went on (state machine, seed 1204)."""
    storage = die_while_cleaning(history(version), call)
    table = opened(storage)
    (dead,) = table.timeline().pending()
    before = table.scan(columns=["id", "v"]).read_all().to_pydict()
    to = table.timeline().completed_writes()[-1].requested
    table.upsert(table_of([row("a", "undone", 9, "p0")]))
    table.services.restore(to)
    finished = table.services.clean(**NEWEST_ONLY)
    assert finished is not None
    assert finished.instant == dead.requested
    assert table.timeline().pending() == ()
    assert table.scan(columns=["id", "v"]).read_all().to_pydict() == before
    assert table.validate() == []
    write(storage)
    write(storage)
    assert old_files(storage) == {"p0": 0, "p1": 1}


def test_indexes_are_built_though_a_dead_clean_took_files(version: int) -> None:
    """The metadata table lists them until the clean is finished (state machine, seed 1208)."""
    storage = copied(history(version))

    def die(call: Call) -> None:
        if call.op == "create" and call.path.endswith(".clean"):
            raise Crash("when all files are gone")

    with pytest.raises(Crash):
        opened(CountingStorage(storage, on_call=die)).services.clean(**NEWEST_ONLY)
    table = opened(storage)
    for name in ("bloom_filters", "column_stats"):
        if name not in table.indexes:
            table.indexes.create(name)
    if version > 6:
        table.indexes.create("by_day", "ts", function="from_unixtime", format="yyyy-MM-dd")
    assert table.services.clean(**NEWEST_ONLY) is not None
    assert table.validate() == []


@pytest.mark.parametrize("version", [8, 9])  # version 6 makes no metadata table while an instant is pending
def test_a_repair_does_not_care_for_the_damaged_plan_of_a_dead_clean(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    stats = {"hoodie.metadata.index.column.stats.enable": "true"}
    storage = die_while_cleaning(history(version, **stats), "delete")
    table = opened(storage)
    (dead,) = table.timeline().pending()
    path = next(info.path for info in storage.list("") if info.path.endswith(f"{dead.requested}.clean.requested"))
    storage.put(path, b"nonsense")
    table.indexes.rebuild()
    assert f"what the clean {dead.requested} was to take is not known" in caplog.text
    assert table.scan(columns=["id", "v"]).read_all().to_pydict()["id"] == ["a", "b"]
