"""A global index that a table was made with: Hudi goes on with it without being told, and keeps the property. One that
it does not know it refuses."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from peers import PeerFailed, Readers, read_rows, table_options, write_rows

from hoodie import Table
from hoodie.index import hbase_index
from hoodie.testing.hbase_table import HBaseTable

INDEX = "hoodie.index.type"


def _row(region: str, ts: int) -> pa.Table:
    return pa.table({"id": ["k1"], "region": [region], "ts": pa.array([ts], pa.int64()), "v": [region]})


def test_hudi_goes_on_with_the_index_a_table_was_made_with_and_keeps_the_property(
    readers: Readers, tmp_path: Path
) -> None:
    kept = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}
    for version, peer in ((6, readers.hudi_015), (6, readers.hudi_12), (9, readers.hudi_12)):
        table = tmp_path / f"{version}_{peer.name.replace(' ', '_')}"
        write_rows(table, "upsert", _row("a", 1), {**table_options(version, "id", "region"), INDEX: "GLOBAL_SIMPLE"})
        peer.write(table, "upsert", _row("b", 2), kept)  # writes the properties anew: the table gets indexes
        if version == 6 and peer is readers.hudi_12:
            later = {"hoodie.write.auto.upgrade": "true", "hoodie.write.table.version": "9"}
            peer.write(table, "upsert", _row("c", 3), later)
        assert Table.open(str(table)).config.raw[INDEX] == "GLOBAL_SIMPLE"
        Table.open(str(table)).upsert(_row("d", 4))
        assert [(one["region"], one["ts"]) for one in read_rows(table).to_pylist()] == [("d", 4)]


def test_hudi_12_refuses_a_table_of_the_hbase_index_until_the_property_is_taken_out(
    readers: Readers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = HBaseTable()
    monkeypatch.setattr(hbase_index, "Gateway", lambda host, port, name: places)
    options = {INDEX: "HBASE", "hoodie.index.hbase.table": "places", "hoodie.index.hbase.zkquorum": "nowhere"}
    table = tmp_path / "table"
    write_rows(table, "upsert", _row("a", 1), {**table_options(9, "id", "region"), **options})
    assert readers.hudi_12.read(table, "snapshot").num_rows == 1
    for options in ({}, {INDEX: "GLOBAL_SIMPLE"}):
        with pytest.raises(PeerFailed, match="HBASE"):
            readers.hudi_12.write(table, "upsert", _row("a", 2), options)
    properties = table / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace(f"{INDEX}=HBASE\n", ""))
    readers.hudi_12.write(table, "upsert", _row("a", 2), {INDEX: "GLOBAL_SIMPLE"})
    assert [row["ts"] for row in read_rows(table).to_pylist()] == [2]
