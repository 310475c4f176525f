"""Slices with log files: every query over base files and logs, in all versions."""

from __future__ import annotations

import io
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.env import SystemEnv
from hoodie.errors import Corrupt, Invalid, Unavailable, Unsupported
from hoodie.logs import encode_hfile_content
from hoodie.query.validate import validate_table
from hoodie.records import to_avro, with_meta
from hoodie.slices import MergeOptions, read_rows
from hoodie.spec import V6, V8, V9, State
from hoodie.state.handle import load_handle
from hoodie.testing.hand_logs import HandLogTable, at

GROUP = ("p0", "a")


def row(key: str, qty: int | None, part: str = "p0") -> dict[str, object]:
    return {"id": key, "part": part, "qty": qty}


def found(rows: pa.Table) -> list[tuple[object, object]]:
    return sorted(zip(rows["id"].to_pylist(), rows["qty"].to_pylist(), strict=True), key=repr)


def clock(table: HandLogTable, second: int) -> str:
    return at(second, 500) if table.profile.stores_completion_time else at(second)


@pytest.fixture
def table(profile) -> HandLogTable:
    """k1 to k3 in a base file; 2 updates k1 and adds k4; 3 deletes k2; p1 has a group without logs."""
    made = HandLogTable(profile)
    base = {GROUP: [row("k1", 1), row("k2", 1), row("k3", 1)], ("p1", "b"): [row("k9", 1, "p1")]}
    made.commit(at(1), base)
    made.delta(at(2), {GROUP: {"rows": [row("k1", 2), row("k4", 2)]}})
    made.delta(at(3), {GROUP: {"deleted": ["k2"]}})
    return made


def test_snapshot_merges_updates_inserts_and_deletes(table, rows):
    assert found(rows(table)) == [("k1", 2), ("k3", 1), ("k4", 2), ("k9", 1)]


def test_read_optimized_query_knows_base_files_only(table, rows):
    assert found(rows(table, query="read_optimized")) == [("k1", 1), ("k2", 1), ("k3", 1), ("k9", 1)]


def test_time_travel_ends_log_files_at_the_instant(table, rows):
    assert found(rows(table, as_of=at(2))) == [("k1", 2), ("k2", 1), ("k3", 1), ("k4", 2), ("k9", 1)]
    assert found(rows(table, as_of=at(1))) == [("k1", 1), ("k2", 1), ("k3", 1), ("k9", 1)]


def test_columns_and_filters_are_those_of_merged_rows(table, rows):
    assert rows(table, columns=("qty",), filter="id = 'k1'").to_pydict() == {"qty": [2]}
    assert found(rows(table, filter="qty = 1")) == [("k3", 1), ("k9", 1)]
    assert found(rows(table, filter="qty > 1 and part = 'p0'")) == [("k1", 2), ("k4", 2)]
    assert rows(table, columns=()).num_rows == 4
    assert found(rows(table, filter="part = 'p1'")) == [("k9", 1)]
    assert found(rows(table, filter="_hoodie_record_key in ('k2', 'k4')")) == [("k4", 2)]


def test_filter_that_the_base_row_meets_and_the_log_row_does_not_keeps_nothing(profile, rows):
    made = HandLogTable(profile, choices={"ordering_fields": ("qty",)} if profile is not V6 else {})
    made.commit(at(1), {GROUP: [row("k1", 5)]})
    made.delta(at(2), {GROUP: {"rows": [row("k1", 7)]}})
    assert rows(made, filter="qty = 5").num_rows == 0
    assert found(rows(made, filter="qty = 7")) == [("k1", 7)]


def test_log_files_without_a_base_file_are_a_slice(profile, rows):
    made = HandLogTable(profile)
    made.delta(at(1), {GROUP: {"rows": [row("k1", 1), row("k2", 1)]}})
    made.delta(at(2), {GROUP: {"rows": [row("k1", 2)], "deleted": ["k2"]}})
    assert found(rows(made)) == [("k1", 2)]
    assert rows(made, query="read_optimized").num_rows == 0


