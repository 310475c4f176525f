"""Writes that find their keys by the record index of the metadata table."""

from __future__ import annotations

import logging

import pytest

from hoodie.config import resolve
from hoodie.engine import ArrowSource, LocalEngine
from hoodie.errors import Invalid
from hoodie.index.index_kinds import INDEX_KINDS, index_kind
from hoodie.index.record_index import RecordIndexedWrite
from hoodie.services.ingest import Request, write_locked
from hoodie.state.handle import load_handle
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.interleaved import SEVERAL
from hoodie.testing.lake import Awake, Lake, row, table_of
from hoodie.transaction import HeldThroughout, WriteConflict
from hoodie.write import tag

WHOLE = {
    "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.compact.inline": "false",
}
BY_PARTITION = {
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.level.index.enable": "true",
    "hoodie.compact.inline": "false",
}
MERGE = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
MOVES = {"hoodie.record.index.update.partition.path": "true"}
KEYS = [f"k{n}" for n in range(30)]


@pytest.fixture(params=[{}, MERGE], ids=["cow", "mor"])
def kind(request: pytest.FixtureRequest) -> dict[str, str]:
    found: dict[str, str] = request.param
    return found


def rows(keys, v="a", ts=1, part="p"):
    return [row(key, v, ts, part) for key in keys]


def test_index_has_two_names():
    assert index_kind("global_record_level_index") is index_kind("RECORD_INDEX") is INDEX_KINDS["RECORD_INDEX"]
    with pytest.raises(Invalid, match="Unknown index"):
        index_kind("FLINK_STATE")


def test_keys_are_found_in_whatever_partition_they_are(version, kind):
    lake = Lake(version, {**WHOLE, **kind})
    lake.upsert(*rows(KEYS[:20]))
    lake.upsert(*rows(KEYS[10:], "b", 2, "q"))
    assert lake.values() == {key: "a" if n < 10 else "b" for n, key in enumerate(KEYS)}
    # A row stays where it was, unless the index may move it.
    assert len(lake.rows(filter="_hoodie_partition_path = 'p'")) == 20
    lake.write("delete", rows(KEYS[15:25], part="elsewhere"))
    lake.upsert(*rows(KEYS[24:], "c", 3, "q"))
    assert sorted(lake.values()) == sorted(KEYS[:15] + KEYS[24:])
    lake.ensure_sound()


def test_rows_move_to_their_partition_when_told_to(version, kind):
    lake = Lake(version, {**WHOLE, **kind, **MOVES})
    lake.upsert(*rows(KEYS))
    lake.upsert(*rows(KEYS[:10], "b", 2, "q"))
    lake.upsert(*rows(KEYS[:5], "c", 3, "q"))
    assert lake.values() == {key: "c" if n < 5 else "b" if n < 10 else "a" for n, key in enumerate(KEYS)}
    assert len(lake.rows(filter="_hoodie_partition_path = 'q'")) == 10


def test_keys_of_partitions_are_apart_in_an_index_cut_by_them(kind):
    lake = Lake(9, {**BY_PARTITION, **kind})
    lake.upsert(*rows(KEYS), *rows(KEYS, "q", 1, "q"))
    lake.upsert(*rows(KEYS[:10], "b", 2, "q"), *rows(["new"], "n", 2, "r"))
    assert len(lake.rows()) == 61
    found = dict(lake.rows(filter="part = 'q'"))
    assert found == {key: "b" if n < 10 else "q" for n, key in enumerate(KEYS)}


def test_new_rows_go_to_base_files_so_that_any_other_index_finds_them(version):
    lake = Lake(version, {**WHOLE, **MERGE})
    lake.upsert(*rows(KEYS[:10]))
    lake.upsert(*rows(KEYS[5:20], "b", 2))
    lake.upsert(*rows(KEYS[15:], "c", 3), hoodie__index__type="SIMPLE")
    assert lake.values() == {key: "a" if n < 5 else "b" if n < 15 else "c" for n, key in enumerate(KEYS)}


def test_only_files_that_hold_keys_are_read(monkeypatch):
    lake = Lake(9, {**WHOLE, "hoodie.parquet.small.file.limit": "0"})
    for n, key in enumerate(KEYS[:6]):
        lake.upsert(row(key, "a", n))
    assert len(lake.live()) == 6
    asked = []
    found = tag.find_in_file
    monkeypatch.setattr(tag, "find_in_file", lambda at, task: asked.append(task.path) or found(at, task))
    lake.upsert(row(KEYS[3], "b", 9), row("new", "n", 9))
    assert len(asked) == 1
    assert lake.values() == {**dict.fromkeys(KEYS[:6], "a"), KEYS[3]: "b", "new": "n"}


