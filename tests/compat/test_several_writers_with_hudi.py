"""Hudi's writers and ours on one table at the same time, in optimistic concurrency, by one lock in a real ZooKeeper.

Each side upserts rows of its own and, every other time, one row that both write: then one of the two gives way and is
tried again. `HOODIE_OCC_COMMITS` is how many commits each side makes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from peers import Peer, table_options

from hoodie.spec import WRITE_ACTIONS
from hoodie.table import Table
from hoodie.testing.lake import row, table_of
from hoodie.testing.zookeeper_server import running_zookeeper

COMMITS = int(os.environ.get("HOODIE_OCC_COMMITS", "3"))
TRIES = 60
ZOOKEEPER = "hoodie.write.lock.zookeeper."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as address:
        yield address


@pytest.mark.parametrize(
    ("peer", "version", "table_type"),
    [("hudi_12", 9, "COPY_ON_WRITE"), ("hudi_12", 9, "MERGE_ON_READ"), ("hudi_015", 6, "COPY_ON_WRITE")],
)
def test_what_each_side_committed_is_there(
    peer: str, version: int, table_type: str, request: pytest.FixtureRequest, server: str, tmp_path: Path
) -> None:
    hudi: Peer = request.getfixturevalue(peer)
    table = str(tmp_path / "table")
    options = {
        **table_options(version, "id", "part"),
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.compact.max.delta.commits": "2",  # both sides compact it all the time
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
        f"{ZOOKEEPER}url": server,
        f"{ZOOKEEPER}port": server.rpartition(":")[2],
        f"{ZOOKEEPER}base_path": "/hudi",
        f"{ZOOKEEPER}lock_key": f"table-{peer}-{table_type}",
        "hoodie.write.num.retries.on.conflict.failures": str(TRIES),
        "hoodie.write.lock.client.wait_time_ms_between_retry": "200",
    }
    theirs = options | {"hoodie.write.auto.upgrade": "false", "hoodie.cleaner.policy.failed.writes": "LAZY"}
    hudi.write(table, "insert", table_of([row("both", "first"), row("first", part="q")]), theirs, "overwrite")
    ours = Table.open(table, options=options, wait=300)

    def write_ours() -> None:
        for number in range(COMMITS):
            ours.upsert(table_of(rows_of("ours", number)))

    def write_theirs() -> None:
        for number in range(COMMITS):
            hudi.write(table, "upsert", table_of(rows_of("hudi", number)), theirs)

    with ThreadPoolExecutor(2) as pool:
        for end in [pool.submit(write_theirs), pool.submit(write_ours)]:
            end.result()
    expected = {"first": "a"} | {f"{side}-{n}": str(n) for side in ("ours", "hudi") for n in range(COMMITS)}
    found = values(ours.scan(columns=["id", "v"]).read_all().to_pydict())
    assert found.pop("both") in {f"{side} {n}" for side in ("ours", "hudi") for n in range(COMMITS)}
    assert found == expected
    read = values(hudi.read(table).select(["id", "v"]).to_pydict())
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
