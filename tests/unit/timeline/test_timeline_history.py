"""Archived history: whether there is any, and when its commits completed."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import Corrupt, Unavailable
from hoodie.spec import V6, V9
from hoodie.storage import MemoryStorage
from hoodie.timeline import has_history, load_archived_commits

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


def test_history_of_version_6_is_known_by_its_logs(storage):
    storage.put(f"{V6.history_dir}/.commits_.archive.1_1-0-1", b"")
    assert has_history(storage, V6)
    assert load_archived_commits(storage, V6) == {}


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
