"""The lock file of Hudi's storage-based provider on S3: each side honours the lease of the other, while both live."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from peers import Peer

from hoodie.env import SystemEnv
from hoodie.errors import Conflict, Fenced
from hoodie.locks import letting_pass
from hoodie.locks.storage_based import StorageBasedLocks
from hoodie.locks.waiting import Patience
from hoodie.storage import open_storage
from hoodie.storage.lease import LEASE_PATH, VersionedStorage, held_lease, parse_lease
from hoodie.testing.s3_server import S3Server

ENV = SystemEnv()
SHORTEST = {"validity_s": 10, "renew_s": 1}
"""The shortest lease that Hudi's provider takes."""


class OneTable:
    """The lock of a table that nobody has written yet, as both sides see it."""

    def __init__(self, server: S3Server, bucket: str, hudi: Peer) -> None:
        self._path = f"s3a://{bucket}/lake/table"
        self._hudi = hudi
        self.storage = open_storage(f"s3://{bucket}/lake/table", server.options)
        assert isinstance(self.storage, VersionedStorage)
        self.ours = StorageBasedLocks(self.storage)

    def taken_by_hudi(self, wait_s: float = 1, **lease: int) -> dict[str, Any]:
        return self._hudi.ask("take_lock", path=self._path, wait_ms=round(1000 * wait_s), **lease)

    def given_back_by_hudi(self) -> dict[str, Any]:
        return self._hudi.ask("give_back_lock", path=self._path)

    def content(self) -> bytes:
        return self.storage.read_version(LEASE_PATH)[0]  # type: ignore[no-any-return, attr-defined]

    def ensure_not_ours(self) -> None:
        with pytest.raises(Conflict), self.ours.acquire("a look"):
            pytest.fail("two hold it")


@pytest.fixture
def table(s3_server: S3Server, s3_bucket: str, hudi_on_s3: Peer) -> OneTable:
    return OneTable(s3_server, s3_bucket, hudi_on_s3)


def test_we_wait_for_hudi_which_renews_its_lease_until_it_stalls(table: OneTable) -> None:
    hudi = table.taken_by_hudi(**SHORTEST)
    began = time.monotonic()
    assert hudi["taken"]
    first = parse_lease(table.content(), LEASE_PATH)
    with pytest.raises(Conflict, match=rf"Another writer \({hudi['owner']}\) holds s3://.*table_lock.json") as refused:
        table.ours.acquire("upsert", patience=Patience(ENV, 1500)).__enter__()
    assert "if it died, in" in str(refused.value)
    assert refused.value.facts["owner"] == hudi["owner"]
    assert table.ours.holders() == (None,)
    time.sleep(max(0, began + 11 - time.monotonic()))
    table.ensure_not_ours()
    renewed = parse_lease(table.content(), LEASE_PATH)
    assert renewed.owner == first.owner
    assert renewed.valid_until_ms >= first.valid_until_ms + 9000
    os.kill(hudi["process"], signal.SIGSTOP)
    try:
        table.ensure_not_ours()
        with table.ours.acquire("upsert", patience=Patience(ENV, 30_000)) as held:
            assert time.time() * 1000 > renewed.valid_until_ms + 500
            os.kill(hudi["process"], signal.SIGCONT)
            time.sleep(3)
            held.ensure_held()
            assert table.given_back_by_hudi() == {"ok": True, "was_lost": True}
            held.ensure_held()
    finally:
        os.kill(hudi["process"], signal.SIGCONT)


def test_hudi_waits_for_us_who_renew_our_lease(table: OneTable) -> None:
    with held_lease(table.storage, "upsert", ENV, validity_seconds=3, renew_seconds=0.5) as held:  # type: ignore[arg-type]
        assert not table.taken_by_hudi(wait_s=5)["taken"]
        held.ensure_held()
    assert table.taken_by_hudi()["taken"]
    table.ensure_not_ours()
    table.given_back_by_hudi()
    with table.ours.acquire("upsert") as again:
        again.ensure_held()


def test_hudi_takes_over_when_our_lease_has_run_out(table: OneTable) -> None:
    with held_lease(table.storage, "upsert", ENV, validity_seconds=2, renew_seconds=3600) as held:  # type: ignore[arg-type]
        assert table.taken_by_hudi(wait_s=10)["taken"]
        with pytest.raises(Fenced, match="could not be extended"):
            held.ensure_held()
    table.ensure_not_ours()
    assert table.given_back_by_hudi() == {"ok": True, "was_lost": False}


def test_hudi_gets_the_lock_beside_a_process_of_ours_that_takes_it_without_a_pause(
    table: OneTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letting_pass, "ALONE_S", 3.0)
    stop = threading.Event()

    def write_on() -> int:
        commits = 0
        while not stop.is_set():
            with table.ours.acquire("upsert", patience=Patience(ENV, 60_000)):
                time.sleep(0.5)
            commits += 1
        return commits

    with ThreadPoolExecutor(1) as pool:
        commits = pool.submit(write_on)
        try:
            for _ in range(3):
                assert table.taken_by_hudi(wait_s=15)["taken"]
                table.given_back_by_hudi()
        finally:
            stop.set()
        assert commits.result() > 1  # ours goes on between


def test_of_two_that_take_turns_one_is_inside(table: OneTable) -> None:
    for _ in range(4):
        assert table.taken_by_hudi()["taken"]
        table.ensure_not_ours()
        table.given_back_by_hudi()
        with table.ours.acquire("upsert"):
            assert not table.taken_by_hudi(wait_s=0.01)["taken"]


def test_both_sides_say_the_same_in_the_lock_file(table: OneTable, hudi_on_s3: Peer) -> None:
    found = {}
    with table.ours.acquire("upsert"):
        found["ours, held"] = table.content()
    found["ours, given back"] = table.content()
    owner = table.taken_by_hudi()["owner"]
    found["Hudi's, held"] = table.content()
    table.given_back_by_hudi()
    found["Hudi's, given back"] = table.content()
    for name, content in found.items():
        ours, fields = parse_lease(content, LEASE_PATH), json.loads(content)
        hudi = hudi_on_s3.ask("parse_lock", content=content.decode())
        assert (ours.expired, ours.valid_until_ms, ours.owner) == (
            hudi["expired"],
            hudi["valid_until_ms"],
            hudi["owner"],
        )
        assert ours.expired == name.endswith("given back")
        assert fields.pop("holder", None) is None or name == "ours, held"
        assert fields == json.loads(hudi["written"])
        assert (ours.owner == owner) == name.startswith("Hudi's")
