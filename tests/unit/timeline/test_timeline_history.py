"""Archived history of versions 8 and later: parquet files that a manifest names."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import Corrupt, Invalid, Unavailable
from hoodie.spec import V6, V9, AvroCommitCodec, CommitMetadata, HistoryFile, encode_manifest, parse_manifest
from hoodie.storage import MemoryStorage
from hoodie.timeline import has_history, load_archived_commits, load_archived_metadata, load_history

FOLDER = V9.history_dir


def parquet(**columns: list[str | None]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


INSTANTS = parquet(
    instantTime=["001", "002", "003", "004"],
    completionTime=["0015", "0025", None, "0045"],
    action=["commit", "clean", "replacecommit", "deltacommit"],
    metadata=["not", "looked", "at", ""],
)


def manifest(*names: str) -> bytes:
    return json.dumps({"files": [{"fileName": name, "fileLen": 1} for name in names]}).encode()


def archive(storage: MemoryStorage, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        storage.put(f"{FOLDER}/{name}", data)


def test_a_table_without_archives_has_no_history(storage, profile):
    storage.put(f"{profile.history_dir}/.hidden", b"")
    assert not has_history(storage, profile)
    assert load_archived_commits(storage, profile) == {}


@pytest.mark.parametrize("name", ["manifest_1", "001_004_0.parquet"])
def test_history_is_known_by_its_files(storage, name):
    archive(storage, {name: b""})
    assert has_history(storage, V9)


def test_archives_that_an_upgrade_left_behind_do_not_count(storage):
    storage.put(f"{V6.history_dir}/.commits_.archive.1_1-0-1", b"not looked at")
    assert not has_history(storage, V9)
    assert load_history(storage, V9) == ()


def test_writes_are_given_with_the_time_they_completed(storage):
    archive(storage, {"manifest_1": manifest("001_004_0.parquet"), "001_004_0.parquet": INSTANTS})
    assert load_archived_commits(storage, V9) == {"001": "0015", "003": "003", "004": "0045"}


@pytest.mark.parametrize(("version", "expected"), [(b"1", {"001": "2"}), (b"9", {"005": "6"}), (None, {"005": "6"})])
def test_the_manifest_of_the_version_file_counts_else_the_greatest(storage, version, expected):
    old, new = (
        parquet(instantTime=[a], completionTime=[b], action=["commit"]) for a, b in (("001", "2"), ("005", "6"))
    )
    archive(storage, {"old": old, "new": new, "manifest_1": manifest("old"), "manifest_2": manifest("new")})
    if version is not None:
        archive(storage, {"_version_": version})
    assert load_archived_commits(storage, V9) == expected


@pytest.mark.parametrize(
    "content",
    [b"", b"no parquet", INSTANTS[:-20], INSTANTS[:4] + bytes(40) + INSTANTS[44:], parquet(instantTime=["1"])],
)
def test_a_damaged_file_is_named(storage, content):
    archive(storage, {"manifest_1": manifest("a.parquet"), "a.parquet": content})
    with pytest.raises(Corrupt, match=r"a\.parquet cannot be read") as raised:
        load_archived_commits(storage, V9)
    assert raised.value.facts["path"] == f"{FOLDER}/a.parquet"


@pytest.mark.parametrize("content", [b"{", b"{}", b'{"files": [1]}', b'{"files": [{}]}'])
def test_a_damaged_manifest_is_named(storage, content):
    archive(storage, {"manifest_1": content})
    with pytest.raises(Corrupt, match="manifest_1 is not a manifest"):
        load_archived_commits(storage, V9)


def test_a_file_that_is_gone_is_named(storage):
    archive(storage, {"manifest_1": manifest("a.parquet")})
    with pytest.raises(Corrupt, match=r"a\.parquet is gone"):
        load_archived_commits(storage, V9)


def test_a_failing_storage_is_not_taken_for_damage(storage, monkeypatch):
    archive(storage, {"manifest_1": manifest("a.parquet"), "a.parquet": INSTANTS})

    def failing(self, path):
        raise OSError(5, "input/output error")

    monkeypatch.setattr(MemoryStorage, "open_input", failing)
    with pytest.raises(Unavailable, match="input/output error"):
        load_archived_commits(storage, V9)


def test_every_instant_is_given_once_and_in_timeline_order(storage):
    mixed = parquet(instantTime=["009", "003", "003"], completionTime=["0095", "0035", "0035"], action=["commit"] * 3)
    archive(
        storage,
        {
            "manifest_1": manifest("009_003_0.parquet", "001_004_0.parquet"),
            "009_003_0.parquet": mixed,
            "001_004_0.parquet": INSTANTS,
            "007_007_0.parquet": b"not in the manifest",
        },
    )
    found = [(one.requested, one.action, one.completed) for one in load_history(storage, V9)]
    assert found == [
        ("001", "commit", "0015"),
        ("002", "clean", "0025"),
        ("003", "commit", "0035"),
        ("003", "replacecommit", "003"),
        ("004", "deltacommit", "0045"),
        ("009", "commit", "0095"),
    ]


def test_a_pending_name_of_an_action_is_shown_as_the_completed_one(storage):
    actions = ["compaction", "logcompaction", "clustering"]
    data = parquet(instantTime=["1", "2", "3"], completionTime=["4", "5", "6"], action=actions)
    archive(storage, {"manifest_1": manifest("a.parquet"), "a.parquet": data})
    assert [one.action for one in load_history(storage, V9)] == ["commit", "deltacommit", "replacecommit"]


def grouped(rows: int) -> bytes:
    """Instants 000 ... with two to a row group."""
    texts = [f"{at:03d}" for at in range(rows)]
    data = {"instantTime": texts, "completionTime": [f"{one}5" for one in texts], "action": ["commit"] * rows}
    buffer = io.BytesIO()
    metadata = [AvroCommitCodec().encode(CommitMetadata(operation_type=one), "commit") for one in texts]
    pq.write_table(pa.table(data | {"metadata": metadata}), buffer, row_group_size=2)
    return buffer.getvalue()


@pytest.mark.parametrize("after", ["", "001", "0015", "0024", "0055", "9"])
@pytest.mark.parametrize("until", [None, "003", "0031", "000"])
def test_a_range_skips_row_groups_and_loses_none(storage, after, until):
    archive(storage, {"manifest_1": manifest("a.parquet"), "a.parquet": grouped(6)})
    every = load_history(storage, V9)
    assert len(every) == 6
    expected = tuple(one for one in every if one.was_at_work(after, until))
    assert load_history(storage, V9, after, until) == expected


def test_what_commits_did_is_found_by_their_row(storage):
    archive(storage, {"manifest_1": manifest("a.parquet", "b.parquet"), "a.parquet": grouped(6)})
    archive(storage, {"b.parquet": parquet(instantTime=["9"], completionTime=["95"], action=["clean"], metadata=[""])})
    *commits, clean = load_history(storage, V9)
    found = load_archived_metadata(storage, [commits[at] for at in (5, 0, 3)])
    assert {requested: one.operation_type for requested, one in found.items()} == {
        "000": "000",
        "003": "003",
        "005": "005",
    }
    with pytest.raises(Invalid, match="clean"):
        load_archived_metadata(storage, [clean])


def test_damaged_metadata_of_a_commit_is_named(storage):
    archive(storage, {"manifest_1": manifest("a.parquet"), "a.parquet": INSTANTS})
    with pytest.raises(Corrupt, match=r"a\.parquet"):
        load_archived_metadata(storage, load_history(storage, V9)[:1])


def test_a_history_compacted_while_it_is_read_is_read_again(storage, monkeypatch):
    archive(storage, {"manifest_1": manifest("old.parquet"), "old.parquet": INSTANTS})
    listed = MemoryStorage.list_dir

    def compacting(self, path):
        found = listed(self, path)
        if self.delete(f"{FOLDER}/old.parquet"):
            archive(self, {"manifest_2": manifest("new.parquet"), "new.parquet": INSTANTS})
        return found

    monkeypatch.setattr(MemoryStorage, "list_dir", compacting)
    assert len(load_history(storage, V9)) == 4


@pytest.mark.parametrize("name", ["../x.parquet", "/x.parquet", "a/b.parquet", "..", "", "a\0b", 7])
def test_a_manifest_cannot_lead_out_of_its_folder(storage, name):
    data = json.dumps({"files": [{"fileName": name, "fileLen": 1}]}).encode()
    with pytest.raises(Corrupt, match="manifest_1"):
        parse_manifest(data, f"{FOLDER}/manifest_1")


def test_a_manifest_is_written_as_hudi_lays_it_out():
    files = (HistoryFile("1_2_0.parquet", 3764), HistoryFile("3_4_1.parquet", 10))
    expected = (
        '{\n  "files" : [ {\n    "fileName" : "1_2_0.parquet",\n    "fileLen" : 3764\n  }, {\n'
        '    "fileName" : "3_4_1.parquet",\n    "fileLen" : 10\n  } ]\n}'
    )
    assert encode_manifest(files).decode() == expected
    assert parse_manifest(encode_manifest(files), "m") == files
    assert parse_manifest(encode_manifest(()), "m") == ()


@pytest.mark.parametrize("said", [b"", b"two", b"\xff\xfe", b"9" * 30])
def test_a_damaged_version_file_leaves_the_greatest_manifest(storage, said):
    archive(storage, {"manifest_1": manifest(), "manifest_2": manifest("a"), "a": INSTANTS, "_version_": said})
    assert len(load_history(storage, V9)) == 4
