"""Taking turns: Hudi continues our tables, we continue Hudi's, five times each, and all agree after every turn.

The peers run without a metadata table and without upgrading (`hoodie.metadata.enable=false`,
`hoodie.write.auto.upgrade=false`, `hoodie.write.table.version` of the table): see `peers/hudi_server.py`.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from peers import (
    WRITE,
    Model,
    Peer,
    Readers,
    continue_table,
    ensure_same_rows,
    slim_rows,
    table_options,
    without_meta,
    write_rows,
)

TURNS = 5
KEYGENS = "org.apache.hudi.keygen."
STYLES = {
    "no_partitions": ("id", "", {}),
    "partitioned": ("id", "region", {}),
    "two_hive": ("id,seen_ms", "region,city", {WRITE + "hive_style_partitioning": "true"}),
    "dates_encoded": ("id", "day", {WRITE + "partitionpath.urlencode": "true"}),
}
STARTS = [*(("ours", style) for style in STYLES), ("theirs", "partitioned"), ("theirs", "two_hive")]
WRITERS = [(6, "hudi_015"), (6, "hudi_12"), (8, "hudi_12"), (9, "hudi_12")]


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
@pytest.mark.parametrize(("first", "style"), STARTS, ids=str)
def test_five_turns_of_each_agree(
    *, first: str, version: int, writer: str, style: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    keys, partition, more = STYLES[style]
    options = table_options(version, keys, partition) | more
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    start = slim_rows(range(40))
    if first == "ours":
        write_rows(table, "insert", start, options)
    else:
        peer.write(table, "insert", start, _for_peer(options, peer), mode="overwrite")
    model.upsert(start)
    for turn in range(1, TURNS + 1):
        theirs, gone = _changes(2 * turn), _removals(2 * turn)
        peer.write(table, "upsert", theirs)
        peer.write(table, "delete", gone)
        _follow(model, theirs, gone)
        ours, gone = _changes(2 * turn + 1), _removals(2 * turn + 1)
        continue_table(table, "upsert", ours)
        continue_table(table, "delete", gone)
        _follow(model, ours, gone)
        rows = readers.ensure_agree(table, version)
        ensure_same_rows(without_meta(rows), model.rows, called=("all of us", f"model after turn {turn}"))


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_overwrites_in_turns_agree(version: int, writer: str, readers: Readers, tmp_path: Path) -> None:
    peer: Peer = getattr(readers, writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    rows = slim_rows(range(30))
    write_rows(table, "bulk_insert", rows, table_options(version, "id", "region"))
    model.upsert(rows)
    for turn in (1, 2):
        rows = slim_rows(range(300 * turn, 300 * turn + 12, 3), turn)
        peer.write(table, "insert_overwrite", rows)
        _replace(model, rows)
        rows = slim_rows(range(300 * turn + 1, 300 * turn + 12, 3), turn)
        continue_table(table, "insert_overwrite", rows)
        _replace(model, rows)
        rows = slim_rows(range(300 * turn + 100, 300 * turn + 104), turn)
        peer.write(table, "bulk_insert", rows)
        model.upsert(rows)
        rows = slim_rows(range(300 * turn + 110, 300 * turn + 114), turn)
        continue_table(table, "insert", rows)
        model.upsert(rows)
        ours = readers.ensure_agree(table, version)
        ensure_same_rows(without_meta(ours), model.rows, called=("all of us", f"model after turn {turn}"))
    rows = slim_rows(range(1000, 1010), 5)
    continue_table(table, "insert_overwrite_table", rows)
    peer.write(table, "upsert", rows)
    model.clear()
    model.upsert(rows)
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("all of us", "model"))


def _changes(turn: int) -> pa.Table:
    """Updates of known rows and some new ones."""
    return slim_rows([*range(turn, 40, 5), *range(100 * turn, 100 * turn + 6)], turn)


def _removals(turn: int) -> pa.Table:
    return slim_rows([turn + 7, 100 * turn + 1], turn + 1)


def _follow(model: Model, changed: pa.Table, gone: pa.Table) -> None:
    model.upsert(changed)
    model.delete(gone)


def _replace(model: Model, rows: pa.Table) -> None:
    model.remove("region", rows.column("region").to_pylist())
    model.upsert(rows)


def _for_peer(options: dict[str, str], peer: Peer) -> dict[str, str]:
    """The version is asked for where the peer knows more than one."""
    if peer.name.endswith("0.15.0"):
        return {key: value for key, value in options.items() if key != "hoodie.write.table.version"}
    return options | {"hoodie.write.auto.upgrade": "false"}
