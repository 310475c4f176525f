"""Indexes after histories that moved keys, deleted what was not there, and rewrote log files."""

from __future__ import annotations

import pytest

from hoodie.engine import LocalEngine
from hoodie.metadata_writer import build_index, expression_index
from hoodie.table import Table
from hoodie.testing.lake import Lake, logged_lake, row

pytestmark = pytest.mark.deep

ENGINE = LocalEngine(1)
INDEXED = {"hoodie.metadata.enable": "true", "hoodie.metadata.global.record.level.index.enable": "true"}
LOG_COMPACTION = {
    "hoodie.log.compaction.enable": "true",
    "hoodie.log.compaction.inline": "true",
    "hoodie.log.compaction.blocks.threshold": "2",
    "hoodie.compact.inline": "false",
}


def ensure_located(lake: Lake, key: str) -> None:
    """The record index and a look-up say what a scan says."""
    parts = [part for id, part in lake.rows(("id", "part")) if id == key]
    assert lake.metadata().locate([key]).column("partition").to_pylist() == parts
    assert lake.rows(("part",), filter=f"id = '{key}'") == [(part,) for part in parts]


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "RECORD_INDEX"])
@pytest.mark.parametrize("version", [6, 9])
def test_a_key_that_moved_keeps_its_location_through_a_log_compaction(version: int, index: str) -> None:
    moving = {"hoodie.index.type": index, "hoodie.simple.index.update.partition.path": "true"}
    moving["hoodie.record.index.update.partition.path"] = "true"
    lake = logged_lake(version, **INDEXED, **moving)
    lake.upsert(row("a"), row("b"), row("c", part="q"))
    lake.upsert(row("a", "moved", 2, part="q"))
    lake.upsert(row("b", "x", 2), row("c", "y", 2, part="q"))
    lake.write("upsert", [row("b", "z", 3), row("c", "z", 3, part="q")], LOG_COMPACTION)
    assert "LOG_COMPACT" in {one.operation_type for one in lake.commits()}
    for key in "abc":
        ensure_located(lake, key)
    lake.upsert(row("a", "again", 4, part="q"))
    assert lake.values() == {"a": "again", "b": "z", "c": "z"}


def test_deleting_a_key_that_never_was_leaves_an_index_that_answers(version: int) -> None:
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2", **INDEXED}
    lake = logged_lake(version, **options)
    lake.upsert(row("a"))
    lake.write("delete", [row(f"none-{number}") for number in range(8)])
    ensure_located(lake, "a")
    for number in range(8):
        ensure_located(lake, f"none-{number}")


PARTITIONED = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.level.index.enable": "true"}


@pytest.mark.parametrize("how", ["rebuild", "rebuild all", "restore", "downgrade", "damage"])
def test_a_partitioned_record_index_stays_one_when_it_is_made_anew(how: str) -> None:
    stats = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.index.column.stats.column.list": "v"}
    lake = Lake(9, {**PARTITIONED, **stats})
    first = lake.upsert(row("a"), row("a", part="q"), row("b"))
    lake.table.savepoints.create(first.instant)
    lake.upsert(row("b", "x", 2))
    columns = lake.metadata().definitions["column_stats"].source_fields
    plain = Lake(9, {"hoodie.metadata.enable": "true"}, lake.uri)  # nobody says again what the index is
    match how:
        case "rebuild":
            plain.table.indexes.rebuild("record_index")
        case "rebuild all":
            plain.table.indexes.rebuild()
        case "restore":
            plain.table.services.restore(first.instant)
        case "downgrade":
            plain.table.services.upgrade(8)
        case "damage":
            lake.storage.delete(".hoodie/metadata/.hoodie/hoodie.properties")
            plain.upsert(row("c"))
    known = lake.metadata().definitions
    assert known["record_index"].is_partitioned
    assert known["column_stats"].source_fields == columns
    again = Lake(8 if how == "downgrade" else 9, {**PARTITIONED, "hoodie.index.type": "RECORD_LEVEL_INDEX"}, lake.uri)
    again.upsert(row("a", "y", 5, part="q"))
    assert again.rows(("id", "part", "v"), filter="id = 'a'") == [("a", "p", "a"), ("a", "q", "y")]
    assert again.table.validate() == []


def test_a_partitioned_record_index_goes_with_a_downgrade_to_version_6() -> None:
    lake = Lake(9, PARTITIONED)
    lake.upsert(row("a"), row("a", part="q"))
    lake.table.services.upgrade(6)
    assert "record_index" not in lake.handle().config.metadata_partitions
    assert lake.table.validate() == []


