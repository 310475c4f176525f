"""Early detection of conflicts beside a real writer of Hudi 1.2.0: its markers stop our writers, and ours its."""

from __future__ import annotations

from pathlib import Path

import pytest
from peers import Peer, PeerFailed
from test_failed_writes import REJECT

from hoodie.testing.interleaved import SEVERAL, Gate, run_in_order, writer
from hoodie.testing.lake import Lake, row, table_of
from hoodie.transaction import Committed, EarlyConflict
from hoodie.transaction.early_detection import ENABLE
from hoodie.transaction.heartbeat import heartbeat_path

EARLY = {ENABLE: "true"}
THEIRS = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.metadata.enable": "false",
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(options={"hoodie.metadata.enable": "false"}, uri=str(tmp_path / "lake"))
    made.upsert(row("a"), row("b", part="q"))
    return made


@pytest.mark.parametrize("kind", ["DIRECT", "TIMELINE_SERVER_BASED"])
def test_a_write_of_hudis_that_has_announced_a_file_group_stops_ours(kind: str, hudi_12: Peer, lake: Lake) -> None:
    """The write was rejected in the end, and has left its markers; a heartbeat makes it one that goes on."""
    theirs = THEIRS | {"hoodie.write.markers.type": kind, "hoodie.embed.timeline.server": "true"}
    with pytest.raises(PeerFailed):
        hudi_12.write(lake.uri, "upsert", table_of([row("a", "H", 2)]), REJECT | theirs)
    (pending,) = lake.table.timeline().pending()
    found = [path for path in lake.files() if f"/.temp/{pending.requested}/" in path]
    assert any(path.endswith("MARKERS.type") for path in found) == (kind != "DIRECT")
    lake.storage.put(heartbeat_path(pending.requested), b"")
    with pytest.raises(EarlyConflict) as caught:
        lake.write("upsert", [row("a", "we", 3)], {**SEVERAL, **EARLY})
    assert caught.value.facts["other"] == pending.requested
    assert caught.value.facts["partitions"] == ("p",)
    lake.write("upsert", [row("b", "we", 3, "q")], {**SEVERAL, **EARLY})
    lake.storage.delete(heartbeat_path(pending.requested))
    lake.write("upsert", [row("a", "we", 3)], {**SEVERAL, **EARLY})
    assert lake.values() == {"a": "we", "b": "we"}


def test_a_write_of_ours_that_has_announced_a_file_group_stops_hudis(hudi_12: Peer, lake: Lake) -> None:
    theirs = THEIRS | EARLY | {"hoodie.write.markers.type": "DIRECT"}

    def write_theirs(gate: Gate) -> None:
        del gate
        hudi_12.write(lake.uri, "upsert", table_of([row("a", "H", 2)]), theirs)

    ends = run_in_order(tuple("AAHA"), {"A": writer(lake, [row("a", "we", 3)], **EARLY), "H": write_theirs})
    assert isinstance(ends["A"], Committed), ends["A"]
    assert isinstance(ends["H"], PeerFailed)
    assert "EarlyConflictDetection" in str(ends["H"])
    assert lake.values() == {"a": "we", "b": "a"}
