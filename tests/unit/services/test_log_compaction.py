"""A log compaction makes one log file of many, and changes no row."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest
from compact_world import (
    ENGINE,
    A,
    B,
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
)

from hoodie.config import resolve
from hoodie.locks import held_lock
from hoodie.logs import BlockKind, read_blocks
from hoodie.services.compaction.log_compact import run_log_compaction, schedule_log_compaction
from hoodie.services.rollback.rollback import roll_back_instant
from hoodie.spec import LOG_COMPACTION, V6, V9, State
from hoodie.testing.hand_logs import at
from hoodie.testing.lake import logged_lake
from hoodie.testing.lake import row as lake_row
from hoodie.timeline import load_commit_metadata, to_inflight

ON = {"log.compaction.enable": True, "log.compaction.blocks.threshold": 3}


def many_logs(profile, **more):
    """Three delta commits to one group, one to another."""
    table, env = new_table(profile, **more)
    table.commit(at(1), {A: [row("k1", 1), row("k2", 1), row("k3", 1)], B: [row("k9", 1, "p1")]})
    table.delta(at(2), {A: {"rows": [row("k1", 2), row("k4", 2)]}})
    table.delta(at(3), {A: {"deleted": ["k2"]}, B: {"rows": [row("k9", 3, "p1")]}})
    table.delta(at(4), {A: {"rows": [row("k1", 4), row("k3", 4)]}})
    return table, env


def compact_logs(handle, **more):
    options = config(**{**ON, **more})
    with held_lock(handle.storage, "plan"):
        schedule_log_compaction(handle, options, ENGINE)
    return run_log_compaction(handle, options, ENGINE)


def blocks_of(table, path):
    return read_blocks(table.storage, path, table.storage.head(path).size_bytes)


def test_rows_stay_the_same_and_one_file_stands_for_the_others(profile):
    table, env = many_logs(profile)
    before, known = origins(table), set(paths(table.storage))
    result = compact_logs(handle_of(table, env))
    assert result is not None
    assert (result.operation, result.files, result.log_files, result.rows, result.deletes) == (
        "LOG_COMPACT",
        1,
        3,
        3,
        1,
    )
    assert origins(table) == before
    (made,) = [path for path in paths(table.storage) if path not in known and ".log." in path]
    name = made.rpartition("/")[2]
    assert name.startswith(f".a_{at(1)}.log.4_" if profile is V6 else f".a_{result.instant}.log.1_")
    rows, deletes = blocks_of(table, made)
    assert (rows.kind, deletes.kind) == (BlockKind.AVRO_DATA, BlockKind.DELETE)
    assert rows.instant == deletes.instant == result.instant
    assert rows.compacted_instants == deletes.compacted_instants == (at(2), at(3), at(4))


def test_its_instant_is_a_delta_commit(profile):
    table, env = many_logs(profile)
    result = compact_logs(handle_of(table, env))
    assert result is not None
    done = table.timeline().find(result.instant)
    assert done is not None
    assert (done.action, done.state) == ("deltacommit", State.COMPLETED)
    metadata = load_commit_metadata(table.storage, table.profile, done)
    assert (metadata.operation_type, metadata.compacted) == ("LOG_COMPACT", True)


def test_later_writes_and_compactions_go_on_from_it(profile):
    table, env = many_logs(profile)
    handle = handle_of(table, env)
    compact_logs(handle)
    table._logs[A].append("compacted")
    later_delta(table, env, {A: {"rows": [row("k3", 9)], "deleted": ["k1"]}}, 90)
    table._logs[A].append("more")
    later_delta(table, env, {A: {"rows": [row("k5", 9)]}}, 91)
    rows = [("k3", 9), ("k4", 2), ("k5", 9), ("k9", 3)]
    assert rows_of(table) == rows
    env.advance(timedelta(minutes=2))
    again = compact_logs(handle)
    assert again is not None
    assert again.rows == 3
    assert rows_of(table) == rows
    compact(handle)
    assert rows_of(table) == rows_of(table, query="read_optimized") == rows


@pytest.mark.parametrize("choices", [{}, {"ordering_fields": ("qty",)}], ids=["by time", "by value"])
def test_deletes_keep_their_ordering_values(profile, choices):
    table, env = new_table(profile, choices=choices)
    table.commit(at(1), {A: [row("k1", 5), row("k2", 5), row("k3", 5)]})
    table.delta(at(2), {A: {"deleted": ["k1"], "delete_order": [3]}})
    table.delta(at(3), {A: {"deleted": ["k2"], "delete_order": [9]}})
    table.delta(at(4), {A: {"deleted": ["k3"]}})
    before = rows_of(table)
    result = compact_logs(handle_of(table, env))
    assert result is not None
    assert result.deletes == 3
    assert rows_of(table) == before


def test_parquet_blocks_stay_parquet(profile):
    table, env = new_table(profile)
    table.commit(at(1), {A: [row("k1", 1)]})
    for second in (2, 3, 4):
        table.delta(at(second), {A: {"rows": [row("k1", second)], "parquet": True}})
    compact_logs(handle_of(table, env))
    (made,) = [path for path in paths(table.storage) if path.startswith("p0/.a_") and _stands_for_others(table, path)]
    assert [block.kind for block in blocks_of(table, made)] == [BlockKind.PARQUET_DATA]
    assert rows_of(table) == [("k1", 4)]


def _stands_for_others(table, path):
    return any(block.compacted_instants for block in blocks_of(table, path))


def test_rows_that_mark_themselves_as_deleted_stay_deletes():
    schema = pa.schema(
        [("id", pa.string()), ("part", pa.string()), ("qty", pa.int64()), ("_hoodie_is_deleted", pa.bool_())]
    )
    table, env = new_table(V9, schema=schema, choices={"ordering_fields": ("qty",)})
    table.commit(at(1), {A: [row("k1", 1), row("k2", 5)]})
    for second in (2, 3, 4):
        gone = [{**row("k1", second), "_hoodie_is_deleted": True}, {**row("k2", second), "_hoodie_is_deleted": True}]
        table.delta(at(second), {A: {"rows": gone}})
    before = rows_of(table)
    compact_logs(handle_of(table, env))
    assert rows_of(table) == before == [("k2", 5)]


def test_few_blocks_partial_rows_and_switched_off_are_no_plan():
    table, env = many_logs(V9)
    handle = handle_of(table, env)
    with held_lock(table.storage, "plan"):
        assert schedule_log_compaction(handle, config(), ENGINE) is None
        assert schedule_log_compaction(handle, config(**{**ON, "log.compaction.blocks.threshold": 4}), ENGINE) is None
        table.delta(at(5), {A: {"rows": [{"id": "k1", "qty": 9}], "columns": ("id", "qty")}})
        assert schedule_log_compaction(handle, config(**ON), ENGINE) is None
    keyless, env = many_logs(V9, choices={"populate_meta_fields": False})
    with held_lock(keyless.storage, "plan"):
        assert schedule_log_compaction(handle_of(keyless, env), config(**ON), ENGINE) is None


def test_its_groups_are_left_alone_by_compactions(profile):
    table, env = many_logs(profile)
    handle = handle_of(table, env)
    with held_lock(table.storage, "plan"):
        schedule_log_compaction(handle, config(**ON), ENGINE)
    pending = schedule(handle)
    assert pending is not None
    assert plan_of(handle, pending).group_ids == (B,)


def test_what_a_dead_executor_left_is_taken_away(profile):
    table, env = many_logs(profile)
    handle = handle_of(table, env)
    with held_lock(table.storage, "plan"):
        planned = schedule_log_compaction(handle, config(**ON), ENGINE)
    assert planned is not None
    to_inflight(table.storage, table.profile, planned)
    roll_back_instant(handle, config(), ENGINE, planned.requested)
    (left,) = [one for one in table.timeline().pending() if one.action == LOG_COMPACTION]
    assert left.state is State.REQUESTED
    assert run_log_compaction(handle, config(**ON), ENGINE) is not None


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_planned_group_that_was_replaced_meanwhile_is_left_out(version):
    lake = logged_lake(version, **{"hoodie.log.compaction.blocks.threshold": "2"})
    lake.upsert(lake_row("a"), lake_row("b"))
    for n in range(4):
        lake.upsert(lake_row("a", f"x{n}", n + 2))
    handle, options = lake.handle(), resolve(lake.options)
    with held_lock(handle.storage, "plan"):
        assert schedule_log_compaction(handle, options, ENGINE, when_enabled=False) is not None
    lake.write("insert_overwrite", [lake_row("c")])
    done = run_log_compaction(handle, options, ENGINE)
    assert done is not None
    assert done.log_files == 0
    assert not lake.table.timeline().pending()
    assert lake.rows() == [("c", "a")]
    assert lake.table.validate() == []
