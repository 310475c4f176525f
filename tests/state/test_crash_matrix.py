"""Every action of a table, stopped at every storage call, in every version and table type, with a metadata table.

1. A world is prepared once per version and kind, then copied to memory for each point. From call k on the storage does
   nothing any more: the process is as good as dead (`test_crash_writes` kills real processes).
2. Then: what a reader sees is the table before or after the action, never between. The same action again (or what heals
   it) and an ordinary write succeed, rows are right, `validate` finds nothing, the metadata table equals the listing.
3. `HOODIE_CRASH_EVERY` thins the points out: `make test` takes a sample, `make crash` every call. The counts are
   printed at the end of the run; docs/reliability.md has those of a whole one.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from hoodie.engine import LocalEngine
from hoodie.errors import HudiError, Invalid
from hoodie.handle import load_handle
from hoodie.storage import MemoryStorage, Storage
from hoodie.table import Table, as_source, write
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import Awake, row, table_of

EVERY = int(os.environ.get("HOODIE_CRASH_EVERY", "41"))
ENGINE = LocalEngine(1)
WRITE = "hoodie.datasource.write."
OPTIONS: dict[str, Any] = {
    "hoodie.table.name": "matrix",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "part",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.write.lock.wait_time_ms": "0",
}
EVENT_TIME = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
_names = itertools.count()

World = dict[str, bytes]
Rows = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """What table an action is put through."""

    version: int
    table_type: str
    metadata: bool = True

    @property
    def options(self) -> dict[str, Any]:
        payload = {WRITE + "payload.class": EVENT_TIME} if self.version == 6 else {}
        return {
            **OPTIONS,
            **payload,
            WRITE + "table.type": self.table_type,
            "hoodie.write.table.version": self.version,
            "hoodie.metadata.enable": str(self.metadata).lower(),
        }

    def __str__(self) -> str:
        return f"v{self.version}-{'mor' if self.table_type == 'MERGE_ON_READ' else 'cow'}"


COW = [Kind(version, "COPY_ON_WRITE") for version in (6, 8, 9)]
MOR = [Kind(version, "MERGE_ON_READ") for version in (6, 8, 9)]


def opened(storage: Storage, kind: Kind, **more: Any) -> Table:
    options = {key: str(value) for key, value in {**kind.options, **more}.items() if "table.version" not in key}
    return Table(load_handle(storage, Awake()), options, ENGINE)


def rows_of(storage: Storage) -> Rows:
    found = Table(load_handle(storage, Awake()), {}, ENGINE).scan(columns=["id", "v"]).read_all().to_pydict()
    assert len(found["id"]) == len(set(found["id"])), "a key occurs twice"
    return dict(zip(found["id"], found["v"], strict=True))


def loaded(world: World) -> MemoryStorage:
    storage = MemoryStorage(f"matrix-{next(_names)}", Awake())
    for path, data in world.items():
        storage.put(path, data)
    return storage


def stored(storage: MemoryStorage) -> World:
    return {info.path: storage.read(info.path) for info in storage.list("")}


@functools.cache
def prepared(kind: Kind, commits: int = 3) -> World:
    """A table with some history: base files, updates (in log files of a merge-on-read table), deletes."""
    storage = MemoryStorage(f"matrix-{next(_names)}", Awake())
    first = table_of([row(f"k{n}", "0", 1, f"p{n % 2}") for n in range(6)])
    options = {key: str(value) for key, value in kind.options.items()}
    write(as_source(first), storage.uri, options, "append", engine=ENGINE, env=Awake())
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
    """`run` on the table, after `before` prepared it further. `redo` heals it when a plain write would not."""

    name: str
    run: Callable[[Storage, Kind], object]
    kinds: list[Kind]
    commits: int = 3
    before: Callable[[Storage, Kind], object] | None = None
    redo: Callable[[Storage, Kind], object] | None = None


def upsert(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).upsert(table_of([row("k1", "up", 50, "p1"), row("new", "new", 1, "p2")]))


def delete(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).delete(table_of([row("k0", "", 60, "p0"), row("k1", "", 60, "p1")]))


def bulk_insert(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).bulk_insert(table_of([row("b1", "b", 1, "p0"), row("b2", "b", 1, "p3")]))


def insert_overwrite(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).insert_overwrite(table_of([row("o", "o", 1, "p0")]))


def schedule(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).schedule_compaction()


def compact(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).compact()


def compact_logs(storage: Storage, kind: Kind) -> object:
    options = {"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": "2"}
    return opened(storage, kind).compact_logs(**options)


def clean(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).clean(**{"hoodie.clean.commits.retained": "1"})


def archive(storage: Storage, kind: Kind) -> object:
    limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    return opened(storage, kind).archive(**limits)


def compacted_and_cleaned(storage: Storage, kind: Kind) -> None:
    """What lets an archiver archive: the metadata table was compacted."""
    from hoodie.config import resolve  # noqa: PLC0415
    from hoodie.services.metadata_upkeep import keep_metadata  # noqa: PLC0415

    if kind.table_type == "MERGE_ON_READ":
        compact(storage, kind)
    clean(storage, kind)
    config = resolve({"hoodie.metadata.compact.max.delta.commits": "1"})
    keep_metadata(load_handle(storage, Awake()), config, ENGINE)


def roll_back_newest(storage: Storage, kind: Kind) -> object:
    if "k5" in rows_of(storage):
        return None  # the newest commit deleted it, so it is undone already
    table = opened(storage, kind)
    return table.rollback(table.timeline().completed_writes()[-1].requested)


def died(storage: Storage, kind: Kind) -> None:
    """A write died shortly before it was complete."""
    counted = CountingStorage(loaded(stored_of(storage)))
    upsert(counted, kind)
    completes = [call.n for call in counted.calls if call.op == "create" and ".hoodie/metadata" not in call.path]
    with pytest.raises(Crash):
        upsert(CountingStorage(storage, crash_at=completes[-1]), kind)


def stored_of(storage: Storage) -> World:
    return {info.path: storage.read(info.path) for info in storage.list("")}


def heal(storage: Storage, kind: Kind) -> object:
    from hoodie.services import heal as healed  # noqa: PLC0415

    with storage.exclusive("heal"):
        return healed(load_handle(storage, Awake()), ENGINE)


def rollback_died(storage: Storage, kind: Kind) -> None:
    """The rollback of a write died in its middle."""
    died(storage, kind)
    counted = CountingStorage(loaded(stored_of(storage)))
    heal(counted, kind)
    with pytest.raises(Crash):
        heal(CountingStorage(storage, crash_at=counted.count * 2 // 3), kind)


def savepoint(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).savepoint()


def delete_savepoint(storage: Storage, kind: Kind) -> object:
    table = opened(storage, kind)
    for one in table.savepoints():
        table.delete_savepoint(one.instant)
    return None


def saved_then_changed(storage: Storage, kind: Kind) -> None:
    savepoint(storage, kind)
    upsert(storage, kind)
    delete(storage, kind)


def restore(storage: Storage, kind: Kind) -> object:
    table = opened(storage, kind)
    return table.restore(table.savepoints()[0].instant)


def make_metadata(storage: Storage, kind: Kind) -> object:
    return upsert(storage, Kind(kind.version, kind.table_type, metadata=True))


def build_index(storage: Storage, kind: Kind) -> object:
    try:
        return opened(storage, kind).create_index("record_index")
    except Invalid:
        return None  # it is there


def upgrade_to(version: int) -> Callable[[Storage, Kind], object]:
    def run(storage: Storage, kind: Kind) -> object:
        return opened(storage, kind).upgrade(version)

    return run


WITHOUT = [Kind(kind.version, kind.table_type, metadata=False) for kind in (*COW, *MOR)]
ACTIONS = [
    Action("upsert", upsert, COW + MOR),
    Action("delete", delete, COW + MOR),
    Action("bulk insert", bulk_insert, COW + MOR),
    Action("insert overwrite", insert_overwrite, COW + MOR),
    Action("plan compaction", schedule, MOR),
    Action("compaction", compact, MOR, redo=compact),
    Action("log compaction", compact_logs, MOR[1:], commits=5, redo=compact_logs),
    Action("clean", clean, COW, commits=5, redo=clean),
    Action("clean after compaction", clean, MOR, commits=5, before=compact, redo=clean),
    Action("archive", archive, COW + MOR, commits=7, before=compacted_and_cleaned, redo=archive),
    Action("rollback of a commit", roll_back_newest, COW + MOR, redo=roll_back_newest),
    Action("rollback of a dead write", heal, COW + MOR, before=died),
    Action("rollback of a dead rollback", heal, COW + MOR, before=rollback_died),
    Action("savepoint", savepoint, COW + MOR),
    Action("savepoint deletion", delete_savepoint, COW + MOR, before=savepoint),
    Action("restore", restore, COW + MOR, before=saved_then_changed, redo=restore),
    Action("metadata initialisation", make_metadata, WITHOUT),
    Action("index build", build_index, COW + MOR, redo=build_index),
    Action("upgrade to 8", upgrade_to(8), [COW[0], MOR[0]], redo=upgrade_to(8)),
    Action("upgrade to 9", upgrade_to(9), [COW[0], MOR[0], COW[1], MOR[1]], redo=upgrade_to(9)),
    Action("downgrade to 6", upgrade_to(6), [COW[2], MOR[2]], redo=upgrade_to(6)),
    Action("downgrade to 8", upgrade_to(8), [COW[2], MOR[2]], redo=upgrade_to(8)),
]
COUNTS: dict[str, int] = {}


@pytest.fixture(scope="module", autouse=True)
def _counted() -> Iterator[None]:
    yield
    if COUNTS:
        print(f"\ncrash points: {sum(COUNTS.values())} over {len(COUNTS)} actions: {COUNTS}")


@pytest.mark.parametrize(
    ("action", "kind"),
    [pytest.param(action, kind, id=f"{action.name}-{kind}") for action in ACTIONS for kind in action.kinds],
)
def test_an_action_that_dies_anywhere_leaves_a_whole_table_and_the_next_heals_it(action: Action, kind: Kind) -> None:
    world = prepared(kind, action.commits)
    if action.before is not None:
        storage = loaded(world)
        action.before(storage, kind)
        world = stored(storage)
        storage.forget()
    start = loaded(world)
    before = rows_of(start)
    counted = CountingStorage(start)
    action.run(counted, kind)
    after = rows_of(start)
    start.forget()
    offset = len(action.name) % EVERY  # another call of each action in a sample
    for call in range(1 + offset % counted.count, counted.count + 1, EVERY):
        at = f"{action.name} {kind}, stopped at call {call}: {counted.calls[call - 1]}"
        storage = loaded(world)
        with pytest.raises(Crash):
            action.run(CountingStorage(storage, crash_at=call), kind)
        found = rows_of(storage)
        assert found in (before, after), at
        try:
            if action.redo is not None:
                action.redo(storage, kind)
                found = rows_of(storage)
                assert found == after, at
            opened(storage, kind).upsert(table_of([row("next", "n", 1, "p1"), row("k2", "n", 99, "p0")]))
        except HudiError as error:
            raise AssertionError(f"{at}: {error}") from error
        assert rows_of(storage) == {**found, "next": "n", "k2": "n"}, at
        assert Table(load_handle(storage, Awake()), {}, ENGINE).validate() == [], at
        storage.forget()
        COUNTS[action.name] = COUNTS.get(action.name, 0) + 1
