"""Locks in a real Hive metastore: the contract of providers, Hudi's own provider beside ours, a lock that is lost, and
a metastore that is started anew.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from peers import Peer, PeerFailed, table_options

from hoodie.config import resolve
from hoodie.env import SystemEnv
from hoodie.errors import Conflict, Fenced, Invalid, Unavailable
from hoodie.locks import held_lock, parse_lock_options
from hoodie.locks.hive_metastore import HiveMetastoreLocks
from hoodie.locks.waiting import Patience
from hoodie.storage import LocalStorage, Storage
from hoodie.table import Table
from hoodie.testing.interleaved import SEVERAL
from hoodie.testing.lake import Lake, row, table_of
from hoodie.testing.lock_contract import Elsewhere, LockProviderContract
from hoodie.testing.metastore_server import RunningMetastore, running_metastore

pytestmark = pytest.mark.compat

HIVE = "hoodie.write.lock.hivemetastore."
PROVIDER = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMetastore]:
    with running_metastore(tmp_path_factory.mktemp("metastore")) as running:
        yield running


@pytest.fixture
def locks(server: RunningMetastore) -> HiveMetastoreLocks:
    return HiveMetastoreLocks(server.uris, "locks", f"t{uuid.uuid4().hex[:8]}")


class TestHiveMetastoreLocks(LockProviderContract):
    @pytest.fixture
    def storage(self, locks: HiveMetastoreLocks, tmp_path: Path) -> Storage:
        return Elsewhere(LocalStorage(str(tmp_path)), locks)


def test_who_lost_the_lock_is_fenced_before_the_next_step(locks: HiveMetastoreLocks, tmp_path: Path) -> None:
    with locks.acquire("a write") as held:
        fenced = held.fenced(LocalStorage(str(tmp_path)))
        fenced.create("before", b"")
        held._unlock(held.number)  # type: ignore[attr-defined]
        with pytest.raises(Fenced, match="may be lost"):
            fenced.create("after", b"")
        with locks.acquire("another write"), pytest.raises(Fenced):
            fenced.delete("before")


def test_a_lock_outlives_the_metastore_that_gave_it(server: RunningMetastore, locks: HiveMetastoreLocks) -> None:
    beating = replace(locks, heartbeat_ms=100)
    with beating.acquire("a write") as held:
        server.stop()
        with pytest.raises(Unavailable, match="does not answer"), locks.acquire("another write"):
            pytest.fail("two hold it")
        server.start()
        held.ensure_held()
        with pytest.raises(Conflict, match="a write by process"), locks.acquire("another write"):
            pytest.fail("two hold it")
    with locks.acquire("another write"):
        pass


def test_missing_options_are_told() -> None:
    options = parse_lock_options(resolve({"hoodie.write.lock.provider": "hive", f"{HIVE}uris": "thrift://x:1"}))
    with pytest.raises(Invalid, match="hivemetastore.database"):
        held_lock(Lake().storage, "a write", options=options)


@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), ("hudi_015", 6)])
def test_hudi_and_we_keep_each_other_out(
    peer: str, version: int, request: pytest.FixtureRequest, locks: HiveMetastoreLocks, tmp_path: Path
) -> None:
    hudi: Peer = request.getfixturevalue(peer)
    path = str(tmp_path / "table")
    options = {
        **table_options(version, "id", "part"),
        **SEVERAL,
        "hoodie.write.lock.provider": PROVIDER,
        f"{HIVE}uris": locks.uris,
        f"{HIVE}database": locks.database,
        f"{HIVE}table": locks.table,
        "hoodie.write.lock.client.num_retries": "0",
        "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
        "hoodie.write.lock.wait_time_ms": "10000",
    }
    theirs = options | {"hoodie.write.auto.upgrade": "false", "hoodie.cleaner.policy.failed.writes": "LAZY"}
    hudi.write(path, "insert", table_of([row("a")]), theirs, "overwrite")
    refused = r"(?i)(unable|failed)[ _]to[ _]acquire.*lock"
    with locks.acquire("a write of ours"), pytest.raises(PeerFailed, match=refused):
        hudi.write(path, "upsert", table_of([row("a", "b", 2)]), theirs)
    patient = theirs | {"hoodie.write.lock.client.num_retries": "200"}
    ours = Table.open(path, options=options, wait=120)
    with ThreadPoolExecutor(2) as pool:
        ends = [
            pool.submit(
                lambda: [hudi.write(path, "upsert", table_of([row("h", str(n), n, "h")]), patient) for n in (1, 2)]
            ),
            pool.submit(lambda: [ours.upsert(table_of([row("o", str(n), n, "o")])) for n in range(6)]),
        ]
        for end in ends:
            end.result()
    assert dict(zip(*ours.scan(columns=["id", "v"]).read_all().to_pydict().values(), strict=True)) == {
        "a": "a",
        "h": "2",
        "o": "5",
    }
    with locks.acquire("the last", "", Patience(SystemEnv(), 30_000)):
        pass
