"""A compaction changes no row, and readers and writers go on while it is planned and carried out."""

from __future__ import annotations

import json
import pickle
from datetime import timedelta

import pyarrow as pa
import pytest
from compact_world import (
    ENGINE,
    NEW,
    SMALL,
    A,
    B,
    all_rows,
    compact,
    config,
    handle_of,
    later_delta,
    new_table,
    origins,
    paths,
    plan_of,
    row,
    rows_of,
    schedule,
    small_table,
)

from hoodie.engine import TaskId
from hoodie.errors import Conflict, Invalid, Unsupported
from hoodie.locks import held_lock
from hoodie.merge import register_merger
from hoodie.present import as_json
from hoodie.records import read_footer
from hoodie.services.compaction.compact import preview_compaction, run_compaction, schedule_compaction
from hoodie.services.compaction.task import compact_slice
from hoodie.spec import (
    CLUSTERING,
    COMPACTION,
    REPLACE_COMMIT,
    V6,
    V9,
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    RequestedReplace,
    State,
    encode_requested_replace,
)
from hoodie.testing.hand_logs import at
from hoodie.testing.hand_table import HandTable
from hoodie.timeline import load_commit_metadata
from hoodie.transaction.locking import executor_lock


def test_rows_stay_the_same_and_move_to_base_files(profile):
    table, env = small_table(profile)
    before = origins(table)
    result = compact(handle_of(table, env))
    assert result is not None
    assert (result.files, result.log_files, result.rows) == (2, 3, 4)
    assert (result.updates, result.inserts, result.deletes) == (1, 2, 1)
    assert rows_of(table) == rows_of(table, query="read_optimized") == SMALL
    assert origins(table) == before
    files = dict(zip(*(all_rows(table)[name].to_pylist() for name in ("id", "_hoodie_file_name")), strict=True))
    assert all(files[key].endswith(f"_{result.instant}.parquet") for key in ("k1", "k3", "k4", "k7"))
    assert files["k9"].endswith(f"_{at(1)}.parquet")


def test_its_instant_says_what_hudis_says(profile):
    table, env = small_table(profile)
    handle = handle_of(table, env)
    result = compact(handle)
    assert result is not None
    done = table.timeline().find(result.instant)
    assert done is not None
    assert (done.action, done.state) == ("commit", State.COMPLETED)
    metadata = load_commit_metadata(table.storage, table.profile, done)
    assert (metadata.operation_type, metadata.compacted) == ("COMPACT", True)
    assert metadata.schema
    stats = {stat.file_id: stat for _, stat in metadata.write_stats()}
    old = stats["a"]
    assert (old.prev_commit, old.num_writes, old.num_deletes, old.num_update_writes) == (at(1), 3, 1, 1)
    assert (old.total_log_records, old.total_log_files_compacted, old.total_log_blocks) == (2, 2, 2)
    assert old.total_updated_records_compacted == 3
    assert stats["new"].prev_commit == "null"
    assert not [path for path in paths(table.storage) if ".temp/" in path]


def test_the_key_footer_covers_all_keys(profile):
    table, env = small_table(profile)
    compact(handle_of(table, env))
    (path,) = [one for one in paths(table.storage) if one.startswith("p0/a_") and at(1) not in one]
    footer = read_footer(table.storage, path)
    bloom = footer.bloom()
    assert bloom is not None
    assert bloom.contains(pa.array(["k1", "k3", "k4"])).all()
    assert footer.min_key == "k1"
    assert footer.max_key == "k4"


def test_log_files_written_while_it_is_pending_come_after_it(profile):
    table, env = small_table(profile)
    handle = handle_of(table, env)
    pending = schedule(handle)
    later_delta(table, env, {A: {"rows": [row("k3", 9), row("k5", 9)], "deleted": ["k4"]}}, 90)
    rows = [("k1", 2), ("k3", 9), ("k5", 9), ("k7", 3), ("k9", 1)]
    assert rows_of(table) == rows
    result = run_compaction(handle, config(), ENGINE)
    assert result is not None
    assert pending is not None
    assert result.instant == pending.requested
    assert rows_of(table) == rows
    assert rows_of(table, query="read_optimized") == SMALL
    env.advance(timedelta(minutes=1))
    assert compact(handle) is not None
    assert rows_of(table) == rows_of(table, query="read_optimized") == rows