def test_parquet_blocks_are_read_as_avro_ones(profile, rows):
    made = HandLogTable(profile)
    made.commit(at(1), {GROUP: [row("k1", 1)]})
    made.delta(at(2), {GROUP: {"rows": [row("k1", 2), row("k2", None)], "parquet": True}})
    assert found(rows(made)) == [("k1", 2), ("k2", None)]


def test_torn_block_within_what_was_committed_is_an_error(table, rows):
    table.delta(at(4), {GROUP: {"rows": [row("k3", 4)], "raw": b"#HUDI#\x00\x00\x00\x00\x00\x00\x10\x00torn"}})
    with pytest.raises(Corrupt, match="damaged"):  # the commit says it wrote these bytes, too
        rows(table)


def test_log_files_of_writes_that_are_not_complete_do_not_count(profile, rows):
    made = HandLogTable(profile)
    made.commit(at(1), {GROUP: [row("k1", 1)]})
    made.delta(at(2), {GROUP: {"rows": [row("k1", 2)]}}, state=State.INFLIGHT)
    assert found(rows(made)) == [("k1", 1)]
    assert rows(made, columns=()).num_rows == 1
    assert rows(made, columns=("id",), filter="qty = 1").num_rows == 1


def test_larger_ordering_value_wins_whenever_it_was_written(rows):
    made = HandLogTable(V9, choices={"ordering_fields": ("qty",)})
    made.commit(at(1), {GROUP: [row("k1", 5), row("k2", 5), row("k3", 5)]})
    made.delta(at(2), {GROUP: {"rows": [row("k1", 4), row("k2", 6)]}})
    made.delta(at(3), {GROUP: {"deleted": ["k3"], "delete_order": [3]}})
    assert found(rows(made)) == [("k1", 5), ("k2", 6), ("k3", 5)]
    made.delta(at(4), {GROUP: {"deleted": ["k3"]}})
    assert found(rows(made)) == [("k1", 5), ("k2", 6)]


def test_partial_update_changes_the_columns_it_has(rows):
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("qty", pa.int64()), ("note", pa.string())])
    made = HandLogTable(V9, schema=schema)
    made.commit(at(1), {GROUP: [{**row("k1", 1), "note": "old"}, {**row("k2", 1), "note": "old"}]})
    made.delta(at(2), {GROUP: {"rows": [{"id": "k1", "note": "new"}], "columns": ("id", "note")}})
    got = rows(made).select(["id", "qty", "note"]).to_pylist()
    assert {"id": "k1", "qty": 1, "note": "new"} in got
    assert {"id": "k2", "qty": 1, "note": "old"} in got
    # Also in an incremental query, whose range does not have the base file.
    changed = rows(made, query="incremental", begin=clock(made, 1)).select(["id", "qty", "note"]).to_pylist()
    assert changed == [{"id": "k1", "qty": 1, "note": "new"}]


def test_incremental_query_gives_rows_the_range_wrote(table, rows):
    assert found(rows(table, query="incremental", begin=clock(table, 1))) == [("k1", 2), ("k4", 2)]
    assert rows(table, query="incremental", begin=clock(table, 2)).num_rows == 0  # a delete leaves nothing to see
    everything = rows(table, query="incremental", begin="000", end=clock(table, 2))
    assert found(everything) == [("k1", 2), ("k2", 1), ("k3", 1), ("k4", 2), ("k9", 1)]


def test_compaction_moves_rows_and_changes_nothing(table, rows):
    before = found(rows(table))
    merged = [
        {**row("k1", 2), "_hoodie_commit_time": at(2)},
        {**row("k3", 1), "_hoodie_commit_time": at(1)},
        {**row("k4", 2), "_hoodie_commit_time": at(2)},
    ]
    table.commit(at(4), {GROUP: merged}, operation="COMPACT")
    assert found(rows(table)) == before
    assert found(rows(table, query="incremental", begin=clock(table, 1))) == [("k1", 2), ("k4", 2)]
    skipping = rows(table, query="incremental", begin=clock(table, 1), skip_operations=("COMPACT",))
    assert found(skipping) == [("k1", 2), ("k4", 2)]
    table.delta(at(5), {GROUP: {"rows": [row("k3", 5)]}})
    assert found(rows(table)) == [("k1", 2), ("k3", 5), ("k4", 2), ("k9", 1)]
    assert found(rows(table, query="incremental", begin=clock(table, 4))) == [("k3", 5)]


