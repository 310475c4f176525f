"""Merge-on-read tables: Hudi reads our log files, compacts them and goes on; we go on with Hudi's.

Every kind of block (parquet, avro, hfile data blocks, delete blocks with and without ordering values, partial rows),
on partitioned tables and tables without partitions, versions 6, 8 and 9.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from peers import (
    WRITE,
    Model,
    Peer,
    Readers,
    continue_table,
    ensure_same_rows,
    read_rows,
    slim_rows,
    table_options,
    typed_rows,
    without_meta,
    write_rows,
)

from hoodie import Table
from hoodie.logs import BlockKind, HeaderKey, LogBlock, read_blocks, read_deletes

VERSIONS = (6, 8, 9)
FORMATS = ("parquet", "avro", "hfile")
WRITERS = [(6, "hudi_015"), (6, "hudi_12"), (8, "hudi_12"), (9, "hudi_12")]
MERGE_ON_READ = {WRITE + "table.type": "MERGE_ON_READ"}
BLOCK_FORMAT = "hoodie.logfile.data.block.format"
EVENT_TIME_PAYLOAD = {WRITE + "payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
RECORD_MERGER = "hoodie.write.record.merge.custom.implementation.classes"
SPARK_MERGER = "org.apache.hudi.DefaultSparkRecordMerger"
NO_COMPACTION = {"hoodie.compact.inline": "false"}
COMPACTION = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}


def _options(version: int, partition: str = "region", ordering: str = "ts") -> dict[str, str]:
    payload = EVENT_TIME_PAYLOAD if version == 6 else {}
    return {**table_options(version, "id", partition, ordering), **MERGE_ON_READ, **payload}


def _flagged(rows: pa.Table, deleted: bool = False) -> pa.Table:
    """The rows with the column that marks deletes."""
    return rows.append_column("_hoodie_is_deleted", pa.array([deleted] * rows.num_rows, pa.bool_()))


def _blocks(table: Path) -> list[LogBlock]:
    """All blocks of the latest slices."""
    opened = Table.open(str(table))
    logs = [log for one in opened.files() for log in one.logs]
    return [block for log in logs for block in read_blocks(opened.storage, log.path, log.size_bytes)]


def _ensure(readers: Readers, table: Path, version: int, model: Model, *limits: str) -> None:
    rows = readers.ensure_agree(table, version, limits)
    ensure_same_rows(without_meta(rows), model.rows, called=("all of us", "model"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("partition", ["region", ""], ids=["partitioned", "flat"])
def test_every_peer_reads_our_updates_and_deletes(
    version: int, kind: str, partition: str, readers: Readers, tmp_path: Path
) -> None:
    table, model = tmp_path / "table", Model(_flagged(slim_rows(range(0))).schema)
    options = {**_options(version, partition), BLOCK_FORMAT: kind}
    for operation, rows, deleted in (
        ("bulk_insert", _flagged(slim_rows(range(30))), False),
        ("upsert", _flagged(slim_rows(range(20), turn=1)), False),
        ("delete", _flagged(slim_rows(range(3), turn=1)), True),
        ("upsert", _flagged(slim_rows(range(3, 6), turn=2), deleted=True), True),
        ("upsert", _flagged(slim_rows(range(6, 9), turn=0), deleted=True), False),  # older than what is stored
        ("upsert", _flagged(slim_rows(range(1, 4), turn=3)), False),
    ):
        write_rows(table, operation, rows, options)
        model.delete(rows) if deleted else None
        if not deleted and not rows.column("_hoodie_is_deleted")[0].as_py():
            model.upsert(rows)
    kinds = {block.kind.name for block in _blocks(table)}
    assert kinds == {f"{kind.upper()}_DATA", "DELETE"}
    _ensure(readers, table, version, model, *(["12_hfile_log_blocks"] if kind == "hfile" else []))


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_turns_with_compaction_by_hudi_agree(
    version: int, writer: str, first: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    options = _options(version)
    start = slim_rows(range(30))
    if first == "ours":
        write_rows(table, "insert", start, options)
    else:
        peer.write(table, "insert", start, {**_for_peer(options, peer), **NO_COMPACTION}, mode="overwrite")
    model.upsert(start)
    for turn, compacts in ((1, False), (2, True), (3, False)):
        ours = slim_rows([*range(turn, 30, 4), *range(100 * turn, 100 * turn + 5)], 2 * turn)
        continue_table(table, "upsert", ours)
        model.upsert(ours)
        gone = slim_rows([turn + 7, 100 * turn + 1], 2 * turn)
        continue_table(table, "delete", gone)
        model.delete(gone)
        theirs = slim_rows([*range(turn, 30, 3), *range(100 * turn + 50, 100 * turn + 54)], 2 * turn + 1)
        peer.write(table, "upsert", theirs, {**_payload(version), **(COMPACTION if compacts else NO_COMPACTION)})
        model.upsert(theirs)
        if compacts:
            assert any(instant.action == "commit" for instant in Table.open(str(table)).timeline().completed())
        _ensure(readers, table, version, model)
    assert Table.open(str(table)).validate() == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_hudi_reads_every_type_in_our_logs_and_compacts_it(
    version: int, kind: str, readers: Readers, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    options = {**_options(version), BLOCK_FORMAT: kind}
    first, second = typed_rows(range(12), zoneless=False), typed_rows(range(8), 1, zoneless=False)
    model = Model(first.schema)
    for operation, rows in (("bulk_insert", first), ("upsert", second)):
        write_rows(table, operation, rows, options)
        model.upsert(rows)
    _ensure(readers, table, version, model, *(["rs_nested_decimals_in_avro_logs"] if kind == "avro" else []))
    peer = readers.hudi_015 if version == 6 else readers.hudi_12
    third = typed_rows(range(2), 2, zoneless=False)
    peer.write(table, "upsert", third, {**_payload(version), **COMPACTION})
    model.upsert(third)
    assert _blocks(table) == []
    ensure_same_rows(without_meta(read_rows(table)), model.rows, called=("ours", "model"))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_type_survives_our_hfile_blocks_which_no_hudi_on_spark_reads(version: int, tmp_path: Path) -> None:
    table = tmp_path / "table"
    options = {**_options(version), BLOCK_FORMAT: "hfile"}
    first, second = typed_rows(range(12)), typed_rows(range(8), 1)
    model = Model(first.schema)
    for operation, rows in (("bulk_insert", first), ("upsert", second)):
        write_rows(table, operation, rows, options)
        model.upsert(rows)
    assert {block.kind.name for block in _blocks(table)} == {"HFILE_DATA"}
    ensure_same_rows(without_meta(read_rows(table)), model.rows, called=("logs", "model"))
    assert Table.open(str(table)).services.compact() is not None
    assert _blocks(table) == []
    ensure_same_rows(without_meta(read_rows(table)), model.rows, called=("compacted", "model"))


def test_deletes_with_several_ordering_fields_agree(readers: Readers, tmp_path: Path) -> None:
    table, model = tmp_path / "table", Model(_flagged(slim_rows(range(0))).schema)
    write_rows(table, "insert", _flagged(slim_rows(range(20))), _options(9, ordering="ts,seen_ms"))
    model.upsert(_flagged(slim_rows(range(20))))
    continue_table(table, "upsert", _flagged(slim_rows(range(10), turn=2)))
    model.upsert(_flagged(slim_rows(range(10), turn=2)))
    continue_table(table, "upsert", _flagged(slim_rows(range(5), turn=1), deleted=True))  # late: changes nothing
    continue_table(table, "upsert", _flagged(slim_rows(range(10, 15), turn=1), deleted=True))
    model.delete(slim_rows(range(10, 15)))
    _ensure(readers, table, 9, model, "rs_several_ordering_fields")


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
@pytest.mark.parametrize("column", ["long", "timestamp", "date", "text", "decimal", "double"])
def test_delete_blocks_hold_ordering_values_as_those_of_hudi_do(
    version: int, writer: str, column: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    options = _options(version, ordering="at")
    rows, gone = _ordered_rows(column, 2), _ordered_rows(column, 3, deleted=True).slice(0, 2)
    late = _ordered_rows(column, 1, deleted=True).slice(2, 1)
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    write_rows(ours, "insert", rows, options)
    continue_table(ours, "upsert", pa.concat_tables([gone, late]))
    limits = ["015_late_deletes"] if version == 6 else []
    assert sorted(readers.ensure_agree(ours, version, limits)["id"].to_pylist()) == ["c", "d"]
    if column == "date":  # no release of Hudi reads what it writes here
        return
    peer.write(theirs, "insert", rows, {**_for_peer(options, peer), **NO_COMPACTION}, mode="overwrite")
    peer.write(theirs, "upsert", pa.concat_tables([gone, late]), {**_payload(version), **NO_COMPACTION})
    assert _deletes(ours) == _deletes(theirs)
    assert sorted(readers.ensure_agree(theirs, version, limits)["id"].to_pylist()) == ["c", "d"]


def _deletes(table: Path) -> list[tuple[str, Any, str]]:
    """Key, ordering value and its type of all deletes in log files."""
    storage = Table.open(str(table)).storage
    found = []
    for block in _blocks(table):
        if block.kind is BlockKind.DELETE:
            deletes = read_deletes(storage, block)
            (values,) = deletes.ordering
            found += [(key, value, str(values.type)) for key, value in zip(deletes.keys, values, strict=True)]
    return sorted((key.as_py(), value.as_py(), kind) for key, value, kind in found)


def _ordered_rows(column: str, number: int, deleted: bool = False) -> pa.Table:
    values: dict[str, Any] = {
        "long": pa.scalar(number, pa.int64()),
        "timestamp": pa.scalar(dt.datetime(2024, 1, number, 12, tzinfo=dt.UTC), pa.timestamp("us", "UTC")),
        "date": pa.scalar(dt.date(2024, 1, number)),
        "text": pa.scalar(f"v{number}"),
        "decimal": pa.scalar(number).cast(pa.decimal128(19, 0)).cast(pa.decimal128(10, 2)),
        "double": pa.scalar(number / 4),
    }
    keys = ["a", "b", "c", "d"]
    return pa.table(
        {
            "id": keys,
            "region": ["north"] * 4,
            "at": pa.repeat(values[column], 4),
            "n": pa.array([number] * 4, pa.int32()),
            "_hoodie_is_deleted": [deleted] * 4,
        }
    )


@pytest.mark.parametrize("version", [8, 9])
def test_hudi_reads_and_compacts_our_updates_of_some_columns(version: int, readers: Readers, tmp_path: Path) -> None:
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    start = slim_rows(range(12))
    write_rows(table, "insert", start, _options(version))
    opened = Table.open(str(table), options={"hoodie.metadata.enable": "false"})
    part = slim_rows(range(6), turn=1)
    opened.update(part.select(["id", "region", "ts", "amount"]))
    half = start.slice(0, 6).drop_columns(["ts", "amount"])
    half = half.append_column("ts", part["ts"]).append_column("amount", part["amount"]).select(start.schema.names)
    model.upsert(start)
    model.upsert(half)
    assert {block.header.get(HeaderKey.IS_PARTIAL) for block in _blocks(table)} == {"true"}
    ours = without_meta(read_rows(table))
    ensure_same_rows(ours, model.rows, called=("ours", "model"))
    ensure_same_rows(ours, without_meta(readers.hudi_12.read(table)), called=("ours", "Hudi 1.2.0"))
    more = slim_rows(range(2), turn=3)
    # Hudi's other merger cannot merge such rows, its own included.
    readers.hudi_12.write(table, "upsert", more, {**COMPACTION, RECORD_MERGER: SPARK_MERGER})
    model.upsert(more)
    assert _blocks(table) == []
    ensure_same_rows(without_meta(read_rows(table)), model.rows, called=("compacted by Hudi", "model"))


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_reads_rows_that_moved_to_another_partition(version: int, readers: Readers, tmp_path: Path) -> None:
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    moves = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}
    rows = slim_rows(range(12))
    write_rows(table, "insert", rows, _options(version))
    model.upsert(rows)
    moved = slim_rows(range(6), turn=1)
    moved = moved.set_column(1, "region", pa.array(["west"] * 6))
    continue_table(table, "upsert", moved, moves)
    model.upsert(moved)
    back = slim_rows(range(3), turn=2)
    continue_table(table, "upsert", back, moves)
    model.upsert(back)
    _ensure(readers, table, version, model)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_row_older_than_a_deleted_one_reads_alike(version: int, readers: Readers, tmp_path: Path) -> None:
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    rows = slim_rows(range(6), turn=5)
    write_rows(table, "insert", rows, _options(version))
    continue_table(table, "delete", rows.slice(0, 2))
    continue_table(table, "upsert", slim_rows(range(1), turn=2))  # loses to the base row, which it brings back
    continue_table(table, "upsert", slim_rows(range(1, 2), turn=6))
    model.upsert(rows)
    model.upsert(slim_rows(range(1, 2), turn=6))
    _ensure(readers, table, version, model)


def _payload(version: int) -> dict[str, str]:
    return EVENT_TIME_PAYLOAD if version == 6 else {}


def _for_peer(options: dict[str, str], peer: Peer) -> dict[str, str]:
    """The version is asked for where the peer knows more than one."""
    if peer.name.endswith("0.15.0"):
        return {key: value for key, value in options.items() if key != "hoodie.write.table.version"}
    return options | {"hoodie.write.auto.upgrade": "false"}
