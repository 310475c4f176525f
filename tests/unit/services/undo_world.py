"""A small merge-on-read table whose last write can be undone, and what its readers see."""

from __future__ import annotations

from collections.abc import Callable

from hoodie.engine import LocalEngine
from hoodie.query import ReadOptions, load_read_plan, run_read
from hoodie.spec import (
    DELTA_COMMIT,
    CommitMetadata,
    FormatProfile,
    Instant,
    MarkerKind,
    PartitionWork,
    State,
    marker_path,
    workload_profile,
)
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.hand_logs import HandLogTable, at
from hoodie.timeline import instant_path

OLD, NEW = ("p0", "a"), ("p0", "new")
ENGINE = LocalEngine(1)
Rows = list[tuple[object, object]]


def row(key: str, qty: int, part: str = "p0") -> dict[str, object]:
    return {"id": key, "part": part, "qty": qty}


def small_table(profile: FormatProfile) -> HandLogTable:
    """k1 to k3 in a base file of 1; 2 updates k1."""
    made = HandLogTable(profile)
    made.commit(at(1), {OLD: [row("k1", 1), row("k2", 1), row("k3", 1)]})
    made.delta(at(2), {OLD: {"rows": [row("k1", 2)]}})
    return made


BEFORE: Rows = [("k1", 2), ("k2", 1), ("k3", 1)]
AFTER: Rows = [("k1", 3), ("k2", 3), ("k3", 1), ("k4", 3)]


def last_delta(table: HandLogTable, state: State = State.COMPLETED, *, markers: bool = True) -> list[str]:
    """Delta commit 3: updates k1 and k2 in the old group, begins a new one by a log file. Paths of its log files."""
    known = set(paths(table.storage))
    writes = {OLD: {"rows": [row("k1", 3), row("k2", 3)]}, NEW: {"rows": [row("k4", 3)]}}
    table.delta(at(3), writes, state=state)
    profile = workload_profile("UPSERT", {"p0": PartitionWork(1, {"a": (at(1), 2)})})
    put_inflight(table, at(3), profile)
    logs = [path for path in paths(table.storage) if path not in known and ".log." in path]
    if markers and state is not State.COMPLETED:
        for path in logs:
            table.storage.put(marker_path(at(3), path, table.profile.log_naming.marker), b"")
    return logs


def put_inflight(table: HandLogTable, requested: str, metadata: CommitMetadata) -> None:
    """What a writer says it is about to do."""
    inflight = Instant(requested, DELTA_COMMIT, State.INFLIGHT)
    data = table.profile.commit_codec.encode(metadata, DELTA_COMMIT)
    table.storage.put(instant_path(table.profile, inflight), data)


def base_marker(requested: str, path: str) -> str:
    return marker_path(requested, path, MarkerKind.CREATE)


def rows_of(table: HandLogTable) -> Rows:
    """(id, qty) of a snapshot, sorted."""
    plan = load_read_plan(table.storage, table.config, table.timeline(), ReadOptions())
    rows = run_read(plan, table.storage).read_all()
    return sorted(zip(rows["id"].to_pylist(), rows["qty"].to_pylist(), strict=True), key=repr)


def paths(storage: Storage) -> list[str]:
    return [file.path for file in storage.list("")]


def handle_on(table: HandLogTable, storage: Storage) -> TableHandle:
    """The table's handle on another storage over the same bytes."""
    return TableHandle(storage, table.config, table.profile, table.handle.env)


def calls_of(make: Callable[[], HandLogTable], act: Callable[[TableHandle], object]) -> range:
    """Numbers of the storage calls of an action on a fresh table."""
    table = make()
    counted = CountingStorage(table.storage)
    act(handle_on(table, counted))
    return range(1, counted.count + 1)
