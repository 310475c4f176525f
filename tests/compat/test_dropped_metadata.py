"""A metadata table that was damaged and dropped: Hudi goes on with the table, and we with what it made."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from peers import Readers, read_rows, table_options, write_rows

from hoodie import Table
from hoodie.env import SystemEnv
from hoodie.metadata_writer.partition_state import set_aside
from hoodie.state.handle import load_handle
from hoodie.storage import open_storage

INDEX = "hoodie.metadata.record.index.enable"


def _rows(*ids: str, ts: int) -> pa.Table:
    return pa.table(
        {"id": list(ids), "region": ["a"] * len(ids), "ts": pa.array([ts] * len(ids), pa.int64()), "v": list(ids)}
    )


@pytest.mark.parametrize(("version", "hudi_keeps_index"), [(6, False), (9, False), (9, True)])
def test_hudi_goes_on_where_a_damaged_metadata_table_was_dropped(
    readers: Readers, tmp_path: Path, version: int, hudi_keeps_index: bool
) -> None:
    peer = readers.hudi_015 if version == 6 else readers.hudi_12
    path = tmp_path / "table"
    options = {**table_options(version, "id", "region"), "hoodie.metadata.enable": "true"}
    options |= {INDEX: "true", "hoodie.metadata.global.record.level.index.enable": "true"}
    write_rows(path, "upsert", _rows("k1", "k2", ts=1), options)
    before = Table.open(str(path)).config.metadata_partitions
    assert {"files", "record_index"} <= set(before)
    write_rows(path, "upsert", _rows("k2", "k3", ts=2), options)
    set_aside(load_handle(open_storage(str(path)), SystemEnv()))  # as a commit does that finds it damaged
    kept = {"hoodie.metadata.enable": "true", INDEX: str(hudi_keeps_index).lower()}
    peer.write(path, "upsert", _rows("k3", "k4", ts=3), kept)
    expected = [("k1", 1), ("k2", 2), ("k3", 3), ("k4", 3)]
    assert sorted((one["id"], one["ts"]) for one in read_rows(path).to_pylist()) == expected
    write_rows(path, "upsert", _rows("k4", ts=4), options)
    assert sorted((one["id"], one["ts"]) for one in read_rows(path).to_pylist()) == [*expected[:3], ("k4", 4)]
    assert Table.open(str(path)).validate() == []
    assert set(Table.open(str(path)).config.metadata_partitions) >= {"files"}
