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


@pytest.mark.parametrize(("version", "peer"), [(9, "hudi_12"), (6, "hudi_015")])
def test_hudi_reads_it_through_a_mount_table_of_hadoop(
    version: int, peer: str, readers: Readers, tmp_path: Path
) -> None:
    """Strategy `fileid:0:2`: the prefix stands in the name, where a regular expression finds it. An unmarked copy of
    the properties is shown to who comes by the mount table, and to nobody else.
    """
    hudi: Peer = getattr(readers, peer)
    meta, data = tmp_path / "meta", tmp_path / "data"
    storage = {
        "hoodie.metadata.enable": "true",
        "hoodie.storage.path": str(data),
        "hoodie.storage.strategy": "fileid:0:2",
        "hoodie.storage.folder": "tbl",
    }
    rows = slim_rows(range(20))
    write_rows(meta / "tbl", "insert", rows, table_options(version, "id", "region") | storage)
    marked = (meta / "tbl" / ".hoodie" / "hoodie.properties").read_bytes()
    shown = meta / "tbl" / ".hoodie" / ".aux" / "hoodie.properties"
    shown.parent.mkdir(exist_ok=True)
    shown.write_bytes(marked.replace(b"_FEDERATED", b""))
    mounts = f"fs.viewfs.mounttable.fed{version}."
    name = r"(?<part>.*)/(?<name>\.?(?<pre>[0-9a-f]{2})[0-9a-f]{6}-.*)"
    links = {
        f"{mounts}linkRegex.^/tbl/{name}$": f"file://{data}/${{pre}}/tbl/${{part}}/${{name}}",
        rf"{mounts}linkRegex.^/tbl/\.hoodie/(?<f>hoodie\.properties)$": f"file://{shown.parent}/${{f}}",
        f"{mounts}linkFallback": f"file://{meta}",
    }
    hudi.ask("hadoop", conf=links)
    found = hudi.read(f"viewfs://fed{version}/tbl", options={"hoodie.metadata.enable": "true"})
    assert sorted(found["id"].to_pylist()) == sorted(rows["id"].to_pylist())
