"""Hudi's file-system lock provider and our lock files keep each other's writers out on a local disk, both alive."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from peers import Peer, PeerFailed, table_options

from hoodie.locks.lock_file import LockFiles
from hoodie.table import Table
from hoodie.testing.interleaved import SEVERAL
from hoodie.testing.lake import row, table_of

PROVIDER = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"


@pytest.mark.parametrize("folder", ["in the table", "elsewhere"])
def test_hudi_and_we_keep_each_other_out(folder: str, hudi_12: Peer, tmp_path: Path) -> None:
    path = tmp_path / "table"
    locks = tmp_path / "locks" if folder == "elsewhere" else path / ".hoodie"
    options = {
        **table_options(9, "id", "part"),
        **SEVERAL,
        "hoodie.write.lock.provider": PROVIDER,
        "hoodie.write.lock.client.num_retries": "1",
        "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
        "hoodie.write.lock.wait_time_ms": "300",
    }
    if folder == "elsewhere":
        options["hoodie.write.lock.filesystem.path"] = str(locks)
    theirs = options | {"hoodie.write.auto.upgrade": "false", "hoodie.cleaner.policy.failed.writes": "LAZY"}
    hudi_12.write(path, "insert", table_of([row("a")]), theirs, "overwrite")
    with (
        LockFiles(str(locks)).acquire("a write of ours"),
        pytest.raises(PeerFailed, match=r"(?i)unable to acquire.*lock"),
    ):
        hudi_12.write(path, "upsert", table_of([row("a", "b", 2)]), theirs)
    patient = theirs | {"hoodie.write.lock.client.num_retries": "300"}
    ours = Table.open(str(path), options=options, wait=120)

    def write_theirs() -> None:
        for n in (1, 2):
            hudi_12.write(path, "upsert", table_of([row("h", str(n), n, "h")]), patient)

    with ThreadPoolExecutor(1) as pool:
        end = pool.submit(write_theirs)
        for n in range(6):
            ours.upsert(table_of([row("o", str(n), n, "o")]))
        end.result()
    columns = ours.scan(columns=["id", "v"]).read_all().to_pydict()
    assert dict(zip(columns["id"], columns["v"], strict=True)) == {"a": "a", "h": "2", "o": "5"}
    assert not (locks / "lock").exists()
