"""Delta commits of the metadata table: how records become files of groups, and how they are taken back."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from test_metadata_kept import ENGINE, ensure_equal, lake_of

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.logs import read_blocks
from hoodie.metadata import IndexDefinition, group_of_keys, open_metadata_table
from hoodie.metadata.keys import secondary_key
from hoodie.metadata_writer import MetadataRecords, RecordTask, group_files, open_metadata_handle, undo_update
from hoodie.metadata_writer.delta_commit import gather, split
from hoodie.metadata_writer.group_files import GroupFile, Spilled, entries_of, write_log
from hoodie.metadata_writer.indexes.registry import kind_of
from hoodie.metadata_writer.metadata_index import group_file_ids
from hoodie.metadata_writer.undo import roll_back, settle
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.spec import (
    COMPACTION,
    DELTA_COMMIT,
    NAMED_BY_WRITE,
    BlockKind,
    CommitMetadata,
    HeaderKey,
    Instant,
    State,
    WriteStat,
)
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.testing.lake import Lake
from hoodie.timeline import Timeline, complete, create_requested, delete_instant_files, new_instant_time, to_inflight
from hoodie.transaction.heartbeat import beating

PARTITION = "record_index"
IDS = group_file_ids("record-index-", 4)


def records(keys: list[str], deletes: list[str] = []) -> MetadataRecords:  # noqa: B006
    rows = pa.table({"key": pa.array(keys, pa.string()), "type": pa.array([5] * len(keys), pa.int32())})
    return MetadataRecords(PARTITION, rows, pa.array(deletes, pa.string()))


def of_range(bounds: tuple[int, int]) -> MetadataRecords:
    return records([f"k{n}" for n in range(*bounds)], [f"gone{bounds[0]}"])


def own_of(version: int) -> tuple[TableHandle, Timeline]:
    own = open_metadata_handle(lake_of(version).handle())
    return own, timeline_of(own)


def test_records_go_to_the_group_of_their_hash() -> None:
    parts = split(records([f"k{n}" for n in range(50)]), {PARTITION: IDS}, {}, "1.x")
    assert sum(part.num_rows for _, part in parts) == 50
    for place, part in parts:
        assert set(group_of_keys(part.column("key"), len(IDS)).tolist()) == {place}


def test_keys_of_a_secondary_index_go_by_their_value_alone() -> None:
    index = "secondary_index_x"
    ids = group_file_ids("secondary-index-x-", 10)
    definition = IndexDefinition(index, "secondary_index", version="V2")
    keys = pa.array([secondary_key(value, f"id{n}") for value in ("n2", "a$b", None) for n in range(5)])
    found = kind_of(index).groups_of(keys, ids, definition, "").tolist()
    assert [len(set(found[n : n + 5])) for n in (0, 5, 10)] == [1, 1, 1]
    assert found[0] == 6  # as Hudi 1.2.0 puts `n2$`


def test_tasks_of_the_engine_give_the_entries_that_the_driver_would(version: int) -> None:
    own, _ = own_of(version)
    bounds = [(0, 40), (40, 80), (80, 95)]
    tasks = [RecordTask(of_range, one) for one in bounds]
    spilled = gather(own, "20260101000000000", tasks, {PARTITION: IDS}, {}, LocalEngine(2))
    made = gather(own, "20260101000000000", [of_range(one) for one in bounds], {PARTITION: IDS}, {}, ENGINE)
    assert spilled.keys() == made.keys()
    for group, parts in spilled.items():
        assert all(isinstance(part, Spilled) for part in parts)
        contents = []
        for entries in (parts, made[group]):
            task = GroupFile(own.storage, "x.log", PARTITION, "20260101000000000", "1.x", entries)
            write_log(None, task)  # type: ignore[arg-type]
            contents.append(own.storage.read("x.log"))
        assert contents[0] == contents[1]


def test_many_entries_are_cut_into_blocks_with_deletes_behind(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    own, _ = own_of(version)
    monkeypatch.setattr(group_files, "BLOCK_BYTES", 400)
    entries = entries_of(records([f"k{n:04d}" for n in range(300)], ["gone"]), "1.x")
    task = GroupFile(own.storage, "x.log.1", PARTITION, "20260101000000000", "1.x", (entries,))
    written = write_log(None, task)  # type: ignore[arg-type]
    assert (written.puts, written.deletes) == (300, 1)
    kinds = [block.kind for block in read_blocks(own.storage, "x.log.1", written.size_bytes)]
    assert len(kinds) > 3
    assert kinds == [BlockKind.HFILE_DATA] * (len(kinds) - 1) + [BlockKind.DELETE]


def test_a_delta_commit_that_names_no_files_is_found_by_names_or_blocks(version: int) -> None:
    lake = lake_of(version)
    own = open_metadata_handle(lake.handle())
    done = timeline_of(own).find(timeline_of(lake.handle()).instants[-1].requested, DELTA_COMMIT)
    assert done is not None
    inflight = Instant(done.requested, DELTA_COMMIT, State.INFLIGHT)
    names = own.profile.instant_names
    own.storage.delete(f"{own.profile.timeline_dir}/{names.file_name(done)}")
    own.storage.put(f"{own.profile.timeline_dir}/{names.file_name(inflight)}", b"")
    before = {file.path for file in own.storage.list("files")}
    after = settle(own, timeline_of(own), lake.handle())
    assert after.find(done.requested) is None
    gone = before - {file.path for file in own.storage.list("files")}
    assert len(gone) == 1
    assert not any("hfile" in path for path in gone)


def test_what_a_pending_write_has_begun_is_left_to_it_where_writers_do_not_wait_for_the_lock(version: int) -> None:
    """As Hudi 1.x on Spark, which writes its delta commit while it writes data."""
    lake = lake_of(version)
    handle = lake.handle()
    own = open_metadata_handle(handle)
    at = new_instant_time(own.env, own.config.timezone, timeline_of(handle).last_time())
    pending, _ = (
        to_inflight(
            table.storage,
            table.profile,
            create_requested(table.storage, table.profile, at, DELTA_COMMIT),
            is_new=True,
        )
        for table in (handle, own)
    )
    left = settle(own, timeline_of(own), handle).find(at) is not None
    assert left == (version > 6)
    delete_instant_files(handle.storage, handle.profile, pending)
    assert settle(own, timeline_of(own), handle).find(at) is None


def test_what_names_its_files_is_ours_and_dead_and_who_makes_partitions_waits_for_nobody(version: int) -> None:
    lake = lake_of(version)
    handle = lake.handle()
    own = open_metadata_handle(handle)
    at = new_instant_time(own.env, own.config.timezone, timeline_of(handle).last_time())
    stat = WriteStat(path="files/x", file_id="x", partition_path="files")
    ours = own.profile.commit_codec.encode(CommitMetadata({"files": (stat,)}), DELTA_COMMIT)
    for payload, beside in ((ours, handle), (b"", None)):
        for table, said in ((handle, b""), (own, payload)):
            requested = create_requested(table.storage, table.profile, at, DELTA_COMMIT)
            begun = to_inflight(table.storage, table.profile, requested, said, is_new=True)
        assert settle(own, timeline_of(own), beside).find(at) is None
        delete_instant_files(handle.storage, handle.profile, begun)


def test_a_pending_delta_commit_is_in_no_compaction(version: int) -> None:
    lake = lake_of(version)
    lake.upsert({"id": "b", "part": "q", "ts": 1, "v": "b"})
    handle = lake.handle()
    own = open_metadata_handle(handle)
    at = new_instant_time(own.env, own.config.timezone, timeline_of(handle).last_time())
    for table in (handle, own):
        requested = create_requested(table.storage, table.profile, at, DELTA_COMMIT)
        pending = to_inflight(table.storage, table.profile, requested, is_new=True)
    later = new_instant_time(own.env, own.config.timezone, at)
    made = create_requested(own.storage, own.profile, later, COMPACTION)
    complete(own.storage, own.profile, to_inflight(own.storage, own.profile, made), b"{}", own.env, own.config.timezone)
    undo_update(handle, pending, None, ENGINE)
    assert lake.handle().config.is_metadata_table_ready
    assert timeline_of(own).find(at) is None


def test_a_writer_beside_one_of_hudis_leaves_what_that_has_begun(version: int) -> None:
    if version == 6:
        return  # its metadata tables are written under the lock
    lake = Lake(version, {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"})
    lake.upsert({"id": "a", "part": "p", "ts": 1, "v": "a"})
    handle = lake.handle()
    at = new_instant_time(handle.env, handle.config.timezone, timeline_of(handle).last_time())
    with beating(handle, at, resolve(lake.options), "upsert"):
        for table in (handle, open_metadata_handle(handle)):
            requested = create_requested(table.storage, table.profile, at, DELTA_COMMIT)
            to_inflight(table.storage, table.profile, requested, is_new=True)
        lake.upsert({"id": "b", "part": "q", "ts": 1, "v": "b"})
        own = open_metadata_handle(handle)
        (pending,) = timeline_of(own).pending()
        assert pending.requested == at
    roll_back_failed_writes(handle, ENGINE)
    assert timeline_of(own).pending() == ()
    ensure_equal(lake)


def test_a_log_file_that_others_appended_to_gets_a_command_block(version: int) -> None:
    lake = lake_of(version)
    handle = lake.handle()
    own = open_metadata_handle(handle)
    if own.profile.log_naming == NAMED_BY_WRITE:
        return  # every delta commit has files of its own
    at = new_instant_time(own.env, own.config.timezone, timeline_of(handle).last_time())
    create = create_requested(own.storage, own.profile, at, DELTA_COMMIT)
    inflight = to_inflight(own.storage, own.profile, create)
    logs = sorted(file.path for file in own.storage.list("files") if ".log." in file.path)
    rows = pa.table({"key": ["p"], "type": pa.array([2], pa.int32())})
    entries = entries_of(MetadataRecords("files", rows), own.profile.avro_generation)
    write_log(None, GroupFile(own.storage, "appended", "files", at, own.profile.avro_generation, (entries,)))  # type: ignore[arg-type]
    own.storage.put(logs[-1], own.storage.read(logs[-1]) + own.storage.read("appended"))
    roll_back(own, replace(inflight), None)
    found = [file for file in own.storage.list("files") if file.path.endswith("_1-0-1")]
    assert len(found) == 1
    (command,) = read_blocks(own.storage, found[0].path, found[0].size_bytes)
    assert command.header[HeaderKey.TARGET_INSTANT_TIME] == at
    table = open_metadata_table(handle.storage, handle.config, timeline_of(handle))
    assert table is not None
    ensure_equal(lake)
    lake.upsert(*[{"id": "z", "part": "z", "ts": 1, "v": "z"}])
    ensure_equal(lake)
