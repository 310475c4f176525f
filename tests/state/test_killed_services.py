"""Every service of a table, killed by SIGKILL on a real disk; then a reader, the service again or a writer, a clean.

1. A world is prepared once per service and kind of table, and copied for each kill. The victim is a process of its own;
   it dies before a change of the file system or in the middle of a write (see `hoodie.testing.killed`).
2. Then: readers, with and without the metadata table, see the rows before or after the service. Every other time the
   service is run again, else a writer comes first. Rows are right, `validate` finds nothing (so the metadata table
   equals the listing), and after compaction and clean no file is on disk that the table does not know.
3. `HOODIE_KILL_POINTS` kills of each service are spread over its kinds and its changes: `make test` takes one,
   `make crash` twenty. The counts are printed at the end.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import HudiError, Invalid
from hoodie.handle import open_handle
from hoodie.services.metadata_upkeep import keep_metadata
from hoodie.services.undoing.rollback import heal
from hoodie.table import Table, as_source, write
from hoodie.testing.killed import AFTER_ALL, Action, Killer, unsynced
from hoodie.testing.lake import Awake, row, table_of
from hoodie.testing.orphans import files_on_disk, let_days_pass, orphans

POINTS = int(os.environ.get("HOODIE_KILL_POINTS", "1"))
ENGINE = LocalEngine(1)
WRITE = "hoodie.datasource.write."
OPTIONS: dict[str, Any] = {
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "true",
    "hoodie.write.lock.wait_time_ms": "0",
}
EVENT_TIME = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
NEWEST_ONLY = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
LEFT_BY_DEAD = {"uncommitted", "timeline", "missing"}
"""What `validate` finds until a dead service is run again: files of a plan, instants that are half archived, log files
of older slices that a downgrade has renamed.
"""
COUNTS: dict[str, int] = {}

Rows = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """What table a service is put through."""

    version: int
    table_type: str
    metadata: bool = True

    @property
    def options(self) -> dict[str, Any]:
        """What makes such a table."""
        return {
            **OPTIONS,
            "hoodie.table.name": "killed",
            WRITE + "recordkey.field": "id",
            WRITE + "partitionpath.field": "part",
            "hoodie.table.ordering.fields": "ts",
            WRITE + "table.type": self.table_type,
            "hoodie.write.table.version": self.version,
            "hoodie.metadata.enable": str(self.metadata).lower(),
            **({WRITE + "payload.class": EVENT_TIME} if self.version == 6 else {}),
        }

    def __str__(self) -> str:
        return f"v{self.version}-{'mor' if self.table_type == 'MERGE_ON_READ' else 'cow'}"


COW = [Kind(version, "COPY_ON_WRITE") for version in (6, 8, 9)]
MOR = [Kind(version, "MERGE_ON_READ") for version in (6, 8, 9)]
ALL = COW + MOR


def opened(path: str, **more: Any) -> Table:
    return Table.open(path, options={**OPTIONS, **more}, engine=ENGINE, env=Awake())


def rows_of(path: str, *, metadata: bool = True, as_of: str | None = None) -> Rows:
    table = opened(path, **{"hoodie.metadata.enable": metadata})
    found = table.scan(columns=["id", "v"], as_of=as_of).read_all().to_pydict()
    assert len(found["id"]) == len(set(found["id"])), "a key occurs twice"
    return dict(zip(found["id"], found["v"], strict=True))


def upsert(path: str) -> None:
    opened(path).upsert(table_of([row("k1", "up", 50, "p1"), row("new", "new", 1, "p2")]))


def insert_overwrite(path: str) -> None:
    opened(path).insert_overwrite(table_of([row("o", "o", 1, "p0")]))


def upsert_with_services(path: str) -> None:
    """A write that is followed by all services, as `make bench` and every user of the defaults runs them."""
    limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    services = {
        "hoodie.clean.automatic": "true",
        "hoodie.archive.automatic": "true",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.metadata.compact.max.delta.commits": "1",
    }
    opened(path, **limits, **services).upsert(table_of([row("k1", "up", 50, "p1"), row("new", "new", 1, "p2")]))


def plan_compaction(path: str) -> None:
    opened(path).schedule_compaction()


def compact(path: str) -> None:
    opened(path).compact()


def compact_logs(path: str) -> None:
    options = {"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": "2"}
    opened(path).compact_logs(**options)


def clean(path: str) -> None:
    opened(path).clean(**{"hoodie.clean.commits.retained": "1"})


def archive(path: str) -> None:
    limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    opened(path).archive(**limits)


def roll_back_newest(path: str) -> None:
    if "k5" not in rows_of(path):  # the newest commit deleted it
        table = opened(path)
        table.rollback(table.timeline().completed_writes()[-1].requested)


def heal_writes(path: str) -> None:
    heal(open_handle(path, {}, Awake()), ENGINE)


def savepoint(path: str) -> None:
    table = opened(path)
    if not table.savepoints():
        table.savepoint()


def restore(path: str) -> None:
    table = opened(path)
    table.restore(table.savepoints()[0].instant)


def make_index(path: str) -> None:
    try:
        opened(path).create_index("record_index")
    except Invalid as error:
        assert "record_index" in opened(path).indexes(), error


def bring_to(version: int, path: str) -> None:
    opened(path).upgrade(version)


def compacted(path: str, _: Killer) -> None:
    if opened(path).config.is_merge_on_read:
        compact(path)


def compacted_and_cleaned(path: str, killer: Killer) -> None:
    """What lets an archiver archive: the metadata table was compacted."""
    compacted(path, killer)
    clean(path)
    keep_metadata(open_handle(path, {}, Awake()), resolve({"hoodie.metadata.compact.max.delta.commits": "1"}), ENGINE)


def write_killed(path: str, killer: Killer) -> None:
    """A write died when all but its completed instant was there."""
    killed_at = killer.kill(upsert, path, r"link \.hoodie/(timeline/)?[0-9_]+\.(delta)?commit$")
    assert killed_at != AFTER_ALL


def rollback_killed(path: str, killer: Killer) -> None:
    """And its rollback died when the files of the write were gone, and its instant was not."""
    write_killed(path, killer)
    assert killer.kill(heal_writes, path, r"remove \.hoodie/(timeline/)?[0-9]+\.[a-z.]*inflight$") != AFTER_ALL


def saved_then_changed(path: str, _: Killer) -> None:
    savepoint(path)
    upsert(path)
    opened(path).delete(table_of([row("k0", "", 60, "p0"), row("k1", "", 60, "p1")]))


@dataclass(frozen=True)
class Service:
    """`run` on tables of `kinds` after so many `commits`, which `before` prepared further. `dead` says what becomes of
    one that died when a writer comes: it is healed, or left to be run again, or no writer writes until then.
    """

    name: str
    run: Action
    kinds: Sequence[Kind]
    commits: int = 3
    before: Callable[[str, Killer], object] | None = None
    dead: Literal["healed", "left", "blocks"] = "healed"


SERVICES = [
    Service("upsert", upsert, MOR),
    Service("insert overwrite", insert_overwrite, MOR),
    Service("upsert with services", upsert_with_services, ALL, commits=6, dead="left"),
    Service("compaction plan", plan_compaction, MOR),
    Service("compaction", compact, MOR, dead="left"),
    Service("log compaction", compact_logs, MOR[1:], commits=5, dead="left"),
    Service("clean", clean, ALL, commits=5, before=compacted, dead="left"),
    Service("archive", archive, ALL, commits=7, before=compacted_and_cleaned, dead="left"),
    Service("rollback of a commit", roll_back_newest, ALL),
    Service("rollback of a killed write", heal_writes, ALL, before=write_killed),
    Service("rollback of a killed rollback", heal_writes, ALL, before=rollback_killed),
    Service("savepoint", savepoint, ALL),
    Service("restore", restore, ALL, before=saved_then_changed, dead="blocks"),
    Service("metadata initialisation", upsert, [replace(kind, metadata=False) for kind in ALL]),
    Service("index build", make_index, ALL, dead="left"),
    Service("upgrade 6 to 9", partial(bring_to, 9), [COW[0], MOR[0]], dead="left"),
    Service("downgrade 9 to 6", partial(bring_to, 6), [COW[2], MOR[2]], dead="left"),
]


@dataclass(frozen=True)
class World:
    """A table before a service, its rows then and afterwards, and how many changes the service makes. `between`: what
    else a reader may see meanwhile, since a restore takes one commit back after the other.
    """

    path: str
    before: Rows
    after: Rows
    changes: int
    between: Sequence[Rows] = ()


class Worlds:
    """Prepared tables, each made when it is first asked for."""

    def __init__(self, folder: Path, killer: Killer) -> None:
        self.killer = killer
        self._folder = folder
        self._names = itertools.count()
        self._tables: dict[tuple[Kind, int], str] = {}
        self._worlds: dict[tuple[str, Kind], World] = {}

    def world(self, service: Service, kind: Kind) -> World:
        known = self._worlds.get((service.name, kind))
        if known is None:
            known = self._worlds[service.name, kind] = self._made(service, kind)
        return known

    def copy(self, path: str) -> str:
        made = self._name()
        shutil.copytree(path, made)
        return made

    def _made(self, service: Service, kind: Kind) -> World:
        table = self._tables.get((kind, service.commits))
        if table is None:
            table = self._tables[kind, service.commits] = self._table(kind, service.commits)
        path = self.copy(table)
        if service.before is not None:
            service.before(path, self.killer)
        done = self.copy(path)
        changes = self.killer.changes(service.run, done)
        writes = opened(path).timeline().completed_writes() if service.dead == "blocks" else ()
        between = [rows_of(path, as_of=one.requested) for one in writes]
        world = World(path, rows_of(path), rows_of(done), len(changes), between)
        shutil.rmtree(done)
        return world

    def _table(self, kind: Kind, commits: int) -> str:
        """A table with some history: base files, updates (in log files of a merge-on-read table), a delete."""
        path = self._name()
        first = table_of([row(f"k{n}", "0", 1, f"p{n % 2}") for n in range(6)])
        write(as_source(first), path, kind.options, "append", engine=ENGINE, env=Awake())
        table = opened(path, **{"hoodie.metadata.enable": kind.metadata})
        for number in range(1, commits):
            table.upsert(table_of([row(f"k{n}", str(number), number + 1, f"p{n % 2}") for n in range(number % 3, 4)]))
        table.delete(table_of([row("k5", "", 99, "p1")]))
        return path

    def _name(self) -> str:
        return str(self._folder / f"table-{next(self._names)}")


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    with Killer() as killer, unsynced():
        yield Worlds(tmp_path_factory.mktemp("killed"), killer)
    if COUNTS:
        print(f"\nkills: {sum(COUNTS.values())} in {len(COUNTS)} services: {COUNTS}")


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_a_killed_service_leaves_a_whole_table_that_heals_without_orphans(service: Service, worlds: Worlds) -> None:
    for kind, part, again in _points(service):
        world = worlds.world(service, kind)
        path = worlds.copy(world.path)
        killed_at = worlds.killer.kill(service.run, path, 1 + int(part * (world.changes + 1)))
        at = f"{service.name} {kind} ({path}), killed at: {killed_at}"
        try:
            _ensure_healed(path, world, service, again=again)
        except (AssertionError, HudiError) as error:
            raise AssertionError(f"{at}: {error}") from error
        shutil.rmtree(path)
        COUNTS[service.name] = COUNTS.get(service.name, 0) + 1


def _points(service: Service) -> Iterator[tuple[Kind, float, bool]]:
    """Of each kill the kind of table, how far the service gets, and whether it is run again before a writer comes."""
    shift = len(service.name)  # another kind, another part of each service in a sample
    for n in range(POINTS):
        kind = service.kinds[(n + shift) % len(service.kinds)]
        part = (n + (shift % 8 + 0.5) / 8) / POINTS
        again = service.dead == "blocks" or (n + n // len(service.kinds) + shift) % 2 == 0
        yield kind, part, again


def _ensure_healed(path: str, world: World, service: Service, *, again: bool) -> None:
    let_days_pass(path)  # for what only time tells to be dead
    found = rows_of(path)
    assert found in (world.before, world.after, *world.between)
    assert rows_of(path, metadata=False) == found, "the metadata table says something else than the listing"
    allowed = [world.after]
    if again:
        service.run(path)
        assert rows_of(path) == world.after
    elif found != world.after:
        allowed.append(world.before)  # or what had been planned is finished before the write
    written = {"next": "n", "k2": "n"}
    write_next(path)
    rows = rows_of(path)
    assert rows in [{**one, **written} for one in allowed]
    if not again and service.dead == "left":
        assert {one.kind for one in opened(path).validate()} <= LEFT_BY_DEAD
        service.run(path)
        write_next(path)
        rows = {**world.after, **written}
        assert rows_of(path) == rows
    assert opened(path).validate() == []
    _keep_newest_only(path)
    assert rows_of(path) == rows_of(path, metadata=False) == rows
    assert opened(path).validate() == []
    assert orphans(path) == []


def write_next(path: str) -> None:
    opened(path).upsert(table_of([row("next", "n", 1, "p1"), row("k2", "n", 99, "p0")]))


def _keep_newest_only(path: str) -> None:
    """What leaves one slice of each file group."""
    table = opened(path)
    while table.config.is_merge_on_read and table.compact() is not None:
        pass
    for one in table.savepoints():
        table.delete_savepoint(one.instant)
    table.clean(**NEWEST_ONLY)


def two_steps(folder: str) -> None:
    os.mkdir(f"{folder}/made")
    file = os.open(f"{folder}/made/file", os.O_WRONLY | os.O_CREAT)
    os.write(file, b"12345678")
    os.close(file)
    os.rename(f"{folder}/made/file", f"{folder}/renamed")


def test_a_victim_dies_at_every_change_and_in_the_middle_of_a_write(worlds: Worlds, tmp_path: Path) -> None:
    steps = ["mkdir made", "open made/file", "write made/file", "rename renamed", str(AFTER_ALL)]
    left = [{}, {}, {"made/file": b"1234"}, {"made/file": b"12345678"}, {"renamed": b"12345678"}]
    for at, (step, files) in enumerate(zip(steps, left, strict=True), 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        assert str(worlds.killer.kill(two_steps, str(folder), at)) == step
        assert {name: (folder / name).read_bytes() for name in files_on_disk(str(folder))} == files, step
    with pytest.raises(AssertionError, match="not by the kill.*\n(.*\n)*FileExistsError"):
        worlds.killer.kill(two_steps, str(tmp_path / "3"), 9)
