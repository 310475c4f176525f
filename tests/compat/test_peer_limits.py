"""Each entry of peer_limits.py is shown on a table that Hudi itself wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from peer_limits import LIMITS, PeerLimit
from peers import (
    WRITE,
    Model,
    Peer,
    PeerFailed,
    Readers,
    ancient_rows,
    as_stored,
    difference,
    is_meta,
    slim_rows,
    table_options,
    typed_rows,
)

NO_UPGRADE = {"hoodie.write.auto.upgrade": "false"}
LOGGED = {
    WRITE + "table.type": "MERGE_ON_READ",
    "hoodie.logfile.data.block.format": "avro",
    "hoodie.compact.inline": "false",
}


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_the_peer_cannot_do_it_on_hudis_own_table(
    limit: PeerLimit, request: pytest.FixtureRequest, golden: Callable[[str], tuple[Path, Path]], tmp_path: Path
) -> None:
    peer: Peer = request.getfixturevalue(limit.peer)
    if limit.shown_by.startswith("written/"):
        table, recorded = WRITTEN[limit.shown_by](request.getfixturevalue("readers"), tmp_path)
        arguments = {"query": "snapshot"}
    else:
        table, expected = golden(limit.shown_by)
        recorded = pq.read_table(expected / f"{limit.query}.parquet")
        facts = expected / f"{limit.query}.json"
        asked = json.loads(facts.read_text()) if facts.exists() else {"query": "snapshot"}
        arguments = {key: asked[key] for key in ("query", "begin", "end", "as_of") if asked.get(key)}
    try:
        rows = peer.read(table, **arguments)
    except PeerFailed:
        return
    assert difference(rows, recorded, [name for name in rows.column_names if is_meta(name)]) is not None


def _zoneless_timestamps(readers: Readers, folder: Path) -> tuple[Path, pa.Table]:
    rows = typed_rows(range(2, 8))
    readers.hudi_12.write(
        folder / "table", "insert", rows, table_options(6, "id", "region") | NO_UPGRADE, mode="overwrite"
    )
    return folder / "table", as_stored(rows)


def _ancient_dates(readers: Readers, folder: Path) -> tuple[Path, pa.Table]:
    options = table_options(6, "id", "region") | NO_UPGRADE
    readers.hudi_12.write(folder / "table", "insert", ancient_rows(), options, mode="overwrite")
    return folder / "table", ancient_rows()


def _epoch_partitions(readers: Readers, folder: Path) -> tuple[Path, pa.Table]:
    options = table_options(6, "id", "seen_ms") | {
        WRITE + "keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
        "hoodie.keygen.timebased.timezone": "UTC",
    }
    del options["hoodie.write.table.version"]
    readers.hudi_015.write(folder / "table", "insert", slim_rows(range(3)), options, mode="overwrite")
    return folder / "table", slim_rows(range(3))


def _nested_decimals_in_avro_logs(readers: Readers, folder: Path) -> tuple[Path, pa.Table]:
    table = folder / "table"
    rows, changed = typed_rows(range(4), zoneless=False), typed_rows(range(2, 4), 1, zoneless=False)
    model = Model(rows.schema)
    readers.hudi_12.write(table, "insert", rows, table_options(9, "id", "region") | LOGGED, mode="overwrite")
    readers.hudi_12.write(table, "upsert", changed, LOGGED)
    model.upsert(rows)
    model.upsert(changed)
    return table, model.rows


def _hfile_log_blocks(readers: Readers, folder: Path) -> tuple[Path, pa.Table]:
    table = folder / "table"
    logged = LOGGED | {"hoodie.logfile.data.block.format": "hfile"}
    model = Model(slim_rows(range(0)).schema)
    readers.hudi_12.write(table, "insert", slim_rows(range(4)), table_options(9, "id") | logged, mode="overwrite")
    readers.hudi_12.write(table, "upsert", slim_rows(range(2), turn=1), logged)
    model.upsert(slim_rows(range(4)))
    model.upsert(slim_rows(range(2), turn=1))
    return table, model.rows


def _late_deletes(readers: Readers, folder: Path) -> tuple[Path, pa.Table]:
    payload = {WRITE + "payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
    options = table_options(6, "id", "region") | LOGGED | payload
    del options["hoodie.write.table.version"]
    kept = slim_rows(range(4), turn=2)
    kept = kept.append_column("_hoodie_is_deleted", pa.array([False] * 4))
    late = slim_rows(range(2), turn=1)
    late = late.append_column("_hoodie_is_deleted", pa.array([True] * 2))
    readers.hudi_015.write(folder / "table", "insert", kept, options, mode="overwrite")
    readers.hudi_015.write(folder / "table", "upsert", late, LOGGED | payload)
    return folder / "table", kept


def _filters_of_functions_in_logs(readers: Readers, folder: Path) -> tuple[Path, pa.Table]:
    table = folder / "table"
    logged = LOGGED | {"hoodie.metadata.enable": "true"}
    model = Model(slim_rows(range(0)).schema)
    readers.hudi_12.write(table, "insert", slim_rows(range(4)), table_options(9, "id") | logged, mode="overwrite")
    statement = "CREATE INDEX upper ON {t} USING bloom_filters(seen_text) OPTIONS(expr='upper')"
    lock = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
    readers.hudi_12.ask("sql", path=str(table), statement=statement, options=lock)
    with pytest.raises(PeerFailed, match="MetaIndexBloomFilter"):
        readers.hudi_12.write(table, "upsert", slim_rows(range(2), turn=1), logged)
    model.upsert(slim_rows(range(4)))
    model.upsert(slim_rows(range(2), turn=1))
    return table, model.rows


WRITTEN: dict[str, Callable[[Readers, Path], tuple[Path, pa.Table]]] = {
    "written/zoneless_timestamps": _zoneless_timestamps,
    "written/ancient_dates": _ancient_dates,
    "written/epoch_partitions": _epoch_partitions,
    "written/nested_decimals_in_avro_logs": _nested_decimals_in_avro_logs,
    "written/late_deletes": _late_deletes,
    "written/hfile_log_blocks": _hfile_log_blocks,
    "written/filters_of_functions_in_logs": _filters_of_functions_in_logs,
}
