"""Spark drivers and Python workers killed by SIGKILL in the middle of writes and of table services.

1. A driver dies with its JVM and its workers at a change that one of them makes to the table (`testing.killed_spark`).
   What it left is read, healed and continued by this process, by the rules of `testing.killed_services`.
2. When workers only die, Spark runs their tasks again: the job ends well, every row is there once, and of the first
   attempts nothing is left.
3. `HOODIE_SPARK_KILLS` kills of each service are spread over its kinds of tables and its changes, one in four of them
   of workers: `make crash` makes eight. `make test-more` makes one of some services, in the middle of a task. The
   counts are printed at the end.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie import Table
from hoodie.errors import HudiError
from hoodie.table import as_source, write
from hoodie.testing.killed import Killer, unsynced
from hoodie.testing.killed_services import (
    WRITTEN,
    Kind,
    Service,
    Tables,
    World,
    ensure_healed,
    ensure_tidy,
    rows_of,
    service_named,
    table_with_history,
    world_of,
    write_next,
)
from hoodie.testing.killed_spark import Family, Victim
from hoodie.testing.orphans import let_days_pass, orphans

pytestmark = [pytest.mark.spark, pytest.mark.long]

KILLS = int(os.environ.get("HOODIE_SPARK_KILLS", "0"))
PROGRAM = Path(__file__).parent / "programs" / "killed_driver.py"
SERVICES = [
    "compaction",
    "log compaction",
    "clustering",
    "base-file compaction",
    "clean",
    "index build",
    "restore",
    "upgrade 6 to 9",
    "downgrade 9 to 6",
]
SAMPLE: dict[str, Victim] = {
    "log compaction": "workers",
    "clustering": "workers",
    "index build": "workers",
    "upgrade 6 to 9": "workers",
    "compaction": "driver",
}
"""Whom `make test-more` kills in which service; a driver that is killed takes the longest, as another has to start."""
WORKERS_EACH = 4
"""One kill in so many is one of workers only."""
COUNTS: Counter[str] = Counter()

OLD = range(2_000)
NEW = {"upsert": range(500, 2_000), "bulk_insert": range(2_000, 4_000)}
"""The ids of the rows of a write. An upsert brings no new ones: they would go to base files."""
BASE_FILE, LOG_FILE = r"write p\d/[^.][^/]*\.parquet$", r"write p\d/\.[^/]*\.log\."
MARKER, INFLIGHT = r"link \.hoodie/\.temp/[^/]*/p\d/", r"link \.hoodie/timeline/.*\.inflight$"
LISTS, LIST = r"link \.hoodie/\.temp/[^/]*/MARKERS\.type$", r"link \.hoodie/\.temp/[^/]*/MARKERS\d"
BEFORE = {n: f"old {n}" for n in OLD}
NEWEST_ONLY = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


class Families:
    """One family at a time, used until it is killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: Family | None = None

    def running(self) -> Family:
        if self._last is None or not self._last.is_alive:
            self._last = Family(PROGRAM, self._folder)
        return self._last

    def stop(self) -> None:
        if self._last is not None and self._last.is_alive:
            self._last.stop()


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Families]:
    made = Families(tmp_path_factory.mktemp("family"))
    try:
        yield made
    finally:
        made.stop()


def _table(base: Path, table_type: str, version: int) -> str:
    """A table with the rows `OLD`."""
    options = {
        "hoodie.table.name": "killed",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.write.table.version": str(version),
    }
    write(as_source(_rows(OLD, "old", 1)), str(base), options, "append")
    return str(base)


def _rows(ids: range, text: str, ts: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "part": [f"p{n % 2}" for n in ids],
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "v": [f"{text} {n}" for n in ids],
        }
    )


@pytest.mark.parametrize(("table_type", "at"), [("COPY_ON_WRITE", BASE_FILE), ("MERGE_ON_READ", LOG_FILE)])
def test_rows_of_killed_workers_are_written_once(families: Families, table_type: str, at: str, tmp_path: Path) -> None:
    base = _table(tmp_path / "table", table_type, 9)
    families.running().do_without_workers(_job(base, "upsert"), base, at)
    assert rows_of(base) == _after("upsert")
    _ensure_healed(base, "upsert")


@pytest.mark.parametrize(
    ("table_type", "version", "operation", "at"),
    [
        ("COPY_ON_WRITE", 9, "bulk_insert", BASE_FILE),
        ("COPY_ON_WRITE", 6, "upsert", MARKER),
        ("COPY_ON_WRITE", 6, "upsert", LIST),
        ("COPY_ON_WRITE", 9, "upsert", LISTS),
        ("MERGE_ON_READ", 9, "upsert", LOG_FILE),
        ("MERGE_ON_READ", 8, "bulk_insert", INFLIGHT),
    ],
)
def test_what_a_killed_driver_left_is_healed(
    families: Families, table_type: str, version: int, operation: str, at: str, tmp_path: Path
) -> None:
    base = _table(tmp_path / "table", table_type, version)
    markers = "DIRECT" if at == MARKER else None
    print(f"killed at: {families.running().die(_job(base, operation, markers), base, at)}")
    _ensure_healed(base, operation)


