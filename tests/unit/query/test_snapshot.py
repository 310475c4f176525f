"""Snapshots, now and in the past: rows, schema, partition columns, pruning, and states that cannot be read."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.errors import Corrupt, Invalid, Unavailable
from hoodie.fileview import FolderView
from hoodie.query import ReadOptions, run_read
from hoodie.records import to_avro
from hoodie.spec import V9, State, encode_container, keys
from hoodie.state.table_schema import load_table_schema
from hoodie.testing.hand_logs import HandLogTable
from hoodie.testing.hand_table import ROWS, HandTable, at


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
    plan = encode_container("HoodieRequestedReplaceMetadata", {"operationType": "CLUSTER"}, profile.avro_generation)
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
    with pytest.raises(Unavailable, match=r"p1/b_0-1-2.* is gone: it was cleaned"):
        run_read(planned, table.storage).read_all()


def test_other_queries_are_refused(profile, rows):
    with pytest.raises(Invalid, match="nonsense"):
        rows(two_commits(profile), query="nonsense")


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
    view = FolderView(table.storage, table.timeline()).load()
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
    """Versions oldest first, the n-th in force from second n on: column names and their ids."""
    written = [
        {
            "version_id": int(at(second)),
            "max_column_id": 9,
            "type": "record",
            "fields": [
                {"name": name, "id": number, "optional": True, "type": "string"} for name, number in one.items()
            ],
        }
        for second, one in enumerate(versions, 1)
    ]
    return json.dumps({"schemas": written[::-1]}).encode()


def schema_fields(ids_of_names: dict[str, int]) -> list[dict[str, object]]:
    return [{"name": name, "id": id, "optional": True, "type": "string"} for name, id in ids_of_names.items()]


def test_files_are_read_by_column_id_after_a_rename(rows):
    """Commit 1 writes `qty` (2) and `note` (3). Then `qty` becomes `count`, and a new `note` (4) takes the place of the
    dropped one: the old file's `note` is not it."""
    old = pa.schema([("id", pa.string()), ("part", pa.string()), ("qty", pa.int64()), ("note", pa.string())])
    new = pa.schema([("id", pa.string()), ("part", pa.string()), ("count", pa.int64()), ("note", pa.string())])
    table = HandLogTable(V9, schema=old)
    table.commit(at(1), {("p0", "a"): [{**row("k1", 1), "note": "x"}, {**row("k2", 1), "note": "x"}]})
    table.delta(at(2), {("p0", "a"): {"rows": [{**row("k1", 2), "note": "y"}]}})
    table.commit(at(3), {}, schema=new, extra={"latest_schema": "{}"})
    table.schema = new
    added = {("p0", "a"): {"rows": [{"id": "k3", "part": "p0", "count": 4, "note": "z"}]}}
    table.delta(at(4), added, extra={"latest_schema": "{}"})
    ids_of = {"id": 0, "part": 1, "qty": 2, "note": 3}
    history = schema_history(ids_of, ids_of, {"id": 0, "part": 1, "count": 2, "note": 4})
    table.storage.put(f".hoodie/.schema/{at(3)}_{at(3, 500)}.schemacommit", history)
    found = rows(table, columns=("id", "count", "note")).to_pylist()
    assert sorted(found, key=repr) == [
        {"id": "k1", "count": 2, "note": None},
        {"id": "k2", "count": 1, "note": None},
        {"id": "k3", "count": 4, "note": "z"},
    ]
    assert rows(table, columns=("id",), filter="count = 1").to_pydict() == {"id": ["k2"]}
    assert rows(table, columns=("id",), filter="note = 'x'").num_rows == 0


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
    assert planned.skipped_files == 0, "nobody looked into the other partition"
    assert planned.files[0].partition_values == (("part", "p1"),)


def test_plan_knows_sizes_and_instants(profile, plan):
    planned = plan(two_commits(profile))
    assert [(file.partition, file.instant) for file in planned.files] == [("p0", at(3)), ("p1", at(1))]
    assert planned.size_bytes == sum(file.size_bytes for file in planned.files) > 0


def test_options_have_defaults_that_read_the_newest_state():
    assert ReadOptions().query == "snapshot"
