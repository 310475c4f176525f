"""Undoing, in turns with Hudi: our rollbacks, savepoints and restores are read and continued by the peers, theirs by
us; both finish what the other left when it died, log files included.
"""

from __future__ import annotations

import copy
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from peers import (
    WRITE,
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

from hoodie import Table
from hoodie.spec import ROLLBACK

WRITERS = [(6, "hudi_015"), (6, "hudi_12"), (8, "hudi_12"), (9, "hudi_12")]
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
EVENT_TIME_PAYLOAD = {WRITE + "payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
NO_COMPACTION = {"hoodie.compact.inline": "false", "hoodie.clean.automatic": "false"}
REJECT = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.datasource.write.row.writer.enable": "false",
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1",
}
# Dies with the log files and the inflight instant on storage and the completed instant not yet there.
DIE = """
import os, pathlib, signal, sys
import pyarrow.parquet as pq
from hoodie.storage.local import LocalStorage

put = LocalStorage.create

def create(self, path, data):
    if ".hoodie" in path and path.endswith(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return put(self, path, data)

LocalStorage.create = create
from hoodie import Table
Table.open(sys.argv[1]).write("upsert", pq.read_table(sys.argv[2]), {"hoodie.metadata.enable": "false"})
"""


def _options(version: int, kind: str) -> dict[str, str]:
    payload = EVENT_TIME_PAYLOAD if version == 6 and kind == "MERGE_ON_READ" else {}
    return {**table_options(version, "id", "region"), WRITE + "table.type": kind, **payload}


def _peer_options(version: int, kind: str) -> dict[str, str]:
    payload = EVENT_TIME_PAYLOAD if version == 6 and kind == "MERGE_ON_READ" else {}
    return {**payload, **NO_COMPACTION}


class World:
    """A table, its model, and who takes turns on it."""

    def __init__(self, readers: Readers, version: int, peer: Peer, kind: str, table: Path) -> None:
        self.readers, self.version, self.peer, self.kind, self.table = readers, version, peer, kind, table
        self.model = Model(slim_rows(range(0)).schema)

    def ours(self, numbers: range, turn: int) -> str:
        """An upsert of ours; its instant."""
        rows = slim_rows(numbers, turn=turn)
        if self.table.exists():
            continue_table(self.table, "upsert", rows)
        else:
            write_rows(self.table, "insert", rows, _options(self.version, self.kind))
        self.model.upsert(rows)
        return self.last()

    def theirs(self, numbers: range, turn: int) -> str:
        """An upsert of the peer; its instant."""
        rows = slim_rows(numbers, turn=turn)
        options = _peer_options(self.version, self.kind)
        if self.table.exists():
            self.peer.write(self.table, "upsert", rows, options)
        else:
            made = {**_options(self.version, self.kind), **options}
            if not self.peer.name.endswith("0.15.0"):
                made["hoodie.write.auto.upgrade"] = "false"
            self.peer.write(self.table, "insert", rows, made, mode="overwrite")
        self.model.upsert(rows)
        return self.last()

    def call(self, statement: str) -> None:
        """A procedure of the peer, without an upgrade of the table."""
        conf = {"hoodie.metadata.enable": "false"}
        if not self.peer.name.endswith("0.15.0"):
            conf |= {"hoodie.write.auto.upgrade": "false", "hoodie.write.table.version": str(self.version)}
        self.peer.ask("sql", path=str(self.table), statement=statement, options=conf)

    def last(self) -> str:
        found = self.opened.timeline().last_completed_write()
        assert found is not None
        return found.requested

    @property
    def opened(self) -> Table:
        return Table.open(str(self.table))

    def keep(self) -> Model:
        return copy.deepcopy(self.model)

    def ensure(self, called: str, *, sound: bool = True) -> None:
        rows = self.readers.ensure_agree(self.table, self.version)
        ensure_same_rows(without_meta(rows), self.model.rows, called=(called, "model"))
        assert not sound or self.opened.validate() == []
        assert self.opened.config.table_version == self.version


@pytest.fixture(params=TYPES, ids=["cow", "mor"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=WRITERS, ids=str)
def world(request: pytest.FixtureRequest, kind: str, readers: Readers, tmp_path: Path) -> World:
    version, writer = request.param
    return World(readers, version, getattr(readers, writer), kind, tmp_path / "table")


def test_peers_go_on_after_our_rollback_and_restore(world: World) -> None:
    world.ours(range(30), 0)
    saved = world.ours(range(10), 1)
    at_savepoint = world.keep()
    world.opened.savepoints.create(saved, user="us", comments="before")
    world.theirs(range(5, 15), 2)
    before = world.keep()
    last = world.ours(range(8, 40), 3)
    world.opened.services.rollback(last)
    world.model = before
    world.ensure("after our rollback")
    world.theirs(range(12, 33), 4)
    world.ensure("continued by the peer")
    assert world.opened.services.restore(saved).to == saved
    world.model = at_savepoint
    world.ensure("after our restore")
    world.theirs(range(3, 35), 5)
    world.ours(range(6), 6)
    world.ensure("continued by both")


def test_we_go_on_after_the_rollback_and_restore_of_a_peer(world: World) -> None:
    if world.version == 6 and world.peer.name == "Hudi 1.2.0":
        pytest.skip(
            "CALL rollback_to_instant of Hudi 1.2.0 does not find instants of version 6, of its own tables either"
        )
    world.theirs(range(30), 0)
    saved = world.theirs(range(10), 1)
    at_savepoint = world.keep()
    world.call(f"CALL create_savepoint(table => '{{t}}', commit_time => '{saved}', user => 'u', comments => 'c')")
    (savepoint,) = world.opened.savepoints
    assert (savepoint.instant, savepoint.user, savepoint.comments) == (saved, "u", "c")
    world.ours(range(5, 15), 2)
    before = world.keep()
    last = world.ours(range(8, 40), 3)
    world.call(f"CALL rollback_to_instant(table => '{{t}}', instant_time => '{last}')")
    world.model = before
    world.ensure("after the peer's rollback of our write")
    world.ours(range(12, 33), 4)
    world.ensure("continued by us")
    world.call(f"CALL rollback_to_savepoint(table => '{{t}}', instant_time => '{saved}')")
    world.model = at_savepoint
    world.ensure("after the peer's restore")
    world.ours(range(3, 35), 5)
    world.theirs(range(6), 6)
    world.ensure("continued by both")


def test_savepoints_are_each_other_s(world: World) -> None:
    world.ours(range(30), 0)
    ours = world.ours(range(10), 1)
    at_ours = world.keep()
    world.opened.savepoints.create(ours)
    world.theirs(range(5, 15), 2)
    world.call(f"CALL rollback_to_savepoint(table => '{{t}}', instant_time => '{ours}')")
    world.model = at_ours
    world.ensure("the peer restored to our savepoint")
    theirs = world.theirs(range(9, 12), 3)
    at_theirs = world.keep()
    world.call(f"CALL create_savepoint(table => '{{t}}', commit_time => '{theirs}')")
    world.ours(range(20), 4)
    world.opened.services.restore(theirs)
    world.model = at_theirs
    world.ensure("we restored to the peer's savepoint")
    world.call(f"CALL delete_savepoint(table => '{{t}}', instant_time => '{ours}')")
    world.opened.savepoints.delete(theirs)
    assert world.opened.savepoints == ()


def test_peer_rolls_our_killed_write_back(world: World, tmp_path: Path) -> None:
    world.ours(range(30), 0)
    world.ours(range(10), 1)
    _die(world, tmp_path, ".deltacommit" if world.kind == "MERGE_ON_READ" else ".commit")
    assert len(world.opened.timeline().pending()) == 1
    world.ensure("with a dead write", sound=False)
    world.theirs(range(28, 33), 3)
    assert world.opened.timeline().pending() == ()
    if world.kind == "COPY_ON_WRITE" or not world.peer.name.endswith("0.15.0"):
        world.ensure("healed by the peer")  # 0.15's reader stops at its own command block until a later write is there
    world.ours(range(25, 30), 4)
    world.ensure("continued by us")


def test_we_roll_the_failed_write_of_a_peer_back(world: World) -> None:
    world.ours(range(30), 0)
    world.theirs(range(10), 1)
    with pytest.raises(PeerFailed):
        world.peer.write(
            world.table,
            "upsert",
            slim_rows(range(20, 50), turn=2),
            {**_peer_options(world.version, world.kind), **REJECT},
        )
    assert len(world.opened.timeline().pending()) == 1
    world.ours(range(28, 33), 3)
    assert world.opened.timeline().pending() == ()
    assert [one.action for one in world.opened.timeline().completed()].count(ROLLBACK) == 1
    world.ensure("healed by us")
    world.theirs(range(25, 30), 4)
    world.ensure("continued by the peer")


def test_peer_finishes_our_rollback_that_died(world: World, tmp_path: Path) -> None:
    world.ours(range(30), 0)
    world.ours(range(10), 1)
    _die(world, tmp_path, ".deltacommit" if world.kind == "MERGE_ON_READ" else ".commit")
    _die(world, tmp_path, ".rollback")
    assert [one.action for one in world.opened.timeline().pending()] == [ROLLBACK]
    world.theirs(range(28, 33), 3)
    assert world.opened.timeline().pending() == ()
    world.ensure("finished by the peer")


@pytest.mark.parametrize("release", ["1.2.0", "0.15.0"])
def test_we_roll_back_what_a_killed_hudi_left_in_log_files(
    release: str, readers: Readers, golden: Callable[[str], tuple[Path, Path]]
) -> None:
    table, expected = golden(f"{release}/mor_failed_left")
    version = Table.open(str(table)).config.table_version
    recorded = pq.read_table(expected / "snapshot.parquet")
    ensure_same_rows(read_rows(table), recorded, called=("ours", "recorded"))
    continue_table(table, "upsert", without_meta(recorded).slice(0, 4))
    assert Table.open(str(table)).timeline().pending() == ()
    assert readers.ensure_agree(table, version).num_rows == recorded.num_rows


def _die(world: World, scratch: Path, before: str) -> None:
    """One upsert of ours in a process of its own that is killed before it creates a file of the timeline."""
    rows = scratch / "rows.parquet"
    pq.write_table(slim_rows(range(20, 50), turn=2), rows)
    command = [sys.executable, "-c", DIE, str(world.table), str(rows), before]
    died = subprocess.run(command, capture_output=True, text=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr[-2000:]