def test_delta_commit_that_began_before_and_ends_after_the_plan_comes_after_it():
    table, env = small_table(V9)
    handle = handle_of(table, env)
    table.delta(at(50), {A: {"rows": [row("k3", 7)]}}, state=State.INFLIGHT)
    pending = schedule(handle, config(**{"clean.failed.writes.policy": "NEVER"}))
    assert pending is not None
    assert all("00050000" not in name for one in plan_of(handle, pending).operations for name in one.log_files)
    table.delta(at(50), {A: {"rows": [row("k3", 7)]}}, completed=at(100))
    run_compaction(handle, config(), ENGINE)
    assert ("k3", 7) in rows_of(table)
    assert ("k3", 1) in rows_of(table, query="read_optimized")


def test_version_6_makes_no_plan_while_a_write_is_running():
    table, env = small_table(V6)
    table.delta(at(50), {A: {"rows": [row("k3", 7)]}}, state=State.INFLIGHT)
    assert schedule(handle_of(table, env), config(**{"clean.failed.writes.policy": "NEVER"})) is None


def test_a_pending_clustering_keeps_its_groups_and_nothing_else(profile):
    table, env = small_table(profile)
    request = RequestedReplace("CLUSTER", ClusteringPlan((ClusteringGroup((ClusteringSlice("p0", "a"),)),)))
    plan = {State.REQUESTED: encode_requested_replace(request, profile.avro_generation)}
    action = CLUSTERING if profile.capabilities.clustering_action else REPLACE_COMMIT
    table.instant(at(5), action, state=State.REQUESTED, content=plan)
    handle = handle_of(table, env)
    pending = schedule(handle)
    assert pending is not None
    assert plan_of(handle, pending).group_ids == (NEW,)


def test_blocks_of_failed_writes_do_not_become_rows():
    table, env = small_table(V6)
    handle = handle_of(table, env)
    table.delta(at(50), {A: {"rows": [row("k3", 7)]}}, state=State.INFLIGHT)
    compact(handle)
    assert rows_of(table) == rows_of(table, query="read_optimized") == SMALL


def test_groups_of_a_pending_compaction_are_not_planned_twice(profile):
    table, env = small_table(profile)
    handle = handle_of(table, env)
    assert schedule(handle) is not None
    later_delta(table, env, {B: {"rows": [row("k9", 8, "p1")]}, A: {"rows": [row("k1", 8)]}}, 90)
    second = schedule(handle)
    assert second is not None
    assert plan_of(handle, second).group_ids == (B,)
    oldest = run_compaction(handle, config(), ENGINE)
    assert oldest is not None
    assert oldest.instant < second.requested
    assert run_compaction(handle, config(), ENGINE, second.requested) is not None
    assert run_compaction(handle, config(), ENGINE) is None
    assert ("k1", 8) in rows_of(table)


@pytest.mark.parametrize("choices", [{}, {"ordering_fields": ("qty",)}], ids=["by time", "by value"])
def test_the_tables_merge_rule_decides(profile, choices):
    table, env = new_table(profile, choices=choices)
    table.commit(at(1), {A: [row("k1", 5), row("k2", 5), row("k3", 5)]})
    table.delta(at(2), {A: {"rows": [row("k1", 4), row("k2", 6)]}})
    table.delta(at(3), {A: {"deleted": ["k3"], "delete_order": [3]}})
    before = rows_of(table)
    compact(handle_of(table, env))
    assert rows_of(table) == rows_of(table, query="read_optimized") == before


@pytest.mark.parametrize("mode", ["IGNORE_DEFAULTS", "FILL_UNAVAILABLE"])
def test_partial_update_modes_fill_from_the_older_row(mode):
    payloads = {
        "IGNORE_DEFAULTS": "PartialUpdateAvroPayload",
        "FILL_UNAVAILABLE": "debezium.PostgresDebeziumAvroPayload",
    }
    package = "org.apache.hudi.common.model."
    table, env = new_table(V9, choices={"payload_class": package + payloads[mode], "ordering_fields": ("id",)})
    table.commit(at(1), {A: [row("k1", 5), row("k2", 5)]})
    table.delta(at(2), {A: {"rows": [row("k1", None)]}})
    before = rows_of(table)
    compact(handle_of(table, env))
    assert rows_of(table) == before


