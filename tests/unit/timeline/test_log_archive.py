"""The archive of version 6: log files with an entry for each state of each instant."""

from __future__ import annotations

from typing import Any

import pytest

from hoodie.errors import Corrupt, Missing
from hoodie.spec import (
    V6,
    BlockKind,
    HeaderKey,
    State,
    encode_block,
    encode_records,
    schema,
)
from hoodie.spec.avro_container import encode_record
from hoodie.storage import FileInfo, MemoryStorage
from hoodie.timeline import has_history, load_archived_commits, load_archived_metadata, load_history

ENTRY = schema("HoodieArchivedMetaEntry", "0.15")
FOLDER = V6.history_dir


def entry(
    requested: str, action: str, state: str | None = "COMPLETED", changed: str | None = None, **what: Any
) -> bytes:
    values = {"commitTime": requested, "actionType": action, "actionState": state, "stateTransitionTime": changed}
    return encode_record(ENTRY, values | what)


def block(*entries: bytes, text: str = ENTRY.text) -> bytes:
    return encode_block(BlockKind.AVRO_DATA, {HeaderKey.SCHEMA: text}, encode_records(entries))


def archive(storage: MemoryStorage, number: int, data: bytes, folder: str = FOLDER) -> None:
    storage.put(f"{folder}/.commits_.archive.{number}_1-0-1", data)


def times(storage: MemoryStorage, **between: str) -> list[tuple[str, str, str]]:
    return [(one.requested, one.action, one.completed) for one in load_history(storage, V6, **between)]


def test_an_instant_has_one_entry_whatever_states_it_went_through(storage):
    states = [
        entry("002", "commit", "REQUESTED", "0021"),
        entry("002", "commit", "INFLIGHT", "0022"),
        entry("002", "commit", "COMPLETED", "0025"),
        entry("003", "compaction", "REQUESTED", "0031"),
    ]
    archive(storage, 1, block(*states))
    (found,) = load_history(storage, V6)
    assert (found.requested, found.completed, found.action, found.instant.state) == (
        "002",
        "0025",
        "commit",
        State.COMPLETED,
    )
    assert load_archived_commits(storage, V6) == {"002": "0025"}


def test_instants_are_in_timeline_order_whatever_the_order_of_files_and_entries(storage):
    archive(storage, 10, block(entry("005", "clean", changed="0055")))
    archive(storage, 9, block(entry("004", "commit", changed="0045"), entry("001", "rollback", changed="0015")))
    archive(storage, 2, block(entry("002", "deltacommit")) + block(entry("003", "replacecommit", changed="0035")))
    assert times(storage) == [
        ("001", "rollback", "0015"),
        ("002", "deltacommit", "002"),
        ("003", "replacecommit", "0035"),
        ("004", "commit", "0045"),
        ("005", "clean", "0055"),
    ]


def test_entries_of_old_releases_without_a_state_are_completed(storage):
    archive(storage, 1, block(entry("001", "commit", state=None)))
    assert times(storage) == [("001", "commit", "001")]


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ({}, ["001", "002", "003"]),
        ({"after": "0019"}, ["002", "003"]),
        ({"after": "0021"}, ["002", "003"]),
        ({"until": "002"}, ["001", "002"]),
        ({"after": "0015", "until": "0021"}, ["002"]),
        ({"after": "0035"}, []),
    ],
)
def test_a_range_gives_the_instants_that_were_at_work_in_it(storage, between, expected):
    archive(storage, 1, block(*(entry(f"00{n}", "commit", changed=f"00{n}5") for n in (1, 2, 3))))
    assert [requested for requested, _, _ in times(storage, **between)] == expected


def test_both_folders_are_read_and_an_instant_in_both_counts_once(storage):
    archive(storage, 1, block(entry("001", "commit"), entry("002", "commit", changed="0025")))
    archive(storage, 2, block(entry("001", "commit", changed="0015"), entry("002", "commit")), ".hoodie/history")
    assert times(storage) == [("001", "commit", "0015"), ("002", "commit", "0025")]


def test_a_merge_of_archives_that_died_loses_and_doubles_nothing(storage):
    old, new = block(entry("001", "commit", changed="0015")), block(entry("002", "commit", changed="0025"))
    archive(storage, 1, old)
    archive(storage, 2, new)
    archive(storage, 3, old + new[:-7])
    storage.put(f"{FOLDER}/mergeArchivePlan", b"Obj\x01 a plan")
    assert times(storage) == [("001", "commit", "0015"), ("002", "commit", "0025")]


