"""Every action of a table, disturbed at every storage call, in every version and table type, with a metadata table.

1. A world is prepared once per version and kind, then copied to memory for each point. How the storage behaves at call
   k, or from it on, is a `Fault`. The main one: it does nothing any more, the process is as good as dead
   (`test_crash_writes` kills real processes). The others: torn data files, lost answers, one failure, a full disk, no
   permission, and listings that lag.
2. Then: what a reader sees is the table before or after the action, never between (a restore undoes one commit after
   the other, so it also passes the table as it was at each). Who lives was told so: an error is a `HudiError`, and no
   error means after. The same action again (or what heals it) and an ordinary write succeed, rows
   are right, `validate` finds nothing, the metadata table equals the listing.
3. A listing that lags is less than the contract of storages asks for. What is promised even then: nothing that was
   committed is lost, and an action that does not see its own files fails or does nothing.
4. `HOODIE_CRASH_EVERY` thins the points of the main fault out, `HOODIE_FAULT_EVERY` (seven times that, if not given)
   those of the others: `make test` takes a sample. The counts are printed at the end of the run; docs/reliability.md
   has those of a whole one.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import CommitUnknown, HudiError, Invalid, Unavailable
from hoodie.handle import load_handle
from hoodie.services import Request, SaveMode, save_rows
from hoodie.storage import MemoryStorage, Storage
from hoodie.table import Table, as_source, write
from hoodie.testing.counting_storage import CHANGING, OUTPUT, WRITING, Call, CountingStorage, Crash
from hoodie.testing.lake import Awake, row, table_of
from hoodie.testing.table_kind import COW, MOR, Kind
from hoodie.timeline import is_table

EVERY = int(os.environ.get("HOODIE_CRASH_EVERY", "41"))
FAULT_EVERY = int(os.environ.get("HOODIE_FAULT_EVERY", str(7 * EVERY)))
ENGINE = LocalEngine(1)
OPTIONS: dict[str, Any] = {
    "hoodie.table.name": "matrix",
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.write.lock.wait_time_ms": "0",
}
_names = itertools.count()

World = dict[str, bytes]
Rows = dict[str, Any]


def opened(storage: Storage, kind: Kind, **more: Any) -> Table:
    given = {**OPTIONS, **kind.options, **more}
    options = {key: str(value) for key, value in given.items() if "table.version" not in key}
    return Table(load_handle(storage, Awake()), options, ENGINE)


def rows_of(storage: Storage) -> Rows:
    table = Table(load_handle(storage, Awake()), {}, ENGINE) if is_table(storage) else None
    if table is None or not table.timeline().completed_writes():
        return {}  # nobody knows its columns
    found = table.scan(columns=["id", "v"]).read_all().to_pydict()
    assert len(found["id"]) == len(set(found["id"])), "a key occurs twice"
    return dict(zip(found["id"], found["v"], strict=True))


def loaded(world: World) -> MemoryStorage:
    storage = MemoryStorage(f"matrix-{next(_names)}", Awake())
    for path, data in world.items():
        storage.put(path, data)
    return storage


def stored(storage: Storage) -> World:
    return {info.path: storage.read(info.path) for info in storage.list("")}


@functools.cache
def prepared(kind: Kind, commits: int = 3) -> World:
    """A table with some history: base files, updates (in log files of a merge-on-read table), deletes."""
    storage = MemoryStorage(f"matrix-{next(_names)}", Awake())
    first = table_of([row(f"k{n}", "0", 1, f"p{n % 2}") for n in range(6)])
    options = {key: str(value) for key, value in {**OPTIONS, **kind.options}.items()}
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


def saved(storage: Storage, kind: Kind, mode: SaveMode, *rows: dict[str, Any]) -> object:
    config = resolve({key: str(value) for key, value in {**OPTIONS, **kind.options}.items()})
    return save_rows(storage, Request("upsert", as_source(table_of(rows)), config, ENGINE), mode, Awake())


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
        table.unschedule_compaction(one.requested) for one in table.timeline().pending() if one.action == "compaction"
    ]


def delete_partition(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).delete_partition("p0")


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
    counted = CountingStorage(loaded(stored(storage)))
    upsert(counted, kind)
    completes = [call.n for call in counted.calls if call.op == "create" and ".hoodie/metadata" not in call.path]
    with pytest.raises(Crash):
        upsert(CountingStorage(storage, crash_at=completes[-1]), kind)


def heal(storage: Storage, kind: Kind) -> object:
    from hoodie.services import heal as healed  # noqa: PLC0415

    with storage.exclusive("heal"):
        return healed(load_handle(storage, Awake()), ENGINE)


def rollback_died(storage: Storage, kind: Kind) -> None:
    """The rollback of a write died in its middle."""
    died(storage, kind)
    counted = CountingStorage(loaded(stored(storage)))
    heal(counted, kind)
    with pytest.raises(Crash):
        heal(CountingStorage(storage, crash_at=counted.count * 2 // 3), kind)


def savepoint(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).savepoint()


def savepoint_again(storage: Storage, kind: Kind) -> object:
    return opened(storage, kind).savepoints() or savepoint(storage, kind)


def delete_savepoint(storage: Storage, kind: Kind) -> object:
    table = opened(storage, kind)
    for one in table.savepoints():
        table.delete_savepoint(one.instant)
    return None


def saved_then_changed_once(storage: Storage, kind: Kind) -> None:
    savepoint(storage, kind)
    upsert(storage, kind)


def saved_then_changed(storage: Storage, kind: Kind) -> None:
    saved_then_changed_once(storage, kind)
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


def drop_index(storage: Storage, kind: Kind) -> object:
    try:
        return opened(storage, kind).drop_index("record_index")
    except Invalid:
        return None  # it is gone


def upgrade_to(version: int) -> Callable[[Storage, Kind], object]:
    def run(storage: Storage, kind: Kind) -> object:
        return opened(storage, kind).upgrade(version)

    return run


WITHOUT = tuple(Kind(kind.version, kind.table_type, metadata=False) for kind in (*COW, *MOR))
ACTIONS = [
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
    Action("index drop", drop_index, COW + MOR, before=build_index, redo=drop_index),
    Action("plan compaction", schedule, MOR),
    Action("compaction", compact, MOR, redo=compact),
    Action("log compaction", compact_logs, MOR[1:], commits=5, redo=compact_logs),
    Action("clean", clean, COW, commits=5, redo=clean),
    Action("clean after compaction", clean, MOR, commits=5, before=compact, redo=clean),
    Action("archive", archive, COW + MOR, commits=7, before=compacted_and_cleaned, redo=archive),
    Action("rollback of a commit", roll_back_newest, COW + MOR, redo=roll_back_newest),
    Action("rollback of a dead write", heal, COW + MOR, before=died),
    Action("rollback of a dead rollback", heal, COW + MOR, before=rollback_died),
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


@dataclass(frozen=True)
class Fault:
    """`disturbed` is the storage that misbehaves at call k, or from it on, which makes a difference at calls of `ops`
    only (of all, if there are none). `errno` is what the error must name if there is one. `dies`: the process does.
    """

    name: str
    disturbed: Callable[[Storage, int], CountingStorage]
    ops: frozenset[str] = frozenset()
    errno: str = ""
    dies: bool = False

    def points(self, calls: tuple[Call, ...]) -> list[Call]:
        return [call for call in calls if not self.ops or call.op in self.ops]


def unknown() -> CommitUnknown:
    return CommitUnknown("The answer was lost because a test told it to", remedy="Look whether it is there")


CREATE = frozenset({"create"})
STOP = Fault("stopped", lambda inner, k: CountingStorage(inner, crash_at=k), dies=True)
FAULTS = [
    Fault("torn", lambda inner, k: CountingStorage(inner, crash_at=k, torn=True), OUTPUT, dies=True),
    Fault("failed once", lambda inner, k: CountingStorage(inner, fail_at=k)),
    Fault("lost answer", lambda inner, k: CountingStorage(inner, fail_after=k), CHANGING),
    Fault("unknown creation", lambda inner, k: CountingStorage(inner, fail_after=k, failure=unknown()), CREATE),
    Fault("full disk", lambda inner, k: CountingStorage(inner, full_from=k), WRITING, "ENOSPC"),
    Fault("no permission", lambda inner, k: CountingStorage(inner, denied_from=k), CHANGING, "EACCES"),
    Fault("stale listing", lambda inner, k: CountingStorage(inner, stale_from=k), CREATE | {"put", "close"}),
]
COUNTS: dict[str, dict[str, int]] = {}


@pytest.fixture(scope="module", autouse=True)
def _counted() -> Iterator[None]:
    yield
    for fault, actions in COUNTS.items():
        print(f"\n{fault}: {sum(actions.values())} points over {len(actions)} actions: {actions}")


@dataclass(frozen=True)
class Told:
    """An action that nothing disturbs: the table it begins on, the rows before and after it (and on the way, where it
    undoes commits one by one), and its storage calls.
    """

    world: World
    before: Rows
    after: Rows
    passed: tuple[Rows, ...]
    calls: tuple[Call, ...]


@functools.cache
def told(action: Action, kind: Kind) -> Told:
    world = prepared(kind, action.commits)
    passed = () if action.passes is None else (rows_of(changed(world, action.passes, kind)),)
    if action.before is not None:
        world = stored(changed(world, action.before, kind))
    start = loaded(world)
    before = rows_of(start)
    counted = CountingStorage(start)
    action.run(counted, kind)
    return Told(world, before, rows_of(start), passed, tuple(counted.calls))


def changed(world: World, change: Callable[[Storage, Kind], object], kind: Kind) -> Storage:
    storage = loaded(world)
    change(storage, kind)
    return storage


def ensure_healed(fault: Fault, action: Action, kind: Kind, call: Call) -> None:
    """The action disturbed at one call leaves the table before or after it; the same again and a write heal it."""
    at = f"{action.name} {kind}, {fault.name} at {call}"
    case = told(action, kind)
    storage = loaded(case.world)
    again = action.redo
    disturbed = fault.disturbed(storage, call.n)
    if fault.dies:
        has_died = dies(action, kind, disturbed)
        found = rows_of(storage)
        # How often a temporary file is written to is up to the sizes of what is in it: a run may have a call less.
        assert has_died or (disturbed.count < call.n and found == case.after), at
    else:
        error = error_of(action, kind, disturbed)
        found = rows_of(storage)
        if error is None:
            assert found == case.after, at
        elif fault.errno:
            assert isinstance(error, Unavailable), f"{at}: {error!r}"
            assert error.facts["errno"] == fault.errno, f"{at}: {error!r}"
            assert error.remedy, f"{at}: {error!r}"
        if again is None and found == case.before:
            again = action.run
    assert found in (case.before, *case.passed, case.after), at
    try:
        if again is not None:
            again(storage, kind)
            found = rows_of(storage)
            assert found == case.after, at
        opened(storage, kind).upsert(table_of([row("next", "n", 1, "p1"), row("k2", "n", 99, "p0")]))
    except HudiError as error:
        raise AssertionError(f"{at}: {error}") from error
    assert rows_of(storage) == {**found, "next": "n", "k2": "n"}, at
    assert Table(load_handle(storage, Awake()), {}, ENGINE).validate() == [], at
    storage.forget()
    counts = COUNTS.setdefault(fault.name, {})
    counts[action.name] = counts.get(action.name, 0) + 1


def dies(action: Action, kind: Kind, storage: Storage) -> bool:
    """Whether the storage stopped answering while the action ran."""
    try:
        action.run(storage, kind)
    except Crash:
        return True
    return False


def error_of(action: Action, kind: Kind, storage: Storage) -> HudiError | None:
    """What a caller is told who lives on; an error of another kind is a finding."""
    try:
        action.run(storage, kind)
    except HudiError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("action", "kind"),
    [pytest.param(action, kind, id=f"{action.name}-{kind}") for action in ACTIONS for kind in action.kinds],
)
def test_an_action_that_dies_anywhere_leaves_a_whole_table_and_the_next_heals_it(action: Action, kind: Kind) -> None:
    calls = told(action, kind).calls
    offset = len(action.name) % EVERY % len(calls)  # another call of each action in a sample
    for call in calls[offset::EVERY]:
        ensure_healed(STOP, action, kind, call)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_an_action_disturbed_anywhere_leaves_a_whole_table_and_the_next_heals_it(action: Action, fault: Fault) -> None:
    points = [(kind, call) for kind in action.kinds for call in fault.points(told(action, kind).calls)]
    if not points:
        pytest.skip("the action makes no such call")
    offset = crc32(f"{action.name} {fault.name}".encode()) % FAULT_EVERY % len(points)
    for kind, call in points[offset::FAULT_EVERY]:
        ensure_healed(fault, action, kind, call)
