"""Compactions in turns: Hudi carries out our plans, we carry out Hudi's, each reads what the other has compacted and
goes on with it. Log compactions of ours are read and compacted by Hudi.
"""

from __future__ import annotations

import json
import shutil
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

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.locks import held_lock
from hoodie.logs import read_block_rows, read_blocks
from hoodie.services.compaction.admin import validate_compaction
from hoodie.services.compaction.compact import run_compaction, schedule_compaction
from hoodie.services.compaction.log_compact import run_log_compaction, schedule_log_compaction
from hoodie.services.compaction.result import CompactionResult
from hoodie.spec import Instant
from hoodie.state.handle import load_handle, timeline_of
from hoodie.storage import open_storage
from hoodie.timeline import load_commit_metadata

WRITERS = [(6, "hudi_015"), (6, "hudi_12"), (8, "hudi_12"), (9, "hudi_12")]
EVENT_TIME_PAYLOAD = {WRITE + "payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
NO_SERVICES = {
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
OURS = {"hoodie.metadata.enable": "false", "hoodie.index.bloom.num_entries": "500"}
ENGINE = LocalEngine(2)


def _options(version: int) -> dict[str, str]:
    payload = EVENT_TIME_PAYLOAD if version == 6 else {}
    return {**table_options(version, "id", "region"), WRITE + "table.type": "MERGE_ON_READ", **payload, **NO_SERVICES}


def _for_peer(options: dict[str, str], peer: Peer) -> dict[str, str]:
    """The version is asked for where the peer knows more than one."""
    if peer.name.endswith("0.15.0"):
        return {key: value for key, value in options.items() if key != "hoodie.write.table.version"}
    return options | {"hoodie.write.auto.upgrade": "false"}


def _call(peer: Peer, table: Path, version: int, op: str, more: dict[str, str] | None = None) -> Any:
    """Hudi's own procedure, kept from building a metadata table and from upgrading."""
    given = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.metadata.enable": "false"}
    if not peer.name.endswith("0.15.0"):
        given |= {"hoodie.write.auto.upgrade": "false", "hoodie.write.table.version": str(version)}
    given |= more or {}
    options = ",".join(f"{key}={value}" for key, value in given.items())
    statement = f"CALL run_compaction(op => '{op}', table => '{{t}}', options => '{options}')"
    return peer.ask("sql", path=str(table), statement=statement)


def _handle(table: Path) -> Any:
    return load_handle(open_storage(str(table)), SystemEnv())


def _schedule(table: Path) -> Instant:
    handle = _handle(table)
    with held_lock(handle.storage, "plan"):
        planned = schedule_compaction(handle, resolve(OURS), ENGINE, when_due=False)
    assert planned is not None
    return planned


def _run(table: Path) -> CompactionResult:
    result = run_compaction(_handle(table), resolve(OURS), ENGINE)
    assert result is not None
    return result


def _pending(table: Path) -> list[Instant]:
    return [one for one in timeline_of(_handle(table)).pending() if "compaction" in one.action]


def _start(table: Path, version: int, model: Model, peer: Peer | None = None) -> None:
    """Thirty rows, some updated, some deleted in two logs of every region: by us, or by Hudi."""
    options = _options(version)
    rows, updates, gone = slim_rows(range(30)), slim_rows(range(0, 30, 2), 1), slim_rows([4, 5, 6], 1)
    if peer is None:
        write_rows(table, "insert", rows, options)
        continue_table(table, "upsert", updates, NO_SERVICES)
        continue_table(table, "delete", gone, NO_SERVICES)
    else:
        peer.write(table, "insert", rows, _for_peer(options, peer), mode="overwrite")
        peer.write(table, "upsert", updates, NO_SERVICES)
        peer.write(table, "delete", gone, NO_SERVICES)
    model.upsert(rows)
    model.upsert(updates)
    model.delete(gone)


def _ensure(readers: Readers, table: Path, version: int, model: Model) -> None:
    rows = readers.ensure_agree(table, version)
    ensure_same_rows(without_meta(rows), model.rows, called=("all of us", "model"))


def _ensure_read_by_hudi(readers: Readers, table: Path, version: int, model: Model) -> None:
    """As `_ensure`, without hudi-rs: it does not see log files of version 6 that are named by a pending compaction."""
    for peer in (readers.hudi_12, *((readers.hudi_015,) if version == 6 else ())):
        ensure_same_rows(without_meta(peer.read(table)), model.rows, called=(peer.name, "model"))
    ensure_same_rows(without_meta(read_rows(table)), model.rows, called=("ours", "model"))


def _ensure_compacted(readers: Readers, table: Path, version: int, model: Model) -> None:
    """Every row is in a base file, and all readers of base files see that."""
    _ensure(readers, table, version, model)
    rows = read_rows(table, query="read_optimized")
    ensure_same_rows(without_meta(rows), model.rows, called=("base files", "model"))
    for peer in (readers.hudi_12, *((readers.hudi_015,) if version == 6 else ())):
        theirs = peer.read(table, query="read_optimized")
        ensure_same_rows(without_meta(theirs), model.rows, called=(f"base files by {peer.name}", "model"))


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_hudi_carries_out_our_plan_beside_our_writes(
    version: int, writer: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    _start(table, version, model)
    _schedule(table)
    between = slim_rows([1, 2, 100], 2)
    continue_table(table, "upsert", between, NO_SERVICES)
    model.upsert(between)
    _ensure_read_by_hudi(readers, table, version, model)
    answer = _call(peer, table, version, "execute")
    assert not _pending(table), answer
    _ensure(readers, table, version, model)
    after = slim_rows([2, 3, 101], 3)
    continue_table(table, "upsert", after, NO_SERVICES)
    model.upsert(after)
    _schedule(table)
    _run(table)
    _ensure_compacted(readers, table, version, model)


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_we_carry_out_hudis_plan_beside_its_writes(version: int, writer: str, readers: Readers, tmp_path: Path) -> None:
    peer: Peer = getattr(readers, writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    _start(table, version, model, peer)
    _call(peer, table, version, "schedule")
    assert len(_pending(table)) == 1
    between = slim_rows([1, 2, 100], 2)
    peer.write(table, "upsert", between, NO_SERVICES)
    model.upsert(between)
    assert all(check.is_valid for check in validate_compaction(_handle(table)))
    _run(table)
    _ensure(readers, table, version, model)
    after = slim_rows([2, 3, 101], 3)
    peer.write(table, "upsert", after, NO_SERVICES)
    model.upsert(after)
    _call(peer, table, version, "schedule")
    _call(peer, table, version, "execute")
    _ensure_compacted(readers, table, version, model)


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_compactions_of_both_in_turns(version: int, writer: str, readers: Readers, tmp_path: Path) -> None:
    peer: Peer = getattr(readers, writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    _start(table, version, model)
    for turn in (2, 4):
        ours, gone = slim_rows([*range(turn, 30, 5), 200 + turn], turn), slim_rows([turn + 8], turn)
        continue_table(table, "upsert", ours, NO_SERVICES)
        continue_table(table, "delete", gone, NO_SERVICES)
        model.upsert(ours)
        model.delete(gone)
        _schedule(table)
        _run(table)
        _ensure_compacted(readers, table, version, model)
        theirs = slim_rows([*range(turn + 1, 30, 5), 300 + turn], turn + 1)
        peer.write(table, "upsert", theirs, NO_SERVICES)
        model.upsert(theirs)
        _call(peer, table, version, "schedule")
        _call(peer, table, version, "execute")
        _ensure_compacted(readers, table, version, model)


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_hudi_reads_and_compacts_our_compacted_logs(
    version: int, writer: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    _start(table, version, model)
    handle = _handle(table)
    on = resolve({**OURS, "hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": "2"})
    with held_lock(handle.storage, "plan"):
        assert schedule_log_compaction(handle, on, ENGINE) is not None
    result = run_log_compaction(handle, on, ENGINE)
    assert result is not None
    _ensure(readers, table, version, model)
    theirs, ours = slim_rows([0, 3, 400], 5), slim_rows([6, 400, 401], 6)
    peer.write(table, "upsert", theirs, NO_SERVICES)
    model.upsert(theirs)
    continue_table(table, "upsert", ours, NO_SERVICES)
    model.upsert(ours)
    _ensure(readers, table, version, model)
    _call(peer, table, version, "schedule")
    _call(peer, table, version, "execute")
    _ensure_compacted(readers, table, version, model)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_all_types_survive_our_compaction(version: int, readers: Readers, tmp_path: Path) -> None:
    table = tmp_path / "table"
    rows = typed_rows(range(12))
    write_rows(table, "insert", rows, {**_options(version), WRITE + "partitionpath.field": ""})
    continue_table(table, "upsert", typed_rows(range(5)), NO_SERVICES)
    before = read_rows(table)
    _schedule(table)
    _run(table)
    after = readers.ensure_agree(table, version, ("rs_zoneless_timestamps", "015_zoneless_timestamps"))
    ensure_same_rows(without_meta(after), without_meta(before), called=("compacted", "before"))
    assert pa.types.is_string(after.schema.field("_hoodie_commit_time").type)


def _changes(rows: pa.Table) -> list[str]:
    """Operation, and id and turn of the row before and after, of each change."""
    found = []
    for one in rows.to_pylist():
        images = [json.loads(one[side] or "null") for side in ("before", "after")]
        found.append(repr((one["op"], *(image and (image["id"], image["ts"]) for image in images))))
    return sorted(found)


def _logged(table: Path) -> list[tuple[str, str, Any]]:
    """Operation, key and new value of every change in the change files of the newest commit."""
    handle = _handle(table)
    newest = timeline_of(handle).completed_writes()[-1]
    found = []
    for _, stat in load_commit_metadata(handle.storage, handle.profile, newest).write_stats():
        for path, size in (stat.cdc_stats or {}).items():
            for block in read_blocks(handle.storage, path, size):
                for one in read_block_rows(handle.storage, block).to_pylist():
                    after = one["after"] or {}
                    found.append((one["op"], (after or one["before"])["id"], after.get("ts")))
    return sorted(found)


@pytest.mark.parametrize(("version", "writer"), [one for one in WRITERS if one != (6, "hudi_12")], ids=str)
@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
def test_our_compaction_logs_the_changes_that_hudis_logs(
    index: str, version: int, writer: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    table, twin = tmp_path / "table", tmp_path / "twin"
    chosen = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"}
    options = {**_options(version), **chosen, "hoodie.table.cdc.enabled": "true"}
    write_rows(table, "insert", slim_rows(range(12)), options)
    continue_table(table, "upsert", slim_rows(range(0, 16, 2), 1), {**NO_SERVICES, **chosen})
    continue_table(table, "delete", slim_rows([4, 5], 1), {**NO_SERVICES, **chosen})
    before = _changes(peer.read(table, "cdc"))
    handle = _handle(table)
    with held_lock(handle.storage, "plan"):
        assert schedule_compaction(handle, resolve({**OURS, **chosen}), ENGINE, when_due=False) is not None
    shutil.copytree(table, twin)
    _call(peer, twin, version, "execute", chosen)
    assert run_compaction(_handle(table), resolve({**OURS, **chosen}), ENGINE) is not None
    assert _logged(table) == _logged(twin)
    for one in (table, twin):
        assert _changes(peer.read(one, "cdc")) == before
        assert _changes(read_rows(one, query="cdc", begin="0")) == before
