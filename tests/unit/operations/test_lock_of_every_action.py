"""Whoever takes the lock of a table whose options name a lock elsewhere takes that one, too: services after a commit,
plans, indexes and repairs as well as writes. Who took the storage's alone would work beside writers on other machines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from hoodie.locks import providers
from hoodie.locks.lock_provider import EndsWithProcess, Held, LockProvider
from hoodie.locks.waiting import AT_ONCE, Patience
from hoodie.storage import Storage
from hoodie.storage.nested import StandsAround
from hoodie.testing.lake import Lake, row

pytestmark = pytest.mark.deep

NAMED = {"hoodie.write.lock.provider": "zookeeper", "hoodie.write.lock.zookeeper.url": "nowhere:1"}
MODES = ["SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL"]
INLINE = {
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.log.compaction.inline": "true",
    "hoodie.log.compaction.blocks.threshold": "1",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "1",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.metadata.compact.max.delta.commits": "1",
    "hoodie.partition.ttl.inline": "true",
    "hoodie.partition.ttl.strategy.days.retain": "9",
}


@dataclass(slots=True)
class Taken:
    """What each lock of the table was taken for, in order."""

    elsewhere: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)

    def ensure_both(self) -> set[str]:
        """Checks that both were taken for the same; returns for what."""
        assert self.elsewhere == self.own
        return set(self.own)


@dataclass(frozen=True, slots=True)
class Noting:
    """A lock provider that notes what it is asked for."""

    inner: LockProvider
    taken: list[str]

    @contextmanager
    def acquire(self, what: str, scope: str = "", patience: Patience = AT_ONCE) -> Iterator[Held]:
        if not scope:
            self.taken.append(what)
        with self.inner.acquire(what, scope, patience) as held:
            yield held


class Free:
    """A lock that nobody else wants."""

    @contextmanager
    def acquire(self, what: str, scope: str = "", patience: Patience = AT_ONCE) -> Iterator[Held]:
        del what, scope, patience
        yield EndsWithProcess()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Taken:
    found = Taken()
    of_storage = providers.lock_provider_of

    def noted(storage: Storage) -> LockProvider:
        of_outer = isinstance(storage, StandsAround)  # asks again, for that
        return of_storage(storage) if of_outer else Noting(of_storage(storage), found.own)

    monkeypatch.setattr(providers, "lock_provider_of", noted)
    monkeypatch.setattr(providers, "elsewhere", lambda name, *_: Noting(Free(), found.elsewhere) if name else None)
    return found


def lake_of(mode: str, version: int, **more: str) -> Lake:
    kind = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.write.concurrency.mode": mode}
    return Lake(version, {**NAMED, **kind, "hoodie.clean.failed.writes.policy": "LAZY", **more})


@pytest.mark.parametrize("mode", MODES)
def test_services_after_a_commit(taken: Taken, version: int, mode: str) -> None:
    lake = lake_of(mode, version, **INLINE)
    for ts in range(6):
        lake.upsert(row("a", str(ts), ts), row("b", str(ts), ts, part="q"))
    done = taken.ensure_both()
    assert {"upsert", "upkeep of the metadata table", "plan compaction", "archiving"} <= done
    assert lake.values() == {"a": "5", "b": "5"}


@pytest.mark.parametrize("mode", MODES)
def test_services_that_are_asked_for(taken: Taken, version: int, mode: str) -> None:
    lake = lake_of(mode, version)
    for ts in range(4):
        lake.upsert(row("a", str(ts), ts), row("b", str(ts), ts, part="q"))
    table = lake.table
    services = table.services
    services.compact_logs()
    services.compact()
    services.cluster()
    services.compact_base_files()
    services.clean(**{"hoodie.clean.commits.retained": 1})
    services.archive()
    services.metadata()
    services.ttl(**{"hoodie.partition.ttl.strategy.days.retain": 9})
    saved = table.savepoints.create().instant
    lake.upsert(row("a", "x", 9))
    services.restore(saved)
    lake.upsert(row("a", "y", 9))
    services.rollback(table.timeline().completed_writes()[-1].requested)
    if version > 6:
        table.indexes.create("by_v", "v")
        table.indexes.drop("by_v")
    table.indexes.rebuild()
    services.upgrade({6: 8, 8: 9, 9: 8}[version])
    lake.table.drop()
    assert len(taken.ensure_both()) > 12


@pytest.mark.parametrize("planned", ["schedule_compaction", "schedule_base_file_compaction"])
def test_plans_take_the_lock_that_the_call_names(taken: Taken, version: int, planned: str) -> None:
    """Plans of compactions took the storage's lock alone, and so stood beside writers on other machines."""
    lake = Lake(version, {"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    for ts in range(2):
        lake.upsert(row("a", str(ts), ts))
    taken.own.clear()
    getattr(lake.table.services, planned)(**NAMED)
    assert len(taken.ensure_both()) == 1
