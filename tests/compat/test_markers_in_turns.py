"""Markers by timeline servers: Hudi rolls back ours, we roll back Hudi's, and Hudi has ours written by our server."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from peers import (
    Model,
    Peer,
    PeerFailed,
    continue_table,
    ensure_same_rows,
    read_rows,
    slim_rows,
    table_options,
    without_meta,
    write_rows,
)
from test_failed_writes import DIE, REJECT, _unfinished

from hoodie.server import Answer, Service
from hoodie.server.marker_service import MarkerService
from hoodie.testing.running_server import running_server

TYPE = "hoodie.write.markers.type"
BY_SERVER = "TIMELINE_SERVER_BASED"


class Asked(MarkerService):
    """A service that knows what it was asked."""

    def __init__(self, root: Path) -> None:
        super().__init__([str(root)])
        self.asked: list[tuple[str, str]] = []

    def create_known(self, parameters: object) -> None:
        return None

    def answer(self, method: str, path: str, parameters: object) -> Answer | Future[bool]:  # type: ignore[override]
        found = super().answer(method, path, parameters)  # type: ignore[arg-type]
        shown = str(found.status) if isinstance(found, Answer) else "waits"
        self.asked.append((path.rpartition("marker/")[2].rstrip("/"), shown))
        return found


@pytest.fixture
def our_server(tmp_path: Path) -> Iterator[tuple[Asked, dict[str, str]]]:
    """Our service, and the options that have it asked."""
    service = Asked(tmp_path)
    with running_server(Service([str(tmp_path)]), service) as port:
        yield (
            service,
            {
                TYPE: BY_SERVER,
                "hoodie.embed.timeline.server": "false",
                "hoodie.filesystem.view.type": "REMOTE_FIRST",
                "hoodie.filesystem.view.remote.host": "127.0.0.1",
                "hoodie.filesystem.view.remote.port": str(port),
                "hoodie.filesystem.view.remote.timeout.secs": "60",
            },
        )
    service.close()


def marker_files(table: Path) -> set[str]:
    return {file.name for file in (table / ".hoodie" / ".temp").rglob("*") if file.is_file() and file.suffix != ".crc"}


def started(table: Path) -> Model:
    model = Model(slim_rows(range(0)).schema)
    write_rows(table, "insert", slim_rows(range(30)), table_options(9, "id", "region"))
    model.upsert(slim_rows(range(30)))
    return model


@pytest.mark.parametrize("kind", [BY_SERVER, "PROCESS_LISTS", "dead server"])
def test_hudi_rolls_back_a_killed_write_of_ours_whose_markers_are_lists(
    kind: str, hudi_12: Peer, our_server: tuple[Asked, dict[str, str]], tmp_path: Path
) -> None:
    service, options = our_server
    if kind == "PROCESS_LISTS":
        options = {TYPE: kind}
    elif kind == "dead server":
        options |= {"hoodie.filesystem.view.remote.port": "9"}
    table, rows = tmp_path / "table", tmp_path / "rows.parquet"
    model = started(table)
    pq.write_table(slim_rows(range(20, 50), turn=1), rows)
    die = DIE.replace('{"hoodie.metadata.enable": "false"}', repr(options | {"hoodie.metadata.enable": "false"}))
    died = subprocess.run(
        [sys.executable, "-c", die, str(table), "upsert", str(rows)], capture_output=True, text=True, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr[-2000:]
    assert _unfinished(table) == 1
    assert "MARKERS.type" in marker_files(table)
    assert all(name.startswith("MARKERS") for name in marker_files(table))
    assert any(path == "create" for path, _ in service.asked) == (kind == BY_SERVER)
    before = set(table.rglob("*.parquet"))

    after = slim_rows(range(28, 33), turn=2)
    hudi_12.write(table, "upsert", after)
    model.upsert(after)

    assert _unfinished(table) == 0
    assert before - set(table.rglob("*.parquet")), "the files of the dead write are gone"
    ensure_same_rows(without_meta(hudi_12.read(table)), model.rows)
    ensure_same_rows(without_meta(read_rows(table)), model.rows)


def test_we_roll_back_a_failed_write_of_hudi_that_had_markers_of_its_own_server(hudi_12: Peer, tmp_path: Path) -> None:
    table = tmp_path / "table"
    model = started(table)
    own = {"hoodie.embed.timeline.server": "true", TYPE: BY_SERVER, "hoodie.metadata.enable": "false"}
    with pytest.raises(PeerFailed):
        hudi_12.write(table, "upsert", slim_rows(range(20, 50), turn=1), REJECT | own)
    assert _unfinished(table) == 1
    assert "MARKERS.type" in marker_files(table)
    before = set(table.rglob("*.parquet"))

    after = slim_rows(range(28, 33), turn=2)
    continue_table(table, "upsert", after)
    model.upsert(after)

    assert _unfinished(table) == 0
    assert before - set(table.rglob("*.parquet"))
    assert not marker_files(table)
    ensure_same_rows(without_meta(hudi_12.read(table)), model.rows)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_has_its_markers_written_by_our_server(
    kind: str, hudi_12: Peer, our_server: tuple[Asked, dict[str, str]], tmp_path: Path
) -> None:
    service, options = our_server
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    made = table_options(9, "id", "region") | {"hoodie.datasource.write.table.type": kind}
    write_rows(table, "insert", slim_rows(range(30)), made)
    model.upsert(slim_rows(range(30)))
    with pytest.raises(PeerFailed):
        hudi_12.write(table, "upsert", slim_rows(range(20, 50), turn=1), options | REJECT)
    assert "MARKERS.type" in marker_files(table)
    assert ("create", "waits") in service.asked
    for turn in (2, 3):
        rows = slim_rows(range(28, 33), turn)
        hudi_12.write(table, "upsert", rows, options)
        model.upsert(rows)
    assert _unfinished(table) == 0
    assert ("dir/delete", "200") in service.asked
    assert {shown for _, shown in service.asked} <= {"200", "waits"}
    ensure_same_rows(without_meta(read_rows(table)), model.rows)
    ensure_same_rows(without_meta(hudi_12.read(table)), model.rows)
