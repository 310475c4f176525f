"""Tables that log changes: change files beside rewritten base files, read back by change queries."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Invalid, Unsupported
from hoodie.logs import HeaderKey, read_block_rows, read_blocks
from hoodie.services.compaction.compact import run_compaction
from hoodie.spec.change_schema import change_schema, parse_logging_mode
from hoodie.state.handle import load_handle
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import Awake, Lake, logged_lake, row, table_of
from hoodie.write.change_log import ChangeLog

ON = "hoodie.table.cdc.enabled"
MODE = "hoodie.table.cdc.supplemental.logging.mode"
MODES = ["OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"]

Change = tuple[str, Any, Any]


def changes_of(lake: Lake, begin: str) -> list[Change]:
    """Operation, `v` before and `v` after of each change that completed after `begin`."""
    found = lake.table.scan(query="cdc", begin=begin).read_all().to_pylist()
    images = [[json.loads(one[side] or "null") for side in ("before", "after")] for one in found]
    made = [(one["op"], *(image and image["v"] for image in pair)) for one, pair in zip(found, images, strict=True)]
    return sorted(made, key=repr)


def change_files(lake: Lake) -> list[str]:
    return [path for path in lake.files() if path.endswith(".cdc")]


def end(lake: Lake) -> str:
    newest = lake.table.timeline().completed_writes()[-1]
    return newest.requested if lake.version == 6 else str(newest.completed)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["copy on write", "merge on read"])
def test_updates_inserts_and_deletes_are_read_as_they_happened(version: int, mode: str, kind: str) -> None:
    make = Lake if kind == "copy on write" else logged_lake
    lake = make(version, **({"options": {ON: "true", MODE: mode}} if make is Lake else {ON: "true", MODE: mode}))
    lake.upsert(row("a", "1"), row("b", "1"), row("c", "1"))
    begin = end(lake)
    lake.upsert(row("a", "2", 2), row("n", "1", 2))
    lake.write("delete", [row("b", "", 3)])
    assert changes_of(lake, begin) == [("d", "1", None), ("i", None, "1"), ("u", "1", "2")]
    lake.ensure_sound()


@pytest.mark.parametrize("mode", MODES)
def test_the_commit_names_the_change_file_and_its_block_has_hudis_schema(version: int, mode: str) -> None:
    lake = Lake(version, {ON: "true", MODE: mode.lower()})
    lake.upsert(row("a", "1"), row("b", "1"))
    assert change_files(lake) == []
    lake.upsert(row("a", "2", 2))
    ((path, size),) = (item for stat in lake.commits()[-1].write_stats() for item in (stat[1].cdc_stats or {}).items())
    assert change_files(lake) == [path]
    (block,) = read_blocks(lake.storage, path, size)
    said = json.loads(block.header[HeaderKey.SCHEMA])
    names = {"OP_KEY_ONLY": ["op", "record_key"], "DATA_BEFORE": ["op", "record_key", "before"]}
    assert [field["name"] for field in said["fields"]] == names.get(mode, ["op", "ts_ms", "before", "after"])
    assert lake.table.config.cdc_logging_mode == mode


EVENT_TIME = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}


@pytest.mark.parametrize("mode", MODES)
def test_a_rewrite_in_which_every_row_is_late_has_a_change_file_without_changes(version: int, mode: str) -> None:
    lake = Lake(version, {ON: "true", MODE: mode, **(EVENT_TIME if version == 6 else {})})
    lake.upsert(row("a", "1", 5))
    begin = end(lake)
    lake.upsert(row("a", "late", 1), row("x", "1", 1, part="q"))
    assert lake.values()["a"] == "1"
    assert len(change_files(lake)) == 1
    assert logged_by(lake) == []
    lake.upsert(row("a", "2", 6))
    assert changes_of(lake, begin) == [("i", None, "1"), ("u", "1", "2")]
    lake.ensure_sound()


def test_a_rewrite_without_changes_and_without_change_file_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(9, {ON: "true"})
    lake.upsert(row("a", "1", 5))
    begin = end(lake)
    with monkeypatch.context() as older:  # no change file where nothing changed: so it was once
        older.setattr(ChangeLog, "close", lambda changes, *, even_empty: None)
        lake.upsert(row("a", "late", 1))
    lake.upsert(row("a", "2", 6))
    assert len(change_files(lake)) == 1
    assert changes_of(lake, begin) == [("u", "1", "2")]


@pytest.mark.parametrize("make", [Lake, logged_lake])
def test_changes_of_an_overwrite_are_refused_once_its_old_files_are_cleaned(version: int, make: Any) -> None:
    lake = make(version, **({"options": {ON: "true"}} if make is Lake else {ON: "true"}))
    lake.upsert(row("a", "1"), row("b", "1", part="q"))
    begin = end(lake)
    lake.table.delete_partition("p")
    assert changes_of(lake, begin) == [("d", "1", None)]
    lake.table.services.clean(
        **{"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    )
    with pytest.raises(Invalid, match="cleaned since"):
        changes_of(lake, begin)


def test_rows_that_move_to_another_partition_are_a_delete_there_and_an_insert_here() -> None:
    lake = Lake(9, {ON: "true", "hoodie.index.type": "GLOBAL_SIMPLE"})
    lake.upsert(row("a", "1"), row("b", "1"), row("c", "1", part="q"))
    begin = end(lake)
    lake.upsert(row("a", "2", 2, part="q"))
    assert changes_of(lake, begin) == [("d", "1", None), ("i", None, "2")]


def test_a_write_that_died_leaves_no_change_file(version: int) -> None:
    lake = Lake(version, {ON: "true"})
    lake.upsert(row("a", "1"), row("b", "1"))
    from hoodie.services.ingest import Request  # noqa: PLC0415
    from hoodie.services.save import write_table  # noqa: PLC0415
    from hoodie.table import as_source  # noqa: PLC0415

    def change(storage: Any) -> None:
        rows = as_source(table_of([row("a", "2", 2)]))
        write_table(storage, Request("upsert", rows, resolve({}), LocalEngine(1)), Awake())

    world = lake.files()
    counted = CountingStorage(lake.storage)
    change(counted)
    closed = next(call.n for call in counted.calls if call.op == "close" and call.path.endswith(".cdc"))
    again = Lake(version, {ON: "true"})
    for path, data in world.items():
        again.storage.put(path, data)
    with pytest.raises(Crash):
        change(CountingStorage(again.storage, crash_at=closed + 1))
    assert len(change_files(again)) == 1
    again.upsert(row("z", "1", part="z"))
    assert change_files(again) == []
    again.ensure_sound()


def logged_by(lake: Lake) -> list[tuple[str, str]]:
    """Operation and key of every change in the change files of the newest commit."""
    found = []
    for _, stat in lake.commits()[-1].write_stats():
        for path, size in (stat.cdc_stats or {}).items():
            for block in read_blocks(lake.storage, path, size):
                for one in read_block_rows(lake.storage, block).to_pylist():
                    image = one.get("after") or one.get("before") or {}
                    found.append((one["op"], one.get("record_key") or image["id"]))
    return sorted(found)


BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("index", [{}, BUCKETS], ids=["files", "buckets"])
def test_a_compaction_logs_what_it_merges_and_queries_see_no_change_twice(
    version: int, mode: str, index: dict[str, str]
) -> None:
    lake = logged_lake(version, **{ON: "true", MODE: mode, **index})
    lake.upsert(row("a", "1"), row("b", "1"), row("c", "1", 5))
    begin = end(lake)
    lake.upsert(row("a", "2", 2), row("c", "late", 1), row("n", "1", 2))
    lake.write("delete", [row("b", "", 3)])
    before = changes_of(lake, begin)
    assert before == [("d", "1", None), ("i", None, "1"), ("u", "1", "2")]
    lake.table.services.compact()
    assert changes_of(lake, begin) == before
    of_logs = [("d", "b"), *([("i", "n")] if index else []), ("u", "a")]
    assert logged_by(lake) == ([] if version == 6 else of_logs)
    lake.ensure_sound()
    lake.upsert(row("a", "3", 3))
    lake.table.services.compact()
    assert changes_of(lake, begin) == sorted([*before, ("u", "2", "3")], key=repr)
    lake.ensure_sound()


def test_a_compaction_that_died_leaves_no_change_file_to_the_next(version: int) -> None:
    lake = logged_lake(version, **{ON: "true"})
    lake.upsert(row("a", "1"), row("b", "1"))
    lake.upsert(row("a", "2", 2))
    lake.table.services.schedule_compaction()
    world = lake.files()
    counted = CountingStorage(lake.storage)
    run_compaction(load_handle(counted, Awake()), resolve({}), LocalEngine(1))
    closed = [call.n for call in counted.calls if call.op == "close" and call.path.endswith(".cdc")]
    assert len(closed) == (version > 6)
    for n in closed:
        again = logged_lake(version, **{ON: "true"})
        for path, data in world.items():
            again.storage.put(path, data)
        dying = load_handle(CountingStorage(again.storage, crash_at=n + 1), Awake())
        with pytest.raises(Crash):
            run_compaction(dying, resolve({}), LocalEngine(1))
        assert len(change_files(again)) == 1
        again.table.services.compact()
        assert logged_by(again) == [("u", "a")]
        assert len(change_files(again)) == 1
        again.ensure_sound()


def test_no_such_mode_and_no_meta_columns_are_refused() -> None:
    with pytest.raises(Invalid, match="EVERYTHING"):
        parse_logging_mode("EVERYTHING")
    lake = Lake(9, {ON: "true", "hoodie.populate.meta.fields": "false"})
    with pytest.raises(Unsupported, match="no meta columns"):
        lake.upsert(row("a"))


def test_the_schema_text_names_the_row_once_and_refers_to_it() -> None:
    record = '{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[]}'
    said = json.loads(change_schema("DATA_BEFORE_AFTER", record))
    assert said["namespace"] == "hoodie.t"
    assert said["fields"][2]["type"][1] == {"type": "record", "name": "t_record", "fields": []}
    assert said["fields"][3]["type"] == ["null", "t_record"]