def test_log_files_that_were_cleaned_are_replaced_by_the_snapshot(table, rows):
    merged = [{**row("k1", 2), "_hoodie_commit_time": at(2)}, {**row("k4", 2), "_hoodie_commit_time": at(2)}]
    logs = [file.path for file in table.storage.list_dir("p0").files if ".log." in file.path]
    table.commit(at(4), {GROUP: merged}, operation="COMPACT")
    table.clean(at(5), at(4), removed=logs)
    asked = {"query": "incremental", "begin": clock(table, 1), "end": clock(table, 2)}
    assert found(rows(table, **asked)) == [("k1", 2), ("k4", 2)]
    with pytest.raises(Invalid, match="cleaned since"):
        rows(table, **asked, full_scan_fallback=False)


@pytest.mark.parametrize("version", [V6, V8, V9], ids=["v6", "v8", "v9"])
def test_keys_are_made_again_where_rows_do_not_carry_them(version, rows):
    made = HandLogTable(version, choices={"populate_meta_fields": False})
    made.commit(at(1), {GROUP: [row("k1", 1), row("k2", 1)]})
    made.delta(at(2), {GROUP: {"rows": [row("k1", 2), row("k3", 2)], "deleted": ["k2"]}})
    assert found(rows(made)) == [("k1", 2), ("k3", 2)]
    assert rows(made, columns=("qty",), filter="id = 'k3'").to_pydict() == {"qty": [2]}


def test_log_rows_beyond_the_memory_limit_go_to_files_and_come_back(profile, rows, tmp_path):
    made = HandLogTable(profile)
    made.commit(at(1), {GROUP: [row(f"k{n}", 0) for n in range(500)]})
    for second in range(2, 6):
        made.delta(at(second), {GROUP: {"rows": [row(f"k{n}", second) for n in range(second * 50, second * 200)]}})
    expected = found(rows(made))
    assert found(rows(made, merge=MergeOptions(memory_bytes=10_000, spill_dir=str(tmp_path)))) == expected
    assert list(tmp_path.iterdir()) == []


def test_plan_with_logs_travels(table, plan):
    planned = plan(table, filter="qty > 0")
    rows, files = pickle.loads(pickle.dumps((planned.rows, planned.files)))
    got = [batch for file in files for batch in read_rows(table.storage, rows, file)]
    assert found(pa.Table.from_batches(got, rows.schema)) == [("k1", 2), ("k3", 1), ("k4", 2), ("k9", 1)]
    assert [part.is_plain for part in planned.files] == [False, True]
    assert [bool(part.path) for part in planned.files] == [False, True]


def test_log_file_that_went_away_while_reading_is_named(table, plan, rows):
    planned = plan(table)
    log = planned.files[0].logs[0].path
    table.storage.delete(log)
    with pytest.raises(Unavailable, match=r"p0/\.a_.*log.* is gone: it was cleaned"):
        list(read_rows(table.storage, planned.rows, planned.files[0]))


def test_merge_rule_nobody_registered_stops_slices_with_logs_only(rows):
    custom = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": "no-such-merger"}
    made = HandLogTable(V9, choices={"extra": custom})
    made.commit(at(1), {GROUP: [row("k1", 1)], ("p1", "b"): [row("k9", 1, "p1")]})
    assert rows(made).num_rows == 2
    made.delta(at(2), {GROUP: {"rows": [row("k1", 2)]}})
    with pytest.raises(Unsupported, match="no-such-merger"):
        rows(made)
    assert found(rows(made, filter="part = 'p1'")) == [("k9", 1)]


