"""Locks in a real ZooKeeper: the contract of providers, what Curator would make of our nodes, a lock that is lost, and
tables that are written through it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from hoodie.config import resolve
from hoodie.errors import Conflict, Fenced, Invalid, Unavailable
from hoodie.locks import LockOptions, held_lock, parse_lock_options
from hoodie.locks.zookeeper import ZooKeeperLocks
from hoodie.storage import LocalStorage, Storage
from hoodie.table import Table
from hoodie.testing.interleaved import SEVERAL
from hoodie.testing.lake import Lake, row, table_of
from hoodie.testing.lock_contract import Elsewhere, LockProviderContract
from hoodie.testing.zookeeper_server import running_zookeeper

pytestmark = pytest.mark.compat

PROVIDER = "org.apache.hudi.client.transaction.lock."
ZOOKEEPER = "hoodie.write.lock.zookeeper."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as address:
        yield address


@pytest.fixture
def client(server: str) -> Iterator[Any]:
    client = KazooClient(server)
    client.start()
    yield client
    client.stop()
    client.close()


class TestZooKeeperLocks(LockProviderContract):
    @pytest.fixture
    def storage(self, server: str, tmp_path: Path) -> Storage:
        return Elsewhere(LocalStorage(str(tmp_path)), ZooKeeperLocks(server, f"/hudi/{uuid.uuid4()}"))


def test_a_contender_is_one_that_curator_sorts(server: str, client: Any) -> None:
    locks = ZooKeeperLocks(server, "/curator/table")
    with locks.acquire("a write"):
        (name,) = client.get_children("/curator/table")
        head, _, number = name.rpartition("-lock-")
        assert head.startswith("_c_")
        assert uuid.UUID(head.removeprefix("_c_"))
        assert number.isdigit()
        assert len(number) == 10
    assert client.get_children("/curator/table") == []


def test_a_curator_contender_keeps_us_out_and_ends_our_wait(server: str, client: Any) -> None:
    locks = ZooKeeperLocks(server, "/other/table")
    client.ensure_path("/other/table")
    theirs = client.create(
        f"/other/table/_c_{uuid.uuid4()}-lock-", b"application_id=spark-1", ephemeral=True, sequence=True
    )
    with pytest.raises(Conflict, match="so a write cannot start"), locks.acquire("a write"):
        pytest.fail("two hold it")
    assert client.get_children("/other/table") == [theirs.rpartition("/")[2]]
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(_hold, locks)
        client.delete(theirs)
        assert held.result(30)


def _hold(locks: ZooKeeperLocks) -> bool:
    from hoodie.env import SystemEnv  # noqa: PLC0415 - only here

    with locks.acquire("a write", "", LockOptions(30_000).patience(SystemEnv())):
        return True


def test_who_lost_the_node_is_fenced_before_the_next_step(server: str, client: Any, tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    with ZooKeeperLocks(server, "/lost/table").acquire("a write") as held:
        fenced = held.fenced(storage)
        fenced.create("before", b"")
        (name,) = client.get_children("/lost/table")
        client.delete(f"/lost/table/{name}")
        with pytest.raises(Fenced, match="may be lost"):
            held.ensure_held()
        with pytest.raises(Fenced):
            fenced.create("after", b"")
        with pytest.raises(Fenced):
            fenced.delete("before")
    assert [file.path for file in storage.list("")] == ["before"]


def test_no_server_is_unavailable_and_missing_options_are_told() -> None:
    with (
        pytest.raises(Unavailable, match="does not answer"),
        ZooKeeperLocks("127.0.0.1:1", "/x", connection_timeout_ms=200).acquire("a write"),
    ):
        pytest.fail("there is no server")
    options = parse_lock_options(resolve({"hoodie.write.lock.provider": "zookeeper", "hoodie.table.name": "t"}))
    with pytest.raises(Invalid, match="base_path"):
        held_lock(Lake().storage, "a write", options=options)


@pytest.mark.parametrize(
    "options",
    [
        {
            "hoodie.write.lock.provider": f"{PROVIDER}ZookeeperBasedLockProvider",
            f"{ZOOKEEPER}base_path": "/locks",
            f"{ZOOKEEPER}lock_key": "lake",
        },
        {"hoodie.write.lock.provider": f"{PROVIDER}ZookeeperBasedImplicitBasePathLockProvider"},
    ],
    ids=["path", "implicit"],
)
def test_a_table_is_written_through_it(server: str, client: Any, tmp_path: Path, options: dict[str, str]) -> None:
    lake = Lake(uri=str(tmp_path / "lake"), options={**options, f"{ZOOKEEPER}url": server})
    lake.upsert(row("a"))
    more = {**lake.options, **SEVERAL, "hoodie.write.num.retries.on.conflict.failures": "20"}
    table = Table.open(lake.uri, options=more, wait=60)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda n: table.upsert(table_of([row(f"k{n}", part=f"p{n}")])), range(3)))
    assert set(lake.values()) == {"a", "k0", "k1", "k2"}
    (parent,) = (
        ["/locks/lake"]
        if "hoodie.write.lock.provider" in options and len(options) > 1
        else [f"/tmp/{one}/lock_key" for one in client.get_children("/tmp")]
    )
    theirs = client.create(f"{parent}/_c_{uuid.uuid4()}-lock-", b"", ephemeral=True, sequence=True)
    with pytest.raises(Conflict, match="ZooKeeper"):
        lake.upsert(row("b"))
    client.delete(theirs)
    assert lake.table.validate() == []
