"""The record index as a write index, in turns: Hudi finds our keys by the index we keep, and we Hudi's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from peers import (
    WRITE,
    Model,
    Peer,
    Readers,
    ensure_same_rows,
    read_rows,
    slim_rows,
    table_options,
    without_meta,
    write_rows,
)

from hoodie import Table
from hoodie.metadata import open_metadata_table
from hoodie.state.handle import load_handle, timeline_of

WHOLE = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    WRITE + "payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}
BY_PARTITION = {
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.level.index.enable": "true",
}
# Hudi 1.2 cannot update its record index without its timeline server.
SERVER = {"hoodie.embed.timeline.server": "true", "hoodie.write.auto.upgrade": "false"}
CASES = {
    "6": (6, "hudi_015", WHOLE),
    "8": (8, "hudi_12", WHOLE),
    "8_by_partition": (8, "hudi_12", BY_PARTITION),
    "9": (9, "hudi_12", WHOLE),
    "9_by_partition": (9, "hudi_12", BY_PARTITION),
}
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


@pytest.mark.parametrize(("version", "writer", "index"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize("kind", TYPES)
def test_turns_leave_every_key_once(
    first: str, kind: str, version: int, writer: str, index: dict[str, str], readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    options = table_options(version, "id", "region") | index | {WRITE + "table.type": kind}
    if peer.name.endswith("0.15.0"):
        for_peer = {key: value for key, value in options.items() if key != "hoodie.write.table.version"}
    else:
        for_peer = options | SERVER
    table, model = tmp_path / "table", Model(_rows(range(0)).schema)
    start = _rows(range(40))
    if first == "ours":
        write_rows(table, "upsert", start, options)
    else:
        peer.write(table, "upsert", start, for_peer, mode="overwrite")
    model.upsert(start)
    for turn in (1, 2):
        theirs, gone = _changes(2 * turn), _rows([turn + 7], 2 * turn + 1)
        peer.write(table, "upsert", theirs, for_peer)
        peer.write(table, "delete", gone, for_peer)
        model.upsert(theirs)
        model.delete(gone)
        ours, gone = _changes(2 * turn + 1), _rows([turn + 20], 2 * turn + 2)
        write_rows(table, "upsert", ours, options)
        write_rows(table, "delete", gone, options)
        model.upsert(ours)
        model.delete(gone)
        rows = read_rows(table)
        ensure_same_rows(rows, peer.read(table), called=("ours", peer.name))
        ensure_same_rows(without_meta(rows), model.rows, called=("both", f"model after turn {turn}"))
        ensure_index_is_whole(table, rows)


def ensure_index_is_whole(table: Path, rows: pa.Table) -> None:
    """The record index is still there and knows every row's key at its place, and no other."""
    storage = Table.open(str(table)).storage
    handle = load_handle(storage, Table.open(str(table))._opened.handle.env)
    metadata = open_metadata_table(storage, handle.config, timeline_of(handle))
    assert metadata is not None
    assert metadata.has("record_index")
    found = metadata.locate(rows.column("_hoodie_record_key").combine_chunks())
    places = zip(found.column("record_key").to_pylist(), found.column("partition").to_pylist(), strict=True)
    asked = ("_hoodie_record_key", "_hoodie_partition_path")
    assert sorted(places) == sorted(zip(*(rows.column(name).to_pylist() for name in asked), strict=True))


def _changes(turn: int) -> pa.Table:
    """Updates of known rows and some new ones."""
    return _rows([*range(turn, 40, 5), *range(100 * turn, 100 * turn + 4)], turn)


def _rows(numbers: Iterable[int], turn: int = 0) -> pa.Table:
    """Rows whose partitions have a sign at which file ids are taken apart."""
    rows = slim_rows(numbers, turn)
    at = rows.schema.get_field_index("region")
    days = pc.binary_join_element_wise("2024-01", rows.column(at), "-")
    return rows.set_column(at, rows.schema.field(at), days)