def _job(base: str, operation: str, markers: str | None = None) -> dict[str, object]:
    ids = NEW[operation]
    return {"path": base, "operation": operation, "first": ids.start, "last": ids.stop, "markers": markers}


def _after(operation: str) -> dict[int, str]:
    return {**BEFORE, **{n: f"new {n}" for n in NEW[operation]}}


def _ensure_healed(base: str, operation: str) -> None:
    let_days_pass(base)  # for what only time tells to be dead
    found = rows_of(base)
    assert found in (BEFORE, _after(operation))
    table = Table.open(base)
    table.upsert(_rows(range(5), "next", 3))
    expected = {**found, **{n: f"next {n}" for n in range(5)}}
    assert rows_of(base) == expected
    assert table.validate() == []
    while table.config.is_merge_on_read and table.services.compact() is not None:
        pass
    table.services.clean(**NEWEST_ONLY)
    assert rows_of(base) == expected
    assert orphans(base) == []


class Worlds(Tables):
    """Prepared tables with what a service makes of them, each made when it is first asked for."""

    def __init__(self, folder: Path, killer: Killer) -> None:
        super().__init__(folder)
        self._killer = killer
        self._worlds: dict[tuple[str, Kind], World] = {}
        self._counts: dict[tuple[str, Kind], dict[Victim, int]] = {}

    def world(self, service: Service, kind: Kind) -> World:
        """The world of a service that runs in this process."""
        known = self._worlds.get((service.name, kind))
        if known is None:
            path = self.name()
            table_with_history(path, kind, service.commits)
            if service.before is not None:
                service.before(path, self._killer)
            done = self.copy(path)
            service.run(done)
            known = self._worlds[service.name, kind] = world_of(service, path, done)
            shutil.rmtree(done)
        return known

    def count(self, service: Service, kind: Kind, family: Family) -> dict[Victim, int]:
        """How many changes the service makes on Spark: all together, and those of workers. It makes the same rows."""
        known = self._counts.get((service.name, kind))
        if known is None:
            world = self.world(service, kind)
            done = self.copy(world.path)
            _, told = family.do({"service": service.name, "path": done}, done)
            assert rows_of(done) == world.after, f"{service.name} {kind} on Spark"
            known = self._counts[service.name, kind] = {"driver": len(told.changes), "workers": len(told.of_workers)}
            shutil.rmtree(done)
        return known


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    with Killer() as killer, unsynced():
        yield Worlds(tmp_path_factory.mktemp("killed"), killer)
    if COUNTS:
        print(f"\nkills on Spark: {COUNTS.total()}: {dict(COUNTS)}")


@pytest.mark.parametrize("name", SERVICES if KILLS else SAMPLE)
def test_what_a_kill_of_a_service_on_spark_left_is_healed(name: str, families: Families, worlds: Worlds) -> None:
    service = service_named(name)
    for n in range(KILLS or 1):
        kind = _kinds(service)[n % len(_kinds(service))]
        world = worlds.world(service, kind)
        victim, at = _moment(service, kind, n, families, worlds)
        path = worlds.copy(world.path)
        where = f"{name} {kind} ({path}), {victim} killed at {at}"
        try:
            if victim == "driver":
                where += f": {families.running().die({'service': name, 'path': path}, path, at)}"
                let_days_pass(path)
                ensure_healed(path, world, service, again=service.dead == "blocks" or n // 2 % 2 == 0)
            else:
                families.running().do_without_workers({"service": name, "path": path}, path, at)
                _ensure_done(path, world)
        except (AssertionError, HudiError) as error:
            raise AssertionError(f"{where}: {error}") from error
        shutil.rmtree(path)
        COUNTS[f"{name}, {victim}"] += 1


def _kinds(service: Service) -> list[Kind]:
    """Its kinds of tables, those first on which there is work for tasks."""
    return sorted(service.kinds, key=lambda kind: (kind.table_type == "COPY_ON_WRITE", not kind.metadata))


def _moment(service: Service, kind: Kind, n: int, families: Families, worlds: Worlds) -> tuple[Victim, int | str]:
    """Who is killed, and at which change."""
    if not KILLS:
        return SAMPLE[service.name], service.work
    counts = worlds.count(service, kind, families.running())
    victim: Victim = "workers" if n % WORKERS_EACH == WORKERS_EACH - 1 and counts["workers"] else "driver"
    return victim, 1 + int((n + 0.5) / KILLS * counts[victim])


def _ensure_done(path: str, world: World) -> None:
    """Nothing, when a service has done its work although workers died, and goes on to be well."""
    let_days_pass(path)  # a worker that was killed leaves temporary files
    assert rows_of(path) == rows_of(path, metadata=False) == world.after
    write_next(path)
    ensure_tidy(path, {**world.after, **WRITTEN})