@pytest.mark.parametrize("index", ["RECORD_INDEX", "RECORD_LEVEL_INDEX"])
def test_tables_without_record_index_are_looked_up_in_base_files_with_a_warning(version, index, caplog):
    lake = Lake(version, {"hoodie.index.type": index, "hoodie.metadata.enable": "false"})
    lake.upsert(*rows(KEYS[:20]))
    with caplog.at_level(logging.WARNING, logger="hoodie"):
        lake.upsert(*rows(KEYS[10:], "b", 2))
    assert "has no record index" in caplog.text
    assert lake.values() == {key: "a" if n < 10 else "b" for n, key in enumerate(KEYS)}


def test_index_that_does_not_see_logs_is_refused_where_rows_are_only_there(version):
    lake = Lake(version, {**MERGE, "hoodie.metadata.enable": "false", "hoodie.compact.inline": "false"})
    lake.upsert(*rows(KEYS[:5]))
    lake.upsert(*rows(KEYS[:5], "b", 2))
    for path in lake.base_files():
        lake.storage.delete(path)
    with pytest.raises(Invalid, match="log files only"):
        lake.upsert(*rows(KEYS, "c", 3))


@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_BLOOM"])
def test_bloom_filters_of_the_metadata_table_leave_files_unopened(version, index):
    lake = Lake(
        version,
        {
            "hoodie.index.type": index,
            "hoodie.bloom.index.use.metadata": "true",
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.index.bloom.filter.enable": "true",
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.parquet.small.file.limit": "0",
        },
    )
    for n in range(4):
        lake.upsert(*rows([f"{letter}{n}" for letter in "az"], "a", n))
    opened = CountingStorage(lake.storage)
    lake_of = load_handle(opened, Awake())
    config = resolve(lake.options)
    data = table_of(rows(["a2", "m1", "zz"], "b", 9))
    done = write_locked(HeldThroughout(lake_of), Request("upsert", ArrowSource(data), config, LocalEngine(1)))
    opened_files = {call.path for call in opened.calls if call.path.startswith("p/") and done.instant not in call.path}
    assert len([path for path in opened_files if path.endswith(".parquet")]) == 1
    assert lake.values()["a2"] == "b"
    assert len(lake.values()) == 10


@pytest.mark.parametrize("part", ["2024-01-01", "1.50", "-0001", "a_b-c.d/e=1"])
@pytest.mark.parametrize("version", [8, 9])
def test_partitions_whose_paths_have_signs_of_file_names_keep_their_keys(version: int, part: str) -> None:
    lake = Lake(
        version,
        {
            "hoodie.index.type": "RECORD_LEVEL_INDEX",
            "hoodie.metadata.record.level.index.enable": "true",
            "hoodie.datasource.write.partitionpath.urlencode": "true",
        },
    )
    lake.upsert(row("k1", part=part), row("k1", part="q"))
    lake.write("insert", [row("k2", part=part), row("k1", part="r.s-t")])
    lake.upsert(row("k1", v="b", part=part), row("k2", v="b", part=part))
    found = lake.table.lookup(["k1", "k2"], columns=["id", "part", "v"]).read_all().to_pylist()
    expected = {("k1", part, "b"), ("k2", part, "b"), ("k1", "q", "a"), ("k1", "r.s-t", "a")}
    assert {tuple(one.values()) for one in found} == expected == set(lake.rows(("id", "part", "v")))
    names = [path for path in lake.files() if path.startswith(".hoodie/metadata/record_index/.record-index-")]
    assert {path.rpartition("/")[2].partition("_")[0].count("-") for path in names} == {4}
    lake.ensure_sound()


@pytest.mark.parametrize("retries", [0, 1])
def test_who_uses_an_index_that_is_dropped_meanwhile_gives_way(version, retries, monkeypatch):
    options = {**WHOLE, **SEVERAL, "hoodie.write.num.retries.on.conflict.failures": str(retries)}
    lake = Lake(version, options)
    lake.upsert(row("a"))
    look_up, dropped = RecordIndexedWrite.tag, []

    def tag_late(self, asked):
        dropped.extend(() if dropped else lake.table.indexes.drop("record_index"))
        return look_up(self, asked)

    monkeypatch.setattr(RecordIndexedWrite, "tag", tag_late)
    if retries:
        lake.upsert(row("a", "A", 2))
    else:
        with pytest.raises(WriteConflict, match="record_index, .* dropped meanwhile"):
            lake.upsert(row("a", "A", 2))
    assert dropped == ["record_index"]
    assert lake.values() == {"a": "A" if retries else "a"}
    assert lake.table.validate() == []
