"""Reading and replacing hoodie.properties, in all states an update can leave behind."""

import contextlib

import pytest

from hoodie.errors import Conflict, Corrupt, Invalid, Unsupported
from hoodie.spec import V9, TableConfig, encode_table_config, keys
from hoodie.spec.keys import PROPERTIES_BACKUP_FILE, PROPERTIES_FILE
from hoodie.spec.new_table import NewTable, new_table_properties
from hoodie.spec.properties import MAX_BYTES
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.env import FakeEnv
from hoodie.timeline import is_table, load_table_config, store_table_config

CONFIG = TableConfig(new_table_properties(V9, NewTable("t")))
CHANGED = CONFIG.with_changes({keys.METADATA_PARTITIONS: "files"})
DATA = encode_table_config(CONFIG, FakeEnv().now())
DAMAGED = [b"", DATA[:40], DATA.replace(b"hoodie.table.name=t\n", b"hoodie.table.name=u\n"), b"\0" * 50]


def test_a_table_is_created_once(storage):
    stored = store_table_config(storage, None, CONFIG, FakeEnv())
    assert load_table_config(storage) == stored == CONFIG
    assert is_table(storage)
    with pytest.raises(Conflict):
        store_table_config(storage, None, CONFIG, FakeEnv())


def test_an_update_replaces_and_leaves_no_backup(storage):
    old = store_table_config(storage, None, CONFIG, FakeEnv())
    store_table_config(storage, old, CHANGED, FakeEnv())
    assert load_table_config(storage) == CHANGED
    assert [file.path for file in storage.list("")] == [PROPERTIES_FILE]


def test_an_update_from_an_old_picture_conflicts(storage):
    old = store_table_config(storage, None, CONFIG, FakeEnv())
    store_table_config(storage, old, CHANGED, FakeEnv())
    with pytest.raises(Conflict):
        store_table_config(storage, old, CONFIG.with_changes({keys.HIVE_STYLE: "true"}), FakeEnv())
    assert load_table_config(storage) == CHANGED


@pytest.mark.parametrize("crash_at", range(1, 9))
def test_an_update_that_dies_anywhere_leaves_the_old_or_the_new_config(storage, crash_at):
    old = store_table_config(storage, None, CONFIG, FakeEnv())
    with contextlib.suppress(Crash):
        store_table_config(CountingStorage(storage, crash_at=crash_at), old, CHANGED, FakeEnv())
    found = load_table_config(storage, FakeEnv())
    assert found in (CONFIG, CHANGED)
    newer = CONFIG.with_changes({keys.HIVE_STYLE: "true"})
    assert store_table_config(storage, found, newer, FakeEnv()) == newer
    assert [file.path for file in storage.list("")] == [PROPERTIES_FILE]


@pytest.mark.parametrize("main", [None, *DAMAGED])
def test_the_backup_is_read_when_the_main_file_is_not_whole(storage, main):
    if main is not None:
        storage.create(PROPERTIES_FILE, main)
    storage.create(PROPERTIES_BACKUP_FILE, DATA)
    env = FakeEnv()
    assert load_table_config(storage, env) == CONFIG
    assert env.sleeps == []
    assert store_table_config(storage, CONFIG, CHANGED, env) == CHANGED


@pytest.mark.parametrize("backup", [False, True])
@pytest.mark.parametrize("main", DAMAGED)
def test_damage_without_a_whole_backup_is_corrupt_after_a_few_tries(storage, main, backup):
    storage.create(PROPERTIES_FILE, main)
    if backup:
        storage.create(PROPERTIES_BACKUP_FILE, main)
    env = FakeEnv()
    with pytest.raises(Corrupt, match=r"hoodie\.properties") as caught:
        load_table_config(storage, env)
    assert caught.value.remedy
    assert 0 < sum(env.sleeps) < 2


def test_a_file_that_is_whole_at_the_next_try_is_taken(storage):
    storage.create(PROPERTIES_FILE, DAMAGED[1])

    class Healing(FakeEnv):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            storage.put(PROPERTIES_FILE, DATA)

    env = Healing()
    assert load_table_config(storage, env) == CONFIG
    assert len(env.sleeps) == 1


def test_a_missing_table_is_reported_at_once(storage):
    env = FakeEnv()
    with pytest.raises(Invalid, match="no table at") as caught:
        load_table_config(storage, env)
    assert caught.value.remedy
    assert env.sleeps == []
    assert not is_table(storage)


def test_a_folder_of_something_else_is_not_a_hudi_table(storage):
    storage.create("part-0.parquet", b"x")
    env = FakeEnv()
    with pytest.raises(Invalid, match="not a Hudi table") as caught:
        load_table_config(storage, env)
    assert caught.value.remedy
    assert env.sleeps == []


def test_a_hoodie_folder_without_properties_is_corrupt(storage):
    storage.create(".hoodie/timeline/20260102030405006.commit.requested", b"")
    with pytest.raises(Corrupt, match="missing"):
        load_table_config(storage, FakeEnv())


@pytest.mark.parametrize("version", ["10", "7", "5"])
def test_other_versions_are_unsupported_and_named(storage, version):
    config = CONFIG.with_changes({keys.VERSION: version})
    storage.create(PROPERTIES_FILE, encode_table_config(config, FakeEnv().now()))
    with pytest.raises(Unsupported, match=f"version {version}") as caught:
        load_table_config(storage, FakeEnv())
    assert "6, 8 and 9" in (caught.value.remedy or "")


def test_properties_of_hundreds_of_megabytes_are_refused_without_being_read_whole(storage, monkeypatch):
    storage.put(PROPERTIES_FILE, b"hoodie.table.name=t\n" + b"#" * (MAX_BYTES + 1))
    lengths = []
    part = type(storage).read_range

    def counted(self, path, start, length):
        lengths.append(length)
        return part(self, path, start, length)

    monkeypatch.setattr(type(storage), "read_range", counted)
    monkeypatch.setattr(type(storage), "read", lambda *_: pytest.fail("the whole file is read"))
    with pytest.raises(Corrupt, match=rf"hoodie.properties has more than {MAX_BYTES} bytes"):
        load_table_config(storage, FakeEnv())
    assert max(lengths) == MAX_BYTES + 1
