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
4. All of it again with files under sixteen prefixes of another store, where calls of both are disturbed: a quarter of
   the points. An action that withdrew the metadata table there and died leaves what readers refuse, with the remedy.
5. Some of these where the two stores are buckets of an S3 server, each of which opens to a key of its own alone:
   `HOODIE_BUCKET_CRASHES` of each action, evenly over all faults.
6. `HOODIE_CRASH_EVERY` thins the points of the main fault out, `HOODIE_FAULT_EVERY` (seven times that, if not given)
   those of the others: `make test-deep` and `make test-more` together take a sample. The counts are printed at the end
   of the run; docs/reliability.md has those of a whole one.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from zlib import crc32

import pytest

from hoodie.errors import CommitUnknown, Corrupt, HudiError, Unavailable
from hoodie.storage import MemoryStorage, Storage
from hoodie.table import Table
from hoodie.testing.closed_buckets import closed_buckets
from hoodie.testing.counting_storage import CHANGING, OUTPUT, WRITING, Call, CountingStorage, Crash
from hoodie.testing.crash_actions import (
    ACTIONS,
    ENGINE,
    Action,
    Rows,
    World,
    fill,
    handle_of,
    loaded,
    opened,
    prepared,
    rows_of,
    stored,
)
from hoodie.testing.lake import row, table_of
from hoodie.testing.s3_server import S3Server, s3_server
from hoodie.testing.table_kind import Kind
from hoodie.testing.two_stores import Joined
from hoodie.timeline import is_table

__all__ = ["s3_server"]

EVERY = int(os.environ.get("HOODIE_CRASH_EVERY", "41"))
FAULT_EVERY = int(os.environ.get("HOODIE_FAULT_EVERY", str(7 * EVERY)))


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
PREFIXED_EVERY = 4
"""Of so many points one is tried where files lie under prefixes of another store."""
BUCKET_CRASHES = int(os.environ.get("HOODIE_BUCKET_CRASHES", "1"))

Place = Callable[[World], MemoryStorage | Joined]
"""Puts a world where a point is tried."""


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
    passed = () if action.passes is None else (rows_of(changed(world, action.passes, kind), kind),)
    if action.before is not None:
        world = stored(changed(world, action.before, kind))
    start = loaded(world)
    before = rows_of(start, kind)
    counted = CountingStorage(start)
    action.run(counted, kind)
    assert any(call.op in CHANGING for call in counted.calls), f"{action.name} has nothing to do on {kind}"
    return Told(world, before, rows_of(start, kind), passed, tuple(counted.calls))


def changed(world: World, change: Callable[[Storage, Kind], object], kind: Kind) -> Storage:
    storage = loaded(world)
    change(storage, kind)
    return storage


def ensure_healed(fault: Fault, action: Action, kind: Kind, call: Call, place: Place = loaded) -> None:
    """The action disturbed at one call leaves the table before or after it; the same again and a write heal it."""
    at = f"{action.name} {kind}, {fault.name} at {call}"
    case = told(action, kind)
    storage = place(case.world)
    again = action.redo
    disturbed = fault.disturbed(storage, call.n)
    if fault.dies:
        has_died = dies(action, kind, disturbed)
        mend(storage, kind)
        found = rows_of(storage, kind)
        # How often a temporary file is written to is up to the sizes of what is in it: a run may have a call less.
        assert has_died or (disturbed.count < call.n and found == case.after), at
    else:
        error = error_of(action, kind, disturbed)
        mend(storage, kind)
        found = rows_of(storage, kind)
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
            found = rows_of(storage, kind)
            assert found == case.after, at
        opened(storage, kind).upsert(table_of([row("next", "n", 1, "p1"), row("k2", "n", 99, "p0")]))
    except HudiError as error:
        raise AssertionError(f"{at}: {error}") from error
    assert rows_of(storage, kind) == {**found, "next": "n", "k2": "n"}, at
    assert Table(handle_of(storage, kind), {}, ENGINE).validate() == [], at
    storage.forget()
    counts = COUNTS.setdefault(fault.name, {})
    counts[action.name] = counts.get(action.name, 0) + 1


