"""Every service of a table as something to be killed, and what has to hold after it.

1. A service runs on a path and an engine: in a victim of `killed.Killer` on the local one, in a family of
   `killed_spark` on Spark's. Tables are small; nothing runs after a commit unless it is what is tested.
2. After a kill readers, with and without the metadata table, see the rows before or after the service. The service is
   run again, or a writer comes first. Rows are right, `validate` finds nothing (so the metadata table equals the
   listing), and after compaction and clean no file is there that the table does not know (`ensure_healed`).
3. A table with storage paths is not read without its metadata table: `validate` compares that with the listing. One
   that lost it to the dead is mended as its user is told to.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from hoodie.config import resolve
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import Invalid
from hoodie.services.metadata_upkeep import keep_metadata
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.state.handle import TableHandle, open_handle
from hoodie.table import Table, as_source, write
from hoodie.testing.killed import AFTER_ALL, Killer
from hoodie.testing.lake import Awake, row, table_of
from hoodie.testing.orphans import orphans
from hoodie.testing.table_kind import COW, MOR, Kind

LOCAL: Final = LocalEngine(1)
OPTIONS: Final[dict[str, Any]] = {
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "true",
    "hoodie.write.lock.wait_time_ms": "0",
}
NEWEST_ONLY: Final = {
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
}
LEFT_BY_DEAD: Final = {"orphan", "uncommitted", "timeline", "missing"}
"""What `validate` finds until a dead service is run again: files of a plan, instants that are half archived, log files
of older slices that a downgrade has renamed.
"""
LEFT_BEFORE_ALL: Final = LEFT_BY_DEAD | {"partition", "pending", "properties", "version"}
"""And until anybody acts. Never among them: rows that are lost or wrong, indexes that say what is not so."""

Rows = dict[str, Any]


class Run(Protocol):
    """What a service does to the table at a path."""

    def __call__(self, path: str, engine: Engine = LOCAL) -> object: ...


ALL: Final = COW + MOR


class Tables:
    """Paths of tables in a folder, and copies of tables there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = itertools.count()

    def name(self) -> str:
        """A path where nothing is."""
        return str(self._folder / f"table-{next(self._names)}")

    def copy(self, path: str) -> str:
        """The path of a copy."""
        made = self.name()
        shutil.copytree(path, made)
        return made


def opened(path: str, engine: Engine = LOCAL, **more: Any) -> Table:
    """The table; another engine than the local one is given all work, however small."""
    spread = {} if isinstance(engine, LocalEngine) else {"hoodie.engine.local.max.bytes": "0"}
    return Table.open(path, options={**OPTIONS, **spread, **more}, engine=engine, env=Awake())


def handle_of(path: str) -> TableHandle:
    """The table as it is now."""
    return open_handle(path, {key: str(value) for key, value in OPTIONS.items()}, Awake())


def rows_of(path: str, *, metadata: bool = True, as_of: str | None = None) -> Rows:
    """`v` by `id`, read with or without the metadata table."""
    table = opened(path, LOCAL, **{"hoodie.metadata.enable": metadata})
    found = table.scan(columns=["id", "v"], as_of=as_of).read_all().to_pydict()
    assert len(found["id"]) == len(set(found["id"])), "a key occurs twice"
    return dict(zip(found["id"], found["v"], strict=True))


def table_with_history(path: str, kind: Kind, commits: int) -> None:
    """Makes a table: base files, updates (in log files of a merge-on-read table), a delete."""
    first = table_of([row(f"k{n}", "0", 1, f"p{n % 2}") for n in range(6)])
    options = {**OPTIONS, "hoodie.table.name": "killed", **kind.options}
    write(as_source(first), path, options, "append", engine=LOCAL, env=Awake())
    table = opened(path, LOCAL, **{"hoodie.metadata.enable": kind.metadata})
    for number in range(1, commits):
        table.upsert(table_of([row(f"k{n}", str(number), number + 1, f"p{n % 2}") for n in range(number % 3, 4)]))
    table.delete(table_of([row("k5", "", 99, "p1")]))


def upsert(path: str, engine: Engine = LOCAL) -> None:
    opened(path, engine).upsert(table_of([row("k1", "up", 50, "p1"), row("new", "new", 1, "p2")]))


def insert_overwrite(path: str, engine: Engine = LOCAL) -> None:
    opened(path, engine).insert_overwrite(table_of([row("o", "o", 1, "p0")]))


def upsert_with_services(path: str, engine: Engine = LOCAL) -> None:
    """A write that is followed by all services, as `make bench` and every user of the defaults runs them."""
    limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    services = {
        "hoodie.clean.automatic": "true",
        "hoodie.archive.automatic": "true",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.metadata.compact.max.delta.commits": "1",
    }
    rows = table_of([row("k1", "up", 50, "p1"), row("new", "new", 1, "p2")])
    opened(path, engine, **limits, **services).upsert(rows)


def plan_compaction(path: str, engine: Engine = LOCAL) -> None:
    opened(path, engine).services.schedule_compaction()