@pytest.mark.parametrize("partitioned", [False, True], ids=["global", "partitioned"])
@pytest.mark.parametrize(("before", "after"), [(9, 6), (8, 6), (9, 8), (6, 9), (8, 9)])
def test_indexes_that_a_change_of_version_keeps_are_those_its_preview_names(
    before: int, after: int, partitioned: bool
) -> None:
    if before == 6 and partitioned:
        pytest.skip("version 6 has global indexes only")
    kind = "record" if partitioned else "global.record"
    index = "RECORD_LEVEL_INDEX" if partitioned else "RECORD_INDEX"
    lake = Lake(
        before,
        {
            "hoodie.metadata.enable": "true",
            f"hoodie.metadata.{kind}.level.index.enable": "true",
            "hoodie.index.type": index,
        },
    )
    lake.upsert(row("a"), row("b", part="q"))
    if before > 6:
        build_index(lake.handle(), expression_index("up", "v", "upper"), ENGINE)
    had = set(lake.handle().config.metadata_partitions)
    shown = [step.reason.partition(": ") for step in lake.table.services.preview("upgrade", after).steps]
    said = {words: set(names.split(", ")) for words, _, names in shown if words.startswith("the metadata table")}
    lake.table.services.upgrade(after)
    kept = set(lake.handle().config.metadata_partitions)
    lost = {} if kept == had else {f"the metadata table loses what version {after} does not have": had - kept}
    assert said == {"the metadata table is made anew": kept, **lost}
    assert ("record_index" in kept) is not (partitioned and after == 6)
    assert lake.table.validate() == []
    plain = Lake(after, {"hoodie.metadata.enable": "true"}, lake.uri)  # nobody says again what the index is
    plain.upsert(row("a", "x", 2), row("b", "x", 2, part="q"))
    assert plain.values() == {"a": "x", "b": "x"}
    assert plain.table.validate() == []


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_partitioned_record_index_of_a_table_without_partitions_has_groups_without_name(
    version: int, kind: str
) -> None:
    flat = {"hoodie.datasource.write.partitionpath.field": None, "hoodie.datasource.write.table.type": kind}
    lake = Lake(version, {**PARTITIONED, **flat, "hoodie.index.type": "RECORD_LEVEL_INDEX"})
    lake.upsert(row("a"), row("b"))
    lake.upsert(row("a", "x", 2), row("c"))
    lake.write("delete", [row("b")])
    assert {group.file_id for group in lake.metadata().store.groups("record_index")} == {"record-index--0000-0"}
    assert lake.metadata().locate(["a", "b", "c"]).column("record_key").to_pylist() == ["a", "c"]
    assert lake.table.validate() == []
    lake.table.indexes.rebuild("record_index")
    lake.upsert(row("c", "y", 3))
    assert lake.values() == {"a": "x", "c": "y"}
    assert lake.table.validate() == []


def test_options_of_a_write_reach_its_metadata_update() -> None:
    count = {"hoodie.metadata.record.level.index.min.filegroup.count": "3"}
    lake = Lake(9, {**PARTITIONED, **count})
    lake.upsert(row("a"))
    lake.upsert(row("b", part="q"))
    groups = [group.file_id for group in lake.metadata().store.groups("record_index")]
    assert groups == [f"record-index-{part}-000{number}-0" for part in "pq" for number in range(3)]


@pytest.mark.parametrize("engine", ["SIMPLE", "CONSISTENT_HASHING"])
def test_new_keys_that_a_bucket_index_puts_into_logs_are_known(version: int, engine: str) -> None:
    """Such a write counts them as updates: it does not know whether they are there."""
    buckets = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": engine,
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.compact.inline": "false",
    }
    index = {"hoodie.metadata.enable": "true", "hoodie.metadata.global.record.level.index.enable": "true"}
    lake = Lake(version, {"hoodie.datasource.write.table.type": "MERGE_ON_READ", **buckets, **index})
    lake.upsert(row("a"))
    lake.upsert(row("b"))
    lake.upsert(row("a", "2", 2), row("c"))
    assert [stat.is_log for commit in lake.commits()[1:] for _, stat in commit.write_stats()] == [True, True]
    found = Table.open(lake.uri).lookup(["a", "b", "c"], columns=["id", "v"]).read_all().sort_by("id").to_pylist()
    assert found == [{"id": "a", "v": "2"}, {"id": "b", "v": "a"}, {"id": "c", "v": "a"}]
    lake.ensure_sound()
