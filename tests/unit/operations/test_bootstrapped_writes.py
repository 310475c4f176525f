"""Writes into bootstrapped tables: what is written of a skeleton is a whole base file, with the rows of its source."""

from __future__ import annotations

import io
import json
import pickle
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bootstrap_world import bootstrapped

from hoodie.errors import Corrupt, Unsupported
from hoodie.metadata import open_metadata_table
from hoodie.records import read_footer
from hoodie.slices.bootstrap import is_skeleton, iter_stitched
from hoodie.spec import METADATA_BOOTSTRAP_INSTANT, TableConfig, encode_table_config, keys
from hoodie.state.handle import open_handle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.testing.lake import Awake, Lake, logged_lake, row
from hoodie.view import FileSlice
from hoodie.write.skeletons import load_skeleton_sources

FIRST = METADATA_BOOTSTRAP_INSTANT
NO_METADATA = {"hoodie.metadata.enable": "false"}
START = (
    *(row(f"a{number}", "1", number) for number in range(6)),
    *(row(f"b{number}", "1", number, part="q") for number in range(3)),
)
AS_IT_WAS = {one["id"]: "1" for one in START}


def lake_of(version: int, *, logged: bool = False, **options: Any) -> Lake:
    """A lake with skeletons in partitions p and q."""
    dotted = {**NO_METADATA, **{name.replace("__", "."): value for name, value in options.items()}}
    payload = {} if version > 6 else {"hoodie.datasource.write.payload.class": _EVENT_TIME}
    lake = logged_lake(version, **dotted) if logged else Lake(version, {**payload, **dotted})
    lake.write("bulk_insert", START)
    bootstrapped(lake)
    assert [part.partition for part in skeletons(lake)] == ["p", "q"]
    return lake


def skeletons(lake: Lake) -> list[FileSlice]:
    return [part for part in lake.table.files() if is_skeleton(part, lake.table.config)]


def stored(lake: Lake, partition: str = "p") -> pa.Table:
    """The rows of the one base file that a partition has now, as they are in the file."""
    (part,) = (one for one in lake.table.files() if one.partition == partition)
    assert part.base is not None
    return pq.read_table(io.BytesIO(lake.storage.read(part.base.path)))


def test_an_update_makes_a_whole_base_file_of_a_skeleton(version: int) -> None:
    lake = lake_of(version)
    (before, _) = skeletons(lake)
    done = lake.upsert(row("a1", "2", 9), row("a2", "late", 0))
    assert lake.values() == {**AS_IT_WAS, "a1": "2"}
    assert [part.partition for part in skeletons(lake)] == ["q"]
    rows = stored(lake)
    assert set(rows["part"].to_pylist()) == {"p"}
    times = dict(zip(rows["id"].to_pylist(), rows["_hoodie_commit_time"].to_pylist(), strict=True))
    assert times == {f"a{number}": done.instant if number == 1 else FIRST for number in range(6)}
    (now,) = (one for one in lake.table.files() if one.partition == "p")
    assert now.file_id == before.file_id
    assert now.base is not None
    footer = read_footer(lake.storage, now.base.path)
    assert (footer.min_key, footer.max_key) == ("a0", "a5")
    bloom = footer.bloom()
    assert bloom is not None
    assert bloom.contains(rows["id"].combine_chunks()).all()
    lake.upsert(row("a3", "3", 9))
    assert lake.values() == {**AS_IT_WAS, "a1": "2", "a3": "3"}
    lake.ensure_sound()


def test_deleted_rows_go_and_their_neighbours_stay_what_they_are(version: int) -> None:
    lake = lake_of(version)
    lake.write("delete", [row("a0"), row("b2", part="q")])
    assert lake.rows(("id", "v", "ts", "part")) == sorted(
        (one["id"], one["v"], one["ts"], one["part"]) for one in START if one["id"] not in ("a0", "b2")
    )
    assert skeletons(lake) == []
    lake.ensure_sound()


