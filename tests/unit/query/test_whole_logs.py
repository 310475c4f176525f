"""Log files that lost bytes after they were committed: no query, service or check passes over them in silence."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import ArrowSource, LocalEngine
from hoodie.env import SystemEnv
from hoodie.errors import Corrupt
from hoodie.records import read_footer
from hoodie.services.ingest import Request
from hoodie.services.save import write_table
from hoodie.storage import Storage
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import ROWS, Lake, logged_lake, row, table_of

VERSIONS = (6, 8, 9)
METADATA = ("true", "false")
SCHEMA = ROWS.append(pa.field("_hoodie_is_deleted", pa.bool_()))


def logged(version: int, metadata: str = "true", **options: str) -> tuple[Lake, str]:
    """A lake whose only file group has a log file with a data and a delete block; and the file's path."""
    lake = logged_lake(version, SCHEMA, **{"hoodie.metadata.enable": metadata, **options})
    lake.upsert(*(row(f"k{n}", "old") for n in range(9)))
    lake.upsert(*(row(f"k{n}", "new", ts=2, _hoodie_is_deleted=n == 8) for n in range(9)))
    (path,) = [log.path for part in lake.table.files() for log in part.logs][-1:]
    return lake, path


def hurt(lake: Lake, path: str, how: str) -> None:
    data = lake.storage.read(path)
    second = data.index(b"#HUDI#", 1)
    changed = {
        "empty": b"",
        "torn": data[:-7],
        "half": data[: len(data) // 2],
        "block lost": data[:second],
        "zeroed": data[:4] + bytes(100) + data[104:],
    }[how]
    lake.storage.put(path, changed)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("how", ["empty", "torn", "half", "block lost"])
@pytest.mark.parametrize("metadata", METADATA)
@pytest.mark.parametrize("version", VERSIONS)
def test_log_file_shorter_than_committed_is_an_error_of_every_read(version, metadata, how):
    lake, path = logged(version, metadata)
    begin = lake.table.timeline().completed_writes()[0]
    hurt(lake, path, how)
    queries = [{}, {"filter": "id = 'k1'"}, {"query": "incremental", "begin": begin.completed or begin.requested}]
    queries.append({"as_of": lake.table.timeline().completed_writes()[-1].requested})
    for query in queries:
        with pytest.raises(Corrupt) as caught:
            lake.rows(**query)
        assert caught.value.facts["path"] == path
    with pytest.raises(Corrupt):
        lake.table.lookup(["k1"]).read_all()
    assert [one.path for one in lake.table.validate() if one.kind == "size"] == [path]
    assert any(one.subject == path and one.severity == "error" for one in lake.table.doctor().concerns)


@pytest.mark.parametrize("metadata", METADATA)
@pytest.mark.parametrize("version", VERSIONS)
def test_compaction_does_not_make_the_loss_permanent(version, metadata):
    lake, path = logged(version, metadata)
    whole = lake.storage.read(path)
    hurt(lake, path, "block lost")
    with pytest.raises(Corrupt):
        lake.table.services.compact()
    lake.storage.put(path, whole)
    lake.table.services.compact()
    assert lake.values() == {f"k{n}": "new" for n in range(8)}


@pytest.mark.parametrize("metadata", METADATA)
@pytest.mark.parametrize("version", VERSIONS)
def test_damage_inside_a_log_file_of_one_commit_is_an_error(version, metadata):
    lake, path = logged(version, metadata)
    hurt(lake, path, "zeroed")
    with pytest.raises(Corrupt):
        lake.rows()
    assert ("damaged", path) in [(one.kind, one.path) for one in lake.table.validate(deep=True)]


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_behind_what_was_committed_are_passed_by(version):
    lake, path = logged(version)
    before = lake.values()
    lake.storage.put(path, lake.storage.read(path) + b"#HUDI#\x00\x00\x00\x00\x00\x00\x10\x00torn")
    assert lake.values() == before
    assert lake.table.validate(deep=True) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("left", [b"", b"#HU", b"#HUDI#" + bytes(7), b"#HUDI#" + bytes(900)])
@pytest.mark.parametrize("metadata", METADATA)
@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_dead_writer_left_of_its_log_file_is_passed_by(version, metadata, left):
    lake, _ = logged(version, metadata)
    before, files = lake.values(), lake.files()
    counting = CountingStorage(lake.storage)
    update(lake, counting)
    for path in set(lake.files()) - set(files):
        lake.storage.delete(path)
    for path, data in files.items():
        lake.storage.put(path, data)
    (end,) = [call.n for call in counting.calls if call.op == "close" and call.path.startswith("p/.")]
    with pytest.raises(Crash):
        update(lake, CountingStorage(lake.storage, crash_at=end, torn=True))
    (dead,) = [path for path in set(lake.files()) - set(files) if path.startswith("p/.")]
    lake.storage.put(dead, left)
    lake.upsert(row("new"))  # rolls it back; version 6 leaves the file and lists it
    assert lake.values() == {**before, "new": "a"}
    assert lake.table.validate(deep=True) == []
    if metadata == "true":
        lake.table.indexes.rebuild()
        assert lake.values() == {**before, "new": "a"}
    lake.table.services.compact()
    assert lake.values() == {**before, "new": "a"}


def update(lake: Lake, storage: Storage) -> None:
    source = ArrowSource(table_of([row(f"k{n}", "undone", ts=3) for n in range(9)], SCHEMA))
    write_table(storage, Request("upsert", source, resolve(lake.options), LocalEngine(1)), SystemEnv())


@pytest.mark.parametrize("codec", ["gzip", "snappy", "zstd", "uncompressed"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_deep_look_finds_zeroed_bytes_anywhere_in_the_pages_of_a_base_file(table_type, codec):
    lake = Lake(9, {"hoodie.datasource.write.table.type": table_type, "hoodie.parquet.compression.codec": codec})
    lake.upsert(*(row(f"k{n}", f"some text that is longer {n}") for n in range(500)))
    assert lake.table.validate(deep=True) == []
    (path,) = lake.base_files()
    data = lake.storage.read(path)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for start in range(4, footer * 2 // 3, max(100, footer // 20)):
        if data[start : start + 100] == bytes(100):
            continue
        lake.storage.put(path, data[:start] + bytes(100) + data[start + 100 :])
        found = {(one.kind, one.path) for one in lake.table.validate(deep=True)}
        assert found & {("damaged", path), ("unreadable", path)}, start


@pytest.mark.parametrize("version", VERSIONS)
def test_deep_look_finds_zeroed_bytes_in_the_pages_of_a_log_block(version):
    lake = logged_lake(version)
    lake.upsert(*(row(f"k{n}", f"some text that is longer {n * 7919}") for n in range(500)))
    lake.upsert(*(row(f"k{n}", f"a newer text that is longer {n * 31}", ts=2) for n in range(500)))
    assert lake.table.validate(deep=True) == []
    path = max((path for path in lake.files() if ".log." in path and path.startswith("p/")), key=str)
    data = lake.storage.read(path)
    for start in range(len(data) // 3, len(data) // 2, 100):
        lake.storage.put(path, data[:start] + bytes(100) + data[start + 100 :])
        assert ("damaged", path) in [(one.kind, one.path) for one in lake.table.validate(deep=True)], start


@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
def test_deep_look_finds_a_bloom_filter_that_does_not_know_its_keys(kind):
    lake = Lake(9, {"hoodie.bloom.index.filter.type": kind, "hoodie.index.bloom.num_entries": 900})
    lake.upsert(*(row(f"k{n}") for n in range(500)))
    assert lake.table.validate(deep=True) == []
    (path,) = lake.base_files()
    data = lake.storage.read(path)
    text = read_footer(lake.storage, path).bloom_text.encode()
    start = data.index(text) + len(text) // 2
    lake.storage.put(path, data[:start] + b"A" * 100 + data[start + 100 :])
    (found,) = lake.table.validate(deep=True)
    assert (found.kind, found.path) == ("damaged", path)
    assert "bloom filter does not know" in found.message


def test_deep_look_finds_a_key_range_that_leaves_out_keys():
    lake = Lake(9)
    lake.upsert(row("k1"), row("key-that-is-last"))
    (path,) = lake.base_files()
    data = lake.storage.read(path)
    assert data.count(b"key-that-is-last") > 1
    at = data.rindex(b"hoodie_max_record_key")
    end = data.index(b"key-that-is-last", at)
    lake.storage.put(path, data[:end] + b"key-that-is-2nd_" + data[end + 16 :])
    (found,) = [one for one in lake.table.validate(deep=True) if one.kind == "damaged"]
    assert (found.path, found.message) == (path, "its key range leaves out keys it has")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_table_has_no_findings_however_deep_one_looks(version):
    lake, _ = logged(version, **{"hoodie.table.cdc.enabled": "true"})
    lake.upsert(row("k1", "newer", ts=3), row("n1", "new"))
    lake.table.services.compact()
    lake.upsert(row("k1", "newest", ts=4))
    assert lake.table.validate(deep=True) == []
