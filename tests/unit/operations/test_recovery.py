"""Writes that die, fail, are overtaken or rolled back by others; and what they leave."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine, TaskId
from hoodie.env import SystemEnv
from hoodie.errors import CommitUnknown, Conflict, Corrupt, Fenced, HudiError, Invalid, Unsupported
from hoodie.locks import held_lock
from hoodie.services.ingest import Request
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.save import write_table
from hoodie.spec import (
    Instant,
    InstantInfo,
    RollbackPlan,
    RollbackRequest,
    State,
    encode_container,
    encode_rollback_plan,
    parse_rollback_metadata,
)
from hoodie.storage import Storage
from hoodie.table import Table, as_source
from hoodie.testing.counting_storage import Call, CountingStorage, Crash
from hoodie.testing.lake import ROWS, Lake, row, table_of
from hoodie.timeline import instant_path, load_instant
from hoodie.write import Operation

pytestmark = [pytest.mark.deep, pytest.mark.sampled(4), pytest.mark.own_folder("copies tables to other places")]

BEFORE = {"a": "a", "b": "a", "c": "a"}
SPOOL = {"hoodie.engine.local.max.bytes": 1}
OPERATIONS: dict[str, tuple[Operation, list[dict[str, Any]], dict[str, str]]] = {
    "upsert": ("upsert", [row("a", "a2", 2), row("n", "new", part="new")], {"a": "a2", "b": "a", "c": "a", "n": "new"}),
    "delete": ("delete", [row("a")], {"b": "a", "c": "a"}),
    "bulk_insert": ("bulk_insert", [row("n", "new"), row("o", "new", part="new")], {**BEFORE, "n": "new", "o": "new"}),
    "insert_overwrite": ("insert_overwrite", [row("n", "new")], {"n": "new", "c": "a"}),
    "delete_partition": ("delete_partition", [row("c", part="q")], {"a": "a", "b": "a"}),
}
# Versions differ in names and contents of instants: two operations show it, the others run in one version.
EVERY = int(os.environ.get("HOODIE_CRASH_EVERY", "5"))
CASES = [(6, "upsert"), (6, "insert_overwrite"), (8, "upsert"), *((9, name) for name in OPERATIONS)]


_FILES: dict[int, dict[str, bytes]] = {}


def lake_of(version: int, **options: Any) -> Lake:
    """A lake with three rows: a copy of one that was made once. The options are for what is done to it."""
    if version not in _FILES:
        made = Lake(version)
        made.upsert(row("a"), row("b"), row("c", part="q"))
        _FILES[version] = made.files()
    lake = Lake(version, options)
    for path, data in _FILES[version].items():
        lake.storage.put(path, data)
    return lake


def act(lake: Lake, storage: Storage, name: str) -> None:
    operation, rows, _ = OPERATIONS[name]
    source = as_source(pa.RecordBatchReader.from_batches(ROWS, table_of(rows).to_batches()))
    request = Request(operation, source, resolve(lake.options), LocalEngine(1))
    write_table(storage, request, SystemEnv())


def calls_of(version: int, name: str, **options: Any) -> list[int]:
    """Numbers of the storage calls of an operation; of the many small writes to one file only the first. All of them
    for one case, of the others every `EVERY`-th, beginning elsewhere: the crash matrix can try all.
    """
    lake = lake_of(version, **options)
    counted = CountingStorage(lake.storage)
    act(lake, counted, name)
    assert lake.values() == OPERATIONS[name][2]
    every = 1 if (version, name, options) == (9, "upsert", {}) else EVERY
    return points(counted)[(version + len(name) + len(options)) % every :: every]


def points(counted: CountingStorage) -> list[int]:
    firsts = {(call.op, call.path if call.op == "write" else call.n): call.n for call in reversed(counted.calls)}
    return sorted(firsts.values())


@pytest.mark.parametrize("spool", [{}, SPOOL], ids=["memory", "spool"])
@pytest.mark.parametrize(("version", "name"), CASES)
def test_writer_that_dies_at_any_call_leaves_before_or_after(version: int, name: str, spool: dict[str, int]) -> None:
    after = OPERATIONS[name][2]
    seen = []
    for n in calls_of(version, name, **spool):
        lake = lake_of(version, **spool)
        with pytest.raises(Crash):
            act(lake, CountingStorage(lake.storage, crash_at=n), name)
        found = lake.values()
        assert found in (BEFORE, after), f"call {n}"
        seen.append(found == after)
        lake.upsert(row("z", "next", part="z"))
        assert lake.values() == {**found, "z": "next"}, f"call {n}"
        assert not lake.table.timeline().pending()
        lake.ensure_sound()
    assert seen == sorted(seen)


@pytest.mark.parametrize("spool", [{}, SPOOL], ids=["memory", "spool"])
@pytest.mark.parametrize(("version", "name"), CASES)
def test_writer_that_fails_at_any_call_takes_itself_back(version: int, name: str, spool: dict[str, int]) -> None:
    for n in calls_of(version, name, **spool):
        lake = lake_of(version, **spool)
        before = lake.files()
        storage = CountingStorage(lake.storage, fail_at=n)
        try:
            act(lake, storage, name)
        except CommitUnknown:
            assert lake.values() == OPERATIONS[name][2], f"call {n}"  # the look after the commit failed
        except HudiError:
            if storage.calls[n - 1].op != "release":
                assert lake.files() == before, f"call {n}"
        else:
            assert lake.values() == OPERATIONS[name][2], f"call {n}"  # only clean-up failed
        lake.upsert(row("z", "next", part="z"))
        lake.ensure_sound()


@pytest.mark.parametrize(("version", "name"), CASES)
def test_lost_answer_is_before_or_after_and_the_next_write_works(version: int, name: str) -> None:
    for n in calls_of(version, name):
        lake = lake_of(version)
        try:
            act(lake, CountingStorage(lake.storage, fail_after=n, failure=CommitUnknown("the answer was lost")), name)
        except HudiError:
            assert lake.values() in (BEFORE, OPERATIONS[name][2]), f"call {n}"
        lake.upsert(row("z", "next", part="z"))
        lake.ensure_sound()


# --- rolling back


class DiesAtCommit(CountingStorage):
    """Dies when the completed instant of `action` is about to be created."""

    def __init__(self, inner: Storage, action: str) -> None:
        super().__init__(inner, on_call=self._look)
        self._action = action
        self._dead = False

    def _look(self, call: Call) -> None:
        self._dead = self._dead or (call.op == "create" and call.path.endswith(f".{self._action}"))
        if self._dead:
            raise Crash("died at the commit")


def soon_after(lake: Lake) -> str:
    """An instant time a little later than all there are. (Far ones would push the clock of this process.)"""
    return str(int(lake.table.timeline().last_time() or "0") + 1)


def failed_write(version: int, kept: str, action: str = "commit") -> tuple[Lake, str, list[str]]:
    """A lake with a write that died after its files, with markers `kept` as: direct, list, none. Instant, its files."""
    lake = lake_of(version)
    with pytest.raises(Crash):
        act(lake, DiesAtCommit(lake.storage, action), "upsert" if action == "commit" else "insert_overwrite")
    (pending,) = lake.table.timeline().pending()
    files = [path for path in lake.base_files() if path.endswith(f"_{pending.requested}.parquet")]
    folder = f".hoodie/.temp/{pending.requested}"
    if kept != "direct":
        names = [path.removeprefix(folder + "/") for path in lake.files() if path.startswith(folder)]
        lake.storage.delete_dir(folder)
        if kept == "list":
            lake.storage.put(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
            lake.storage.put(f"{folder}/MARKERS0", "".join(f"{one}\n" for one in names[:1]).encode())
            lake.storage.put(f"{folder}/MARKERS7", "".join(f"{one}\n" for one in names[1:]).encode())
    return lake, pending.requested, files


@pytest.mark.parametrize("kept", ["direct", "list", "none"])
@pytest.mark.parametrize("action", ["commit", "replacecommit"])
def test_failed_write_is_rolled_back_by_its_markers_or_by_listing(version: int, kept: str, action: str) -> None:
    lake, requested, files = failed_write(version, kept, action)
    assert files
    lake.upsert(row("z"))
    assert lake.values() == {**BEFORE, "z": "a"}
    assert not set(files) & set(lake.base_files())
    timeline = lake.table.timeline()
    assert not [one for one in timeline.instants if one.requested == requested]
    (rollback,) = [one for one in timeline.completed() if one.action == "rollback"]
    said = parse_rollback_metadata(load_instant(lake.storage, timeline.profile, rollback), "rollback")
    assert said.commits == (requested,)
    assert said.instants == (InstantInfo(requested, action),)
    deleted = [path for part in said.partitions.values() for path in part.success_delete_files]
    assert sorted(deleted) == sorted(lake.storage.absolute(path) for path in files)
    assert said.total_files_deleted == len(files)
    lake.ensure_sound()


def test_interrupted_rollback_is_resumed_at_any_call(version: int) -> None:
    def healed(storage: Storage, lake: Lake) -> None:
        act(lake, storage, "delete")

    lake, _, _ = failed_write(version, "direct")
    counted = CountingStorage(lake.storage)
    healed(counted, lake)
    for n in points(counted):
        lake, requested, files = failed_write(version, "direct")
        with pytest.raises(Crash):
            healed(CountingStorage(lake.storage, crash_at=n), lake)
        assert lake.values() in (BEFORE, OPERATIONS["delete"][2]), f"call {n}"
        lake.upsert(row("z"))
        assert not set(files) & set(lake.base_files())
        assert not lake.table.timeline().pending()
        done = [one.action for one in lake.table.timeline().completed()]
        assert done.count("rollback") >= 1, f"call {n}"
        assert requested not in [one.requested for one in lake.table.timeline().instants]
        lake.ensure_sound()


def test_write_that_was_only_requested_has_no_files_to_lose(version: int) -> None:
    lake = lake_of(version)
    profile = lake.table.timeline().profile
    pending = Instant(soon_after(lake), "commit", State.REQUESTED)
    lake.storage.create(instant_path(profile, pending), b"")
    lake.upsert(row("z"))
    assert [one.action for one in lake.table.timeline().completed()].count("rollback") == 1
    assert lake.values() == {**BEFORE, "z": "a"}
    assert lake.commits()[-1].operation_type == "UPSERT"
    assert lake.table.timeline().completed()[-1].requested > pending.requested
    lake.ensure_sound()


def pending_rollback(lake: Lake, plan: RollbackPlan) -> None:
    profile = lake.table.timeline().profile
    instant = Instant(soon_after(lake), "rollback", State.REQUESTED)
    lake.storage.create(instant_path(profile, instant), encode_rollback_plan(plan))


@pytest.mark.parametrize("base", ["s3a://elsewhere/table", "file:///mnt/table", "hdfs://name:9000/x", "/other"])
def test_rollback_plan_of_another_writer_may_spell_the_base_path_its_own_way(version: int, base: str) -> None:
    lake, requested, files = failed_write(version, "none")
    requests = tuple(RollbackRequest(path.rpartition("/")[0], "x", requested, (f"{base}/{path}",)) for path in files)
    pending_rollback(lake, RollbackPlan(InstantInfo(requested, "commit"), requests))
    lake.upsert(row("z"))
    assert not set(files) & set(lake.base_files())
    assert lake.values() == {**BEFORE, "z": "a"}


@pytest.mark.parametrize("path", ["p/../q/{live}", "p/hoodie.properties", ".hoodie/hoodie.properties", "p/{live}"])
def test_rollback_plan_can_delete_nothing_but_files_of_its_instant(version: int, path: str) -> None:
    lake, requested, _ = failed_write(version, "none")
    live = lake.table.files()[0].base.path.rpartition("/")[2]
    named = path.format(live=live)
    request = RollbackRequest(named.rpartition("/")[0], "x", requested, (f"/base/{named}",))
    pending_rollback(lake, RollbackPlan(InstantInfo(requested, "commit"), (request,)))
    before = lake.files()
    with pytest.raises((Unsupported, Corrupt), match="no file of that instant|no path below the table"):
        lake.upsert(row("z"))
    assert {key: data for key, data in lake.files().items() if "rollback" not in key} == {
        key: data for key, data in before.items() if "rollback" not in key
    }


def test_left_over_temporary_files_are_swept(version: int) -> None:
    lake = lake_of(version)
    done = lake.table.timeline().completed()[0].requested
    old = "20200101000000000"
    for path in (f"{done}/p/x.parquet.marker.CREATE", f"{old}.spool/0-1-2.arrow", f"{old}.overwrite"):
        lake.storage.put(f".hoodie/.temp/{path}", b"left")
    lake.upsert(row("z"))
    lake.ensure_sound()


def test_the_spooled_input_of_a_living_writer_stays(version: int) -> None:
    lake = lake_of(version)
    alive, dead = "20200101000000000", "20200102000000000"
    for instant in (alive, dead):
        lake.storage.put(f".hoodie/.temp/{instant}.spool/0-1-2.arrow", b"rows")
    lake.storage.put(f".hoodie/.heartbeat/{alive}", b"")
    lake.upsert(row("z"))
    left = {file.path for file in lake.storage.list(".hoodie/.temp")}
    assert left == {f".hoodie/.temp/{alive}.spool/0-1-2.arrow"}


# --- other writers


def test_second_writer_is_refused_while_one_is_at_work(version: int) -> None:
    lake = lake_of(version)
    before = lake.files()
    with held_lock(lake.storage, "another write"):
        for name in OPERATIONS:
            with pytest.raises(Conflict, match="Another writer"):
                act(lake, lake.storage, name)
        with pytest.raises(Conflict):
            lake.save([row("x")], "overwrite")
        with pytest.raises(Conflict):
            lake.table.drop()
    assert lake.files() == before
    lake.upsert(row("z"))


def meanwhile(lake: Lake, op: str, then: Callable[[], None]) -> CountingStorage:
    """A storage on which `then` happens once, before the first call of `op`."""
    done: list[Call] = []

    def on_call(call: Call) -> None:
        if call.op == op and call.path.endswith(".parquet") and not done:
            done.append(call)
            then()

    return CountingStorage(lake.storage, on_call=on_call)


@pytest.mark.parametrize("name", ["upsert", "bulk_insert", "insert_overwrite"])
def test_fenced_writer_never_becomes_visible_and_cleans_its_files(version: int, name: str) -> None:
    lake = lake_of(version)
    bases = lake.base_files()

    def rolled_back_by_another() -> None:
        roll_back_failed_writes(lake.table._opened.handle, LocalEngine(1))

    with pytest.raises(Fenced, match="taken from this writer"):
        act(lake, meanwhile(lake, "close", rolled_back_by_another), name)
    assert lake.values() == BEFORE
    assert lake.base_files() == bases
    assert [one.action for one in lake.table.timeline().completed()] == ["commit", "rollback"]
    lake.upsert(row("z"))
    lake.ensure_sound()


def test_writer_aimed_at_by_a_pending_rollback_is_fenced(version: int) -> None:
    lake = lake_of(version)

    def aimed_at() -> None:
        (mine,) = lake.table.timeline().pending()
        pending_rollback(lake, RollbackPlan(InstantInfo(mine.requested, "commit"), ()))

    with pytest.raises(Fenced, match="is aimed at it"):
        act(lake, meanwhile(lake, "close", aimed_at), "upsert")
    assert lake.values() == BEFORE
    lake.upsert(row("z"))
    assert lake.values() == {**BEFORE, "z": "a"}
    lake.ensure_sound()


@pytest.mark.parametrize("state", [State.REQUESTED, State.COMPLETED])
def test_writer_that_was_overtaken_takes_itself_back(version: int, state: State) -> None:
    """Another program that does not ask for the exclusion (Hudi) begins or completes a write meanwhile."""
    lake = lake_of(version)
    profile = lake.table.timeline().profile
    content = load_instant(lake.storage, profile, lake.table.timeline().completed()[0])
    theirs: list[str] = []

    def overtaken() -> None:
        time = soon_after(lake)
        other = Instant(time, "commit", state, str(int(time) + 1) if state is State.COMPLETED else None)
        theirs.append(instant_path(profile, other))
        lake.storage.create(theirs[0], content if state is State.COMPLETED else b"")

    before = lake.files()
    with pytest.raises(Conflict, match="appeared while"):
        act(lake, meanwhile(lake, "close", overtaken), "upsert")
    after = lake.files()
    assert {path for path in after if path not in before} == set(theirs)  # theirs is left alone
    assert {path: after[path] for path in before} == before
    assert lake.values() == BEFORE


class Twice(LocalEngine):
    """Runs every task twice and believes the second attempt, as speculation and retries do."""

    @property
    def runs_tasks_once(self) -> bool:
        return False

    def run(self, work: Any, tasks: Sequence[Any], label: str) -> list[Any]:
        if label not in ("upsert", "insert_overwrite"):
            return super().run(work, tasks, label)
        stage = next(_STAGES)
        attempts = [[work(TaskId(n, stage, attempt), task) for attempt in (0, 1)] for n, task in enumerate(tasks)]
        return [results[-1] for results in attempts]


_STAGES = itertools.count(1000)


@pytest.mark.parametrize("name", ["upsert", "insert_overwrite"])
def test_files_of_tasks_that_ran_twice_are_removed_before_the_commit(version: int, name: str) -> None:
    lake = lake_of(version)
    known = set(lake.base_files())
    operation, rows, after = OPERATIONS[name]
    table = Table.open(lake.uri, options={**lake.options, **SPOOL}, engine=Twice(1))
    done = table.write(operation, table_of(rows))
    assert lake.values() == after
    assert len(set(lake.base_files()) - known) == done.files
    lake.ensure_sound()


# --- pending clusterings


def clustering(lake: Lake, groups: Sequence[tuple[str, str]]) -> None:
    timeline = lake.table.timeline()
    slices = [{"partitionPath": partition, "fileId": file_id, "version": 1} for partition, file_id in groups]
    plan = {"inputGroups": [{"slices": slices, "version": 1}], "version": 1}
    record = {"operationType": "CLUSTER", "clusteringPlan": plan, "extraMetadata": {}, "version": 1}
    data = encode_container("HoodieRequestedReplaceMetadata", record, timeline.profile.avro_generation)
    action = "clustering" if timeline.profile.capabilities.clustering_action else "replacecommit"
    for state in (State.REQUESTED, State.INFLIGHT):
        one = Instant("20250101000000000", action, state)
        lake.storage.create(instant_path(timeline.profile, one), data if state is State.REQUESTED else b"")


def test_pending_clustering_keeps_its_input_and_is_no_failed_write(version: int) -> None:
    lake = lake_of(version)
    (reserved,) = [group for group in lake.live() if group[0] == "p"]
    clustering(lake, [reserved])
    before = lake.files()
    for name in ("upsert", "delete", "insert_overwrite"):
        with pytest.raises(Conflict, match=f"clustering .*{reserved[1]} in partition 'p'"):
            act(lake, lake.storage, name)
        assert lake.files() == before
    with pytest.raises(Conflict):
        lake.table.delete_partition("p")
    lake.upsert(row("d"), row("c", "c2", 2, "q"))  # new rows go beside it, other partitions are free
    assert lake.values() == {**BEFORE, "d": "a", "c": "c2"}
    assert len([group for group in lake.live() if group[0] == "p"]) == 2
    assert len(lake.table.timeline().pending()) == 1


# --- tables that are not ours to write


def test_drop_removes_the_table(version: int) -> None:
    lake = lake_of(version)
    table = lake.table
    table.drop()
    assert lake.files() == {}
    with pytest.raises(Invalid, match="no table at"):
        table.upsert(table_of([row("a")]))
    assert lake.files() == {}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_write_that_the_user_interrupts_takes_itself_back(version: int) -> None:
    lake = lake_of(version)
    before = lake.files()
    opened = next(one.n for one in _counted(version).calls if one.op == "close")
    with pytest.raises(KeyboardInterrupt):
        act(lake, CountingStorage(lake.storage, fail_at=opened, failure=KeyboardInterrupt()), "upsert")
    assert lake.files() == before


def _counted(version: int) -> CountingStorage:
    lake = lake_of(version)
    counted = CountingStorage(lake.storage)
    act(lake, counted, "upsert")
    return counted