def test_new_rows_fill_small_skeletons_up(version: int) -> None:
    lake = lake_of(version)
    groups = lake.live()
    lake.write("insert", [row("n1", "new")])
    lake.upsert(row("n2", "new", part="q"))
    assert lake.live() == groups
    assert lake.values() == {**AS_IT_WAS, "n1": "new", "n2": "new"}
    assert skeletons(lake) == []
    lake.ensure_sound()


def test_a_skeleton_is_as_small_as_its_source() -> None:
    lake = Lake(9, NO_METADATA)
    lake.write("bulk_insert", START)
    bootstrapped(lake, told_bytes=200 << 20)
    lake.write("insert", [row("n1", "new")])
    assert len(lake.live()) == 3
    assert len(skeletons(lake)) == 2
    assert lake.values() == {**AS_IT_WAS, "n1": "new"}


def test_whole_partitions_are_replaced_and_deleted(version: int) -> None:
    lake = lake_of(version)
    lake.write("insert_overwrite", [row("n1", "new")])
    assert lake.values() == {"n1": "new", "b0": "1", "b1": "1", "b2": "1"}
    lake.table.delete_partition("q")
    assert lake.values() == {"n1": "new"}
    lake.ensure_sound()


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_keys_are_found_by_every_index_that_looks_into_files(index: str) -> None:
    lake = lake_of(9, hoodie__index__type=index)
    lake.upsert(row("a1", "2", 9), row("n1", "new"))
    assert lake.values() == {**AS_IT_WAS, "a1": "2", "n1": "new"}


def test_rows_move_to_another_partition_where_they_win_against_the_source(version: int) -> None:
    lake = lake_of(version, hoodie__index__type="GLOBAL_SIMPLE")
    lake.upsert(row("a1", "2", 9, part="q"), row("a5", "late", 2, part="q"))
    parts = dict(lake.rows(("id", "part")))
    assert lake.values() == {**AS_IT_WAS, "a1": "2"}
    assert (parts["a1"], parts["a5"]) == ("q", "p")


def test_the_skeleton_is_back_after_a_rollback(version: int) -> None:
    lake = lake_of(version)
    done = lake.upsert(row("a1", "2", 9))
    lake.table.services.rollback(done.instant)
    assert lake.values() == AS_IT_WAS
    assert len(skeletons(lake)) == 2


def test_a_source_that_is_gone_ends_the_write_and_nothing_is_lost() -> None:
    lake = Lake(9, NO_METADATA)
    lake.write("bulk_insert", START)
    source = bootstrapped(lake)
    kept = {path: source.read(path) for path in [info.path for info in source.list("")]}
    for path in kept:
        source.delete(path)
    with pytest.raises(Corrupt, match="is gone"):
        lake.upsert(row("a1", "2", 9))
    for path, data in kept.items():
        source.put(path, data)
    assert lake.values() == AS_IT_WAS
    lake.ensure_sound()


def test_how_a_skeleton_is_read_travels_to_workers() -> None:
    lake = lake_of(9)
    (part, _) = skeletons(lake)
    handle = open_handle(lake.uri, {})
    assert part.base is not None
    source = load_skeleton_sources(handle, [part])[part.group_id]
    read = pickle.loads(pickle.dumps(partial(iter_stitched, handle.storage, part.base.path, source)))
    rows = pa.Table.from_batches(read(pa.schema({"part": pa.string(), "id": pa.string()})))
    assert rows.to_pylist() == [{"part": "p", "id": f"a{number}"} for number in range(6)]


