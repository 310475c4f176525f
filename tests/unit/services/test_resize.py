"""Splitting and merging buckets: rows stay, rings and file groups change together, dead runs are carried on."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Conflict, Invalid, Unavailable
from hoodie.index import HashNode, first_ring, load_ring, store_ring
from hoodie.index.hash_ring import CONSISTENT_DIR, FIRST_HASHING, LAST_HASH
from hoodie.index.resize import ResizeLimits, plan_resizes
from hoodie.locks import held_lock
from hoodie.services.resizing import plan as resize_plan
from hoodie.services.resizing.resize import preview_resize, resize_buckets, schedule_resize
from hoodie.spec.avro_container import parse_container
from hoodie.state.handle import load_handle, timeline_of
from hoodie.storage import MemoryStorage
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import Awake, Lake, row
from hoodie.timeline import load_requested

METADATA_PROPERTIES = ".hoodie/metadata/.hoodie/hoodie.properties"

RINGS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}
SPLIT = {"hoodie.parquet.max.file.size": "1000", "hoodie.bucket.index.max.num.buckets": "4"}
JOIN = {"hoodie.bucket.index.min.num.buckets": "1"}
EXECUTOR = "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
KEYS = [f"k{n}" for n in range(60)]
CHANGES = ("create", "put", "delete", "delete_dir", "open_output", "close", "release")
"""Storage calls that may leave something else behind than the call before."""


def rows(keys, v="a", ts=1, part="p"):
    return [row(key, v, ts, part) for key in keys]


def made(version, **options):
    lake = Lake(version, {**RINGS, **options})
    lake.upsert(*rows(KEYS))
    lake.upsert(*rows(KEYS[:20], "b", 2))
    lake.upsert(*rows(KEYS, part="q"))
    return lake


def resized(lake, storage=None, **options):
    handle = load_handle(storage or lake.storage, Awake())
    config = resolve({**lake.options, **options})
    with held_lock(handle.storage, "resize"):
        return resize_buckets(handle, config, LocalEngine(1))


def full_rows(lake):
    columns = ["_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_partition_path", "v"]
    return lake.rows(columns)


def test_split_and_merge_keep_rows_and_later_writes_find_them(version):
    lake = made(version)
    before = full_rows(lake)
    done = resized(lake, **SPLIT)
    assert (done.splits, done.merges, done.files, done.rows) == (4, 0, 8, 120)
    assert full_rows(lake) == before
    assert len(lake.live()) == 8
    assert not [path for path in lake.files() if path.startswith(".hoodie/.temp/")]
    lake.upsert(*rows(KEYS, "c", 3))
    assert len(lake.live()) == 8
    assert {v for _, v in lake.rows(filter="part = 'p'")} == {"c"}
    assert len(lake.rows()) == 120
    merged = resized(lake, **JOIN)
    assert (merged.splits, merged.merges, merged.files) == (0, 8, 2)
    lake.upsert(*rows([*KEYS, "new"], "d", 4))
    assert len(lake.rows()) == 121
    assert len(lake.live()) == 2
    assert lake.table.validate() == []


def test_nothing_is_done_where_buckets_are_of_a_good_size(version):
    lake = made(version)
    assert resized(lake) is None
    handle = load_handle(lake.storage, Awake())
    assert preview_resize(handle, resolve(lake.options)).is_empty
    seen = lake.files()
    preview = preview_resize(handle, resolve({**lake.options, **SPLIT}))
    assert [(step.action, step.partition) for step in preview.steps] == [("rewrite", part) for part in "ppqq"]
    assert lake.files() == seen
    with pytest.raises(Invalid, match="do not speak of a consistent"):
        resized(lake, **{"hoodie.index.bucket.engine": "SIMPLE"})


def test_completed_ring_counts_without_its_marker(version):
    lake = made(version)
    done = resized(lake, **SPLIT)
    lake.storage.delete(f"{CONSISTENT_DIR}/p/{done.instant}.commit")
    lake.upsert(*rows(KEYS, "c", 3))
    assert len(lake.live()) == 8
    assert len(lake.rows()) == 120


def test_look_ups_by_key_follow_the_ring(version):
    lake = made(version)
    resized(lake, **SPLIT)
    assert lake.table.lookup("k7", columns=["id", "part"]).read_all().num_rows == 2


def copied(lake, files):
    """Another lake with the same files."""
    copy = Lake(lake.version, lake.options)
    for path, data in files.items():
        copy.storage.put(path, data)
    return copy


@pytest.mark.deep
def test_resize_that_dies_at_any_storage_call_is_carried_out_by_the_next(version):
    original = made(version, **{"hoodie.metadata.enable": "false"})
    files, before = original.files(), full_rows(original)
    counted = CountingStorage(copied(original, files).storage)
    resized(original, counted, **SPLIT)
    for call in [call for call in counted.calls if call.op in CHANGES][::3]:
        lake = copied(original, files)
        with pytest.raises(Crash):
            resized(lake, CountingStorage(lake.storage, crash_at=call.n), **SPLIT)
        assert full_rows(lake) == before, call
        left = lake.files()
        resized(lake, **SPLIT)
        assert full_rows(lake) == before, call
        assert len(lake.live()) == 8, call
        lake.upsert(*rows(KEYS, "c", 3))
        assert len(lake.rows()) == 120, call
        assert len(lake.live()) == 8, call
        # A writer that comes first drops what was not completed.
        lake = copied(original, left)
        lake.upsert(*rows(KEYS, "c", 3))
        assert len(lake.rows()) == 120, call
        assert len(lake.live()) in (4, 8), call
        assert not lake.table.timeline().pending(), call


def test_groups_of_hudis_pending_resize_are_refused_to_writers_until_it_is_carried_out(version, monkeypatch):
    monkeypatch.setattr(resize_plan, "OURS", "somebody.else")
    lake = made(version)
    begun = next(
        call
        for call in dead_calls(lake)
        if call.op == "create" and call.path.endswith(".inflight") and "/metadata/" not in call.path
    )
    with pytest.raises(Crash):
        resized(lake, CountingStorage(lake.storage, crash_at=begun.n), **SPLIT)
    monkeypatch.undo()
    with pytest.raises(Conflict, match="pending clustering"):
        lake.upsert(*rows(KEYS, "c", 3))
    assert resized(lake).splits == 4
    lake.upsert(*rows(KEYS, "c", 3))
    assert len(lake.rows()) == 120


def test_a_resize_that_was_rolled_back_is_carried_out_by_the_next_one(version):
    lake = made(version)
    file = next(call for call in dead_calls(lake) if call.op == "open_output" and call.path.endswith(".parquet"))
    with pytest.raises(Crash):
        resized(lake, CountingStorage(lake.storage, crash_at=file.n), **SPLIT)
    (pending,) = lake.table.timeline().pending()
    lake.table.services.rollback(pending.requested)
    assert resized(lake, **SPLIT).instant == pending.requested
    assert len(lake.rows()) == 120
    assert lake.table.validate() == []


def dead_calls(lake):
    counted = CountingStorage(copied(lake, lake.files()).storage)
    resized(lake, counted, **SPLIT)
    return counted.calls


def test_buckets_are_as_before_when_a_resize_is_rolled_back_or_restored_over(version):
    for undo in ("rollback", "restore"):
        lake = made(version)
        before, last = full_rows(lake), lake.table.timeline().completed_writes()[-1].requested
        done = resized(lake, **SPLIT)
        if undo == "restore":
            lake.table.services.restore(last)
        else:
            lake.table.services.rollback(done.instant)
        assert full_rows(lake) == before
        lake.upsert(*rows(KEYS, "c", 3))
        assert len(lake.live()) == 4
        assert len(lake.rows()) == 120


def test_plan_says_what_hudis_plans_say(version):
    lake = made(version)
    handle = load_handle(lake.storage, Awake())
    with held_lock(handle.storage, "plan"):
        planned = schedule_resize(handle, resolve({**lake.options, **SPLIT}), timeline_of(handle))
    name, record = parse_container(load_requested(handle.storage, handle.profile, planned), "x")
    plan = record["clusteringPlan"]
    assert name == "HoodieRequestedReplaceMetadata"
    assert (record["operationType"], record["extraMetadata"], record["version"]) == (
        "CLUSTER",
        {"hoodie.resize": "true"},
        1,
    )
    assert plan["strategy"] == {"strategyClassName": EXECUTOR, "strategyParams": {}, "version": 1}
    assert (plan["extraMetadata"], plan["version"], plan["preserveHoodieMetadata"]) == ({}, 1, True)
    assert plan.get("missingSchedulePartitions", []) == []
    for group in plan["inputGroups"]:
        assert (group["numOutputFileGroups"], group["version"], len(group["slices"])) == (2, 1, 1)
        (part,) = group["slices"]
        live = next(one for one in lake.table.files() if one.file_id == part["fileId"])
        assert part["dataFilePath"] == lake.storage.absolute(live.base.path)
        assert part["deltaFilePaths"] == [lake.storage.absolute(log.path) for log in live.logs]
        assert (part["partitionPath"], part["bootstrapFilePath"], part["version"]) == (live.partition, "", 1)
        size = sum(log.size_bytes for log in live.logs)
        assert list(group["metrics"].items()) == [
            ("TOTAL_LOG_FILES", float(len(live.logs))),
            ("TOTAL_LOG_FILES_SIZE", float(size)),
        ]
        assert set(group["extraMetadata"]) == {
            f"clustering.group.{name}" for name in ("partition", "child.node", "sequence.no")
        }


def limits(fewest=1, most=8):
    return ResizeLimits(split_bytes=100, merge_bytes=20, fewest=fewest, most=most)


def planned(sizes, chosen):
    numbers = itertools.count()
    ring = first_ring("p", len(sizes))
    return ring, plan_resizes(ring, sizes, chosen, lambda: f"n{next(numbers)}")


@pytest.mark.parametrize(
    ("sizes", "chosen", "expected"),
    [
        ([50, 50], limits(), []),
        ([101, 50], limits(), [("split", (0,))]),
        ([101, 101], limits(most=3), [("split", (0,))]),
        ([101], limits(most=1), []),
        ([5, 5, 50, 5], limits(), [("merge", (0, 1))]),
        ([5, 5, 5], limits(fewest=2), [("merge", (0, 1))]),
        ([15, 15, 15], limits(), [("merge", (0, 1))]),
        ([5, None, 5], limits(), []),
        ([5, 5], limits(fewest=2), []),
        ([101, 5, 5], limits(fewest=3), [("split", (0,)), ("merge", (1, 2))]),
    ],
)
def test_sizes_decide_what_is_split_and_merged(sizes, chosen, expected):
    _, found = planned(sizes, chosen)
    assert [(one.action, one.numbers) for one in found] == expected


@pytest.mark.parametrize("count", [1, 2, 5])
def test_halves_of_a_range_are_equally_wide(count):
    ring, found = planned([200] * count, limits(most=99))
    whole = ring.with_children([child for one in found for child in one.children], "1")
    ends = [node.value for node in whole.nodes]
    assert len(ends) == 2 * count
    widths = [(end - start) % (LAST_HASH + 1) for start, end in zip([ends[-1], *ends], ends, strict=False)]
    assert max(widths) - min(widths) <= 2 * count


def test_stored_ring_says_what_became_of_it(version):
    lake = made(version)
    resized(lake, **SPLIT)
    ring = load_ring(lake.storage, "p")
    assert (ring.count, ring.first_count, ring.sequence) == (4, 2, 1)
    assert {node.tag for node in ring.nodes} == {"NORMAL"}


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("error", [Unavailable, KeyboardInterrupt])
def test_metadata_table_forgets_a_resize_that_failed_at_its_commit(version, error):
    lake = made(version, **{"hoodie.metadata.enable": "true", "hoodie.clean.automatic": "false"})

    def fail(call):
        if call.op == "create" and call.path.endswith(".replacecommit") and "/metadata/" not in call.path:
            raise error("no answer")

    with pytest.raises(error):
        resized(lake, CountingStorage(lake.storage, on_call=fail), **SPLIT)
    properties = lake.storage.read(METADATA_PROPERTIES)
    lake.upsert(*rows(KEYS, "c", 3))
    assert lake.storage.read(METADATA_PROPERTIES) == properties, "it was made anew"
    assert not lake.table.timeline().pending()
    assert lake.table.validate() == []
    assert len(lake.rows()) == 2 * len(KEYS)


@pytest.mark.parametrize("error", [Unavailable, KeyboardInterrupt])
def test_rings_of_a_resize_that_was_given_up_do_not_count(version, error):
    """One bucket of two is split. The other one, which stays as it is, gets its first rows before and after."""
    lake = Lake(version, {**RINGS, "hoodie.clean.automatic": "false"})
    ring = first_ring("p", 2)
    numbers = ring.numbers(pa.array(KEYS))
    full, empty = ([key for key, n in zip(KEYS, numbers, strict=True) if n == bucket] for bucket in (0, 1))
    lake.upsert(*rows(full))

    def fail(call):
        if call.op == "create" and call.path.endswith(".replacecommit"):
            raise error("no answer")

    with pytest.raises(error):
        resized(lake, CountingStorage(lake.storage, on_call=fail), **SPLIT)
    for value, keys in (("b", empty), ("c", KEYS)):
        lake.upsert(*rows(keys, value, 2))
        assert lake.values() == {key: value if key in keys else "a" for key in (*full, *empty)}
    assert not [path for path in lake.files() if path.endswith(".hashing_meta") and FIRST_HASHING not in path]


def test_a_ring_of_a_pending_resize_does_not_count_by_the_groups_it_keeps():
    storage = MemoryStorage("rings")
    first = first_ring("p", 2)
    child = HashNode(first.nodes[0].value // 2, "half"), HashNode(first.nodes[0].value, "other")
    later = first.with_children(child, "20260101000000001")
    for ring in (first, later):
        store_ring(storage, ring)
    assert load_ring(storage, "p", live={first.file_id(1)}) == first
    assert load_ring(storage, "p", live={first.file_id(1), "half-0"}) == later
