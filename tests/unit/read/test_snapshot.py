"""Snapshots, now and in the past: rows, schema, partition columns, pruning, and states that cannot be read."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.read import ReadOptions, load_table_schema, run_read
from hoodie.records import to_avro
from hoodie.spec import V9, State, encode_container, keys
from hoodie.testing.hand_table import ROWS, HandTable, at
from hoodie.view import load_view


def row(key: str, qty: int | None, part: str = "p0") -> dict[str, object]:
    return {"id": key, "part": part, "qty": qty}


def two_commits(profile, **choices) -> HandTable:
    table = HandTable(profile, choices=choices)
    table.commit(at(1), {("p0", "a"): [row("k1", 1), row("k2", 2)], ("p1", "b"): [row("k9", 9, "p1")]})
    table.commit(at(3), {("p0", "a"): [row("k1", 10)]})
    return table


def ids(found: pa.Table) -> list[str]:
    return sorted(found["id"].to_pylist())


# --- state


def test_snapshot_is_the_newest_slice_of_every_group(profile, rows):
    assert ids(rows(two_commits(profile))) == ["k1", "k9"]


@pytest.mark.parametrize(
    ("as_of", "expected"),
    [
        (at(3), ["k1", "k9"]),
        (at(2), ["k1", "k2", "k9"]),
        ("20260102000001", ["k1", "k2", "k9"]),
        ("2026-01-02 00:00:02", ["k1", "k2", "k9"]),
        ("2026-01-02T00:00:01.000", ["k1", "k2", "k9"]),
        ("2026-01-02", []),
        ("2026-01-03", ["k1", "k9"]),
    ],
)
def test_time_travel_goes_by_requested_time_in_all_spellings(profile, rows, as_of, expected):
    assert ids(rows(two_commits(profile), as_of=as_of)) == expected


def test_uncommitted_files_are_invisible_also_empty_ones(profile, rows):
    table = two_commits(profile)
    table.commit(at(5), {("p0", "a"): [row("new", 1)], ("p0", "z"): [row("new", 1)]}, state=State.INFLIGHT)
    table.storage.put(table.path_of(at(5), "p1", "b"), b"")
    table.storage.put(table.path_of(at(7), "p1", "b"), b"")
    assert ids(rows(table)) == ["k1", "k9"]


def test_time_behind_a_running_write_is_not_settled(profile, rows):
    table = two_commits(profile)
    table.commit(at(5), {("p0", "a"): [row("new", 1)]}, state=State.INFLIGHT)
    with pytest.raises(Invalid, match="not settled"):
        rows(table, as_of=at(6))
    assert ids(rows(table, as_of=at(4))) == ["k1", "k9"]


def test_pending_clustering_does_not_unsettle_the_past(profile, rows):
    table = two_commits(profile)
    plan = encode_container("HoodieRequestedReplaceMetadata", {"operationType": "CLUSTER"}, profile.dialect)
    action = "clustering" if profile.capabilities.clustering_action else "replacecommit"
    table.instant(at(5), action, state=State.INFLIGHT, content={State.REQUESTED: plan})
    assert ids(rows(table, as_of=at(6))) == ["k1", "k9"]


def test_cleaned_past_is_refused_and_what_was_retained_is_read(profile, rows):
    table = two_commits(profile)
    table.clean(at(5), at(3), removed=[table.path_of(at(1), "p0", "a")])
    with pytest.raises(Invalid, match=f"cleaned up.*{at(3)}"):
        rows(table, as_of=at(2))
    assert ids(rows(table, as_of=at(3))) == ["k1", "k9"]


def test_empty_file_of_a_committed_write_is_damage(profile, rows):
    table = two_commits(profile)
    path = table.path_of(at(3), "p0", "a")
    table.storage.put(path, b"")
    with pytest.raises(Corrupt) as caught:
        rows(table)
    assert caught.value.facts["path"] == path


def test_truncated_file_is_named(profile, rows):
    table = two_commits(profile)
    path = table.path_of(at(1), "p1", "b")
    table.storage.put(path, table.storage.read(path)[:-20])
    with pytest.raises(Corrupt, match="p1/b_0-1-2"):
        rows(table)


def test_file_that_went_away_while_reading_is_named(profile, plan):
    table = two_commits(profile)
    planned = plan(table)
    table.storage.delete(table.path_of(at(1), "p1", "b"))
    with pytest.raises(Corrupt, match=r"p1/b_0-1-2.* is gone"):
        run_read(planned, table.storage).read_all()


def test_slices_with_log_files_are_for_read_optimized_queries_only(profile, rows):
    table = two_commits(profile, table_type="MERGE_ON_READ")
    table.instant(at(4), "deltacommit")
    instant = at(3) if profile.slicing == "base_instant" else at(4)
    table.storage.put(f"p0/.a_{instant}.log.1_0-1-1", b"x")
    with pytest.raises(Unsupported, match="merging them on read"):
        rows(table)
    assert ids(rows(table, query="read_optimized")) == ["k1", "k9"]
    assert ids(rows(table, filter="part = 'p1'")) == ["k9"]  # that partition has none


@pytest.mark.parametrize("query", ["cdc", "nonsense"])
def test_other_queries_are_refused(profile, rows, query):
    with pytest.raises(Unsupported if query == "cdc" else Invalid):
        rows(two_commits(profile), query=query)


# --- schema


def test_columns_are_meta_then_data_all_nullable(profile, plan):
    schema = plan(two_commits(profile)).schema
    assert schema.names == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
        "id",
        "part",
        "qty",
    ]
    assert all(field.nullable for field in schema)


def test_older_files_are_read_with_the_newest_schema_and_the_past_with_its_own(profile, rows):
    table = two_commits(profile)
    wider = pa.schema([("id", pa.string()), ("part", pa.string()), ("qty", pa.float64()), ("extra", pa.string())])
    table.commit(at(5), {("p0", "a"): [{**row("k1", 1), "extra": "x"}]}, schema=wider)
    now = rows(table).select(["id", "qty", "extra"]).sort_by("id")
    assert now.to_pylist() == [{"id": "k1", "qty": 1.0, "extra": "x"}, {"id": "k9", "qty": 9.0, "extra": None}]
    past = rows(table, as_of=at(4))
    assert past.schema.field("qty").type == pa.int64()
    assert "extra" not in past.column_names


def test_schema_is_said_by_the_last_write_that_may_change_it(profile):
    table = two_commits(profile)
    odd = ROWS.append(pa.field("odd", pa.string()))
    table.commit(at(4), {("p0", "c"): [row("k1", 10)]}, replaces={"p0": ("a",)}, operation="CLUSTER", schema=odd)
    view = load_view(table.storage, table.config, table.timeline())
    assert load_table_schema(table.storage, table.config, view) == ROWS


def test_schema_falls_back_to_the_created_one_then_to_a_footer(profile, rows):
    empty = HandTable(profile, choices={"create_schema": to_avro(ROWS, "hand")})
    assert rows(empty).num_rows == 0
    assert rows(empty).column_names[-3:] == ROWS.names
    silent = HandTable(profile)
    silent.commit(at(1), {("p0", "a"): [row("k1", 1)]}, extra={keys.SCHEMA_EXTRA: ""})
    assert rows(silent).column_names[-3:] == ROWS.names


def test_table_of_which_nobody_said_a_schema_has_meta_columns_only(profile, rows):
    assert rows(HandTable(profile)).num_rows == 0


def schema_history(*versions: dict[str, int]) -> bytes:
    fields = [[{"name": name, "id": number, "type": "string"} for name, number in one.items()] for one in versions]
    return json.dumps({"schemas": [{"type": "record", "fields": one} for one in fields]}).encode()


def test_renamed_columns_are_refused_and_added_ones_are_not(rows):
    table = HandTable(V9)
    table.commit(at(1), {("p0", "a"): [row("k1", 1)]}, extra={"latest_schema": "{}"})
    path = f".hoodie/.schema/{at(1)}_{at(2)}.schemacommit"
    table.storage.put(path, schema_history({"id": 0, "qty": 1}, {"id": 0, "qty": 1, "part": 2}))
    assert ids(rows(table)) == ["k1"]
    table.storage.put(path, schema_history({"id": 0, "quantity": 1}, {"id": 0, "qty": 1}))
    with pytest.raises(Unsupported, match="renamed"):
        rows(table)


def test_bootstrap_skeletons_are_refused(profile, rows):
    table = HandTable(profile, choices={"extra": {"hoodie.bootstrap.base.path": "/source"}})
    table.commit("00000000000001", {("p0", "a"): [row("k1", 1)]}, completed="00000000000001")
    with pytest.raises(Unsupported, match="skeleton"):
        rows(table)


# --- partition columns


def test_partition_columns_come_from_the_path(profile, rows):
    table = HandTable(profile, choices={"url_encode": True, "hive_style": True})
    default = "part=__HIVE_DEFAULT_PARTITION__"
    table.commit(at(1), {("part=x%2Fy", "a"): [row("k1", 1, "x/y")], (default, "b"): [row("k2", 2, "")]})
    found = rows(table, columns=("id", "part")).sort_by("id").to_pylist()
    assert found == [{"id": "k1", "part": "x/y"}, {"id": "k2", "part": None}]
    assert ids(rows(table, filter="part is null")) == ["k2"]
    assert ids(rows(table, filter="part = 'x/y'")) == ["k1"]


def test_dropped_partition_columns_stand_at_the_end(profile, rows):
    table = HandTable(
        profile, schema=pa.schema([("id", pa.string()), ("qty", pa.int64())]), choices={"drop_partition_columns": True}
    )
    table.commit(at(1), {("p0", "a"): [row("k1", 1)]})
    found = rows(table)
    assert found.column_names[-3:] == ["id", "qty", "part"]
    assert found["part"].to_pylist() == ["p0"]


# --- columns and filters


def test_columns_come_in_the_asked_order_whatever_their_case(profile, rows):
    assert rows(two_commits(profile), columns=("QTY", "part")).column_names == ["qty", "part"]


@pytest.mark.parametrize("columns", [("nowhere",), ("id", "ID")])
def test_wrong_columns_are_refused(profile, rows, columns):
    with pytest.raises(Invalid):
        rows(two_commits(profile), columns=columns)


def test_no_columns_still_count_rows(profile, rows):
    assert rows(two_commits(profile), columns=()).num_rows == 2
    assert rows(two_commits(profile), columns=(), filter="qty > 9").num_rows == 1
    assert rows(two_commits(profile), columns=("part",)).num_rows == 2
    assert rows(two_commits(profile), columns=(), filter="false").num_rows == 0
    assert rows(two_commits(profile), columns=(), filter="1 = 1").num_rows == 2


def test_filter_columns_need_not_be_in_the_result(profile, rows):
    found = rows(two_commits(profile), columns=("id",), filter="qty = 9 and part = 'p1'")
    assert found.to_pylist() == [{"id": "k9"}]


def test_arrow_expression_is_a_filter_too(profile, rows):
    assert ids(rows(two_commits(profile), filter=(pc.field("qty") > 9) & (pc.field("part") == "p0"))) == ["k1"]


def test_filter_of_another_kind_is_refused(profile, rows):
    with pytest.raises(Invalid, match="SQL text or an Arrow expression"):
        rows(two_commits(profile), filter=5)


def test_files_of_partitions_that_cannot_match_are_not_in_the_plan(profile, plan):
    planned = plan(two_commits(profile), filter="part = 'p1' and qty > 0")
    assert [file.partition for file in planned.files] == ["p1"]
    assert planned.skipped_files == 1
    assert planned.files[0].partition_values == (("part", "p1"),)


def test_plan_knows_sizes_and_instants(profile, plan):
    planned = plan(two_commits(profile))
    assert [(file.partition, file.instant) for file in planned.files] == [("p0", at(3)), ("p1", at(1))]
    assert planned.size_bytes == sum(file.size_bytes for file in planned.files) > 0


def test_options_have_defaults_that_read_the_newest_state():
    assert ReadOptions().query == "snapshot"
