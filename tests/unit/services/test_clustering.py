"""Clustering: rows stay, files become fewer and sorted, writers and readers go on, dead runs are carried on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Conflict, Invalid, Unsupported
from hoodie.locks import held_lock
from hoodie.services.clustering import grouping, task
from hoodie.services.clustering.cluster import CLUSTERER, CLUSTERINGS
from hoodie.services.rewrite.executor import run_plan
from hoodie.spec import parse_requested_replace
from hoodie.spec.sort_order import CURVE
from hoodie.state.handle import load_handle
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import ROWS, Awake, Lake, row
from hoodie.timeline import load_requested

PLAN = "hoodie.clustering.plan.strategy"
SEEN = ("_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_partition_path", "v", "ts")
MANY_FILES = {"hoodie.parquet.small.file.limit": "0", "hoodie.clean.automatic": "false"}
BY_V = {f"{PLAN}.sort.columns": "v"}
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def made(version, kind="COPY_ON_WRITE", **options):
    """Eight small file groups in two partitions, with an update, a delete and, merge-on-read, log files."""
    given = {name.replace("__", "."): value for name, value in options.items()}
    lake = Lake(
        version, {**MANY_FILES, "hoodie.datasource.write.table.type": kind, "hoodie.compact.inline": "false", **given}
    )
    for n in range(4):
        lake.write("insert", [row(f"k{n}{m}", f"{(7 * m + n) % 10}", 1, "p" if m % 2 else "q") for m in range(10)])
    lake.upsert(row("k11", "new", 5), row("k30", None, 5, "q"))
    lake.write("delete", [row("k23"), row("k02", part="q")])
    return lake


def groups_of(lake):
    return [(one.partition, one.file_id) for one in lake.table.files()]


def values_of(lake, path):
    return pq.read_table(lake.storage.open_input(path)).column("v").to_pylist()


@VERSIONS
@KINDS
def test_small_files_become_one_of_each_partition_with_sorted_rows(version, kind):
    lake = made(version, kind)
    before, history = lake.rows(SEEN), lake.rows(SEEN, query="incremental", begin="0")
    old = groups_of(lake)
    done = lake.table.services.cluster(**BY_V)
    assert (done.groups, done.slices, done.files, done.rows) == (2, 8, 2, len(before))
    assert done.sorted_by == ("v",)
    assert lake.rows(SEEN) == before
    assert lake.rows(SEEN, query="incremental", begin="0") == history
    assert lake.rows(SEEN, query="incremental", begin=done.instant) == []
    assert lake.rows(SEEN, as_of=lake.table.timeline().completed_writes()[-2].requested) == before
    assert len(groups_of(lake)) == 2
    assert not set(groups_of(lake)) & set(old)
    new = [path for path in lake.base_files() if done.instant in path]
    for path in new:
        found = values_of(lake, path)
        assert found == sorted(found, key=lambda v: (v is not None, v or ""))
    lake.ensure_sound()
    said = lake.commits()[-1]
    assert said.operation_type == "CLUSTER"
    assert all(stat.prev_commit == "null" and stat.num_inserts == stat.num_writes for _, stat in said.write_stats())


COPIED = {"hoodie.row.group.copy.min.bytes": "0"}


@VERSIONS
def test_files_are_stitched_by_copying_row_groups_where_rows_need_no_order(version):
    lake = made(version, hoodie__metadata__record__index__enable="true")
    before, history = lake.rows(SEEN), lake.rows(SEEN, query="incremental", begin="0")
    sizes = {name: sum(p.size_bytes for p in lake.table.files() if p.partition == name) for name in "pq"}
    done = lake.table.services.cluster(**COPIED, **{f"{PLAN}.target.file.max.bytes": str(max(sizes.values()) // 2 + 1)})
    assert (done.copied, done.decoded, done.sorted_by) == (2, (), ())
    assert (done.slices, done.files, done.rows) == (8, 4, len(before))
    assert lake.rows(SEEN) == before
    assert lake.rows(SEEN, query="incremental", begin="0") == history
    for path in (path for path in lake.base_files() if done.instant in path):
        found = pq.ParquetFile(lake.storage.open_input(path))
        assert found.metadata.num_row_groups == 2
        assert set(found.read().column("_hoodie_file_name").to_pylist()) == {path.rpartition("/")[2]}
    lake.upsert(row("k11", "newer", 9))
    assert lake.values()["k11"] == "newer"
    lake.ensure_sound()


def test_why_row_groups_were_not_copied_is_told():
    lake = made(9, "MERGE_ON_READ")
    said = lake.table.services.preview("cluster", **COPIED)
    assert any("has log files" in step.reason for step in said.steps)
    done = lake.table.services.cluster(**COPIED)
    assert done.copied == 0
    assert all("has log files" in why for why in done.decoded)
    again = made(9)
    assert "on average" in again.table.services.cluster().decoded[0]
    assert again.commits()[-1].extra_metadata["hoodie.clustering.copied.groups"] == "0"


@VERSIONS
def test_the_plan_on_the_timeline_is_hudis(version):
    lake = made(version)
    plan = lake.table.services.cluster(op="schedule", **BY_V)
    assert (plan.groups, plan.slices, plan.done) == (2, 8, "planned")
    pending = lake.table.timeline().pending()[-1]
    assert pending.action == ("replacecommit" if version == 6 else "clustering")
    request = parse_requested_replace(load_requested(lake.storage, lake.handle().profile, pending), "plan")
    assert (request.operation_type, request.extra_metadata, request.version) == ("CLUSTER", {}, 1)
    found = request.clustering_plan
    assert found.strategy.class_name.endswith("SparkSortAndSizeExecutionStrategy")
    assert found.preserve_metadata
    assert found.missing_partitions == (None if version == 6 else ())
    assert all(one.data_file.startswith(lake.storage.absolute("")) for one in found.slices)


def test_writers_beside_a_plan_go_on_but_for_those_that_want_its_groups():
    lake = made(9)
    plan = lake.table.services.cluster(op="schedule", **{f"{PLAN}.partition.selected": "p"}, **BY_V)
    lake.upsert(row("k00", "other", 9, "q"))
    with pytest.raises(Conflict, match=plan.instant):
        lake.upsert(row("k11", "mine", 9))
    before = lake.rows(SEEN)
    assert lake.table.services.cluster(op="execute").instant == plan.instant
    assert lake.rows(SEEN) == before
    lake.upsert(row("k11", "mine", 9))
    assert lake.values()["k11"] == "mine"
    lake.ensure_sound()


@VERSIONS
def test_a_plan_can_be_taken_off_also_when_its_executor_died(version):
    lake = made(version)
    before = lake.files()
    first = lake.table.services.cluster(op="schedule", **BY_V)
    lake.table.services.cluster(first.instant, "unschedule")
    assert lake.table.timeline().pending() == ()
    plan = lake.table.services.cluster(op="schedule", **BY_V)
    counted = CountingStorage(lake.storage, crash_at=30)
    with pytest.raises(Crash):
        run_plan(load_handle(counted, Awake()), resolve({}), LocalEngine(1), CLUSTERINGS, pending_of(lake), held=False)
    gone = lake.table.services.cluster(plan.instant, "unschedule")
    assert (gone.done, gone.groups) == ("unscheduled", 2)
    assert {path for path in lake.files() if path.endswith(".parquet")} == {p for p in before if p.endswith(".parquet")}
    lake.upsert(row("k11", "mine", 9))
    lake.ensure_sound()
    with pytest.raises(Invalid, match="no pending clustering"):
        lake.table.services.cluster(plan.instant, "unschedule")
    with pytest.raises(Invalid, match="is not said"):
        lake.table.services.cluster(op="unschedule")


def pending_of(lake):
    (found,) = lake.table.timeline().pending()
    return found


def test_somebody_who_writes_past_the_plan_stops_it():
    lake = made(9)
    lake.table.services.cluster(op="schedule", **BY_V)
    request = next(path for path in lake.files() if path.endswith(".clustering.requested"))
    plan, hidden = lake.storage.read(request), []

    def strike(call):
        if call.op == "open_output" and not call.path.startswith(".hoodie") and not hidden:
            hidden.append(call)
            lake.storage.delete(request)
            inflight = request.replace(".requested", ".inflight")
            lake.storage.delete(inflight)
            lake.upsert(row("k11", "theirs", 9))
            lake.storage.put(request, plan)
            lake.storage.put(inflight, b"")

    counted = CountingStorage(lake.storage, on_call=strike)
    with pytest.raises(Conflict, match="changed file group"):
        run_plan(load_handle(counted, Awake()), resolve({}), LocalEngine(1), CLUSTERINGS, pending_of(lake), held=False)
    assert lake.values()["k11"] == "theirs"


def test_what_is_in_order_is_not_sorted_again_until_the_order_changes():
    lake = made(9)
    assert lake.table.services.cluster(**BY_V) is not None
    assert lake.table.services.cluster(**BY_V) is None
    again = lake.table.services.cluster(
        **{f"{PLAN}.sort.columns": "v,ts", "hoodie.layout.optimize.strategy": "z-order"}
    )
    assert again.sorted_by == ("v", "ts", "(ZORDER)")
    assert (
        lake.table.services.cluster(**{f"{PLAN}.sort.columns": "v,ts", "hoodie.layout.optimize.strategy": "ZORDER"})
        is None
    )


@VERSIONS
def test_partitions_are_sorted_by_orders_of_their_own_and_not_again_until_theirs_changes(version):
    lake = made(version)
    before = lake.values()
    rules = "hoodie.clustering.plan.partition.sort.columns"
    by = {f"{PLAN}.sort.columns": "v", rules: "p:id"}
    shown = lake.table.services.preview("cluster", **by)
    assert [step.reason.rpartition(", ")[2] for step in shown.steps] == ["sorted by id", "sorted by v"]
    done = lake.table.services.cluster(**by)
    assert done.sorted_by == ("v", "id")
    for one in lake.table.files():
        rows = pq.read_table(lake.storage.open_input(one.base.path))
        column = rows.column("id" if one.partition == "p" else "v").to_pylist()
        assert column == sorted(column, key=lambda value: (value is not None, value))
    assert lake.values() == before
    assert lake.table.services.cluster(**by) is None
    again = lake.table.services.cluster(**{**by, rules: "p:ts"})
    assert (again.partitions, again.sorted_by) == (("p",), ("v", "ts"))
    unsorted = lake.table.services.cluster(**{**by, rules: "p:", f"{PLAN}.single.group.clustering.enabled": "true"})
    assert unsorted is None
    lake.ensure_sound()


@KINDS
def test_inline_it_follows_every_fourth_commit(kind):
    lake = made(9, kind, **{"hoodie.clustering.inline": "true", f"{PLAN}.sort.columns": "v"})
    done = [one.operation_type for one in lake.commits()]
    assert done.count("CLUSTER") == 1
    assert done.index("CLUSTER") == 4
    lake.ensure_sound()


def test_it_is_only_planned_when_that_is_asked_for():
    lake = made(9, **{"hoodie.clustering.schedule.inline": "true", "hoodie.clustering.inline.max.commits": "6"})
    assert [one.action for one in lake.table.timeline().pending()] == ["clustering"]


@pytest.mark.deep
@pytest.mark.sampled(3)
@KINDS
@pytest.mark.parametrize(
    ("version", "index"), [(6, "record"), (8, "record"), (9, "record"), (8, "secondary"), (9, "secondary")]
)
def test_indexes_find_rows_where_they_are_now(version, kind, index):
    options = {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
    if index == "record":
        options["hoodie.index.type"] = "RECORD_INDEX"
    lake = made(version, kind, **options)
    if index == "secondary":
        lake.table.indexes.create("by_v", "v")
    before = lake.rows(SEEN)
    assert lake.table.services.cluster(**BY_V) is not None
    lake.ensure_sound()
    assert [one["v"] for one in lake.table.lookup(["k11"]).read_all().to_pylist()] == ["new"]
    lake.upsert(row("k11", "newer", 9))
    assert len(lake.rows(SEEN)) == len(before)
    lake.table.services.clean(
        **{"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    )
    lake.ensure_sound()
    assert [one["v"] for one in lake.table.lookup(["k11"]).read_all().to_pylist()] == ["newer"]


def test_change_queries_show_no_row_of_a_clustering():
    lake = made(9, **{"hoodie.table.cdc.enabled": "true"})
    before = changes_of(lake)
    assert lake.table.services.cluster(**BY_V) is not None
    assert changes_of(lake) == before
    lake.upsert(row("k11", "newest", 9))
    assert len(changes_of(lake)) == len(before) + 1


def changes_of(lake):
    return sorted((one["op"], one["ts_ms"]) for one in lake.table.scan(query="cdc", begin="0").read_all().to_pylist())


def test_outputs_are_even_and_follow_each_other():
    lake = Lake(9, MANY_FILES)
    rng = np.random.default_rng(3)
    for n in range(3):
        lake.write("insert", [row(f"k{n}-{m}", f"{rng.integers(10**6):06}") for m in range(300)])
    size = sum(len(data) for path, data in lake.files().items() if path.endswith(".parquet"))
    done = lake.table.services.cluster(**BY_V, **{f"{PLAN}.target.file.max.bytes": str(size // 3)})
    files = [values_of(lake, stat.path) for _, stat in lake.commits()[-1].write_stats()]
    assert done.files == len(files) >= 3
    assert max(map(len, files)) - min(map(len, files)) <= 3
    assert [v for file in files for v in file] == sorted(v for file in files for v in file)


@pytest.mark.parametrize(("curve", "limit"), [("LINEAR", 2_000), ("HILBERT", 2_000), ("LINEAR", 50)])
def test_rows_beyond_the_memory_go_by_way_of_the_disk(curve, limit, tmp_path, monkeypatch):
    lake = made(9)
    before = lake.rows(SEEN)
    kept = task.SortedRows
    monkeypatch.setattr(task, "SortedRows", lambda schema, order, _, parent: kept(schema, order, limit, str(tmp_path)))
    in_memory = made(9)
    assert lake.table.services.cluster(**{f"{PLAN}.sort.columns": "v,ts", "hoodie.layout.optimize.strategy": curve})
    monkeypatch.setattr(task, "SortedRows", kept)
    in_memory.table.services.cluster(**{f"{PLAN}.sort.columns": "v,ts", "hoodie.layout.optimize.strategy": curve})
    assert lake.rows(SEEN) == before
    assert list(tmp_path.iterdir()) == []
    found, wanted = (
        [values_of(one, stat.path) for _, stat in one.commits()[-1].write_stats()] for one in (lake, in_memory)
    )
    assert found == wanted


def listed(**options):
    """Two small files with a column of lists."""
    lake = Lake(9, {**MANY_FILES, **options}, schema=ROWS.append(pa.field("tags", pa.list_(pa.string()))))
    lake.write("insert", [row("a", tags=["x"])])
    lake.write("insert", [row("b", tags=[])])
    return lake


@pytest.mark.parametrize(
    ("order", "error", "said"),
    [
        ({f"{PLAN}.sort.columns": "nope"}, Invalid, "no column nope"),
        ({f"{PLAN}.sort.columns": "v,tags"}, Unsupported, "cannot be sorted by column tags"),
        ({f"{PLAN}.sort.columns": ",".join(["v"] * 40), CURVE: "ZORDER"}, Unsupported, "curve through 40 columns"),
    ],
)
def test_an_order_that_cannot_be_is_found_out_before_a_plan_is_stored(order, error, said):
    lake = listed()
    with pytest.raises(error, match=said):
        lake.table.services.cluster(**order)
    assert lake.table.timeline().pending() == ()


def test_an_executor_sorts_by_what_it_can_of_somebody_elses_plan(monkeypatch):
    lake = listed()
    monkeypatch.setattr(grouping, "ensure_sortable", lambda schema, order: None)
    lake.table.services.cluster(op="schedule", **{f"{PLAN}.sort.columns": "tags,gone,v"})
    monkeypatch.undo()
    assert lake.table.services.cluster().files == 1
    assert lake.rows() == [("a", "a"), ("b", "a")]


def test_a_partition_column_that_is_not_stored_has_one_value_in_a_group():
    lake = made(9, **{"hoodie.datasource.write.drop.partition.columns": "true"})
    before = lake.rows(SEEN)
    assert lake.table.services.cluster(**{f"{PLAN}.sort.columns": "part,v"}).files == 2
    assert lake.rows(SEEN) == before
    assert lake.table.services.cluster(**{f"{PLAN}.sort.columns": "part,v"}) is None


def test_buckets_are_left_to_resizes():
    lake = made(9, **{"hoodie.index.type": "BUCKET"})
    with pytest.raises(Unsupported, match="buckets"):
        lake.table.services.cluster(**BY_V)


def test_a_dead_write_is_rolled_back_before_a_plan_is_made():
    lake = made(9)
    lake.storage.put(".hoodie/timeline/20300101000000000.commit.requested", b"")
    with held_lock(lake.storage, "plan"):
        assert CLUSTERER.schedule(lake.handle(), resolve(BY_V), LocalEngine(1)) is not None
    assert [one.action for one in lake.table.timeline().pending()] == ["clustering"]


def test_a_preview_names_what_would_be_read_and_writes_nothing():
    lake = made(9)
    files = lake.files()
    found = lake.table.services.preview("cluster", **BY_V)
    assert [(step.action, step.partition, len(step.paths)) for step in found.steps] == [
        ("rewrite", "p", 4),
        ("rewrite", "q", 4),
    ]
    assert "sorted by v" in found.steps[0].reason
    assert lake.files() == files
    lake.table.services.cluster(op="schedule", **BY_V)
    assert "pending plan" in lake.table.services.preview("cluster").notes[0]
