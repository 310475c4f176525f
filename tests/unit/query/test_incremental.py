"""Incremental queries: which commits are in the range, and which rows of which files come back."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import Invalid
from hoodie.slices import CommitTimes
from hoodie.spec import V6, V9, State
from hoodie.testing.hand_logs import HandLogTable
from hoodie.testing.hand_table import HandTable, at


def row(key: str, qty: int, written: str | None = None, part: str = "p0") -> dict[str, object]:
    found: dict[str, object] = {"id": key, "part": part, "qty": qty}
    return found if written is None else {**found, "_hoodie_commit_time": written}


def three_commits(profile) -> HandTable:
    """Commit 1 inserts k1 and k2 (and k9 elsewhere), 2 updates k1, 3 updates k2."""
    table = HandTable(profile)
    table.commit(at(1), {("p0", "a"): [row("k1", 1), row("k2", 1)], ("p1", "b"): [row("k9", 1, part="p1")]})
    table.commit(at(2), {("p0", "a"): [row("k1", 2), row("k2", 1, at(1))]})
    table.commit(at(3), {("p0", "a"): [row("k1", 2, at(2)), row("k2", 3)]})
    return table


def keys_and_quantities(found) -> list[tuple[str, int]]:
    return sorted(zip(found["id"].to_pylist(), found["qty"].to_pylist(), strict=True))


def clock(table: HandTable, second: int) -> str:
    """What an incremental query calls the end of the commit requested at a second."""
    return at(second, 500) if table.profile.stores_completion_time else at(second)


def test_rows_of_the_commits_after_begin_in_their_last_state(profile, rows):
    table = three_commits(profile)
    found = rows(table, query="incremental", begin=clock(table, 1))
    assert keys_and_quantities(found) == [("k1", 2), ("k2", 3)]


def test_begin_is_exclusive_and_end_inclusive(profile, rows):
    table = three_commits(profile)
    found = rows(table, query="incremental", begin=clock(table, 1), end=clock(table, 2))
    assert keys_and_quantities(found) == [("k1", 2)]
    assert rows(table, query="incremental", begin=clock(table, 2), end=clock(table, 2)).num_rows == 0


@pytest.mark.parametrize("begin", ["000", "earliest", "2026-01-01", "2026-01-02 00:00:00.000"])
def test_from_the_beginning_gives_everything_until_end_as_it_was_then(profile, rows, begin):
    table = three_commits(profile)
    found = rows(table, query="incremental", begin=begin, end=clock(table, 1))
    assert keys_and_quantities(found) == [("k1", 1), ("k2", 1), ("k9", 1)]


def test_range_goes_by_completion_where_it_is_known(rows):
    # 1 was requested first and completed last: whoever pulled until 2's completion has not seen it.
    table = HandTable(V9)
    table.commit(at(1), {("p0", "a"): [row("slow", 1)]}, completed=at(9))
    table.commit(at(2), {("p0", "b"): [row("quick", 1)]}, completed=at(3))
    assert keys_and_quantities(rows(table, query="incremental", begin="000", end=at(3))) == [("quick", 1)]
    assert keys_and_quantities(rows(table, query="incremental", begin=at(3))) == [("slow", 1)]


def test_range_goes_by_request_in_version_6(rows):
    table = HandTable(V6)
    table.commit(at(1), {("p0", "a"): [row("slow", 1)]})
    table.commit(at(2), {("p0", "b"): [row("quick", 1)]})
    assert keys_and_quantities(rows(table, query="incremental", begin=at(1))) == [("quick", 1)]


def test_rows_copied_by_an_update_do_not_count_as_written(profile, rows):
    table = three_commits(profile)
    found = rows(table, query="incremental", begin=clock(table, 2))
    assert keys_and_quantities(found) == [("k2", 3)]


def test_clustering_in_the_range_moves_rows_and_adds_none(profile, rows):
    table = three_commits(profile)
    moved = {("p0", "c"): [row("k1", 2, at(2)), row("k2", 3, at(3))]}
    table.commit(at(4), moved, replaces={"p0": ("a",)}, operation="CLUSTER")
    assert keys_and_quantities(rows(table, query="incremental", begin=clock(table, 2))) == [("k2", 3)]
    assert rows(table, query="incremental", begin=clock(table, 3)).num_rows == 0
    before = rows(table, query="incremental", begin=clock(table, 2), end=clock(table, 3))
    assert keys_and_quantities(before) == [("k2", 3)]


def test_groups_replaced_in_the_range_do_not_count(profile, rows):
    table = three_commits(profile)
    table.commit(at(4), {("p0", "c"): [row("new", 4)]}, replaces={"p0": ("a",)}, operation="INSERT_OVERWRITE")
    found = rows(table, query="incremental", begin="000")
    assert keys_and_quantities(found) == [("k9", 1), ("new", 4)]


def test_nothing_in_the_range_gives_no_rows_with_the_schema(profile, rows):
    table = three_commits(profile)
    found = rows(table, query="incremental", begin=at(50))
    assert found.num_rows == 0
    assert found.column_names[-3:] == ["id", "part", "qty"]


def test_cleaned_files_are_replaced_by_the_newest_snapshot_with_a_warning(profile, rows, caplog):
    table = three_commits(profile)
    table.clean(at(5), at(3), removed=[table.path_of(at(2), "p0", "a"), table.path_of(at(1), "p0", "a")])
    found = rows(table, query="incremental", begin=clock(table, 1), end=clock(table, 2))
    assert keys_and_quantities(found) == [("k1", 2)]
    found = rows(table, query="incremental", begin="000", end=clock(table, 1))
    assert keys_and_quantities(found) == [("k9", 1)]  # k1 and k2 were written again: their first state is gone
    assert "was cleaned up: the newest one is read instead" in caplog.text


def test_cleaned_files_are_an_error_without_the_fallback(profile, rows):
    table = three_commits(profile)
    table.clean(at(5), at(3), removed=[table.path_of(at(2), "p0", "a")])
    with pytest.raises(Invalid, match="cleaned since"):
        rows(table, query="incremental", begin=clock(table, 1), end=clock(table, 2), full_scan_fallback=False)


def archived(table: HandTable) -> HandTable:
    """The same with commit 1 moved to history."""
    for file in list(table.storage.list_dir(table.profile.timeline_dir).files):
        if file.path.rpartition("/")[2].startswith(at(1)):
            table.storage.delete(file.path)
    folder = table.profile.history_dir
    if table.profile.layout_version == 1:
        table.storage.put(f"{folder}/.commits_.archive.1_1-0-1", b"")
        return table
    history = pa.table(
        {
            "instantTime": [at(0), at(1)],
            "completionTime": [at(0, 500), at(1, 500)],
            "action": ["clean", "commit"],
        }
    )
    buffer = io.BytesIO()
    pq.write_table(history, buffer)
    table.storage.put(f"{folder}/{at(0)}_{at(1)}_0.parquet", buffer.getvalue())
    table.storage.put(f"{folder}/forgotten_0.parquet", b"")
    table.storage.put(f"{folder}/manifest_3", b"broken, but not current")
    table.storage.put(f"{folder}/manifest_2", f'{{"files": [{{"fileName": "{at(0)}_{at(1)}_0.parquet"}}]}}'.encode())
    table.storage.put(f"{folder}/_version_", b"2")
    return table


def test_from_the_beginning_includes_archived_commits(profile, rows):
    table = archived(three_commits(profile))
    assert keys_and_quantities(rows(table, query="incremental", begin="000")) == [("k1", 2), ("k2", 3), ("k9", 1)]
    found = rows(table, query="incremental", begin="000", end=clock(table, 1))
    assert keys_and_quantities(found) == [("k1", 1), ("k2", 1), ("k9", 1)]  # as of commit 1, whose files are there


def test_begin_inside_archived_history(profile, rows):
    table = archived(three_commits(profile))
    found = rows(table, query="incremental", begin=at(0, 900))
    assert keys_and_quantities(found) == [("k1", 2), ("k2", 3), ("k9", 1)]
    found = rows(table, query="incremental", begin=clock(table, 1))
    assert keys_and_quantities(found) == [("k1", 2), ("k2", 3)]


def test_archived_commits_are_an_error_without_the_fallback(profile, rows):
    table = archived(three_commits(profile))
    with pytest.raises(Invalid, match="archived commits"):
        rows(table, query="incremental", begin="000", full_scan_fallback=False)


def test_conditions_hold_for_rows_of_incremental_queries_only(profile, rows):
    table = three_commits(profile)
    conditions = ("qty > 1", "part = 'p0'", "id IN ('k2', 'k9')")
    found = rows(table, query="incremental", begin="000", conditions=conditions)
    assert keys_and_quantities(found) == [("k2", 3)]
    found = rows(table, query="incremental", begin="000", conditions=conditions, filter="qty < 3", columns=("id",))
    assert found.to_pydict() == {"id": []}
    assert rows(table, conditions=conditions).num_rows == 3


def test_a_path_pattern_limits_the_files_of_incremental_queries_only(profile, plan):
    table = three_commits(profile)
    full = f"{table.storage.absolute('')}/p1/*"
    for glob in ("/p1/*", "p1*", "/p[!0]/b*", full):
        found = plan(table, query="incremental", begin="000", path_glob=glob)
        assert [file.partition for file in found.files] == ["p1"]
    assert plan(table, query="incremental", begin="000", path_glob="/p2/*").files == ()
    assert len(plan(table, path_glob="/p1/*").files) == 2


def test_a_path_pattern_limits_the_snapshot_read_in_place_of_what_is_gone(profile, plan):
    table = three_commits(profile)
    table.clean(at(5), at(3), removed=[table.path_of(at(2), "p0", "a"), table.path_of(at(1), "p0", "a")])
    asked = {"query": "incremental", "begin": "000", "end": clock(table, 2)}
    assert [file.partition for file in plan(table, **asked, path_glob="/p0/*").files] == ["p0"]
    # What is gone does not concern a query of other partitions.
    found = plan(table, **asked, path_glob="/p1/*", full_scan_fallback=False)
    assert [file.partition for file in found.files] == ["p1"]


def test_a_commit_behind_a_running_write_is_refused_in_version_6(rows):
    table = HandTable(V6)
    table.commit(at(1), {("p0", "a"): [row("k1", 1)]})
    table.instant(at(2), "commit", state=State.INFLIGHT)
    table.commit(at(3), {("p0", "b"): [row("k2", 1)]})
    with pytest.raises(Invalid, match="is not complete, but commits after it are in the range"):
        rows(table, query="incremental", begin="000")
    assert keys_and_quantities(rows(table, query="incremental", begin="000", end=at(1))) == [("k1", 1)]
    blocked = rows(table, query="incremental", begin="000", hollow_commits="BLOCK")
    assert keys_and_quantities(blocked) == [("k1", 1)]
    by_completion = rows(table, query="incremental", begin="000", hollow_commits="USE_TRANSITION_TIME")
    assert keys_and_quantities(by_completion) == [("k1", 1), ("k2", 1)]


def test_a_running_write_hides_nothing_where_completion_is_known(rows):
    table = HandTable(V9)
    table.instant(at(2), "commit", state=State.INFLIGHT)
    table.commit(at(3), {("p0", "b"): [row("k2", 1)]})
    assert keys_and_quantities(rows(table, query="incremental", begin="000")) == [("k2", 1)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs a begin"),
        ({"begin": "000", "as_of": "2026-01-02"}, "cannot travel in time"),
        ({"begin": "yesterday"}, "is not a time"),
    ],
)
def test_wrong_ranges_are_refused(profile, rows, options, words):
    with pytest.raises(Invalid, match=words):
        rows(three_commits(profile), query="incremental", **options)


def test_tables_without_meta_columns_have_no_incremental_queries(profile, rows):
    table = HandTable(profile, choices={"populate_meta_fields": False})
    table.commit(at(1), {("p0", "a"): [row("k1", 1)]})
    with pytest.raises(Invalid, match="meta fields are disabled"):
        rows(table, query="incremental", begin="000")


def test_schema_is_the_newest_or_that_of_the_end_of_the_range(profile, rows):
    table = three_commits(profile)
    wider = table.schema.append(pa.field("extra", pa.string()))
    table.commit(at(4), {("p0", "c"): [row("k4", 1)]}, schema=wider)
    options = {"query": "incremental", "begin": "000", "end": clock(table, 2)}
    assert "extra" in rows(table, **options).column_names
    assert "extra" not in rows(table, **options, schema_at_end=True).column_names


def test_rows_that_count_are_the_same_as_sql_says():
    times = CommitTimes(frozenset({"1", "3"}))
    assert times.sql == "`_hoodie_commit_time` IN ('1', '3')"
    assert CommitTimes(frozenset()).sql == "false"
    assert CommitTimes(frozenset({"5"}), "1", "3").sql == (
        "(`_hoodie_commit_time` IN ('5') OR (`_hoodie_commit_time` > '1' AND `_hoodie_commit_time` < '3'))"
    )


def test_a_row_that_came_too_late_is_in_the_range_that_wrote_it_though_it_did_not_win(rows):
    # The one exception to the law of `test_past_laws.py`: the base file of before the range is not read, as in Hudi.
    table = HandLogTable(V9, choices={"ordering_fields": ("qty",)})
    table.commit(at(1), {("p0", "a"): [row("k1", 5), row("k2", 5)]})
    table.delta(at(2), {("p0", "a"): {"rows": [row("k1", 4), row("k2", 6)]}})
    assert keys_and_quantities(rows(table)) == [("k1", 5), ("k2", 6)]
    assert keys_and_quantities(rows(table, query="incremental", begin=clock(table, 1))) == [("k1", 4), ("k2", 6)]
    assert keys_and_quantities(rows(table, query="incremental", begin="000")) == [("k1", 5), ("k2", 6)]
