"""Timeline servers: ours answers as Hudi's, our client reads through Hudi's, Hudi writes and cleans by ours alone."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from peers import (
    WRITE,
    Model,
    Peer,
    continue_table,
    ensure_same_rows,
    read_rows,
    slim_rows,
    table_options,
    without_meta,
    write_rows,
)
from peers.process import timeline_server_peer
from record_timeline_server import ask

from hoodie import Table
from hoodie.fileview import FolderView
from hoodie.remote import Connection, RemoteView, ServerAddress
from hoodie.remote.known_timeline import told
from hoodie.server import Answer, Service
from hoodie.server.routes import VIEW
from hoodie.state.handle import open_handle, timeline_of
from hoodie.testing.recorded_answers import Recorded, comparable
from hoodie.testing.view_requests import view_requests

COMPARED = [
    "1.2.0/cow_part",
    "1.2.0/mor_compaction_pending",
    "1.2.0/mor_log_compaction_pending",
    "1.2.0/mor_kitchen_sink",
    "1.2.0/cow_clustering_pending",
    "1.2.0/cow_insert_overwrite",
    "1.2.0/cow_no_metadata",
    "1.2.0/mor_archived",
    "0.15.0/mor_part",
]
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]


@pytest.fixture(scope="module")
def their_servers(compat_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """Timeline servers of the real Hudi 1.2.0."""
    peer = timeline_server_peer(compat_python, "1.2.0", tmp_path_factory.mktemp("timeline_servers"))
    yield peer
    peer.stop()


@pytest.fixture(scope="module")
def their_port(their_servers: Peer) -> int:
    return int(their_servers.ask("start")["port"])


@pytest.mark.parametrize("name", COMPARED)
def test_each_endpoint_answers_as_that_of_hudi(
    name: str, golden: Callable[..., tuple[Path, Path]], their_port: int
) -> None:
    base, _ = golden(name)
    known = told(timeline_of(open_handle(str(base), {})))
    service = Service([str(base)])
    compared = 0
    for path, parameters in view_requests(base):
        status, theirs = ask(their_port, base, (path, {**parameters, **known}))
        answer = service.answer("GET", VIEW + path, {**parameters, **known, "basepath": str(base)})
        assert answer.status == 200, (path, parameters, answer.body)
        if Recorded(path, parameters, status, theirs).is_comparable:
            assert status == 200, (path, parameters)
            found = json.loads(answer.body.decode().replace(str(base), "{base}"))
            assert comparable(found) == comparable(theirs), (path, parameters)
            compared += 1
    assert compared > 50


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [6, 9])
def test_our_client_reads_through_the_server_of_hudi(version: int, kind: str, their_port: int, tmp_path: Path) -> None:
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    options = table_options(version, "id", "region") | {WRITE + "table.type": kind, "hoodie.metadata.enable": "true"}
    write_rows(table, "insert", slim_rows(range(40)), options)
    model.upsert(slim_rows(range(40)))
    for turn in range(1, 4):
        rows = slim_rows(range(turn, 60, 3), turn)
        continue_table(table, "upsert", rows, {"hoodie.metadata.enable": "true"})
        model.upsert(rows)
        handle = open_handle(str(table), {})
        timeline = timeline_of(handle)
        view = RemoteView(Connection(ServerAddress("127.0.0.1", their_port)), handle.storage, timeline)
        assert view.load().slices_at() == FolderView(handle.storage, timeline).load().slices_at()
        remote = Table.open(str(table), server=f"127.0.0.1:{their_port}")
        ensure_same_rows(remote.scan().read_all(), read_rows(table))


class CountingService(Service):
    """A service that knows what it was asked."""

    def __init__(self, root: Path) -> None:
        super().__init__([str(root)])
        self.asked: list[tuple[str, int]] = []

    def answer(self, method: str, path: str, parameters: Mapping[str, str]) -> Answer:
        found = super().answer(method, path, parameters)
        self.asked.append((path.removeprefix(VIEW), found.status))
        return found


@pytest.fixture
def our_server(tmp_path: Path) -> Iterator[tuple[CountingService, int]]:
    """Our service over HTTP, and its port. It wants a token that Hudi does not tell, and lets Hudi ask."""
    from hoodie.server.http import Listening, bound_socket, server_of  # noqa: PLC0415 - optional: the extra `server`

    service, where = CountingService(tmp_path), Listening(port=0, token="of this test alone", allows_hudi_clients=True)
    place = bound_socket(where)
    server = server_of(service, where)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield service, place.getsockname()[1]
    server.should_exit = True
    thread.join(20)


@pytest.mark.parametrize("kind", KINDS)
def test_hudi_writes_compacts_and_cleans_by_our_server_alone(
    kind: str, hudi_12: Peer, our_server: tuple[CountingService, int], tmp_path: Path
) -> None:
    service, port = our_server
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    options = table_options(9, "id", "region") | {WRITE + "table.type": kind, "hoodie.metadata.enable": "true"}
    remote = {
        "hoodie.metadata.enable": "true",
        "hoodie.embed.timeline.server": "false",
        "hoodie.filesystem.view.type": "REMOTE_ONLY",
        "hoodie.filesystem.view.remote.host": "127.0.0.1",
        "hoodie.filesystem.view.remote.port": str(port),
        "hoodie.filesystem.view.remote.timeout.secs": "60",
        "hoodie.write.markers.type": "DIRECT",
        "hoodie.clean.commits.retained": "1",
    }
    if kind == "MERGE_ON_READ":
        remote |= {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    write_rows(table, "insert", slim_rows(range(40)), options)
    model.upsert(slim_rows(range(40)))
    for turn in range(1, 4):
        rows, gone = slim_rows(range(turn, 80, 3), turn), slim_rows([turn + 7], turn + 1)
        hudi_12.write(table, "upsert", rows, remote)
        model.upsert(rows)
        if turn % 2:
            hudi_12.write(table, "delete", gone, remote)
            model.delete(gone)
        ensure_same_rows(without_meta(read_rows(table)), model.rows)
        ensure_same_rows(without_meta(hudi_12.read(table)), model.rows)
    routes = {path.rstrip("/") for path, status in service.asked if status == 200}
    assert "compactions/pending" in routes
    assert any(path.startswith("filegroups/") for path in routes), routes
    assert {status for _, status in service.asked} == {200}
