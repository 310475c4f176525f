"""Plan, execution and update strategies on tables: by name, of one's own, and plans that give way or expire."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie.cli.app import main
from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Conflict, Invalid, Unsupported
from hoodie.locks import held_lock
from hoodie.services.clustering.cluster import CLUSTERER, CLUSTERINGS
from hoodie.services.rewrite.executor import run_plan
from hoodie.spec import parse_requested_replace
from hoodie.state.handle import load_handle
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import Awake, Lake, row
from hoodie.timeline import load_requested
from hoodie.transaction.heartbeat import heartbeat_path

PLAN = "hoodie.clustering.plan.strategy"
EXECUTION = "hoodie.clustering.execution.strategy.class"
UPDATES = "hoodie.clustering.updates.strategy"
GIVES_UP = "hoodie.clustering.rollback.pending.replacecommit.on.conflict"
EXPIRES = {"hoodie.clustering.enable.expirations": "true", "hoodie.clustering.expiration.threshold.mins": "0"}
MANY_FILES = {"hoodie.parquet.small.file.limit": "0", "hoodie.clean.automatic": "false"}
SEEN = ("_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno", "v", "ts")
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


def made(version=9, files=4, **options):
    """So many small files of one partition: keys and `ts` are apart in each, `v` overlaps in pairs."""
    lake = Lake(version, {**MANY_FILES, **options})
    for n in range(files):
        lake.write("insert", [row(f"k{n}{m}", f"{n // 2}{m}", 10 * n + m) for m in range(4)])
    return lake


def plan_of(lake):
    (pending,) = lake.table.timeline().pending()
    return parse_requested_replace(load_requested(lake.storage, lake.handle().profile, pending), "plan").clustering_plan


def written(lake):
    """Least `ts` of each file group of the pending plan's groups."""
    at = {(one.partition, one.file_id): one.base.path for one in lake.table.files()}
    return [sorted(low_of(lake, at[part.group_id]) for part in group.slices) for group in plan_of(lake).groups]


def low_of(lake, path):
    return pc.min(pq.read_table(lake.storage.open_input(path)).column("ts")).as_py()


@VERSIONS
@pytest.mark.parametrize("stats", ["true", "false"])
def test_files_that_overlap_are_planned_together_by_statistics_or_footers(version, stats):
    lake = made(version, **{"hoodie.metadata.index.column.stats.enable": stats})
    target = sum(part.size_bytes for part in lake.table.files()) // 4 + 1
    asked = {f"{PLAN}.class": "ColumnOverlap", f"{PLAN}.target.file.max.bytes": str(target)}
    before = lake.rows(SEEN)
    lake.table.services.cluster(op="schedule", **asked, **{f"{PLAN}.sort.columns": "v"})
    assert written(lake) == [[0, 10], [20, 30]]
    group = plan_of(lake).groups[0]
    assert group.extra_metadata == {"min.v": "00", "max.v": "03"}
    done = lake.table.services.cluster(op="execute")
    assert (done.groups, done.slices) == (2, 4)
    assert lake.rows(SEEN) == before
    lake.ensure_sound()


@VERSIONS
def test_key_ranges_are_those_of_footers_and_numbers_are_metrics(version):
    lake = made(version)
    lake.table.services.cluster(
        op="schedule", **{f"{PLAN}.class": "KeyRange", f"{PLAN}.sort.columns": "ts", f"{PLAN}.max.num.groups": "1"}
    )
    group = plan_of(lake).groups[0]
    assert group.extra_metadata == {"min._hoodie_record_key": "k00", "max._hoodie_record_key": "k33"}
    assert (group.metrics["min.ts"], group.metrics["max.ts"]) == (0.0, 33.0)


def test_a_plan_by_commits_goes_on_behind_the_last_one():
    lake = made()
    asked = {f"{PLAN}.class": "CommitBased"}
    assert lake.table.services.cluster(**asked).slices == 4
    last = lake.table.timeline().completed_writes()[-2].requested
    assert lake.commits()[-1].extra_metadata["clustering.commit.checkpoint"] == last
    assert lake.table.services.cluster(**asked) is None
    for name in "xy":
        lake.write("insert", [row(name)])
    lake.table.services.cluster(op="schedule", **asked)
    assert len(plan_of(lake).slices) == 3, "the clustering wrote a file itself, which joins those of the new commits"
    assert plan_of(lake).extra_metadata["clustering.commit.checkpoint"] > last


def test_of_chosen_partitions_no_checkpoint_is_left():
    lake = made()
    done = lake.table.services.cluster(**{f"{PLAN}.class": "CommitBased", f"{PLAN}.partition.selected": "p"})
    assert done.slices == 4
    assert "clustering.commit.checkpoint" not in lake.commits()[-1].extra_metadata


