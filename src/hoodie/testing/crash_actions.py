"""Every action of a table as something to be disturbed at each storage call: the worlds they begin on, in memory.

1. A world is the files of a table with a little history. It is prepared once per kind of table and copied to memory for
   each run; nothing follows a commit there but the upkeep of the metadata table.
2. An `Action` runs on a storage, so that a test can count, stop or disturb its calls. What has to hold then is up to
   the test (tests/state/test_crash_matrix.py).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.env import Env
from hoodie.errors import Invalid
from hoodie.locks import held_lock
from hoodie.services.ingest import Request
from hoodie.services.metadata_upkeep import keep_metadata
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.save import SaveMode, save_rows
from hoodie.state.handle import TableHandle, load_handle
from hoodie.storage import MemoryStorage, Storage
from hoodie.table import Table, as_source
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.env import FakeEnv
from hoodie.testing.lake import Awake, row, table_of
from hoodie.testing.table_kind import COW, MOR, Kind
from hoodie.timeline import delete_instant_files, is_table

ENGINE: Final = LocalEngine(1)
OPTIONS: Final[dict[str, Any]] = {
    "hoodie.table.name": "matrix",
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.column.stats.column.list": "id,v",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.write.lock.wait_time_ms": "0",
}
BY_V: Final = {
    "hoodie.clustering.plan.strategy.sort.columns": "v,ts",
    "hoodie.layout.optimize.strategy": "ZORDER",
}
_names = itertools.count()

World = dict[str, bytes]
Rows = dict[str, Any]


def opened(storage: Storage, kind: Kind, **more: Any) -> Table:
    given = {**OPTIONS, **kind.options, **more}
    options = {key: str(value) for key, value in given.items() if "table.version" not in key}
    return Table(handle_of(storage, kind), options, ENGINE)


def handle_of(storage: Storage, kind: Kind) -> TableHandle:
    """The table as it is now."""
    return load_handle(kind.laid(storage), Awake())


@dataclass(frozen=True)
class Ringed(Kind):
    """A table whose file groups are the buckets of a consistent hashing index, which can be split and merged."""

    @property
    def options(self) -> dict[str, Any]:
        ring = {
            "hoodie.index.type": "BUCKET",
            "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
            "hoodie.bucket.index.num.buckets": "2",
        }
        return {**super().options, **ring}

    def __str__(self) -> str:
        return f"{super().__str__()}-ring"


def rows_of(storage: Storage, kind: Kind) -> Rows:
    table = Table(handle_of(storage, kind), {}, ENGINE) if is_table(kind.laid(storage)) else None
    if table is None or not table.timeline().completed_writes():
        return {}  # nobody knows its columns
    found = table.scan(columns=["id", "v"]).read_all().to_pydict()
    assert len(found["id"]) == len(set(found["id"])), "a key occurs twice"
    return dict(zip(found["id"], found["v"], strict=True))


def loaded(world: World) -> MemoryStorage:
    storage = MemoryStorage(f"matrix-{next(_names)}", Awake())
    fill(storage, world)
    return storage


def fill(storage: Storage, world: World) -> None:
    for path, data in world.items():
        storage.put(path, data)


def stored(storage: Storage) -> World:
    return {info.path: storage.read(info.path) for info in storage.list("")}


def created(storage: Storage, kind: Kind, env: Env) -> None:
    saved(storage, kind, "append", *(row(f"k{n}", "0", 1, f"p{n % 2}") for n in range(6)), env=env)


@functools.cache
def prepared(kind: Kind, commits: int = 3) -> World:
    """A table with some history: base files, updates (in log files of a merge-on-read table), deletes."""
    storage = MemoryStorage(f"matrix-{next(_names)}", Awake())
    created(storage, kind, Awake())
    table = opened(storage, kind)
    for number in range(1, commits):
        changed = [row(f"k{n}", str(number), number + 1, f"p{n % 2}") for n in range(number % 3, 4)]
        table.upsert(table_of(changed))
    table.delete(table_of([row("k5", "", 99, "p1")]))
    world = stored(storage)
    storage.forget()
    return world


@dataclass(frozen=True)
class Action:
    """`run` on the table, after `before` prepared it further. `redo` heals it when a plain write would not. One that
    undoes several commits passes the table that `passes` makes of the same beginning, which readers may see.
    """

    name: str
    run: Callable[[Storage, Kind], object]
    kinds: tuple[Kind, ...]
    commits: int = 3
    before: Callable[[Storage, Kind], object] | None = None
    redo: Callable[[Storage, Kind], object] | None = None
    passes: Callable[[Storage, Kind], object] | None = None


def upsert(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).upsert(table_of([row("k1", "up", 50, "p1"), row("new", "new", 1, "p2")]))


def delete(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).delete(table_of([row("k0", "", 60, "p0"), row("k1", "", 60, "p1")]))


def bulk_insert(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).bulk_insert(table_of([row("b1", "b", 1, "p0"), row("b2", "b", 1, "p3")]))


def insert_overwrite(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).insert_overwrite(table_of([row("o", "o", 1, "p0")]))


def insert(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).insert(table_of([row("i1", "i", 1, "p0"), row("i2", "i", 1, "p4")]))


def insert_overwrite_table(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).insert_overwrite_table(table_of([row("t", "t", 1, "p1"), row("u", "u", 1, "p5")]))


def saved(storage: Storage, kind: Kind, mode: SaveMode, *rows: dict[str, Any], env: Env | None = None) -> object:
    config = resolve({key: str(value) for key, value in {**OPTIONS, **kind.options}.items()})
    request = Request("upsert", as_source(table_of(rows)), config, ENGINE)
    return save_rows(kind.laid(storage), request, mode, env or Awake())


def first_write(storage: Storage, kind: Kind) -> object:
    return saved(storage, kind, "append", row("w", "w", 1, "p1"), row("x", "x", 1, "p6"))


def overwrite(storage: Storage, kind: Kind) -> object:
    return saved(storage, kind, "overwrite", row("w", "w", 1, "p1"), row("x", "x", 1, "p6"))


def nothing_there(storage: Storage, kind: Kind) -> None:
    del kind
    storage.delete_dir("")


def update(storage: Storage, kind: Kind) -> object:
    changed = pa.table({"id": ["k1", "k2"], "part": ["p1", "p0"], "ts": [70, 70], "v": ["up", "up"]})
    return opened(storage, kind).update(changed)


def unschedule(storage: Storage, kind: Kind) -> object:
    table = opened(storage, kind)
    return [
        table.services.unschedule_compaction(one.requested)
        for one in table.timeline().pending()
        if one.action == "compaction"
    ]


def delete_partition(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).delete_partition("p0")


def schedule(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).services.schedule_compaction()


def compact(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).services.compact()


def plan_lost(storage: Storage, kind: Kind) -> None:
    """A plan went off the timeline that log files are named by: nobody sees their rows."""
    planned = opened(storage, kind).services.schedule_compaction()
    assert planned is not None
    upsert(storage, kind)
    handle = handle_of(storage, kind)
    delete_instant_files(handle.storage, handle.profile, planned)


def repair(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).services.repair_compaction()


def appended(storage: Storage, kind: Kind) -> None:
    """Each partition has small base files without log files, too."""
    for number in range(2):
        opened(storage, kind).append(table_of([row(f"a{number}-{n}", "0", 1, f"p{n}") for n in range(2)]))


def plan_clustering(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).services.cluster(op="schedule", **BY_V)


def cluster(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).services.cluster(**BY_V)


def appended_and_planned(storage: Storage, kind: Kind) -> None:
    """A clustering is pending."""
    appended(storage, kind)
    plan_clustering(storage, kind)


def unschedule_clustering(storage: Storage, kind: Kind) -> object:
    table = opened(storage, kind)
    return [table.services.cluster(one.requested, "unschedule") for one in table.timeline().pending()]


def compact_base_files(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).services.compact_base_files()


def made_long_ago(storage: Storage, kind: Kind) -> None:
    """Only the second partition was written since."""
    storage.delete_dir("")
    created(storage, kind, FakeEnv(datetime.now(UTC) - timedelta(days=60)))
    opened(storage, kind).insert_overwrite(table_of([row("k1", "1", 2, "p1"), row("k3", "1", 2, "p1")]))


def expire(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).services.ttl(**{"hoodie.partition.ttl.strategy.days.retain": "30"})


def split(storage: Storage, kind: Kind) -> object:
    limits = {"hoodie.parquet.max.file.size": "1000", "hoodie.bucket.index.max.num.buckets": "4"}
    return opened(storage, kind).services.resize(**limits)


def merge(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).services.resize(**{"hoodie.bucket.index.min.num.buckets": "1"})


def left_to_writers(storage: Storage, kind: Kind) -> None:
    """Does nothing: the next write is what heals."""


def compact_logs(storage: Storage, kind: Kind) -> object:
    options = {"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": "2"}
    return opened(storage, kind).services.compact_logs(**options)


def clean(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).services.clean(**{"hoodie.clean.commits.retained": "1"})


def archive(storage: Storage, kind: Kind) -> object:
    limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    return opened(storage, kind).services.archive(**limits)


def compacted_twice(storage: Storage, kind: Kind) -> None:
    """What lets a cleaner clean: the state before the newest commit stays, so what is older has to be there."""
    compact(storage, kind)
    upsert(storage, kind)
    compact(storage, kind)


def compacted_and_cleaned(storage: Storage, kind: Kind) -> None:
    """What lets an archiver archive: the metadata table was compacted."""
    if kind.table_type == "MERGE_ON_READ":
        compact(storage, kind)
    clean(storage, kind)
    config = resolve({"hoodie.metadata.compact.max.delta.commits": "1"})
    keep_metadata(handle_of(storage, kind), config, ENGINE)


def roll_back_newest(storage: Storage, kind: Kind) -> object:
    if "k5" in rows_of(storage, kind):
        return None  # the newest commit deleted it, so it is undone already
    table = opened(storage, kind)
    return table.services.rollback(table.timeline().completed_writes()[-1].requested)


def died(storage: Storage, kind: Kind) -> None:
    """A write died shortly before it was complete."""
    counted = CountingStorage(loaded(stored(storage)))
    upsert(counted, kind)
    completes = [call.n for call in counted.calls if call.op == "create" and ".hoodie/metadata" not in call.path]
    with pytest.raises(Crash):
        upsert(CountingStorage(storage, crash_at=completes[-1]), kind)


def roll_back_failed(storage: Storage, kind: Kind) -> object:
    with held_lock(kind.laid(storage), "rollback"):
        return roll_back_failed_writes(handle_of(storage, kind), ENGINE)


def rollback_died(storage: Storage, kind: Kind) -> None:
    """The rollback of a write died in its middle."""
    died(storage, kind)
    counted = CountingStorage(loaded(stored(storage)))
    roll_back_failed(counted, kind)
    with pytest.raises(Crash):
        roll_back_failed(CountingStorage(storage, crash_at=counted.count * 2 // 3), kind)


def savepoint(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).savepoints.create()


def savepoint_again(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).savepoints or savepoint(storage, kind)


def delete_savepoint(storage: Storage, kind: Kind) -> object:
    table = opened(storage, kind)
    for one in table.savepoints:
        table.savepoints.delete(one.instant)
    return None


def saved_then_changed_once(storage: Storage, kind: Kind) -> None:
    savepoint(storage, kind)
    upsert(storage, kind)


def saved_then_changed(storage: Storage, kind: Kind) -> None:
    saved_then_changed_once(storage, kind)
    delete(storage, kind)


def restore(storage: Storage, kind: Kind) -> object:
    table = opened(storage, kind)
    return table.services.restore(table.savepoints[0].instant)


def make_metadata(storage: Storage, kind: Kind) -> object:
    return upsert(storage, Kind(kind.version, kind.table_type, metadata=True))


def build_index(storage: Storage, kind: Kind) -> object:
    try:
        return opened(storage, kind).indexes.create("record_index")
    except Invalid:
        return None  # it is there


def drop_index(storage: Storage, kind: Kind) -> object:
    try:
        return opened(storage, kind).indexes.drop("record_index")
    except Invalid:
        return None  # it is gone


def upgrade_to(version: int) -> Callable[[Storage, Kind], object]:
    def run(storage: Storage, kind: Kind) -> object:
        return opened(storage, kind).services.upgrade(version)

    return run


RINGS: Final = tuple(Ringed(kind.version, kind.table_type) for kind in MOR)
WITHOUT: Final = tuple(Kind(kind.version, kind.table_type, metadata=False) for kind in (*COW, *MOR))
ACTIONS: Final = [
    Action("upsert", upsert, COW + MOR),
    Action("delete", delete, COW + MOR),
    Action("bulk insert", bulk_insert, COW + MOR),
    Action("insert overwrite", insert_overwrite, COW + MOR),
    Action("first write", first_write, COW + MOR, before=nothing_there, redo=first_write),
    Action("insert", insert, COW + MOR),
    Action("overwrite by save mode", overwrite, COW + MOR),
    Action("partial update", update, MOR[1:]),
    Action("withdrawal of a compaction plan", unschedule, MOR, before=schedule, redo=unschedule),
    Action("insert overwrite table", insert_overwrite_table, COW + MOR),
    Action("partition delete", delete_partition, COW + MOR),
    Action("time to live", expire, COW + MOR, before=made_long_ago),
    Action("split of buckets", split, RINGS, redo=split),
    Action("merge of buckets", merge, RINGS, before=split, redo=left_to_writers),
    Action("repair of compaction plans", repair, MOR[:1], before=plan_lost, redo=repair),
    Action("index drop", drop_index, COW + MOR, before=build_index, redo=drop_index),
    Action("plan compaction", schedule, MOR),
    Action("compaction", compact, MOR, redo=compact),
    Action("log compaction", compact_logs, MOR[1:], commits=5, redo=compact_logs),
    Action("plan clustering", plan_clustering, COW + MOR, before=appended, redo=cluster),
    Action("clustering", cluster, COW + MOR, before=appended, redo=cluster),
    Action("clustering by a plan", cluster, COW + MOR, before=appended_and_planned, redo=cluster),
    Action(
        "withdrawal of a clustering plan",
        unschedule_clustering,
        COW + MOR,
        before=appended_and_planned,
        redo=unschedule_clustering,
    ),
    Action("base-file compaction", compact_base_files, COW + MOR, before=appended, redo=compact_base_files),
    Action("clean", clean, COW, commits=5, redo=clean),
    Action("clean after compaction", clean, MOR, commits=5, before=compacted_twice, redo=clean),
    Action("archive", archive, COW + MOR, commits=7, before=compacted_and_cleaned, redo=archive),
    Action("rollback of a commit", roll_back_newest, COW + MOR, redo=roll_back_newest),
    Action("rollback of a dead write", roll_back_failed, COW + MOR, before=died),
    Action("rollback of a dead rollback", roll_back_failed, COW + MOR, before=rollback_died),
    Action("savepoint", savepoint, COW + MOR, redo=savepoint_again),
    Action("savepoint deletion", delete_savepoint, COW + MOR, before=savepoint),
    Action("restore", restore, COW + MOR, 3, saved_then_changed, redo=restore, passes=saved_then_changed_once),
    Action("metadata initialisation", make_metadata, WITHOUT),
    Action("index build", build_index, COW + MOR, redo=build_index),
    Action("upgrade to 8", upgrade_to(8), (COW[0], MOR[0]), redo=upgrade_to(8)),
    Action("upgrade to 9", upgrade_to(9), (COW[0], MOR[0], COW[1], MOR[1]), redo=upgrade_to(9)),
    Action("downgrade to 6", upgrade_to(6), (COW[2], MOR[2]), redo=upgrade_to(6)),
    Action("downgrade to 8", upgrade_to(8), (COW[2], MOR[2]), redo=upgrade_to(8)),
]
