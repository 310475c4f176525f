"""Writes that died: Hudi rolls back ours, we roll back Hudi's, and every peer reads the table after that."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from peers import (
    Model,
    Peer,
    PeerFailed,
    Readers,
    continue_table,
    ensure_same_rows,
    read_rows,
    slim_rows,
    table_options,
    without_meta,
    write_rows,
)

WRITERS = [(6, "hudi_015"), (6, "hudi_12"), (8, "hudi_12"), (9, "hudi_12")]
REJECT = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.datasource.write.row.writer.enable": "false",  # the row writer asks no validator
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1",
}
# Dies with the data files and the inflight instant on storage and the completed instant not yet there.
DIE = """
import os, pathlib, signal, sys
import pyarrow.parquet as pq
from hoodie.storage.local import LocalStorage

put = LocalStorage.create

def create(self, path, data):
    name = path.rsplit("/", 1)[-1]
    if ".hoodie" in path and name.endswith((".commit", ".replacecommit")):
        os.kill(os.getpid(), signal.SIGKILL)
    return put(self, path, data)

LocalStorage.create = create
from hoodie import Table
Table.open(sys.argv[1]).write(sys.argv[2], pq.read_table(sys.argv[3]), {"hoodie.metadata.enable": "false"})
"""


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_hudi_rolls_back_a_write_of_ours_that_was_killed(
    version: int, writer: str, operation: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    first = slim_rows(range(30))
    write_rows(table, "insert", first, table_options(version, "id", "region"))
    model.upsert(first)
    _die(table, operation, tmp_path)
    assert _unfinished(table) == 1
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("left", "model"))

    after = slim_rows(range(28, 33), turn=2)
    peer.write(table, "upsert", after)
    model.upsert(after)

    assert _unfinished(table) == 0
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("healed", "model"))
    last = slim_rows(range(3), turn=3)
    continue_table(table, "upsert", last)
    model.upsert(last)
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("continued", "model"))


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert", "insert_overwrite"])
@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_we_roll_back_a_write_of_hudi_that_failed(
    version: int, writer: str, operation: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    first = slim_rows(range(30))
    write_rows(table, "insert", first, table_options(version, "id", "region"))
    model.upsert(first)
    with pytest.raises(PeerFailed):
        peer.write(table, operation, slim_rows(range(20, 50), turn=1), REJECT)
    assert _unfinished(table) == 1

    after = slim_rows(range(28, 33), turn=2)
    continue_table(table, "upsert", after)
    model.upsert(after)

    assert _unfinished(table) == 0
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("healed", "model"))
    peer.write(table, "upsert", slim_rows(range(3), turn=3))
    model.upsert(slim_rows(range(3), turn=3))
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("continued", "model"))


@pytest.mark.parametrize("scenario", ["cow_failed_left", "cow_failed_bulk_left"])
@pytest.mark.parametrize(("release", "version"), [("1.2.0", 9), ("0.15.0", 6)])
def test_we_roll_back_what_a_killed_hudi_left(
    release: str, version: int, scenario: str, readers: Readers, golden: Callable[[str], tuple[Path, Path]]
) -> None:
    table, expected = golden(f"{release}/{scenario}")
    recorded = pq.read_table(expected / "snapshot.parquet")
    ensure_same_rows(read_rows(table), recorded, called=("ours", "recorded"))
    continue_table(table, "upsert", without_meta(recorded).slice(0, 4))
    assert _unfinished(table) == 0
    assert readers.ensure_agree(table, version).num_rows == recorded.num_rows


def _die(table: Path, operation: str, scratch: Path) -> None:
    """One write of ours in a process of its own that is killed just before its commit."""
    rows = scratch / "rows.parquet"
    pq.write_table(slim_rows(range(20, 50), turn=1), rows)
    died = subprocess.run(
        [sys.executable, "-c", DIE, str(table), operation, str(rows)], capture_output=True, text=True, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr[-2000:]


def _unfinished(table: Path) -> int:
    """Instants on the timeline that were requested and are not completed."""
    folder = table / ".hoodie" / "timeline"
    names = [item.name for item in (folder if folder.is_dir() else folder.parent).iterdir() if item.is_file()]
    requested = {name.split(".")[0] for name in names if name.endswith(".requested")}
    endings = ("requested", "inflight", "crc")
    done = {name.split(".")[0].split("_")[0] for name in names if name.split(".")[-1] not in endings}
    return len(requested - done)