def test_a_column_whose_ranges_are_to_be_compared_has_to_be_there():
    with pytest.raises(Invalid, match="no column nope"):
        made().table.services.cluster(**{f"{PLAN}.class": "ColumnOverlap", f"{PLAN}.overlap.columns": "nope"})


# --- classes of a caller's own


@dataclass(frozen=True)
class Backwards:
    """An order of one's own: by `v`, the greatest first."""

    config: object
    table: object
    columns: tuple = ("v",)

    def positions(self, columns):
        return np.argsort(columns[0].to_numpy(zero_copy_only=False).astype(str))[::-1]


@dataclass(frozen=True)
class Kind:
    """Gives plans up for writes of a few groups."""

    config: object
    table: object

    def plans_to_give_up(self, taken):
        return set(taken.values()) if len(taken) == 1 else ()


BACKWARDS = {EXECUTION: f"{__name__}:Backwards"}


def test_rows_go_in_the_order_of_a_class_of_ones_own():
    lake = made()
    before = lake.rows(SEEN)
    done = lake.table.services.cluster(**BACKWARDS)
    assert done.sorted_by == ("v", f"({__name__}:Backwards)")
    (file,) = lake.table.files()
    found = pq.read_table(lake.storage.open_input(file.base.path)).column("v").to_pylist()
    assert found == sorted(found, reverse=True)
    assert lake.rows(SEEN) == before
    assert lake.table.services.cluster(**BACKWARDS) is None, "it lies in that order already"
    lake.ensure_sound()


def test_a_class_gives_the_order_of_all_partitions():
    lake = made()
    with pytest.raises(Invalid, match="another one"):
        lake.table.services.cluster(**BACKWARDS, **{"hoodie.clustering.plan.partition.sort.columns": "p:v"})
    assert lake.table.timeline().pending() == ()


def test_a_plan_is_no_reason_to_import_a_class():
    lake = made()
    plan = lake.table.services.cluster(op="schedule", **BACKWARDS)
    assert plan_of(lake).strategy.params[EXECUTION] == f"{__name__}:Backwards"
    with pytest.raises(Invalid, match="planned for the class") as refused:
        lake.table.services.cluster(op="execute")
    assert plan.instant in refused.value.remedy
    assert lake.table.services.cluster(op="execute", **BACKWARDS).instant == plan.instant


def test_a_class_that_looks_at_a_column_which_is_not_there_makes_no_plan():
    lake = made()
    with pytest.raises(Invalid, match="looks at column gone"):
        lake.table.services.cluster(**{EXECUTION: f"{__name__}:Astray"})
    assert lake.table.timeline().pending() == ()


class Astray(Backwards):
    """An order of one's own, of another table."""

    def __init__(self, config, table):
        super().__init__(config, table, ("gone",))


# --- writes that want file groups of a plan


@VERSIONS
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_plan_gives_way_to_an_update_where_that_is_asked_for(version, kind):
    lake = made(version, **{"hoodie.datasource.write.table.type": kind, "hoodie.compact.inline": "false"})
    lake.table.services.cluster(op="schedule", **{f"{PLAN}.sort.columns": "v"})
    with pytest.raises(Conflict, match="pending clustering"):
        lake.upsert(row("k11", "mine", 99))
    lake.upsert(row("k11", "mine", 99), **{UPDATES: "SparkAllowUpdateStrategy", GIVES_UP: "true"})
    assert lake.table.timeline().pending() == ()
    assert lake.values()["k11"] == "mine"
    assert lake.table.services.cluster(**{f"{PLAN}.sort.columns": "v"}).slices == 4
    lake.ensure_sound()


@VERSIONS
def test_what_a_dead_executor_left_goes_with_the_plan(version):
    lake = made(version)
    before = {path for path in lake.files() if path.endswith(".parquet")}
    lake.table.services.cluster(op="schedule", **{f"{PLAN}.sort.columns": "v"})
    (pending,) = lake.table.timeline().pending()
    for crash_at in (20, 38):
        counted = CountingStorage(lake.storage, crash_at=crash_at)
        handle = load_handle(counted, Awake())
        with pytest.raises(Crash):
            run_plan(handle, resolve({}), LocalEngine(1), CLUSTERINGS, pending, held=False)
    allowed = {UPDATES: "Allow", GIVES_UP: "true"}
    try:
        lake.upsert(row("k11", "mine", 99), **allowed)
    except Conflict as taken_off:
        assert "write again" in taken_off.remedy
        lake.upsert(row("k11", "mine", 99), **allowed)
    assert lake.values()["k11"] == "mine"
    left = {path for path in lake.files() if path.endswith(".parquet")} - before
    assert len(left) == 1, "the update's own file"
    lake.ensure_sound()