def test_rows_with_some_columns_become_whole():
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("qty", pa.int64()), ("note", pa.string())])
    table, env = new_table(V9, schema=schema)
    table.commit(at(1), {A: [{**row("k1", 1), "note": "old"}, {**row("k2", 1), "note": "old"}]})
    table.delta(at(2), {A: {"rows": [{"id": "k1", "note": "new"}], "columns": ("id", "note")}})
    before = all_rows(table).select(["id", "qty", "note"]).sort_by("id")
    compact(handle_of(table, env))
    assert all_rows(table).select(["id", "qty", "note"]).sort_by("id").equals(before)


class Adding:
    """Adds quantities."""

    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        total = pa.compute.add(older["qty"], newer["qty"])
        return newer.set_column(newer.schema.get_field_index("qty"), "qty", total)


def test_a_registered_merger_decides():
    register_merger("org.example.Adding", Adding())
    table, env = new_table(V9, choices={"payload_class": "org.example.Adding", "ordering_fields": ("qty",)})
    table.commit(at(1), {A: [row("k1", 5), row("k2", 5)]})
    table.delta(at(2), {A: {"rows": [row("k1", 4)]}})
    compact(handle_of(table, env))
    assert rows_of(table, query="read_optimized") == [("k1", 9), ("k2", 5)]


def test_a_merger_nobody_registered_is_an_error_and_the_plan_stays():
    table, env = new_table(V9, choices={"payload_class": "org.example.Unknown", "ordering_fields": ("qty",)})
    table.commit(at(1), {A: [row("k1", 5)]})
    table.delta(at(2), {A: {"rows": [row("k1", 4)]}})
    handle = handle_of(table, env)
    pending = schedule(handle)
    with pytest.raises(Unsupported, match="no merger is registered"):
        run_compaction(handle, config(), ENGINE)
    assert pending is not None
    found = table.timeline().find(pending.requested)
    assert found is not None
    assert found.state is State.REQUESTED


def test_log_rows_that_do_not_fit_in_memory_go_to_disk(profile, monkeypatch):
    monkeypatch.setattr("hoodie.services.rewrite.options._MIN_MEMORY", 1)
    table, env = new_table(profile)
    table.commit(at(1), {A: [row(f"k{n}", 1) for n in range(300)]})
    for second in range(2, 6):
        rows = [row(f"k{n}", second) for n in range(second, 400, second)]
        table.delta(at(second), {A: {"rows": rows, "deleted": [f"k{second * 7}"]}})
    before = rows_of(table)
    compact(handle_of(table, env), config(**{"memory.compaction.max.size": 2000}))
    assert rows_of(table) == rows_of(table, query="read_optimized") == before


def test_tables_without_meta_columns_are_compacted():
    table, env = new_table(V9, choices={"populate_meta_fields": False})
    table.commit(at(1), {A: [row("k1", 1), row("k2", 1)]})
    table.delta(at(2), {A: {"rows": [row("k1", 2)]}})
    compact(handle_of(table, env))
    assert rows_of(table) == rows_of(table, query="read_optimized") == [("k1", 2), ("k2", 1)]


def test_new_columns_of_the_log_come_into_old_base_files(profile):
    table, env = new_table(profile)
    table.commit(at(1), {A: [row("k1", 1), row("k2", 1)]})
    table.schema = table.schema.append(pa.field("note", pa.string()))
    table.delta(at(2), {A: {"rows": [{**row("k1", 2), "note": "n"}]}})
    compact(handle_of(table, env))
    got = all_rows(table, query="read_optimized").select(["id", "qty", "note"]).to_pylist()
    assert got == [{"id": "k1", "qty": 2, "note": "n"}, {"id": "k2", "qty": 1, "note": None}]


def test_deletes_of_all_rows_leave_an_empty_base_file(profile):
    table, env = new_table(profile)
    table.commit(at(1), {A: [row("k1", 1), row("k2", 1)]})
    table.delta(at(2), {A: {"deleted": ["k1", "k2"]}})
    compact(handle_of(table, env))
    assert rows_of(table) == rows_of(table, query="read_optimized") == []


