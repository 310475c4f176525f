"""Early detection of conflicts: a writer about to write a file group that another one has announced stops at once."""

from __future__ import annotations

import pickle
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from hoodie.config import resolve
from hoodie.errors import Conflict, Invalid, Unsupported
from hoodie.locks import LockOptions, held_group_lock
from hoodie.locks.registry import group_locks
from hoodie.locks.zookeeper import ZooKeeperLocks
from hoodie.spec import CommitMetadata, MarkerKind, marker_dir
from hoodie.state.handle import timeline_of
from hoodie.table import as_source, write
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.interleaved import SEVERAL, WRITER_STEPS, Gate, orders, run_in_order, writer
from hoodie.testing.lake import Awake, Lake, row, table_of
from hoodie.timeline import complete, create_requested, to_inflight
from hoodie.timeline.marker_lists import ListedMarkers
from hoodie.timeline.markers import DirectMarkers
from hoodie.transaction import Committed, EarlyConflict, WriteConflict
from hoodie.transaction.early_detection import ENABLE, STRATEGY, WatchfulMarkers, parse_early_detection
from hoodie.transaction.heartbeat import HeartbeatRule, heartbeat_path
from hoodie.transaction.lookout import KnownCommits, Lookout

pytestmark = pytest.mark.deep

OTHER, OWN, NEWER = "20990101000000000", "20990101000000001", "20990101000000002"
EARLY = {ENABLE: "true"}
MARKERS = "hoodie.write.markers.type"
COMMITS = "hoodie.write.concurrency.early.conflict.check.commit.conflict"
LOCKED = "org.apache.hudi.table.marker.SimpleTransactionDirectMarkerBasedDetectionStrategy"
KINDS = {
    "direct": {},
    "lists": {MARKERS: "PROCESS_LISTS"},
    "locked": {STRATEGY: LOCKED},
}
TWO = orders({"A": WRITER_STEPS, "B": WRITER_STEPS})


def ensure_whole(lake: Lake) -> None:
    assert lake.table.timeline().pending() == ()
    assert not [path for path in lake.files() if "/.temp/" in path or "/.heartbeat/" in path]
    assert lake.table.validate() == []


@pytest.mark.parametrize("kind", KINDS)
def test_who_began_later_stops_before_it_writes(version: int, kind: str) -> None:
    lake = Lake(version)
    lake.upsert(row("a"), row("b", part="q"))
    before = set(lake.base_files())
    seen: list[set[str]] = []

    def stops(gate: Gate) -> object:
        try:
            return writer(lake, [row("a", "B", 2), row("b", "B", 2, "q")], **EARLY, **KINDS[kind])(gate)
        finally:
            seen.append(set(lake.base_files()) - before)

    options = EARLY | KINDS[kind]
    ends = run_in_order(tuple("AABBBA"), {"A": writer(lake, [row("a", "A", 2)], **options), "B": stops})
    error, winner = ends["B"], ends["A"]
    assert isinstance(error, EarlyConflict), error
    assert isinstance(winner, Committed)
    assert lake.values() == {"a": "A", "b": "a"}
    assert len(seen[0]) == 1, "nothing is there but the other's file"
    partition, file_id = error.facts["groups"][0]
    assert (error.facts["other"], error.facts["partitions"]) == (winner.instant, ("p",))
    assert error.facts["instant"] > winner.instant
    assert error.facts["owner"].operation == "upsert"
    assert f"the UPSERT {winner.instant} by process {error.facts['owner'].process} on " in str(error)
    assert file_id in str(error)
    assert partition == "p"
    ensure_whole(lake)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("order", TWO, ids="".join)
def test_in_every_order_one_goes_on_and_the_table_is_what_it_said(order: tuple[str, ...], table_type: str) -> None:
    lake = Lake(options={"hoodie.datasource.write.table.type": table_type})
    lake.upsert(row("a"), row("b", part="other"))
    ends = run_in_order(order, {name: writer(lake, [row("a", name, 2)], **EARLY) for name in "AB"})
    done = [name for name, end in ends.items() if isinstance(end, Committed)]
    assert all(isinstance(end, Committed | WriteConflict) for end in ends.values()), ends
    first = order[0]
    assert not isinstance(ends[first], EarlyConflict), "who began first is never stopped early"
    assert done
    last = max(done, key=lambda name: ends[name].completed)  # type: ignore[attr-defined]
    assert lake.values() == {"a": last, "b": "a"}
    ensure_whole(lake)