def test_cleaning_takes_skeletons_and_leaves_their_sources(version: int) -> None:
    lake = Lake(version, NO_METADATA)
    lake.write("bulk_insert", START)
    source = bootstrapped(lake)
    (old, left) = (part.base.path for part in skeletons(lake) if part.base is not None)
    kept = [info.path for info in source.list("")]
    lake.upsert(row("a1", "2", 9))
    lake.upsert(row("a1", "3", 10))
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    assert lake.table.services.clean(**options) is not None
    assert old not in lake.files()
    assert left in lake.files()
    assert [info.path for info in source.list("")] == kept
    assert lake.values() == {**AS_IT_WAS, "a1": "3"}
    lake.ensure_sound()


def test_skeletons_without_keys_are_refused() -> None:
    lake = lake_of(9)
    raw = {**lake.table.config.raw, "hoodie.populate.meta.fields": "false"}
    lake.storage.put(keys.PROPERTIES_FILE, encode_table_config(TableConfig(raw), Awake().now()))
    with pytest.raises(Unsupported, match="have no keys"):
        lake.write("upsert", [row("a1", "2", 9)], {"hoodie.populate.meta.fields": "false"})


def test_logs_lie_over_skeletons_and_are_compacted_with_them(version: int) -> None:
    lake = lake_of(version, logged=True)
    (before, _) = skeletons(lake)
    lake.upsert(row("a1", "2", 9), row("a5", "late", 0))
    lake.write("delete", [row("a2"), row("b1", part="q")])
    expected = {key: "1" for key in AS_IT_WAS if key not in ("a2", "b1")} | {"a1": "2"}
    assert lake.values() == expected
    assert len(skeletons(lake)) == 2
    assert lake.table.services.compact() is not None
    assert skeletons(lake) == []
    assert lake.values() == lake.values(query="read_optimized") == expected
    rows = stored(lake)
    assert set(rows["part"].to_pylist()) == {"p"}
    assert rows["ts"].null_count == 0
    assert before.file_id in {file_id for _, file_id in lake.live()}
    lake.upsert(row("a3", "3", 9))
    assert lake.values() == {**expected, "a3": "3"}
    lake.table.services.compact()
    assert lake.values(query="read_optimized") == {**expected, "a3": "3"}
    lake.ensure_sound()


def test_a_plan_names_the_source_of_skeletons_alone(version: int) -> None:
    lake = lake_of(version, logged=True)
    lake.upsert(row("a1", "2", 9))
    lake.table.services.compact()
    lake.upsert(row("a1", "3", 10), row("b1", "2", 9, part="q"))
    planned = lake.table.services.schedule_compaction()
    assert planned is not None
    handle = open_handle(lake.uri, {})
    plan = PendingPlans(handle.storage, timeline_of(handle)).compaction(planned)
    found = {one.partition: one.bootstrap_file for one in plan.operations}
    assert found["p"] is None
    assert (found["q"] or "").endswith("/q/part-0.parquet")
    lake.table.services.compact()
    assert lake.values() == lake.values(query="read_optimized") == {**AS_IT_WAS, "a1": "3", "b1": "2"}


def test_new_rows_of_a_table_with_logs_fill_skeletons_up(version: int) -> None:
    lake = lake_of(version, logged=True, hoodie__merge__small__file__group__candidates__limit=1)
    groups = lake.live()
    lake.upsert(row("n1", "new"), row("a1", "2", 9))
    assert lake.live() == groups
    assert lake.values() == {**AS_IT_WAS, "n1": "new", "a1": "2"}
    assert [part.partition for part in skeletons(lake)] == ["q"]


def test_what_a_log_says_is_held_against_the_rows_of_the_source(version: int) -> None:
    lake = lake_of(version, logged=True, hoodie__index__type="GLOBAL_SIMPLE")
    lake.upsert(row("a1", "2", 9), row("a2", "late", 0))
    lake.write("delete", [row("a3")])
    lake.upsert(row("a1", "no", 8, part="q"), row("a2", "yes", 3, part="q"), row("a3", "again", 1, part="q"))
    assert lake.values() == {**AS_IT_WAS, "a1": "2", "a2": "yes", "a3": "again"}
    assert dict(lake.rows(("id", "part")))["a2"] == "q"


