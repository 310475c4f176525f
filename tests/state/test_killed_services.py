"""Every service of a table, killed by SIGKILL on a real disk; then a reader, the service again or a writer, a clean.

1. A world is prepared once per service and kind of table, and copied for each kill. The victim is a process of its own;
   it dies before a change of the file system or in the middle of a write (see `hoodie.testing.killed`).
2. What has to hold then stands in `hoodie.testing.killed_services`. Every other time the service is run again, else a
   writer comes first.
3. `HOODIE_KILL_POINTS` kills of each service are spread over its kinds and its changes: `make test-deep` takes one,
   `make crash` twenty. The counts are printed at the end.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoodie.errors import HudiError
from hoodie.testing.killed import AFTER_ALL, Killer, unsynced
from hoodie.testing.killed_services import (
    SERVICES,
    Kind,
    Service,
    Tables,
    World,
    ensure_healed,
    kills_of,
    table_with_history,
    world_of,
)
from hoodie.testing.orphans import files_on_disk, let_days_pass

POINTS = int(os.environ.get("HOODIE_KILL_POINTS", "1"))
COUNTS: dict[str, int] = {}


class Worlds(Tables):
    """Prepared tables, each made when it is first asked for."""

    def __init__(self, folder: Path, killer: Killer) -> None:
        super().__init__(folder)
        self.killer = killer
        self._tables: dict[tuple[Kind, int], str] = {}
        self._worlds: dict[tuple[str, Kind], tuple[World, int]] = {}

    def world(self, service: Service, kind: Kind) -> tuple[World, int]:
        """The world of a service on a kind of table, and how many changes the service makes there."""
        known = self._worlds.get((service.name, kind))
        if known is None:
            known = self._worlds[service.name, kind] = self._made(service, kind)
        return known

    def _made(self, service: Service, kind: Kind) -> tuple[World, int]:
        table = self._tables.get((kind, service.commits))
        if table is None:
            table = self._tables[kind, service.commits] = self.name()
            table_with_history(table, kind, service.commits)
        path = self.copy(table)
        if service.before is not None:
            service.before(path, self.killer)
        done = self.copy(path)
        changes = self.killer.changes(service.run, done)
        assert changes, f"{service.name} has nothing to do on {kind}"
        world = world_of(service, path, done)
        shutil.rmtree(done)
        return world, len(changes)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    with Killer() as killer, unsynced():
        yield Worlds(tmp_path_factory.mktemp("killed"), killer)
    if COUNTS:
        print(f"\nkills: {sum(COUNTS.values())} in {len(COUNTS)} services: {COUNTS}")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_a_killed_service_leaves_a_whole_table_that_heals_without_orphans(service: Service, worlds: Worlds) -> None:
    for kind, part, again in kills_of(service, POINTS):
        world, changes = worlds.world(service, kind)
        path = worlds.copy(world.path)
        killed_at = worlds.killer.kill(service.run, path, 1 + int(part * (changes + 1)))
        at = f"{service.name} {kind} ({path}), killed at: {killed_at}"
        let_days_pass(path)
        try:
            ensure_healed(path, world, service, again=again)
        except (AssertionError, HudiError) as error:
            raise AssertionError(f"{at}: {error}") from error
        shutil.rmtree(path)
        COUNTS[service.name] = COUNTS.get(service.name, 0) + 1


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