def test_a_plan_that_is_being_carried_out_does_not_give_way():
    lake = made()
    plan = lake.table.services.cluster(op="schedule", **{f"{PLAN}.sort.columns": "v"})
    with (
        held_lock(lake.storage, "an executor", f"compaction_{plan.instant}"),
        pytest.raises(Conflict, match="an executor"),
    ):
        lake.upsert(row("k11", "mine", 99), **{UPDATES: "Allow", GIVES_UP: "true"})
    assert [one.requested for one in lake.table.timeline().pending()] == [plan.instant]


def test_writers_side_by_side_take_the_lock_to_take_a_plan_off():
    several = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.clean.failed.writes.policy": "LAZY",
    }
    lake = made(**several)
    lake.table.services.cluster(op="schedule", **{f"{PLAN}.sort.columns": "v"})
    lake.upsert(row("k11", "mine", 99), **{UPDATES: "Allow", GIVES_UP: "true"})
    assert lake.table.timeline().pending() == ()
    assert lake.values()["k11"] == "mine"


def test_a_class_of_ones_own_says_which_plans_give_way():
    lake = made()
    lake.table.services.cluster(op="schedule", **{f"{PLAN}.sort.columns": "v"})
    own = {UPDATES: f"{__name__}:Kind"}
    with pytest.raises(Conflict, match="pending clustering"):
        lake.upsert(row("k11", "mine", 99), row("k21", "mine", 99), **own)
    lake.upsert(row("k11", "mine", 99), **own)
    assert lake.values()["k11"] == "mine"


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({UPDATES: "Allow"}, Unsupported, "without"),
        ({UPDATES: "SparkConsistentBucketDuplicateUpdateStrategy"}, Unsupported, "not known"),
        ({UPDATES: f"{__name__}:Backwards"}, Invalid, "makes no update strategy"),
        ({UPDATES: "no_such_module:Own"}, Invalid, "cannot be imported"),
    ],
)
def test_an_update_strategy_that_cannot_be_is_refused_before_anything_is_written(options, error, said):
    lake = made(files=1)
    before = lake.files()
    with pytest.raises(error, match=said):
        lake.upsert(row("k00", "mine", 99), **options)
    assert lake.files() == before


# --- plans that expire


def test_a_plan_without_signs_of_life_expires_with_the_next_plan_or_clean():
    lake = made()
    plan = lake.table.services.cluster(op="schedule", **EXPIRES, **{f"{PLAN}.sort.columns": "v"})
    beat = heartbeat_path(plan.instant)
    assert beat in lake.files()
    assert lake.table.services.cluster(op="expire", **EXPIRES) is None, "its planner may go on with it"
    (shown,) = lake.table.services.cluster(op="list").plans
    assert (shown.instant, shown.kind, shown.state, shown.slices, shown.is_alive) == (
        plan.instant,
        "clustering",
        "requested",
        4,
        True,
    )
    lake.storage.delete(beat)
    assert not lake.table.services.cluster(op="list").plans[0].is_alive
    assert lake.table.services.cluster(op="expire") is None, "not asked for"
    assert lake.table.services.cluster(op="expire", **EXPIRES).instants == (plan.instant,)
    assert lake.table.timeline().pending() == ()
    old = lake.table.services.cluster(op="schedule", **{f"{PLAN}.sort.columns": "v"})
    new = lake.table.services.cluster(op="schedule", **EXPIRES, **{f"{PLAN}.sort.columns": "v"})
    assert [one.requested for one in lake.table.timeline().pending()] == [new.instant] != [old.instant]
    lake.storage.delete(heartbeat_path(new.instant))
    lake.table.services.clean(**EXPIRES)
    assert lake.table.timeline().pending() == ()


def test_who_carries_a_plan_out_gives_signs_of_life_and_takes_them_away():
    lake = made()
    plan = lake.table.services.cluster(op="schedule", **EXPIRES, **{f"{PLAN}.sort.columns": "v"})
    seen = []

    def look(call):
        if call.op == "open_output" and not call.path.startswith(".hoodie"):
            seen.append(heartbeat_path(plan.instant) in lake.files())

    counted = CountingStorage(lake.storage, on_call=look)
    CLUSTERER.execute(load_handle(counted, Awake()), resolve(EXPIRES), LocalEngine(1), plan.instant)
    assert seen == [True]
    assert heartbeat_path(plan.instant) not in lake.files()


def test_the_command_line_lists_what_is_pending_and_takes_off_what_expired(tmp_path, capsys):
    lake = Lake(9, MANY_FILES, uri=str(tmp_path / "lake"))
    for name in "abc":
        lake.write("insert", [row(name)])
    plan = lake.table.services.cluster(op="schedule")
    assert main(["cluster", lake.uri, "--op", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plans"][0]["instant"] == plan.instant
    assert main(["cluster", lake.uri, "--op", "list"]) == 0
    assert plan.instant in capsys.readouterr().out
    said = [word for key, value in EXPIRES.items() for word in ("-o", f"{key}={value}")]
    assert main(["cluster", lake.uri, "--op", "expire", *said]) == 0
    assert plan.instant in capsys.readouterr().out
