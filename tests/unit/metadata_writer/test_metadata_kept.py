"""The metadata table that writes keep: it lists exactly the files that are there, after every kind of action."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.metadata import open_metadata_table
from hoodie.metadata_writer import (
    MetadataOptions,
    TableUpdate,
    compact_metadata,
    drop_partitions,
    ensure_metadata,
    open_metadata_handle,
    rebuild_partitions,
    record_update,
    undo_update,
)
from hoodie.services.metadata_upkeep import keep_metadata
from hoodie.spec import Instant, keys
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.testing.lake import Lake, row
from hoodie.timeline import complete, create_requested, new_instant_time, to_inflight
from hoodie.view import PartitionFiles, list_files

pytestmark = pytest.mark.deep

ON = {"hoodie.metadata.enable": "true"}
ENGINE = LocalEngine(1)


def lake_of(version: int, **options: str) -> Lake:
    lake = Lake(version, {**ON, **options})
    lake.upsert(row("a"), row("b"), row("c", part="q"))
    return lake


def sizes(files: tuple[PartitionFiles, ...]) -> dict[str, int]:
    return {one.path: one.size_bytes for part in files for one in part.everything}


def ensure_equal(lake: Lake) -> None:
    """The metadata table lists the partitions and files of the storage, and nothing is wrong with it."""
    handle = lake.handle()
    table = open_metadata_table(handle.storage, handle.config, timeline_of(handle))
    assert table is not None
    listed = list_files(handle.storage)
    assert sizes(table.files()) == sizes(listed)
    filled = {one.partition for one in listed if one.everything}  # a write that died may leave a folder
    assert filled <= {one.partition for one in table.files()} <= {one.partition for one in listed}
    assert [one for one in lake.table.validate() if one.kind != "pending"] == []


ACTIONS: dict[str, Callable[[Lake], object]] = {
    "upsert": lambda lake: lake.upsert(row("a", "x", 2), row("n", part="new")),
    "insert": lambda lake: lake.write("insert", [row("n", part="q")]),
    "bulk_insert": lambda lake: lake.write("bulk_insert", [row("n", part="new")]),
    "delete": lambda lake: lake.write("delete", [row("c", part="q")]),
    "insert_overwrite": lambda lake: lake.write("insert_overwrite", [row("n", part="q")]),
    "insert_overwrite_table": lambda lake: lake.write("insert_overwrite_table", [row("n", part="new")]),
    "delete_partition": lambda lake: lake.write("delete_partition", [row("c", part="q")]),
    "overwrite": lambda lake: lake.save([row("n", part="new")], "overwrite"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("name", ACTIONS)
def test_files_are_those_on_storage_after_every_operation(version: int, name: str, kind: str) -> None:
    lake = lake_of(version, **{"hoodie.datasource.write.table.type": kind})
    ensure_equal(lake)
    ACTIONS[name](lake)
    ensure_equal(lake)
    lake.upsert(row("z", part="z"), row("b", "y", 3))
    ensure_equal(lake)


def test_a_table_without_partitions_is_listed_under_its_root(version: int) -> None:
    lake = Lake(version, {**ON, "hoodie.datasource.write.partitionpath.field": None})
    lake.upsert(row("a"), row("b"))
    lake.upsert(row("a", "x", 2))
    ensure_equal(lake)


def test_an_existing_table_gets_a_metadata_table_when_a_write_asks_for_it(version: int) -> None:
    lake = Lake(version)
    off = {"hoodie.metadata.enable": "false"}
    lake.write("upsert", [row("a"), row("c", part="q")], off)
    lake.write("insert_overwrite", [row("d", part="q")], off)
    assert not lake.handle().config.has_metadata_table
    lake.write("upsert", [row("a", "x", 2)], ON)
    ensure_equal(lake)
    lake.upsert(row("b"))  # no word about it: kept
    ensure_equal(lake)


def test_saying_no_drops_the_metadata_table(version: int) -> None:
    lake = lake_of(version)
    lake.write("upsert", [row("a", "x", 2)], {"hoodie.metadata.enable": "false"})
    assert not lake.handle().config.has_metadata_table
    assert not list(lake.storage.list(keys.METADATA_TABLE_DIR))
    lake.write("upsert", [row("a", "y", 3)], ON)
    ensure_equal(lake)


def begun(handle: TableHandle) -> Instant:
    """A write that is under way."""
    timeline = timeline_of(handle)
    at = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
    return to_inflight(handle.storage, handle.profile, create_requested(handle.storage, handle.profile, at, "commit"))


def test_what_the_metadata_table_says_of_a_write_is_nothing_before_the_write_completes(version: int) -> None:
    lake = lake_of(version)
    handle = lake.handle()
    write = begun(handle)
    update = TableUpdate(write.requested, "commit", sizes={f"p/x_0-0-0_{write.requested}.parquet": 7})
    record_update(handle, update, ENGINE)
    ensure_equal(lake)
    record_update(handle, update, ENGINE)  # redone
    undo_update(handle, write, None, ENGINE)
    ensure_equal(lake)
    assert not [file for file in lake.storage.list(keys.METADATA_TABLE_DIR) if write.requested in file.path]


def test_compaction_comes_when_it_is_due_and_old_slices_and_instants_go(version: int) -> None:
    lake = lake_of(version, **{"hoodie.keep.min.commits": "20", "hoodie.keep.max.commits": "21"})
    options = resolve({**ON, "hoodie.metadata.compact.max.delta.commits": "3", "hoodie.clean.commits.retained": "1"})
    done = []
    for n in range(14):
        lake.upsert(row("a", str(n), n + 2), row(f"n{n}", part=f"p{n % 3}"))
        done.append(keep_metadata(lake.handle(), options, ENGINE))
        ensure_equal(lake)
    found = [one for one in done if one is not None]
    assert len(found) >= 4
    assert sum(one.files_cleaned for one in found)
    bases = [file for file in lake.storage.list(f"{keys.METADATA_TABLE_DIR}/files") if file.path.endswith(".hfile")]
    assert len(bases) == 2


def test_a_compaction_waits_for_a_write_whose_part_of_the_metadata_table_is_there_already(version: int) -> None:
    lake = lake_of(version)
    for n in range(3):
        lake.upsert(row("a", str(n), n + 2))
    handle = lake.handle()
    record_update(handle, TableUpdate(begun(handle).requested, "commit", sizes={"p/x": 7}), ENGINE)
    assert compact_metadata(handle, ENGINE, MetadataOptions(compact_after=1)) is None
    ensure_equal(lake)


def test_a_rollback_of_what_is_compacted_drops_the_metadata_table_and_the_next_write_makes_it(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    lake = lake_of(version)
    for n in range(3):
        lake.upsert(row("a", str(n), n + 2))
    handle = lake.handle()
    assert compact_metadata(handle, ENGINE, MetadataOptions(compact_after=1)) is not None
    last = timeline_of(handle).last_completed_write()
    assert last is not None
    with caplog.at_level(logging.WARNING):
        after = undo_update(handle, last, None, ENGINE)
    assert not after.config.metadata_partitions
    assert "dropped" in caplog.text
    lake.upsert(row("b", "y", 3))
    ensure_equal(lake)


@pytest.mark.parametrize("damage", ["properties", "folder", "file groups"])
def test_a_broken_metadata_table_is_made_anew_with_a_warning(
    version: int, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    lake = lake_of(version)
    if damage == "properties":
        lake.storage.put(f"{keys.METADATA_TABLE_DIR}/{keys.PROPERTIES_FILE}", b"torn")
    else:
        lake.storage.delete_dir(keys.METADATA_TABLE_DIR + ("" if damage == "folder" else "/files"))
    with caplog.at_level(logging.WARNING):
        lake.upsert(row("a", "x", 2))
        lake.upsert(row("a", "y", 3))
    assert "damaged" in caplog.text
    ensure_equal(lake)
    assert lake.values()["a"] == "y"


def test_a_metadata_table_that_nobody_finished_making_is_made_anew(version: int) -> None:
    lake = lake_of(version)
    properties = lake.storage.read(keys.PROPERTIES_FILE).decode()
    listed = next(line for line in properties.splitlines() if line.startswith(f"{keys.METADATA_PARTITIONS}="))
    building = f"{keys.METADATA_PARTITIONS}=\n{keys.METADATA_PARTITIONS_INFLIGHT}=files"
    kept = [line for line in properties.splitlines() if not line.startswith(keys.METADATA_PARTITIONS_INFLIGHT)]
    lake.storage.put(keys.PROPERTIES_FILE, "\n".join(kept).replace(listed, building).encode())
    assert lake.handle().config.metadata_partitions == ()
    lake.upsert(row("a", "x", 2))
    ensure_equal(lake)


@pytest.mark.parametrize("version", [8, 9])  # in version 6 its instant is later than that of the restore
def test_a_partition_is_made_after_hudi_restored_the_metadata_table(version: int) -> None:
    stats = "hoodie.metadata.index.column.stats.enable"
    lake = lake_of(version, **{stats: "false"})
    own = open_metadata_handle(lake.handle())
    at = new_instant_time(own.env, own.config.timezone, timeline_of(own).last_time())
    begun_restore = create_requested(own.storage, own.profile, at, "restore")
    inflight = to_inflight(own.storage, own.profile, begun_restore)
    complete(own.storage, own.profile, inflight, b"", own.env, own.config.timezone)
    lake.options = {**lake.options, stats: "true"}
    lake.upsert(row("a", "x", 2))
    assert "column_stats" in lake.handle().config.metadata_partitions
    ensure_equal(lake)


def test_rebuilding_makes_the_metadata_table_say_what_is_there(version: int) -> None:
    lake = lake_of(version)
    lake.upsert(row("a", "x", 2))
    handle = rebuild_partitions(lake.handle(), (), ENGINE)
    assert "files" in handle.config.metadata_partitions
    ensure_equal(lake)
    assert not drop_partitions(handle, ("files",)).config.has_metadata_table
    again, _ = ensure_metadata(lake.handle(), resolve(ON), timeline_of(handle), ENGINE)
    assert again.config.metadata_partitions == handle.config.metadata_partitions
    ensure_equal(lake)


def test_a_write_without_a_metadata_table_removes_what_a_dead_update_of_the_properties_left(version: int) -> None:
    lake = Lake(version, {"hoodie.metadata.enable": "false"})
    lake.upsert(row("a"))
    lake.storage.put(keys.PROPERTIES_BACKUP_FILE, lake.storage.read(keys.PROPERTIES_FILE))
    assert [one.kind for one in lake.table.validate()] == ["properties"]
    lake.upsert(row("b"))
    assert lake.table.validate() == []