def compact(path: str, engine: Engine = LOCAL) -> None:
    opened(path, engine).services.compact()


def compact_logs(path: str, engine: Engine = LOCAL) -> None:
    options = {"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": "2"}
    opened(path, engine).services.compact_logs(**options)


def cluster(path: str, engine: Engine = LOCAL) -> None:
    order = {"hoodie.clustering.plan.strategy.sort.columns": "v,ts", "hoodie.layout.optimize.strategy": "HILBERT"}
    opened(path, engine).services.cluster(**order)


def compact_base_files(path: str, engine: Engine = LOCAL) -> None:
    opened(path, engine).services.compact_base_files()


def clean(path: str, engine: Engine = LOCAL) -> None:
    opened(path, engine).services.clean(**{"hoodie.clean.commits.retained": "1"})


def archive(path: str, engine: Engine = LOCAL) -> None:
    limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    opened(path, engine).services.archive(**limits)


def roll_back_newest(path: str, engine: Engine = LOCAL) -> None:
    if "k5" not in rows_of(path):  # the newest commit deleted it
        table = opened(path, engine)
        table.services.rollback(table.timeline().completed_writes()[-1].requested)


def roll_back_failed(path: str, engine: Engine = LOCAL) -> None:
    roll_back_failed_writes(handle_of(path), engine)


def savepoint(path: str, engine: Engine = LOCAL) -> None:
    table = opened(path, engine)
    if not table.savepoints:
        table.savepoints.create()


def restore(path: str, engine: Engine = LOCAL) -> None:
    table = opened(path, engine)
    table.services.restore(table.savepoints[0].instant)


def make_index(path: str, engine: Engine = LOCAL) -> None:
    try:
        opened(path, engine).indexes.create("record_index")
    except Invalid:
        if "record_index" not in opened(path).indexes:  # an earlier run had made it
            raise


def bring_to(version: int, path: str, engine: Engine = LOCAL) -> None:
    opened(path, engine).services.upgrade(version)


def appended(path: str, _: Killer) -> None:
    """Each partition has small base files without log files, too."""
    for number in range(2):
        opened(path).append(table_of([row(f"a{number}-{n}", "0", 1, f"p{n}") for n in range(2)]))


def compacted(path: str, _: Killer) -> None:
    if opened(path).config.is_merge_on_read:
        compact(path)


def compacted_twice(path: str, killer: Killer) -> None:
    """What lets a cleaner clean: the state before the newest commit stays, so what is older has to be there."""
    compacted(path, killer)
    upsert(path)
    compacted(path, killer)


def compacted_and_cleaned(path: str, killer: Killer) -> None:
    """What lets an archiver archive: the metadata table was compacted."""
    compacted(path, killer)
    clean(path)
    keep_metadata(handle_of(path), resolve({"hoodie.metadata.compact.max.delta.commits": "1"}), LOCAL)


def write_killed(path: str, killer: Killer) -> None:
    """A write died when all but its completed instant was there."""
    killed_at = killer.kill(upsert, path, r"(link|create) \.hoodie/(timeline/)?[0-9_]+\.(delta)?commit$")
    assert killed_at != AFTER_ALL


def rollback_killed(path: str, killer: Killer) -> None:
    """And its rollback died when the files of the write were gone, and its instant was not."""
    write_killed(path, killer)
    assert (
        killer.kill(roll_back_failed, path, r"(remove|delete) \.hoodie/(timeline/)?[0-9]+\.[a-z.]*inflight$")
        != AFTER_ALL
    )


def saved_then_changed(path: str, _: Killer) -> None:
    savepoint(path)
    upsert(path)
    opened(path).delete(table_of([row("k0", "", 60, "p0"), row("k1", "", 60, "p1")]))


@dataclass(frozen=True)
class Service:
    """`run` on tables of `kinds` after so many `commits`, which `before` prepared further. `dead` says what becomes of
    one that died when a writer comes: it is healed, or left to be run again, or no writer writes until then. `work`: a
    regular expression for a change that an engine's task makes in the middle of the service (empty: it has none).
    """

    name: str
    run: Run
    kinds: Sequence[Kind]
    commits: int = 3
    before: Callable[[str, Killer], object] | None = None
    dead: Literal["healed", "left", "blocks"] = "healed"
    work: str = ""


_BASE_FILE = r"write p\d/[^.][^/]*\.parquet$"
_LOG_FILE = r"write p\d/\.[^/]*\.log\."
_DATA_GOES = r"remove p\d/"
_LISTED = [replace(kind, metadata=False) for kind in ALL]

