"""A service whose lease is lost right before it deletes something deletes nothing any more: every service, on an object
store. (Which lease, and how it is lost: `tests/unit/storage/test_object_storage.py`.)

`HOODIE_LEASES=all` loses it before every deletion, else before a sample.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from hoodie.errors import HudiError
from hoodie.storage import object as object_module
from hoodie.storage import open_storage
from hoodie.storage.lease import HeldLease
from hoodie.storage.object import ObjectStorage
from hoodie.table import as_source, write
from hoodie.testing import killed_services as services
from hoodie.testing.killed_services import LOCAL, OPTIONS, opened, service_named, table_with_history
from hoodie.testing.lake import Awake, row, table_of
from hoodie.testing.table_kind import COW, MOR, Kind

PATH = "s3://bucket/lost"
ALL = os.environ.get("HOODIE_LEASES") == "all"


def overwrite_by_another_kind() -> None:
    options = {**OPTIONS, "hoodie.table.name": "another", **COW[2].options}
    options["hoodie.datasource.write.partitionpath.field"] = ""
    options["hoodie.datasource.write.keygenerator.class"] = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    write(as_source(table_of([row("z")])), PATH, options, "overwrite", engine=LOCAL, env=Awake())


def remove_orphans() -> None:
    storage = open_storage(PATH)
    name = next(path for path in paths() if path.startswith("p0/") and path.endswith(".parquet"))
    first = opened(PATH).timeline().instants[0].requested
    storage.put(f"{name.rpartition('_')[0]}_{int(first) + 1}.parquet", b"late")
    opened(PATH).services.orphans(0)


def unschedule() -> None:
    opened(PATH).services.schedule_compaction()
    for one in opened(PATH).timeline().pending():
        opened(PATH).services.unschedule_compaction(one.requested)


ACTS: dict[str, tuple[Kind, int, Callable[[], object]]] = {
    **{
        f"{name}, {kind}": (kind, service_named(name).commits, lambda name=name: service_named(name).run(PATH))
        for name, kind in [
            ("insert overwrite", MOR[2]),
            ("upsert with services", COW[0]),
            ("upsert with services", MOR[2]),
            ("compaction", MOR[0]),
            ("log compaction", MOR[2]),
            ("clean", COW[2]),
            ("archive", COW[0]),
            ("archive", COW[2]),
            ("rollback of a commit", COW[2]),
            ("rollback of a commit", MOR[0]),
            ("restore", MOR[2]),
            ("upgrade 6 to 9", COW[0]),
            ("downgrade 9 to 6", COW[2]),
        ]
    },
    "drop": (COW[2], 2, lambda: opened(PATH).drop()),
    "rebuild": (COW[2], 2, lambda: opened(PATH).indexes.rebuild("files")),
    "drop index": (COW[2], 2, lambda: opened(PATH).indexes.drop("column_stats")),
    "overwrite by another kind": (COW[2], 2, overwrite_by_another_kind),
    "orphans": (COW[2], 2, remove_orphans),
    "unschedule": (MOR[2], 3, unschedule),
}
BEFORE: dict[str, Callable[[], object]] = {
    "restore": lambda: services.saved_then_changed(PATH, None),  # type: ignore[arg-type]
    "archive": lambda: services.compacted_and_cleaned(PATH, None),  # type: ignore[arg-type]
}


@dataclass
class Bucket:
    """The store behind `PATH`. Before its deletion number `lose_at` the leases of this process are lost; `gone` are the
    paths that were deleted afterwards.
    """

    store: MemoryStore = field(default_factory=MemoryStore)
    lose_at: int = 0
    deletions: int = 0
    lost: bool = False
    gone: list[str] = field(default_factory=list)
    taken: list[HeldLease] = field(default_factory=list)
    turn: threading.RLock = field(default_factory=threading.RLock)

    def about_to_delete(self) -> None:
        self.deletions += 1
        if self.deletions == self.lose_at:
            self.lost = True
            for lease in self.taken:
                lease.version = None


def paths() -> set[str]:
    return {info.path for info in open_storage(PATH).list("")}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    found = Bucket()
    real = obstore.delete
    monkeypatch.setattr(object_module, "open_store", lambda location, options: found.store)

    def delete(store: MemoryStore, names: Any) -> None:
        if found.lost:
            found.gone += [names] if isinstance(names, str) else names
        real(store, names)

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: ObjectStorage, path: str) -> Any:
            with found.turn:  # no deletion is under way in another thread when the lease is lost
                if not path.startswith(".hoodie/.locks"):
                    found.about_to_delete()
                return method(self, path)

        return call

    def take(self: HeldLease, what: str) -> None:
        real_take(self, what)
        found.taken.append(self)

    real_take = HeldLease.take
    monkeypatch.setattr(HeldLease, "take", take)
    monkeypatch.setattr(object_module.obstore, "delete", delete)
    monkeypatch.setattr(ObjectStorage, "delete", counted(ObjectStorage.delete))
    monkeypatch.setattr(ObjectStorage, "delete_dir", counted(ObjectStorage.delete_dir))
    return found


def copied(store: MemoryStore) -> MemoryStore:
    made = MemoryStore()
    for page in obstore.list(store):
        for meta in page:
            obstore.put(made, meta["path"], obstore.get(store, meta["path"]).bytes())
    return made


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ACTS)
def test_service_that_lost_its_lease_deletes_nothing_of_the_table(name: str, bucket: Bucket) -> None:
    kind, commits, act = ACTS[name]
    table_with_history(PATH, kind, commits)
    for before in (prepare for key, prepare in BEFORE.items() if name.startswith(key)):
        before()
    prepared = bucket.store
    bucket.store, bucket.deletions = copied(prepared), 0
    act()
    count = bucket.deletions
    assert count
    for number in range(1, count + 1) if ALL else sorted({1, min(2, count), -(-count // 2), count}):
        bucket.store, bucket.deletions, bucket.lose_at = copied(prepared), 0, number
        bucket.lost, bucket.gone, bucket.taken = False, [], []
        there = paths()
        with suppress(HudiError):
            act()
        assert bucket.lost
        assert [path for path in bucket.gone if path in there and not path.startswith(".hoodie/.locks")] == [], number
