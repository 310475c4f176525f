"""Hudi's writers and ours on one table at the same time, in optimistic concurrency, by one lock: in a ZooKeeper, in a
Hive metastore, or the lock file of Hudi's storage-based provider on S3.

Each side upserts rows of its own and, every other time, one row that both write: then one of the two gives way and is
tried again. `HOODIE_OCC_COMMITS` is how many commits each side makes. Ours, which are made in a tenth of the time, wait
for Hudi's: else they would all be there before its third, and no two of them beside one another.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from peers import Peer, table_options

from hoodie.spec import WRITE_ACTIONS
from hoodie.storage import open_storage
from hoodie.storage.lease import LEASE_PATH, parse_lease
from hoodie.table import Table
from hoodie.testing.lake import row, table_of
from hoodie.testing.metastore_server import running_metastore
from hoodie.testing.s3_server import S3Server
from hoodie.testing.zookeeper_server import running_zookeeper

COMMITS = int(os.environ.get("HOODIE_OCC_COMMITS", "3"))
TRIES = 60
LEAD = 2
"""How many commits ours may be ahead of Hudi's."""
STALLED_S = 900
LOCK = "hoodie.write.lock."


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as address:
        yield address


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_metastore(tmp_path_factory.mktemp("metastore")) as running:
        yield running.uris


@pytest.mark.parametrize(
    ("peer", "version", "table_type"),
    [("hudi_12", 9, "COPY_ON_WRITE"), ("hudi_12", 9, "MERGE_ON_READ"), ("hudi_015", 6, "COPY_ON_WRITE")],
)
def test_what_each_side_committed_is_there(
    peer: str, version: int, table_type: str, request: pytest.FixtureRequest, zookeeper: str, tmp_path: Path
) -> None:
    options = {
        f"{LOCK}provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
        f"{LOCK}zookeeper.url": zookeeper,
        f"{LOCK}zookeeper.port": zookeeper.rpartition(":")[2],
        f"{LOCK}zookeeper.base_path": "/hudi",
        f"{LOCK}zookeeper.lock_key": f"table-{peer}-{table_type}",
    }
    table = str(tmp_path / "table")
    write_and_look(request.getfixturevalue(peer), (table, table), occ_options(version, table_type) | options)


@pytest.mark.parametrize(
    ("peer", "version", "table_type"), [("hudi_12", 9, "MERGE_ON_READ"), ("hudi_015", 6, "COPY_ON_WRITE")]
)
def test_what_each_side_committed_by_a_lock_in_a_metastore_is_there(
    peer: str, version: int, table_type: str, request: pytest.FixtureRequest, metastore: str, tmp_path: Path
) -> None:
    options = {
        f"{LOCK}provider": "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
        f"{LOCK}hivemetastore.uris": metastore,
        f"{LOCK}hivemetastore.database": "locks",
        f"{LOCK}hivemetastore.table": f"table_{peer}",
        f"{LOCK}wait_time_ms": "10000",
        f"{LOCK}client.num_retries": "200",
    }
    table = str(tmp_path / "table")
    write_and_look(request.getfixturevalue(peer), (table, table), occ_options(version, table_type) | options)


@pytest.mark.parametrize(("version", "table_type"), [(9, "COPY_ON_WRITE"), (9, "MERGE_ON_READ")])
def test_what_each_side_committed_by_a_lock_file_on_s3_is_there(
    version: int, table_type: str, hudi_on_s3: Peer, s3_server: S3Server, s3_bucket: str
) -> None:
    options = {f"{LOCK}provider": "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"}
    place = f"{s3_bucket}/lake/table"
    write_and_look(
        hudi_on_s3,
        (f"s3a://{place}", f"s3://{place}"),
        occ_options(version, table_type) | options,
        s3_server.options,
    )
    storage = open_storage(f"s3://{place}", s3_server.options)
    assert parse_lease(storage.read(LEASE_PATH), LEASE_PATH).expired


def occ_options(version: int, table_type: str) -> dict[str, str]:
    """Options of a table and its writers, but for the lock."""
    return {
        **table_options(version, "id", "part"),
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.compact.max.delta.commits": "2",  # both sides compact it all the time
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.num.retries.on.conflict.failures": str(TRIES),
        f"{LOCK}client.wait_time_ms_between_retry": "200",
    }


def write_and_look(
    hudi: Peer, place: tuple[str, str], options: Mapping[str, str], storage: Mapping[str, str] | None = None
) -> None:
    """Both sides write one table at the same time, then look what is there. `place`: its path for Hudi, and for us with
    options of its `storage`.
    """
    theirs = {**options, "hoodie.write.auto.upgrade": "false", "hoodie.cleaner.policy.failed.writes": "LAZY"}
    hudi.write(place[0], "insert", table_of([row("both", "first"), row("first", part="q")]), theirs, "overwrite")
    ours = Table.open(place[1], options={**options, **(storage or {})}, wait=300)

    ahead = threading.Semaphore(LEAD)

    def write_ours() -> None:
        for number in range(COMMITS):
            assert ahead.acquire(timeout=STALLED_S), f"Hudi's writer has not come further than {number - LEAD} commits"
            ours.upsert(table_of(rows_of("ours", number)))

    def write_theirs() -> None:
        try:
            for number in range(COMMITS):
                hudi.write(place[0], "upsert", table_of(rows_of("hudi", number)), theirs)
                ahead.release()
        finally:
            ahead.release(COMMITS)  # nobody waits for one that failed

    with ThreadPoolExecutor(2) as pool:
        for end in [pool.submit(write_theirs), pool.submit(write_ours)]:
            end.result()
    expected = {"first": "a"} | {f"{side}-{n}": str(n) for side in ("ours", "hudi") for n in range(COMMITS)}
    found = values(ours.scan(columns=["id", "v"]).read_all().to_pydict())
    assert found.pop("both") in {f"{side} {n}" for side in ("ours", "hudi") for n in range(COMMITS)}
    assert found == expected
    read = values(hudi.read(place[0]).select(["id", "v"]).to_pydict())
    del read["both"]
    assert read == expected
    # What a write of Hudi's that gave way has left is its own, until its heartbeat has stopped.
    pending = [one.requested for one in ours.timeline().pending()]
    assert [one for one in ours.validate() if not any(instant in one.path for instant in pending)] == []
    # Of many commits most are archived by the end.
    done = {one.requested for one in ours.history if one.is_completed and one.action in WRITE_ACTIONS}
    assert len(done) >= 1 + 2 * COMMITS


def rows_of(side: str, number: int) -> list[dict[str, Any]]:
    """A row of the side's own, in a partition of its own, and every other time the row that both write."""
    own = row(f"{side}-{number}", str(number), part=side)
    return [own] if number % 2 else [own, row("both", f"{side} {number}", 2 + number)]


def values(columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    """`v` by `id`; a key that occurs twice fails."""
    assert len(set(columns["id"])) == len(columns["id"])
    return dict(zip(columns["id"], columns["v"], strict=True))