SERVICES: Final = [
    Service("upsert", upsert, MOR, work=_LOG_FILE),
    Service("insert overwrite", insert_overwrite, MOR, work=_BASE_FILE),
    Service("upsert with services", upsert_with_services, ALL, commits=6, dead="left"),
    Service("compaction plan", plan_compaction, MOR),
    Service("compaction", compact, MOR, dead="left", work=_BASE_FILE),
    Service("log compaction", compact_logs, MOR[1:], commits=5, dead="left", work=_LOG_FILE),
    Service("clustering", cluster, ALL, before=appended, dead="blocks", work=_BASE_FILE),
    Service("base-file compaction", compact_base_files, ALL, before=appended, dead="blocks", work=_BASE_FILE),
    Service("clean", clean, ALL, commits=5, before=compacted_twice, dead="left", work=_DATA_GOES),
    Service("archive", archive, ALL, commits=7, before=compacted_and_cleaned, dead="left"),
    Service("rollback of a commit", roll_back_newest, ALL),
    Service("rollback of a killed write", roll_back_failed, ALL, before=write_killed),
    Service("rollback of a killed rollback", roll_back_failed, ALL, before=rollback_killed),
    Service("savepoint", savepoint, ALL),
    Service("restore", restore, ALL, before=saved_then_changed, dead="blocks", work=_DATA_GOES),
    Service("metadata initialisation", upsert, _LISTED),
    Service("index build", make_index, ALL, dead="left", work=r"write \.hoodie/metadata/"),
    Service("upgrade 6 to 9", partial(bring_to, 9), [COW[0], MOR[0], _LISTED[0]], dead="left", work=_BASE_FILE),
    Service("downgrade 9 to 6", partial(bring_to, 6), [COW[2], MOR[2], _LISTED[5]], dead="left", work=_BASE_FILE),
]


def service_named(name: str) -> Service:
    """The one of `SERVICES` with this name."""
    return next(one for one in SERVICES if one.name == name)


def kills_of(service: Service, points: int) -> Iterator[tuple[Kind, float, bool]]:
    """Of each of so many kills the kind of table, how far the service gets, and whether it is run again before a writer
    comes.
    """
    shift = len(service.name)  # another kind, another part of each service in a sample
    for n in range(points):
        kind = service.kinds[(n + shift) % len(service.kinds)]
        part = (n + (shift % 8 + 0.5) / 8) / points
        again = service.dead == "blocks" or (n + n // len(service.kinds) + shift) % 2 == 0
        yield kind, part, again


@dataclass(frozen=True)
class World:
    """A table before a service, and its rows then and afterwards. `between`: what else a reader may see meanwhile,
    since a restore takes one commit back after the other.
    """

    path: str
    before: Rows
    after: Rows
    between: Sequence[Rows] = ()


def world_of(service: Service, path: str, done: str) -> World:
    """The world of a service on the table at `path`; at `done` is a copy on which it has run."""
    writes = opened(path).timeline().completed_writes() if service.dead == "blocks" else ()
    between = [rows_of(path, as_of=one.requested) for one in writes]
    return World(path, rows_of(path), rows_of(done), between)


def ensure_healed(path: str, world: World, service: Service, *, again: bool) -> None:
    """Checks that a table on which a service died is whole and comes to be as if nothing had happened.

    `again`: the service is run again before a writer comes, else after it. On a disk `let_days_pass` comes before, for
    what only time tells to be dead.
    """
    _mend(path)
    found = rows_of(path)
    assert found in (world.before, world.after, *world.between)
    _ensure_listed(path, found)
    allowed = [world.after]
    if again:
        service.run(path)
        assert rows_of(path) == world.after
    elif found != world.after:
        allowed.append(world.before)  # or what had been planned is finished before the write
    write_next(path)
    rows = rows_of(path)
    assert rows in [{**one, **WRITTEN} for one in allowed]
    if not again and service.dead == "left":
        assert {one.kind for one in opened(path).validate()} <= LEFT_BY_DEAD
        service.run(path)
        write_next(path)
        rows = {**world.after, **WRITTEN}
        assert rows_of(path) == rows
    ensure_tidy(path, rows)


def ensure_tidy(path: str, rows: Rows) -> None:
    """Checks that a table at which nobody died or works has these rows, and nothing besides what it needs."""
    assert opened(path).validate() == []
    keep_newest_only(path)
    assert rows_of(path) == rows
    _ensure_listed(path, rows)
    assert opened(path).validate() == []
    assert orphans(path, OPTIONS) == []


def _mend(path: str) -> None:
    table = opened(path)
    if table.config.is_federated and not table.config.is_metadata_table_ready:
        table.indexes.rebuild()


def _ensure_listed(path: str, rows: Rows) -> None:
    """Checks that the metadata table says what a listing says."""
    table = opened(path)
    if table.config.is_federated:
        found = table.validate()
        assert {one.kind for one in found} <= LEFT_BEFORE_ALL, found
    else:
        assert rows_of(path, metadata=False) == rows, "the metadata table says something else than the listing"


WRITTEN: Final = {"next": "n", "k2": "n"}


def write_next(path: str) -> None:
    """A writer comes: afterwards the table has the rows `WRITTEN`."""
    opened(path).upsert(table_of([row("next", "n", 1, "p1"), row("k2", "n", 99, "p0")]))


def keep_newest_only(path: str) -> None:
    """What leaves one slice of each file group."""
    table = opened(path)
    while table.config.is_merge_on_read and table.services.compact() is not None:
        pass
    for one in table.savepoints:
        table.savepoints.delete(one.instant)
    table.services.clean(**NEWEST_ONLY)
