"""A bucket index that a table of ours was made with: Hudi goes on with it without being told, and keeps the properties.
Told another one, its writer refuses as ours does.
"""

from __future__ import annotations

from pathlib import Path

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
from hoodie.index import RememberedBuckets, parse_remembered_buckets

WRITERS = [(6, "hudi_015"), (6, "hudi_12"), (8, "hudi_12"), (9, "hudi_12")]
COUNT = "hoodie.bucket.index.num.buckets"
SIMPLE = {"hoodie.index.type": "BUCKET", COUNT: "4"}
RINGS = SIMPLE | {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
MERGE = {WRITE + "table.type": "MERGE_ON_READ"}
LATEST = {WRITE + "payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
STAYS = {"hoodie.write.auto.upgrade": "false"}
KINDS = {
    "simple_cow": (SIMPLE, RememberedBuckets("SIMPLE", ("id",), 4)),
    "simple_mor": (SIMPLE | MERGE, RememberedBuckets("SIMPLE", ("id",), 4)),
    "consistent_mor": (RINGS | MERGE, RememberedBuckets("CONSISTENT_HASHING", ("id",), None)),
}


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_hudi_and_we_go_on_without_options_and_leave_every_key_once(
    kind: str, version: int, writer: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    index, expected = KINDS[kind]
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    write_rows(table, "insert", slim_rows(range(60)), table_options(version, "id", "region") | index | LATEST)
    model.upsert(slim_rows(range(60)))
    ensure_same_rows(read_rows(table), peer.read(table), called=("ours", peer.name))
    for turn in (1, 2):
        theirs = slim_rows([*range(turn, 60, 5), *range(100 * turn, 100 * turn + 6)], 2 * turn)
        peer.write(table, "upsert", theirs, LATEST | _staying(peer))
        model.upsert(theirs)
        ours = slim_rows([*range(turn, 60, 7), *range(500 * turn, 500 * turn + 6)], 2 * turn + 1)
        continue_table(table, "upsert", ours, {})
        model.upsert(ours)
        rows = read_rows(table)
        ensure_same_rows(rows, peer.read(table), called=("ours", peer.name))
        ensure_same_rows(without_meta(rows), model.rows, called=("both", f"model after turn {turn}"))
    assert parse_remembered_buckets(Table.open(str(table)).config.raw) == expected


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_hudi_refuses_another_number_of_buckets(version: int, writer: str, readers: Readers, tmp_path: Path) -> None:
    peer: Peer = getattr(readers, writer)
    table, rows = tmp_path / "table", slim_rows(range(30))
    write_rows(table, "insert", rows, table_options(version, "id", "region") | SIMPLE)
    with pytest.raises(PeerFailed, match=COUNT):
        peer.write(table, "upsert", rows, {**SIMPLE, COUNT: "8"} | _staying(peer))
    peer.write(table, "upsert", rows, SIMPLE | _staying(peer))
    assert read_rows(table).num_rows == 30


def _staying(peer: Peer) -> dict[str, str]:
    """What keeps the version of a table, where the peer knows more than one."""
    return {} if peer.name.endswith("0.15.0") else STAYS