def test_an_archive_merged_while_it_is_read_is_found_in_the_merged_one(storage, monkeypatch):
    data = block(entry("001", "commit", changed="0015"))
    archive(storage, 1, data)
    listed = MemoryStorage.list_dir

    def merging(self, path):
        found = listed(self, path)
        if path == FOLDER and self.delete(f"{FOLDER}/.commits_.archive.1_1-0-1"):
            archive(self, 2, data)
        return found

    monkeypatch.setattr(MemoryStorage, "list_dir", merging)
    assert times(storage) == [("001", "commit", "0015")]


@pytest.mark.parametrize("cut", [6, 20, 300])
def test_what_an_archiver_that_died_left_is_passed_by(storage, cut):
    whole = block(entry("001", "commit", changed="0015"))
    archive(storage, 1, whole + whole[:cut] + block(entry("002", "commit", changed="0025")))
    assert [requested for requested, _, _ in times(storage)] == ["001", "002"]


def test_an_empty_archive_has_nothing(storage):
    archive(storage, 1, b"")
    assert has_history(storage, V6)
    assert times(storage) == []


def test_other_files_are_no_archives(storage):
    for name in ("mergeArchivePlan", ".commits_.archive", ".commits_.log.1_1-0-1", ".other_.archive.1_1-0-1"):
        storage.put(f"{FOLDER}/{name}", b"anything")
    assert not has_history(storage, V6)
    assert times(storage) == []


def test_what_a_commit_did_is_read_when_it_is_asked_for(storage, monkeypatch):
    stats = {"p": [{"fileId": "f-0", "path": "p/f-0_0-1-2_001.parquet", "numWrites": 7}]}
    did = {"partitionToWriteStats": stats, "operationType": "UPSERT", "extraMetadata": {"a": "b"}}
    replaced = {"partitionToWriteStats": {}, "partitionToReplaceFileIds": {"p": ["f-0"]}}
    archive(
        storage,
        1,
        block(entry("001", "commit", hoodieCommitMetadata=did), entry("003", "clean"))
        + block(entry("002", "replacecommit", hoodieReplaceCommitMetadata=replaced)),
    )
    first, second, _ = load_history(storage, V6)
    found = load_archived_metadata(storage, [second, first])
    assert found["001"].operation_type == "UPSERT"
    assert found["001"].extra_metadata == {"a": "b"}
    assert [(one.path, one.num_writes) for _, one in found["001"].write_stats()] == [("p/f-0_0-1-2_001.parquet", 7)]
    assert found["002"].replaced_file_groups() == {("p", "f-0")}
    storage.delete(f"{FOLDER}/.commits_.archive.1_1-0-1")
    with pytest.raises(Missing):
        load_archived_metadata(storage, [first])


NULLS = (
    '{"type":"record","name":"HoodieArchivedMetaEntry","fields":[{"name":"x","type":{"type":"array","items":%s}},'
    '{"name":"commitTime","type":"string"},{"name":"actionType","type":"string"}]}'
)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"no log file", "does not start with a log block"),
        (block(b""), "cannot be read"),
        (block(entry("001", "commit"), text="{"), "cannot be read"),
        (block(entry("001", "commit"), text='{"type":"record","name":"Other","fields":[]}'), "not that of a"),
        (block(entry("", "commit")), "names no instant"),
        (block(b"\xfe\xff\xff\xff\x0f", text=NULLS % '"null"'), "take no bytes"),
        (block(b"\xfe\xff\xff\xff\x0f", text=NULLS % '{"type":"fixed","name":"f","size":0}'), "take no bytes"),
        (
            block(b"\xfe\xff\xff\xff\x0f", text=NULLS % '{"type":"record","name":"r","fields":[]}'),
            "take no bytes",
        ),
        (block(b"\x00", text="[" * 50_000), "cannot be read"),
    ],
    ids=["magic", "empty entry", "no schema", "other schema", "no time", "nulls", "fixed", "record", "deep"],
)
def test_damage_is_named(storage, data, words):
    archive(storage, 1, data)
    with pytest.raises(Corrupt, match=words) as raised:
        load_history(storage, V6)
    assert raised.value.facts["path"] == f"{FOLDER}/.commits_.archive.1_1-0-1"


def test_a_file_that_shrank_since_it_was_listed_is_cut_off(storage, monkeypatch):
    archive(storage, 1, block(entry("001", "commit")))
    listed = MemoryStorage.list_dir

    def larger(self, path):
        found = listed(self, path)
        files = tuple(FileInfo(one.path, one.size_bytes + 100, one.modified_ms) for one in found.files)
        return type(found)(files, found.dirs)

    monkeypatch.setattr(MemoryStorage, "list_dir", larger)
    assert len(times(storage)) <= 1
