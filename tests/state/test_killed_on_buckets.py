"""Every service of a table over buckets with keys of their own and a disk, killed by SIGKILL; then as on one disk.

1. Storage paths are in the bucket of the table path, in another bucket and on this disk. The victim is a process of its
   own, which dies before a change of any of these (see `hoodie.testing.killed_on_stores`).
2. What has to hold then stands in `hoodie.testing.killed_services`. Every other time the service is run again, else a
   writer comes first.
3. `HOODIE_BUCKET_KILLS` kills of each service: `make test-deep` takes one of a few services, `make crash` eight of
   each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from unittest import mock

import pytest

from hoodie.errors import HudiError
from hoodie.storage import LocalStorage
from hoodie.testing.closed_buckets import closed_buckets
from hoodie.testing.killed import unsynced
from hoodie.testing.killed_on_stores import Place, Snapshot, StoresKiller
from hoodie.testing.killed_services import (
    OPTIONS,
    SERVICES,
    Kind,
    Service,
    World,
    ensure_healed,
    kills_of,
    rows_of,
    table_with_history,
    world_of,
)
from hoodie.testing.s3_server import S3Server, s3_server
from hoodie.testing.two_stores import Stores

__all__ = ["s3_server"]

POINTS = int(os.environ.get("HOODIE_BUCKET_KILLS", "1"))
COUNTS: dict[str, int] = {}
OVER_STORES = [
    replace(one, kinds=kinds) for one in SERVICES if (kinds := [kind for kind in one.kinds if kind.metadata])
]
"""Without those that begin on a table that has no metadata table."""


@dataclass
class Worlds:
    """Prepared tables, each made when it is first asked for."""

    place: Place
    killer: StoresKiller
    tables: dict[tuple[Kind, int], Snapshot] = field(default_factory=dict)
    worlds: dict[tuple[str, Kind], tuple[Snapshot, World, int]] = field(default_factory=dict)

    def world(self, service: Service, kind: Kind) -> tuple[World, int]:
        """The world of a service on a kind of table, put into its place; how many changes the service makes there."""
        key = service.name, kind
        if key not in self.worlds:
            self.worlds[key] = self._made(service, kind)
        snapshot, world, changes = self.worlds[key]
        self.place.put_back(snapshot)
        return world, changes

    def _made(self, service: Service, kind: Kind) -> tuple[Snapshot, World, int]:
        path = self.place.path
        table = self.tables.get((kind, service.commits))
        if table is None:
            self.place.put_back(({},) * (1 + len(self.place.stores.roots)))
            table_with_history(path, kind, service.commits)
            table = self.tables[kind, service.commits] = self.place.snapshot()
        self.place.put_back(table)
        if service.before is not None:
            service.before(path, self.killer)
            self.place.let_leases_end()
        ready = self.place.snapshot()
        before = world_of(service, path, path)
        changes = self.killer.changes(service.run, path)
        assert changes, f"{service.name} has nothing to do on {kind}"
        return ready, replace(before, after=rows_of(path)), len(changes)


@pytest.fixture(scope="module")
def worlds(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    with closed_buckets(s3_server) as closed:
        mine, other = closed.new_bucket(), closed.new_bucket()
        disk = LocalStorage(str(tmp_path_factory.mktemp("killed") / "root"))
        stores = Stores(
            closed.storage(mine, "table"), (closed.storage(mine, "root"), closed.storage(other, "root"), disk)
        )
        options = {**closed.credentials(), **stores.options("bits:2")}
        with StoresKiller(options) as killer, unsynced(), mock.patch.dict(OPTIONS, options):
            yield Worlds(Place(stores.table.uri, stores), killer)
    if COUNTS:
        print(f"\nkills over stores: {sum(COUNTS.values())} in {len(COUNTS)} services: {COUNTS}")


@pytest.mark.sampled(8)
@pytest.mark.parametrize("service", OVER_STORES, ids=lambda service: service.name)
def test_a_service_killed_over_buckets_leaves_a_whole_table_that_heals_without_orphans(
    service: Service, worlds: Worlds
) -> None:
    for kind, part, again in kills_of(service, POINTS):
        world, changes = worlds.world(service, kind)
        path = worlds.place.path
        killed_at = worlds.killer.kill(service.run, path, 1 + int(part * (changes + 1)))
        at = f"{service.name} {kind}, killed at: {killed_at}"
        worlds.place.let_leases_end()
        try:
            ensure_healed(path, world, service, again=again)
        except (AssertionError, HudiError) as error:
            raise AssertionError(f"{at}: {error}") from error
        COUNTS[service.name] = COUNTS.get(service.name, 0) + 1