@pytest.mark.parametrize("mode", ["OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"])
@pytest.mark.parametrize("logged", [False, True])
def test_changes_have_images_of_the_rows_of_the_source(version: int, mode: str, logged: bool) -> None:
    lake = lake_of(
        version,
        logged=logged,
        hoodie__table__cdc__enabled="true",
        hoodie__table__cdc__supplemental__logging__mode=mode,
    )
    lake.upsert(row("a1", "2", 9))
    lake.write("delete", [row("b0", part="q")])
    found = lake.table.scan(query="cdc", begin=FIRST if version == 6 else "20260102000002000").read_all().to_pylist()
    images = [[json.loads(one[side] or "null") for side in ("before", "after")] for one in found]
    texts = [[image and (image["v"], image["ts"]) for image in pair] for pair in images]
    made = [(one["op"], *pair) for one, pair in zip(found, texts, strict=True)]
    assert sorted(made, key=repr) == [("d", ("1", 0), None), ("u", ("1", 1), ("2", 9))]


def test_incremental_queries_read_what_was_written_over_skeletons(version: int) -> None:
    lake = lake_of(version, logged=True)
    done = lake.upsert(row("a1", "2", 9))
    begin = FIRST if version == 6 else "20260102000002000"
    assert lake.rows(query="incremental", begin=begin) == [("a1", "2")]
    lake.table.services.compact()
    assert lake.rows(query="incremental", begin=begin) == [("a1", "2")]
    assert done.instant > FIRST


INDEXES = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}


@pytest.mark.parametrize("logged", [False, True])
def test_statistics_of_skeletons_are_those_of_their_sources(version: int, logged: bool) -> None:
    lake = lake_of(version, logged=logged)
    lake.write("upsert", [row("a1", "2", 9)], INDEXES)
    (left,) = (part for part in skeletons(lake) if part.partition == "q")
    handle = open_handle(lake.uri, {})
    metadata = open_metadata_table(handle.storage, handle.config, timeline_of(handle))
    assert metadata is not None
    found = {
        one["ColumnStatsMetadata"]["fileName"]: one["ColumnStatsMetadata"]
        for one in metadata.column_stats("ts").to_pylist()
    }
    assert left.base is not None
    said = found[left.base.name.text]
    assert (said["valueCount"], said["nullCount"]) == (3, 0)
    assert lake.rows(("id",), filter="ts < 3 and v = '1'") == [("a0",), ("a2",), ("b0",), ("b1",), ("b2",)]
    assert lake.rows(("id",), filter="ts > 4 and id like 'a%'") == [("a1",), ("a5",)]
    lake.write("upsert", [row("b1", "2", 20, part="q")], INDEXES)
    assert lake.rows(("id",), filter="ts >= 20") == [("b1",)]
    assert lake.rows(("id",), filter="ts = 0") == [("a0",), ("b0",)]
    lake.ensure_sound()


@pytest.mark.parametrize("logged", [False, True])
def test_the_record_index_knows_the_keys_of_skeletons(version: int, logged: bool) -> None:
    lake = lake_of(version, logged=logged)
    asked = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.index.type": "RECORD_INDEX",
    }
    lake.write("upsert", [row("a4", "late", 0)], NO_METADATA)
    lake.write("delete", [row("a5")], NO_METADATA)
    lake.write("upsert", [row("a1", "2", 9), row("n1", "new")], asked)
    lake.write("upsert", [row("a1", "3", 10), row("b1", "2", 9, part="q"), row("n1", "newer", 2)], asked)
    lake.write("delete", [row("b2", part="q")], asked)
    expected = {key: "1" for key in AS_IT_WAS if key not in ("a5", "b2")} | {"a1": "3", "b1": "2", "n1": "newer"}
    assert lake.values() == expected
    lake.ensure_sound()


_EVENT_TIME = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
