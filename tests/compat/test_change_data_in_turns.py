"""Change data: Hudi reads the change files we write, and we those that Hudi adds to our table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from peers import WRITE, Peer, continue_table, read_rows, slim_rows, table_options, write_rows

from hoodie import Table

MODES = ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER")
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
READERS = [(6, "hudi_015"), (8, "hudi_12"), (9, "hudi_12")]


def _changes(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Operation, and id and turn of the row before and after, of each change."""
    found = []
    for one in rows.select(["op", "before", "after"]).to_pylist():
        images = [json.loads(one[side] or "null") for side in ("before", "after")]
        found.append((one["op"], *((image["id"], image["ts"]) if image else None for image in images)))
    return sorted(found, key=repr)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize(("version", "peer"), READERS)
def test_hudi_reads_our_changes_and_we_read_what_it_adds(
    version: int, peer: str, table_type: str, mode: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    hudi: Peer = request.getfixturevalue(peer)
    table = tmp_path / "table"
    options = {
        **table_options(version, "id", "region"),
        WRITE + "table.type": table_type,
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
    }
    write_rows(table, "upsert", slim_rows(range(12)), options)
    write_rows(table, "upsert", slim_rows(range(4), turn=1), options)
    write_rows(table, "delete", slim_rows(range(6, 8), turn=1), options)
    if table_type == "COPY_ON_WRITE" and version != 6:  # in a log file Hudi takes late rows for changes
        write_rows(table, "upsert", slim_rows(range(3), turn=-1), options)
    ours = _changes(read_rows(table, query="cdc", begin="0"))
    assert _changes(hudi.read(table, "cdc")) == ours
    assert sorted(change[0] for change in ours) == ["d"] * 2 + ["i"] * 12 + ["u"] * 4
    hudi.write(table, "upsert", slim_rows(range(2, 5), turn=2))
    assert _changes(hudi.read(table, "cdc")) == _changes(read_rows(table, query="cdc", begin="0"))
    continue_table(table, "upsert", slim_rows(range(3, 4), turn=3))
    assert _changes(hudi.read(table, "cdc")) == _changes(read_rows(table, query="cdc", begin="0"))
    assert Table.open(str(table)).validate() == []