def test_two_executors_exclude_each_other(profile):
    table, env = small_table(profile)
    handle = handle_of(table, env)
    pending = schedule(handle)
    assert pending is not None
    with executor_lock(table.handle, pending.requested), pytest.raises(Conflict):
        run_compaction(handle, config(), ENGINE)
    assert run_compaction(handle, config(), ENGINE) is not None


def test_a_writer_is_waited_for_and_then_given_up(profile):
    table, env = small_table(profile)
    handle = handle_of(table, env)
    schedule(handle)
    with held_lock(table.storage, "write"), pytest.raises(Conflict, match="Another writer"):
        run_compaction(handle, config(**{"write.lock.wait_time_ms": 500, "write.lock.client.num_retries": 0}), ENGINE)
    assert sum(env.sleeps) >= 0.5
    assert rows_of(table) == SMALL
    assert not [path for path in paths(table.storage) if ".temp/" in path or path.endswith("compaction.inflight")]
    assert run_compaction(handle, config(), ENGINE) is not None


def test_whoever_holds_the_table_may_compact(profile):
    table, env = small_table(profile)
    handle = handle_of(table, env)
    with held_lock(table.storage, "upgrade"):
        schedule_compaction(handle, config(), ENGINE, when_due=False)
        assert run_compaction(handle, config(), ENGINE, held=True) is not None


def test_due_says_why(profile):
    table, env = small_table(profile)
    handle = handle_of(table, env)
    assert preview_compaction(handle, config()).notes == ("not due: 2 of 5 delta commits",)
    after_two = config(**{"compact.inline.max.delta.commits": 2})
    assert preview_compaction(handle, after_two).notes == ("due: 2 of 2 delta commits",)
    with held_lock(table.storage, "plan"):
        assert schedule_compaction(handle, config(), ENGINE) is None


def test_preview_tells_files_and_writes_nothing(profile):
    table, env = small_table(profile)
    handle = handle_of(table, env)
    before = paths(table.storage)
    preview = preview_compaction(handle, config(), when_due=False)
    assert [step.file_id for step in preview.steps] == ["a", "new"]
    assert preview.files == 4
    assert preview.size_bytes == sum(
        table.storage.head(path).size_bytes for step in preview.steps for path in step.paths
    )
    assert preview.estimated_seconds is not None
    assert "not due: 2 of 5 delta commits" in preview.notes
    assert preview_compaction(handle, config()).is_empty
    assert paths(table.storage) == before
    schedule(handle)
    assert [step.reason[:10] for step in preview_compaction(handle, config()).steps] == ["planned as"] * 2


def test_results_show_themselves(profile):
    table, env = small_table(profile)
    result = compact(handle_of(table, env))
    assert result is not None
    assert json.dumps(as_json(result))
    assert "compact" in result._repr_html_()


def test_unknown_instants_and_tables_are_refused(profile):
    table, env = small_table(profile)
    with pytest.raises(Invalid, match="no pending compaction"):
        run_compaction(handle_of(table, env), config(), ENGINE, at(7))
    plain = HandTable(profile)
    with pytest.raises(Invalid, match="copy-on-write"):
        schedule_compaction(plain.handle, config(), ENGINE)


def test_tasks_travel(profile, monkeypatch):
    table, env = small_table(profile)
    sent = []

    class Engine:
        parallelism = 1

        def run(self, work, tasks, label):
            sent.append(label)
            return [work(TaskId(n, 1, 0), pickle.loads(pickle.dumps(task))) for n, task in enumerate(tasks)]

    handle = handle_of(table, env)
    schedule(handle)
    run_compaction(handle, config(**{"engine.local.max.bytes": 0}), Engine())
    assert "compact" in sent
    assert rows_of(table) == SMALL
    assert pickle.loads(pickle.dumps(compact_slice)) is compact_slice


def test_schedule_of_nothing_is_nothing(profile):
    table, env = new_table(profile)
    table.commit(at(1), {A: [row("k1", 1)]})
    assert schedule(handle_of(table, env)) is None
    assert not [one for one in table.timeline().pending() if one.action == COMPACTION]