def test_base_files_in_hfile_form_are_read_and_merged(rows):
    """No release of Hudi was there to write such a table: this is the format as it is described."""
    made = HandLogTable(V9)
    made.commit(at(1), {GROUP: [row("k1", 1), row("k2", 1)]})
    parquet = made.path_of(at(1), *GROUP)
    stored = pq.read_table(io.BytesIO(made.storage.read(parquet)))
    avro = to_avro(with_meta(made.schema), "hand")
    made.storage.put(parquet.replace(".parquet", ".hfile"), encode_hfile_content(stored, avro, "_hoodie_record_key"))
    made.storage.delete(parquet)
    assert found(rows(made)) == [("k1", 1), ("k2", 1)]
    assert found(rows(made, filter="qty = 1 and id = 'k2'")) == [("k2", 1)]
    assert rows(made, columns=()).num_rows == 2
    handle = load_handle(made.storage, SystemEnv())
    assert "unreadable" not in {one.kind for one in validate_table(handle)}
    made.delta(at(2), {GROUP: {"rows": [row("k1", 2)]}})
    assert found(rows(made)) == [("k1", 2), ("k2", 1)]
    made.storage.put(parquet.replace(".parquet", ".hfile"), b"no HFile")
    assert "unreadable" in {one.kind for one in validate_table(handle)}


def test_writers_that_do_not_wait_for_each_other_are_ordered_by_request(rows):
    """Non-blocking concurrency: 3 completes before 2 does. Log files are merged in the order of their requests."""
    made = HandLogTable(V9)
    made.commit(at(1), {GROUP: [row("k1", 1)]})
    made.delta(at(3), {GROUP: {"rows": [row("k1", 3)]}}, completed=at(3, 100))
    made.delta(at(2), {GROUP: {"rows": [row("k1", 2), row("k2", 2)]}}, completed=at(5))
    assert found(rows(made)) == [("k1", 3), ("k2", 2)]
    # A delta that completes after a compaction was requested belongs to the slice the compaction makes.
    made.commit(at(4), {GROUP: [{**row("k1", 3), "_hoodie_commit_time": at(3)}]}, operation="COMPACT")
    assert found(rows(made)) == [("k1", 2), ("k2", 2)]
    assert found(rows(made, query="incremental", begin=at(4, 900))) == [("k1", 2), ("k2", 2)]


def test_clustering_replaces_groups_that_have_log_files(profile, rows):
    made = HandLogTable(profile)
    made.commit(at(1), {GROUP: [row("k1", 1)]})
    made.delta(at(2), {GROUP: {"rows": [row("k1", 2), row("k2", 2)]}})
    moved = [{**row("k1", 2), "_hoodie_commit_time": at(2)}, {**row("k2", 2), "_hoodie_commit_time": at(2)}]
    made.commit(at(3), {("p0", "c"): moved}, replaces={"p0": ("a",)}, operation="CLUSTER")
    assert found(rows(made)) == [("k1", 2), ("k2", 2)]
    assert found(rows(made, as_of=at(2))) == [("k1", 2), ("k2", 2)]
    asked = {"query": "incremental", "begin": clock(made, 1)}
    assert found(rows(made, **asked)) == found(rows(made, **asked, skip_operations=("CLUSTER",)))


def test_log_files_of_a_downgraded_table_belong_to_the_slice_they_were_written_on(rows):
    """Hudi 1.x names log files by the delta commit; after a downgrade to version 6 they keep such names."""
    made = HandLogTable(V6)
    made.commit(at(1), {GROUP: [row("k1", 1), row("k2", 1)]})
    made.delta(at(2), {GROUP: {"rows": [row("k1", 2)]}})
    (log,) = (file.path for file in made.storage.list_dir("p0").files if ".log." in file.path)
    made.storage.put(log.replace(at(1), at(2)), made.storage.read(log))
    made.storage.delete(log)
    assert found(rows(made)) == [("k1", 2), ("k2", 1)]
