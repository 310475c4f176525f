"""What an update of `hoodie.properties` left that died: readers cope with it, and who writes next heals it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from hoodie.engine import LocalEngine
from hoodie.spec import encode_table_config, keys
from hoodie.state.handle import load_handle
from hoodie.storage import MemoryStorage, Storage
from hoodie.table import Table
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import Awake, Lake, logged_lake, row

BY_HAND = {
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "true",
}
ACTIONS: dict[str, Callable[[Lake], object]] = {
    "upsert": lambda lake: lake.upsert(row("b", "b", 9)),
    "delete_partition": lambda lake: lake.table.delete_partition("p"),
    "overwrite": lambda lake: lake.save([row("b")], "overwrite"),
    "schedule_compaction": lambda lake: lake.table.services.schedule_compaction(),
    "compact": lambda lake: lake.table.services.compact(),
    "compact_logs": lambda lake: lake.table.services.compact_logs(),
    "clean": lambda lake: lake.table.services.clean(),
    "archive": lambda lake: lake.table.services.archive(),
    "rollback": lambda lake: lake.table.services.rollback(lake.table.timeline().completed_writes()[-1].requested),
    "savepoint": lambda lake: lake.table.savepoints.create(),
    "restore": lambda lake: lake.table.services.restore(lake.table.timeline().completed_writes()[0].requested),
    "ttl": lambda lake: lake.table.services.ttl(),
    "upgrade": lambda lake: lake.table.services.upgrade(lake.version),
    "create_index": lambda lake: lake.table.indexes.create("record_index"),
}


def lake_of(version: int) -> Lake:
    lake = logged_lake(version, **BY_HAND)
    lake.upsert(row("a"))
    lake.upsert(row("a", "a2", 2))
    return lake


def stale(storage: Storage) -> None:
    """An update died before it dropped its backup, which is not the table's state any more."""
    config = load_handle(storage, Awake()).config
    other = config.with_changes({keys.VERSION: "8" if config.table_version == 9 else "9", keys.HIVE_STYLE: "true"})
    storage.put(keys.PROPERTIES_BACKUP_FILE, encode_table_config(other, Awake().now()))


def missing(storage: Storage) -> None:
    """An update of Hudi's died between the delete and the create of the main file."""
    storage.put(keys.PROPERTIES_BACKUP_FILE, storage.read(keys.PROPERTIES_FILE))
    storage.delete(keys.PROPERTIES_FILE)


def cut_short(storage: Storage) -> None:
    """It died while it wrote the main file."""
    data = storage.read(keys.PROPERTIES_FILE)
    storage.put(keys.PROPERTIES_BACKUP_FILE, data)
    storage.put(keys.PROPERTIES_FILE, data[:60])


STATES = [stale, missing, cut_short]
_NAMES = itertools.count()


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_heals_the_properties(action: str, state: Callable[[Storage], None]) -> None:
    lake = lake_of(9)
    before = lake.table.config
    state(lake.storage)
    ACTIONS[action](lake)
    assert keys.PROPERTIES_BACKUP_FILE not in lake.files()
    after = lake.table.config
    assert (after.table_version, after.raw.get(keys.HIVE_STYLE)) == (9, before.raw.get(keys.HIVE_STYLE))
    assert not [one for one in lake.table.validate() if one.kind == "properties"]


@pytest.mark.parametrize("state", STATES)
def test_a_reader_takes_what_is_true_and_changes_nothing(state: Callable[[Storage], None], version: int) -> None:
    lake = lake_of(version)
    state(lake.storage)
    before = lake.files()
    assert lake.table.config.table_version == version
    assert lake.values() == {"a": "a2"}
    assert {one.kind for one in lake.table.validate()} == {"properties"}
    assert lake.files() == before


@pytest.mark.parametrize(("version", "to"), [(6, 8), (6, 9), (8, 9), (9, 8), (9, 6)])
def test_the_next_service_heals_the_properties_after_an_upgrade_without_metadata_table_that_died(
    version: int, to: int
) -> None:
    """At every step of replacing them. The version is the one readers saw; the upgrade is finished when asked for."""
    lake = Lake(version, BY_HAND)
    lake.upsert(row("a"))
    lake.upsert(row("a", "a2", 2))
    files = lake.files()
    counted = CountingStorage(copied(files))
    bring_to(to, counted)
    at = [call.n for call in counted.calls if call.path in (keys.PROPERTIES_FILE, keys.PROPERTIES_BACKUP_FILE)]
    assert len(at) > 4
    for crash_at in [*at, at[-1] + 1]:
        storage = copied(files)
        with pytest.raises(Crash):
            bring_to(to, CountingStorage(storage, crash_at=crash_at))
        seen = load_handle(storage, Awake()).config.table_version
        table = Table(load_handle(storage, Awake()), {}, LocalEngine(1))
        assert table.services.clean() is None
        assert [info.path for info in storage.list("") if info.path == keys.PROPERTIES_BACKUP_FILE] == []
        assert table.version == seen
        bring_to(to, storage)
        assert table.version == to
        assert table.scan(columns=["v"]).read_all().to_pydict() == {"v": ["a2"]}
        assert table.validate() == []
        storage.forget()


def bring_to(version: int, storage: Storage) -> None:
    Table(load_handle(storage, Awake()), {}, LocalEngine(1)).services.upgrade(version)


def copied(files: dict[str, bytes]) -> MemoryStorage:
    copy = MemoryStorage(f"properties-{next(_NAMES)}", Awake())
    for path, data in files.items():
        copy.put(path, data)
    return copy