def test_other_groups_and_new_keys_are_nobodys_business() -> None:
    lake = Lake()
    lake.upsert(row("a"), row("b", part="q"))
    actors = {
        "A": writer(lake, [row("a", "A", 2)], **EARLY),
        "B": writer(lake, [row("b", "B", 2, "q"), row("n", "B", part="new")], **EARLY),
    }
    ends = run_in_order(tuple("AABBAB"), actors)
    assert all(isinstance(end, Committed) for end in ends.values()), ends
    assert lake.values() == {"a": "A", "b": "B", "n": "B"}


def test_a_single_writer_cannot_ask_for_it_and_nothing_is_written() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    before = lake.files()
    with pytest.raises(Invalid, match="OPTIMISTIC_CONCURRENCY_CONTROL"):
        lake.write("upsert", [row("a", "n", 2)], EARLY)
    assert lake.files() == before
    with pytest.raises(Invalid, match="OPTIMISTIC_CONCURRENCY_CONTROL"):
        parse_early_detection(resolve({**EARLY, "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}))
    fresh = Lake()
    with pytest.raises(Invalid, match="OPTIMISTIC_CONCURRENCY_CONTROL"):
        fresh.write("upsert", [row("a")], EARLY)
    assert not fresh.files()


def test_a_strategy_nobody_knows_is_refused() -> None:
    with pytest.raises(Unsupported, match="Mine"):
        Lake().write("upsert", [row("a")], {**SEVERAL, **EARLY, STRATEGY: "com.example.Mine"})


def test_a_retry_waits_for_the_other_to_end() -> None:
    """It would meet it again at once, and have no try left."""
    lake = Lake(options={"hoodie.metadata.enable": "false"})
    lake.upsert(row("a"))
    patient = {"hoodie.write.num.retries.on.conflict.failures": "1", "hoodie.write.lock.wait_time_ms": "60000"}
    options = {**lake.options, **SEVERAL, **EARLY, **patient}
    waits: list[float] = []
    gate, ends = Gate(), list[object]()

    class Waiting(Awake):
        """The first writer goes on once the second one waits."""

        def sleep(self, seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                gate._go.release()
                first.join()

    def write_first() -> None:
        gate._go.acquire()
        ends.append(writer(lake, [row("a", "A", 2)], **EARLY)(gate))

    first = threading.Thread(target=write_first, daemon=True)
    first.start()
    gate.let()
    gate.let()
    done = write(as_source(table_of([row("a", "B", 3)])), lake.uri, options, "append", env=Waiting())
    winner = ends[0]
    assert isinstance(winner, Committed)
    assert done is not None
    assert done.instant > winner.instant
    assert lake.values() == {"a": "B"}
    assert len(waits) >= 3


def begun(lake: Lake, instant: str, action: str = "commit", *, alive: bool = True) -> None:
    """A write of another that has begun."""
    profile = lake.handle().profile
    requested = create_requested(lake.storage, profile, instant, action, b"")
    to_inflight(lake.storage, profile, requested, b"", is_new=True)
    if alive:
        lake.storage.put(heartbeat_path(instant), b"")


def lookout(lake: Lake, **more: Any) -> Lookout:
    return Lookout(lake.handle(), OWN, "UPSERT", **more)


def started() -> tuple[Lake, str, str]:
    """A table, one of its file groups, and a file that `OWN` is about to write there."""
    lake = Lake(options={"hoodie.metadata.enable": "false"})
    lake.upsert(row("a"))
    ((_, file_id),) = lake.live()
    return lake, file_id, f"p/{file_id}_0-1-2_{OWN}.parquet"


def announced(lake: Lake, file_id: str, kind: str, instant: str = OTHER) -> None:
    """A marker of the other write, in bytes as Hudi 1.2.0 leaves them: of a file, of a log file, in a list of its
    server, and in one that its server wrote after it was started anew.
    """
    folder = marker_dir(instant)
    name = f"p/{file_id}_0-196-356_{instant}.parquet.marker.MERGE"
    match kind:
        case "direct":
            lake.storage.put(f"{folder}/{name}", b"")
        case "log":
            lake.storage.put(f"{folder}/p/.{file_id}_{instant}.log.1_0-211-374.marker.CREATE", b"")
        case "old log":
            lake.storage.put(f"{folder}/p/.{file_id}_20261121061013379.log.1_0-211-374.marker.APPEND", b"")
        case _:
            lake.storage.put(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
            lines = [f"q/x-0_0-1-2_{instant}.parquet.marker.CREATE", name]
            lake.storage.put(f"{folder}/MARKERS3", ("," if kind == "joined" else "\n").join(lines).encode() + b"\n")


@pytest.mark.parametrize("kind", ["direct", "log", "old log", "list", "joined"])
def test_markers_of_hudi_count(kind: str) -> None:
    lake, file_id, path = started()
    begun(lake, OTHER)
    announced(lake, file_id, kind)
    with pytest.raises(EarlyConflict) as caught:
        lookout(lake).ensure_free(path)
    assert (caught.value.facts["other"], caught.value.facts["groups"]) == (OTHER, (("p", file_id),))
    assert caught.value.facts["owner"] is None
    lookout(lake).ensure_free(path.replace(file_id, "another-0"))
    lookout(lake).ensure_free(path.replace("p/", "q/", 1))


@pytest.mark.parametrize("beat", ["none", "old"])
def test_markers_of_the_dead_do_not_count(beat: str) -> None:
    lake, file_id, path = started()
    begun(lake, OTHER, alive=beat == "old")
    announced(lake, file_id, "direct")
    rule = HeartbeatRule(1, 0) if beat == "old" else HeartbeatRule()
    time.sleep(0.01)
    lookout(lake, rule=rule).ensure_free(path)


def test_a_dead_writer_is_in_nobodys_way() -> None:
    lake, file_id, _ = started()
    dead = "20250101000000000"
    begun(lake, dead, alive=False)
    announced(lake, file_id, "direct", dead)
    lake.write("upsert", [row("a", "new", 2)], {**SEVERAL, **EARLY})
    assert lake.values() == {"a": "new"}


@pytest.mark.parametrize("what", ["newer", "ended", "rolled back", "replacing", "compaction"])
def test_markers_of_those_who_are_no_earlier_write_do_not_count(what: str) -> None:
    lake, file_id, path = started()
    instant = NEWER if what == "newer" else OTHER
    actions = {"replacing": "replacecommit", "compaction": "compaction"}
    if what == "rolled back":
        lake.storage.put(heartbeat_path(instant), b"")
    else:
        begun(lake, instant, actions.get(what, "commit"))
    if what == "ended":
        handle = lake.handle()
        (pending,) = timeline_of(handle).pending()
        payload = handle.profile.commit_codec.encode(CommitMetadata({}), "commit")
        complete(handle.storage, handle.profile, pending, payload, handle.env, handle.config.timezone)
    announced(lake, file_id, "direct", instant)
    lookout(lake).ensure_free(path)


def test_a_damaged_list_of_another_is_left_to_others(caplog: pytest.LogCaptureFixture) -> None:
    lake, _, path = started()
    begun(lake, OTHER)
    lake.storage.put(f"{marker_dir(OTHER)}/MARKERS0", b"nonsense\n")
    lookout(lake).ensure_free(path)
    assert [one for one in caplog.records if "MARKERS0" in one.getMessage()]


def test_a_list_that_grew_is_read_again() -> None:
    lake, file_id, path = started()
    begun(lake, OTHER)
    markers = ListedMarkers(lake.storage, OTHER)
    markers.create("p/x-0_0-1-2_1.parquet", MarkerKind.CREATE)
    lookout(lake).ensure_free(path)
    markers.create(f"p/{file_id}_0-1-2_{OTHER}.parquet", MarkerKind.MERGE)
    with pytest.raises(EarlyConflict):
        lookout(lake).ensure_free(path)


@pytest.mark.parametrize("by_bucket", [True, False])
def test_groups_of_one_bucket_are_one_where_writes_compare_them(by_bucket: bool) -> None:
    lake, _, _ = started()
    begun(lake, OTHER)
    announced(lake, "00000003-aaaa-0", "direct")
    path = f"p/00000003-bbbb-0_0-1-2_{OWN}.parquet"
    if by_bucket:
        with pytest.raises(EarlyConflict):
            lookout(lake, by_bucket=True).ensure_free(path)
    else:
        lookout(lake).ensure_free(path)


def test_commits_that_completed_meanwhile_count_where_that_is_asked_for(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"), row("b", part="q"))
    for number, asked in enumerate((True, False)):
        before = set(lake.base_files())
        actors = {
            "A": writer(lake, [row("a", "A", 9), row("b", "A", 9, "q")], **EARLY, **{COMMITS: str(asked).lower()}),
            "B": writer(lake, [row("a", "B", 2 + number)], **EARLY),
        }
        ends = run_in_order(tuple("ABBBAA"), actors)
        error, winner = ends["A"], ends["B"]
        assert isinstance(error, WriteConflict)
        assert isinstance(error, EarlyConflict) == asked
        assert isinstance(winner, Committed)
        assert error.facts["other"] == winner.instant
        assert error.facts["owner"].operation == "upsert"
        assert len(set(lake.base_files()) - before) == 1
        ensure_whole(lake)


def test_a_compaction_that_completed_meanwhile_does_not_stop_who_appends() -> None:
    lake = Lake(options={"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.metadata.enable": "false"})
    lake.upsert(row("a"))
    lake.upsert(row("a", "log", 2))

    def compact(gate: Gate) -> object:
        del gate
        return lake.table.services.compact()

    actors = {"A": writer(lake, [row("a", "A", 3)], **EARLY, **{COMMITS: "true"}), "S": compact}
    ends = run_in_order(tuple("ASAA"), actors)
    assert isinstance(ends["A"], Committed), ends["A"]
    assert lake.values() == {"a": "A"}


def test_a_look_costs_one_listing_where_nobody_else_writes() -> None:
    lake, _, path = started()
    storage = CountingStorage(lake.storage)
    replace(lookout(lake), handle=replace(lake.handle(), storage=storage)).ensure_free(path)
    assert [call.op for call in storage.calls] == ["list_dir"]


def test_first_files_of_new_groups_are_not_looked_for() -> None:
    lake, _, _ = started()
    storage = CountingStorage(lake.storage)
    look = replace(lookout(lake), handle=replace(lake.handle(), storage=storage))
    markers = WatchfulMarkers(DirectMarkers(storage, OWN), look)
    markers.create(f"p/new-0_0-1-2_{OWN}.parquet", MarkerKind.CREATE)
    assert [call.op for call in storage.calls] == ["create"]
    assert [one.data_path for one in markers.load() or ()] == [f"p/new-0_0-1-2_{OWN}.parquet"]
    markers.drop()
    assert markers.load() is None


def test_the_look_and_the_marker_are_one_step_under_the_lock_of_the_group() -> None:
    lake, file_id, path = started()
    look = lookout(lake, known=KnownCommits.of(timeline_of(lake.handle())))
    markers = pickle.loads(pickle.dumps(WatchfulMarkers(DirectMarkers(lake.storage, OWN), look, LockOptions())))
    with held_group_lock(lake.storage, "a test", ("p", file_id), LockOptions()):
        with pytest.raises(Conflict, match="a file of"):
            markers.create(path, MarkerKind.MERGE)
        markers.create(path.replace(file_id, "another-0"), MarkerKind.MERGE)
    markers.create(path, MarkerKind.MERGE)
    assert len(markers.load() or ()) == 2


@pytest.mark.parametrize("name", ["zookeeper", "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"])
def test_in_zookeeper_it_is_the_lock_that_hudi_takes(name: str) -> None:
    settings = {
        "hoodie.write.lock.zookeeper.url": "zk:2181",
        "hoodie.write.lock.zookeeper.base_path": "/hudi/locks/",
        "hoodie.write.lock.zookeeper.lock_key": "lake",
        "hoodie.write.lock.zookeeper.session_timeout_ms": "60000",
        "hoodie.write.lock.zookeeper.connection_timeout_ms": "15000",
    }
    found = group_locks(name, settings, ("day=1", "f-0"))
    assert isinstance(found, ZooKeeperLocks)
    assert found.path == "/hudi/locks/day=1/f-0"
    assert group_locks("", {}, ("p", "f-0")) is None


def test_the_metadata_table_is_kept_beside_it(version: int) -> None:
    lake = Lake(version, {"hoodie.metadata.index.column.stats.enable": "true"})
    lake.upsert(row("a"), row("b", part="q"))
    actors = {
        "A": writer(lake, [row("a", "A", 2)], **EARLY),
        "B": writer(lake, [row("b", "B", 2, "q")], **EARLY),
    }
    ends = run_in_order(tuple("ABABAB"), actors)
    assert all(isinstance(end, Committed) for end in ends.values()), ends
    assert lake.values() == {"a": "A", "b": "B"}
    ensure_whole(lake)
