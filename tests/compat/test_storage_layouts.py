"""The real Hudi refuses a table with storage paths at the first look, to read and to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from peers import Peer, Readers, slim_rows, table_options, write_rows

import hoodie


@pytest.mark.parametrize(("version", "peer"), [(9, "hudi_12"), (6, "hudi_015")])
def test_hudi_says_at_once_that_it_does_not_know_such_a_table(
    version: int, peer: str, readers: Readers, tmp_path: Path
) -> None:
    hudi: Peer = getattr(readers, peer)
    table, options = tmp_path / "table", table_options(version, "id", "region")
    storage: dict[str, Any] = {"hoodie.storage.path": str(tmp_path / "data")}
    write_rows(table, "insert", slim_rows(range(20)), options | storage | {"hoodie.metadata.enable": "true"})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".crc"}
    for act in (
        lambda: hudi.read(table),
        lambda: hudi.write(table, "upsert", slim_rows(range(5)), options),
    ):
        with pytest.raises(Exception, match="COPY_ON_WRITE_FEDERATED"):
            act()
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".crc"}
    assert after == before
    allowed = {"hoodie.storage.allowed.roots": str(tmp_path)}
    assert hoodie.Table.open(str(table), options=allowed).scan().read_all().num_rows == 20