def mend(storage: Storage, kind: Kind) -> None:
    """What a user does whose table with storage paths lost its metadata table to an action that did not end."""
    if kind.strategy and is_table(kind.laid(storage)):
        table = opened(storage, kind)
        if not table.config.is_metadata_table_ready and table.timeline().completed():
            with pytest.raises(Corrupt, match="hoodie doctor"):
                table.scan()
            table.indexes.rebuild()


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


def prefixed(action: Action) -> tuple[Kind, ...]:
    """The kinds of an action's tables, with files under prefixes of another store."""
    return tuple(replace(kind, strategy="bits:4") for kind in action.kinds if kind.metadata)


def ensure_all_healed(action: Action, kind: Kind, every: int) -> None:
    """The process dies at one in `every` calls, other ones of each action."""
    calls = told(action, kind).calls
    for call in calls[len(action.name) % every % len(calls) :: every]:
        ensure_healed(STOP, action, kind, call)


def ensure_disturbed_healed(fault: Fault, action: Action, kinds: tuple[Kind, ...], every: int) -> None:
    """The fault comes at one in `every` of the calls at which it makes a difference."""
    points = [(kind, call) for kind in kinds for call in fault.points(told(action, kind).calls)]
    if points:  # the action may make no such call
        for kind, call in points[crc32(f"{action.name} {fault.name}".encode()) % every % len(points) :: every]:
            ensure_healed(fault, action, kind, call)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("action", "kind"),
    [pytest.param(action, kind, id=f"{action.name}-{kind}") for action in ACTIONS for kind in action.kinds],
)
def test_an_action_that_dies_anywhere_leaves_a_whole_table_and_the_next_heals_it(action: Action, kind: Kind) -> None:
    ensure_all_healed(action, kind, EVERY)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_an_action_disturbed_anywhere_leaves_a_whole_table_and_the_next_heals_it(action: Action, fault: Fault) -> None:
    ensure_disturbed_healed(fault, action, action.kinds, FAULT_EVERY)


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    ("action", "kind"),
    [pytest.param(action, kind, id=f"{action.name}-{kind}") for action in ACTIONS for kind in prefixed(action)],
)
def test_an_action_over_two_stores_that_dies_anywhere_is_healed_as_well(action: Action, kind: Kind) -> None:
    ensure_all_healed(action, kind, PREFIXED_EVERY * EVERY)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("action", [one for one in ACTIONS if prefixed(one)], ids=lambda action: action.name)
def test_an_action_over_two_stores_disturbed_anywhere_is_healed_as_well(action: Action) -> None:
    for fault in FAULTS:
        ensure_disturbed_healed(fault, action, prefixed(action), PREFIXED_EVERY * FAULT_EVERY)


@pytest.fixture(scope="module")
def in_buckets(s3_server: S3Server) -> Iterator[Place]:
    """Puts worlds into folders of two buckets, each with a key of its own."""
    with closed_buckets(s3_server) as closed:
        mine, other = closed.new_bucket(), closed.new_bucket()
        names = map(str, itertools.count())

        def place(world: World) -> Joined:
            name = next(names)
            stores = Joined(closed.storage(mine, name), closed.storage(other, name))
            fill(stores, world)
            return stores

        yield place


def in_stores(action: Action) -> tuple[Kind, ...]:
    """Those for object stores. Log files get no other names there, as nothing keeps the times by which Hudi 1.x would
    find them, so that such a downgrade is refused.
    """
    renames = action.name == "downgrade to 6"
    return tuple(kind for kind in prefixed(action) if not (renames and kind.table_type == "MERGE_ON_READ"))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("action", [one for one in ACTIONS if in_stores(one)], ids=lambda action: action.name)
def test_an_action_over_two_buckets_disturbed_anywhere_is_healed_as_well(action: Action, in_buckets: Place) -> None:
    points = [
        (fault, kind, call)
        for fault in (STOP, *FAULTS)
        for kind in in_stores(action)
        for call in fault.points(told(action, kind).calls)
    ]
    first = crc32(action.name.encode())
    for n in range(BUCKET_CRASHES):
        fault, kind, call = points[(first + n * len(points) // BUCKET_CRASHES) % len(points)]
        ensure_healed(fault, action, kind, call, in_buckets)
