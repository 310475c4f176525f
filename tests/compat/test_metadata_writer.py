"""Our metadata table and theirs: Hudi reads tables through the one we keep, finds it equal to the files, and goes on
keeping it; and we do the same with theirs.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from peers import (
    WRITE,
    Model,
    Peer,
    continue_table,
    ensure_same_rows,
    slim_rows,
    table_options,
    without_meta,
    write_rows,
)

from hoodie import Table
from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.metadata import open_metadata_table
from hoodie.services.ingest import Request
from hoodie.services.metadata_upkeep import keep_metadata
from hoodie.services.save import write_table
from hoodie.state.handle import open_handle, timeline_of
from hoodie.storage import open_storage
from hoodie.table import as_source
from hoodie.testing.counting_storage import Call, CountingStorage, Crash
from hoodie.view import list_files

ON = {"hoodie.metadata.enable": "true"}
ONLY_FILES = {
    **ON,
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
}
WRITERS = [(6, "hudi_015"), (6, "hudi_12"), (8, "hudi_12"), (9, "hudi_12")]
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
TURNS = 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_turns_with_one_metadata_table_agree(
    first: str, version: int, writer: str, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    peer: Peer = request.getfixturevalue(writer)
    options = table_options(version, "id", "region") | {WRITE + "table.type": kind, **ONLY_FILES}
    compacting = {**ONLY_FILES, "hoodie.metadata.compact.max.delta.commits": "4"}
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    start = slim_rows(range(40))
    if first == "ours":
        write_rows(table, "insert", start, options)
    else:
        peer.write(table, "insert", start, _for_peer(options, peer), mode="overwrite")
    model.upsert(start)
    _ensure_true(table, peer, model)
    for turn in range(1, TURNS + 1):
        rows, gone = _changes(2 * turn), slim_rows([turn + 7, 200 * turn + 1], turn + 1)
        peer.write(table, "upsert", rows, compacting if turn == TURNS else ONLY_FILES)
        peer.write(table, "delete", gone, ONLY_FILES)
        model.upsert(rows)
        model.delete(gone)
        _ensure_true(table, peer, model)
        rows, gone = _changes(2 * turn + 1), slim_rows([turn + 17, 200 * turn + 101], turn + 1)
        continue_table(table, "upsert", rows, ON)
        continue_table(table, "delete", gone, ON)
        model.upsert(rows)
        model.delete(gone)
        _ensure_true(table, peer, model)
        done = keep_metadata(open_handle(str(table), {}), resolve(compacting), LocalEngine())
        assert done is not None
        _ensure_true(table, peer, model)


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_a_metadata_table_made_late_is_taken_over(
    version: int, writer: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    peer: Peer = request.getfixturevalue(writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    for turn in range(3):
        rows = slim_rows(range(5 * turn, 5 * turn + 20), turn)
        write_rows(table, "upsert", rows, table_options(version, "id", "region"))
        model.upsert(rows)
    rows = slim_rows(range(10, 60), 7)
    continue_table(table, "upsert", rows, ON)
    model.upsert(rows)
    _ensure_true(table, peer, model)
    rows = slim_rows(range(50, 70), 8)
    peer.write(table, "insert_overwrite", rows, ONLY_FILES)
    model.remove("region", rows.column("region").to_pylist())
    model.upsert(rows)
    _ensure_true(table, peer, model)


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_a_write_that_died_after_its_metadata_commit_is_healed_by_hudi(
    version: int, writer: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    peer: Peer = request.getfixturevalue(writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    rows = slim_rows(range(30))
    write_rows(table, "insert", rows, table_options(version, "id", "region") | ON)
    model.upsert(rows)
    _die_before_completing(table, slim_rows(range(20, 50), 3))
    _ensure_true(table, peer, model, files=False)
    rows = slim_rows(range(25, 35), 4)
    peer.write(table, "upsert", rows, ONLY_FILES)
    model.upsert(rows)
    _ensure_true(table, peer, model)
    rows = slim_rows(range(60, 65), 5)
    continue_table(table, "insert", rows, ON)
    model.upsert(rows)
    _ensure_true(table, peer, model)


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_our_rollback_of_a_write_is_true_to_hudi(
    version: int, writer: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    peer: Peer = request.getfixturevalue(writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    rows = slim_rows(range(30))
    write_rows(table, "insert", rows, table_options(version, "id", "region") | ON)
    model.upsert(rows)
    _die_before_completing(table, slim_rows(range(20, 50), 3))
    rows = slim_rows(range(25, 35), 4)
    continue_table(table, "upsert", rows, ON)
    model.upsert(rows)
    _ensure_true(table, peer, model)
    rows = slim_rows(range(27, 31), 5)
    peer.write(table, "upsert", rows, ONLY_FILES)
    model.upsert(rows)
    _ensure_true(table, peer, model)


def _die_before_completing(table: Path, rows: pa.Table) -> None:
    """A write that dies when its metadata table is done and its own instant is not."""
    dead: list[Call] = []

    def strike(call: Call) -> None:
        is_last = call.path.startswith(".hoodie/") and not call.path.startswith(".hoodie/metadata/")
        if dead or (call.op == "create" and is_last and call.path.endswith((".commit", ".deltacommit"))):
            dead.append(call)
            raise Crash

    storage = CountingStorage(open_storage(str(table)), on_call=strike)
    request = Request("upsert", as_source(rows), resolve(ON), LocalEngine())
    with pytest.raises(Crash):
        write_table(storage, request, SystemEnv())


def _ensure_true(table: Path, peer: Peer, model: Model, *, files: bool = True) -> None:
    """Both of us read the model's rows through the metadata table, which lists exactly the files that are there."""
    ensure_same_rows(without_meta(peer.read(table, options=ON)), model.rows, called=(peer.name, "model"))
    ours = Table.open(str(table)).scan().read_all()
    ensure_same_rows(without_meta(ours), model.rows, called=("ours", "model"))
    if not files:
        return
    handle = open_handle(str(table), {})
    known = open_metadata_table(handle.storage, handle.config, timeline_of(handle))
    assert known is not None
    assert _sizes(known.files()) == _sizes(list_files(handle.storage))
    found = peer.ask(
        "sql", path=str(table), statement="CALL validate_metadata_table_files(table => '{t}', verbose => true)"
    )["rows"]
    assert found
    wrong = [
        one
        for one in found
        if not (one["is_present_in_fs"] and one["is_present_in_metadata"] and one["fs_size"] == one["metadata_size"])
    ]
    assert not wrong


def _sizes(files: object) -> dict[str, int]:
    return {one.path: one.size_bytes for part in files for one in part.everything}  # type: ignore[attr-defined]


def _changes(turn: int) -> pa.Table:
    return slim_rows([*range(turn, 40, 5), *range(100 * turn, 100 * turn + 6)], turn)


def _for_peer(options: dict[str, str], peer: Peer) -> dict[str, str]:
    if peer.name.endswith("0.15.0"):
        return {key: value for key, value in options.items() if key != "hoodie.write.table.version"}
    return options | {"hoodie.write.auto.upgrade": "false"}
