"""The index in a real HBase: Hudi 0.15.0 finds keys by rows of ours, and we by Hudi's, on one table.

Needs the jars that `make compat-setup` lays into `.venv-compat/hbase`; skipped where they could not be had.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from peers import Peer, table_options

from hoodie.errors import Invalid, Unavailable
from hoodie.index.hbase_client import Gateway
from hoodie.index.hbase_locations import HBaseLocations, Pacing
from hoodie.table import Table
from hoodie.testing.hbase_server import RunningHBase, running_hbase
from hoodie.testing.lake import Lake, row, table_of

JARS = Path(__file__).parent.parent.parent / ".venv-compat" / "hbase"


@pytest.fixture(scope="module")
def hbase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHBase]:
    if not any(JARS.glob("hbase-server-*.jar")):
        pytest.skip("the jars of HBase could not be had (scripts/hbase_jars.py)")
    with running_hbase(JARS, tmp_path_factory.mktemp("hbase")) as running:
        yield running


@pytest.fixture
def places(hbase: RunningHBase) -> str:
    """A new table of HBase."""
    name = f"places_{uuid.uuid4().hex[:8]}"
    hbase.make_table(name)
    return name


def stored(hbase: RunningHBase, places: str) -> dict[str, dict[str, str]]:
    """What HBase says of each key."""
    connection = hbase.connection()
    try:
        return {
            key.decode(): {name.decode().removeprefix("_s:"): text.decode() for name, text in cells.items()}
            for key, cells in connection.table(places).scan()
        }
    finally:
        connection.close()


@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_each_side_finds_the_keys_of_the_other(
    first: str, kind: str, hbase: RunningHBase, places: str, hudi_015: Peer, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    options = {
        **table_options(6, "id", "part"),
        **hbase.options,
        "hoodie.index.hbase.table": places,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.compact.inline": "false",
    }
    theirs = {key: value for key, value in options.items() if key != "hoodie.write.table.version"}

    def write_ours(operation: str, *rows: dict[str, Any]) -> None:
        lake.write(operation, rows)

    def write_theirs(operation: str, *rows: dict[str, Any]) -> None:
        hudi_015.write(path, operation, table_of(rows), theirs)

    lake = Lake(6, options, uri=path)
    start = [row("a"), row("b"), row("c", part="q")]
    if first == "ours":
        lake.upsert(*start)
    else:
        hudi_015.write(path, "upsert", table_of(start), theirs, mode="overwrite")
    assert set(stored(hbase, places)) == {"a", "b", "c"}
    expected = {"a": "a", "b": "a", "c": "a"}
    write_theirs("upsert", row("a", "t", 10), row("c", "t", 10, "q"), row("new of theirs", part="r"))
    write_ours("upsert", row("b", "o", 11), row("c", "o", 11, "q"), row("new of ours"))
    write_ours("upsert", row("new of theirs", "o", 12, "r"))
    write_theirs("upsert", row("new of ours", "t", 13))
    expected |= {"a": "t", "b": "o", "c": "o", "new of theirs": "o", "new of ours": "t"}
    columns = hudi_015.read(path).select(["id", "v"]).to_pydict()
    assert sorted(zip(columns["id"], columns["v"], strict=True)) == sorted(expected.items())
    ours = Table.open(path, options=options)
    read = ours.scan(columns=["id", "v"]).read_all().to_pydict()
    assert sorted(zip(read["id"], read["v"], strict=True)) == sorted(expected.items())
    assert set(stored(hbase, places)) == set(expected)
    write_theirs("delete", row("a", ts=99))
    assert set(stored(hbase, places)) == set(expected) - {"a"}
    write_ours("delete", row("b", ts=99))
    assert "b" in stored(hbase, places), "for whoever undoes the delete"
    write_theirs("upsert", row("b", "again", 100), row("a", "again", 100))
    columns = ours.scan(columns=["id", "v"]).read_all().to_pydict()
    expected |= {"a": "again", "b": "again"}
    assert sorted(zip(columns["id"], columns["v"], strict=True)) == sorted(expected.items())
    assert ours.validate() == []


def test_rows_come_and_go_by_requests_through_the_gateway(hbase: RunningHBase, places: str) -> None:
    locations = HBaseLocations(Gateway("127.0.0.1", hbase.gateway_port, places), Pacing(get_rows=70, put_rows=90))
    keys = [f"k{n:04}" for n in range(500)]
    more = {"partition": ["p"] * 500, "file_id": ["f-0"] * 500, "commit": ["1"] * 500, "put_ms": [0] * 500}
    rows = pa.table({"record_key": keys, **more})
    locations.put(rows)
    found = locations.find(pa.array([*keys, "none"]))
    assert found.sort_by("record_key").drop("put_ms").to_pylist() == rows.drop("put_ms").to_pylist()
    two = {"partition": ["q", "q"], "file_id": ["g-0", "g-0"], "commit": ["2", "2"], "put_ms": [0, 0]}
    moved = pa.table({"record_key": ["k0001", "new"], **two})
    locations.put(moved)
    assert locations.roll_back("2") == 2
    back = locations.find(pa.array(["k0001", "new"])).drop("put_ms")
    assert back.to_pylist() == rows.slice(1, 1).drop("put_ms").to_pylist()
    put_anew = rows.slice(0, 1).set_column(3, "commit", [["3"]])
    locations.put(put_anew)
    locations.delete(found)
    left = locations.find(pa.array(keys))
    assert "k0000" in left.column("record_key").to_pylist()
    assert len(left) <= 2


def test_no_table_and_no_gateway_are_told_apart(hbase: RunningHBase) -> None:
    with pytest.raises(Invalid, match="no table missing"):
        HBaseLocations(Gateway("127.0.0.1", hbase.gateway_port, "missing")).find(pa.array(["k"]))
    with pytest.raises(Unavailable, match="does not answer"):
        HBaseLocations(Gateway("127.0.0.1", 1, "missing", 500)).find(pa.array(["k"]))
