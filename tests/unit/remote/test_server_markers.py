"""Markers by a timeline server that dies, hangs, forgets, or answers nonsense: every file is announced all the same."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("uvicorn", reason="needs the extra `server`")

from hoodie import Table
from hoodie.env import SystemEnv
from hoodie.errors import Conflict
from hoodie.remote import ServerAddress, breaker
from hoodie.remote.connection import Retries
from hoodie.remote.server_markers import ServerMarkers
from hoodie.server import Answer, Service
from hoodie.server.marker_folder import Batching
from hoodie.server.marker_service import MarkerService
from hoodie.spec import MarkerKind, WriteStat
from hoodie.state.handle import load_handle
from hoodie.storage import LocalStorage
from hoodie.testing.running_server import running_server
from hoodie.timeline import markers_of
from hoodie.transaction.abort import remove_losers

INSTANT = "20260101000000000"
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
    }
    Table.create(str(tmp_path / "t"), schema=SCHEMA, options=options)
    return tmp_path / "t"


def markers_at(table: Path, port: int, timeout_s: float = 5.0, retries: int = 0) -> ServerMarkers:
    address = ServerAddress("127.0.0.1", port, timeout_s=timeout_s)
    return ServerMarkers(LocalStorage(str(table)), INSTANT, address, Retries(retries, 0.01))


def names(table: Path) -> list[str]:
    return [one.data_path for one in markers_of(LocalStorage(str(table)), INSTANT).load() or ()]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING and "hoodie" in one.name]


def test_a_service_that_writes_no_markers_is_said_to_be_such_with_what_makes_it_write_them(
    table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It says 404 to what it does not know, as it does where there is no table."""
    with running_server(Service([str(table)])) as port:
        markers_at(table, port).create("p/file.parquet", MarkerKind.CREATE)
    (warning,) = warnings(caplog)
    assert "writes no markers (404)" in warning
    assert "Start it with --markers" in warning
    with running_server(Service([]), MarkerService([str(table.parent)])) as port:
        markers_at(table.parent / "none", port).create("p/file.parquet", MarkerKind.CREATE)
    assert "finds no such table (404)" in warnings(caplog)[1]


@contextmanager
def answering(answer: Callable[[bytes], bytes | None]) -> Iterator[int]:
    """The port of a server that says what `answer` makes of a request, and hangs up; None: it stays silent."""
    with socket.create_server(("127.0.0.1", 0)) as place:
        silent: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    accepted, _ = place.accept()
                except OSError:
                    return
                request = b""
                while b"\r\n\r\n" not in request and (more := accepted.recv(65536)):
                    request += more
                said = answer(request)
                if said is None:
                    silent.append(accepted)
                    continue
                accepted.sendall(said)
                accepted.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield place.getsockname()[1]
        place.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        for one in silent:
            one.close()


def http(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"",
        http(200, b"nonsense"),
        http(200, b'"true"'),
        http(404, b"Not found"),
        http(401, b""),
        http(500, b"Internal server error"),
        http(503, b"too busy"),
        b"HTTP/1.1 200 X\r\nContent-Length: 4\r\n\r\ntr",
    ],
)
def test_whatever_a_server_says_instead_every_marker_is_durable_and_one_warning_tells_it(
    table: Path, caplog: pytest.LogCaptureFixture, answer: bytes | None
) -> None:
    asked: list[bytes] = []

    def said(request: bytes) -> bytes | None:
        asked.append(request)
        return answer

    with answering(said) as port:
        markers = markers_at(table, port, timeout_s=0.3)
        for name in ("p/a", "p/b", "p/c"):
            markers.create(name, MarkerKind.CREATE)
        assert names(table) == ["p/a", "p/b", "p/c"]
        assert not [file for file in (table / ".hoodie" / ".temp" / INSTANT).iterdir() if file.is_dir()]
        with pytest.raises(Conflict):
            markers.create("p/b", MarkerKind.CREATE)
        markers.drop()
    assert len(asked) == 1
    assert names(table) == []
    (warning,) = warnings(caplog)
    assert f"127.0.0.1:{port}" in warning or "cannot be used" in warning


def test_a_server_that_is_too_busy_is_asked_again(table: Path) -> None:
    said = [http(503, b"too busy"), http(503, b"too busy"), http(200, b"true")]
    with answering(lambda _: said.pop(0)) as port:
        markers = markers_at(table, port, retries=3)
        markers.create("p/a", MarkerKind.CREATE)
    assert not said
    assert names(table) == []  # it said that it has written it


def test_what_never_helps_is_not_asked_again(table: Path) -> None:
    asked: list[bytes] = []

    def said(request: bytes) -> bytes:
        asked.append(request)
        return http(403, b"")

    with answering(said) as port:
        markers_at(table, port, retries=3).create("p/a", MarkerKind.CREATE)
    assert len(asked) == 1
    assert names(table) == ["p/a"]


@contextmanager
def losing_answers(port: int, lost: int) -> Iterator[int]:
    """A way to the server at `port` by which the first answers are lost."""
    count = [0]

    def forward(request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", port)) as there:
            there.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            answer = b"".join(iter(lambda: there.recv(65536), b""))
        count[0] += 1
        return b"" if count[0] <= lost else answer

    with answering(forward) as found:
        yield found


@contextmanager
def served(table: Path, port: int = 0) -> Iterator[int]:
    service = MarkerService([str(table)], batching=Batching(2, 0))
    with running_server(Service([str(table)]), service, port) as found:
        yield found
    service.close()


def test_a_marker_whose_answer_was_lost_is_ours_when_it_is_asked_for_again(table: Path) -> None:
    with served(table) as port, losing_answers(port, 1) as way:
        markers = markers_at(table, way, retries=1)
        markers.create("p/a", MarkerKind.CREATE)
        with pytest.raises(Conflict):
            markers.create("p/a", MarkerKind.CREATE)
    assert names(table) == ["p/a"]


def test_a_marker_whose_answer_was_lost_for_good_is_in_both_places_once(
    table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served(table) as port, losing_answers(port, 1) as way:
        markers = markers_at(table, way)
        markers.create("p/a", MarkerKind.CREATE)
        markers.create("p/b", MarkerKind.CREATE)
        assert len(list((table / ".hoodie" / ".temp" / INSTANT).glob("MARKERS[0-9]*"))) == 2
        assert names(table) == ["p/a", "p/b"]
        markers.drop()
    assert names(table) == []
    assert len(warnings(caplog)) == 1


def test_a_server_that_was_started_anew_goes_on(table: Path, caplog: pytest.LogCaptureFixture) -> None:
    with served(table) as port:
        markers = markers_at(table, port)
        markers.create("p/a", MarkerKind.CREATE)
    with served(table, port):
        markers.create("p/b", MarkerKind.CREATE)
        with pytest.raises(Conflict):
            markers.create("p/a", MarkerKind.CREATE)
        assert names(table) == ["p/a", "p/b"]
        markers.drop()
        assert names(table) == []
    assert not warnings(caplog)


def test_a_server_that_is_killed_before_it_writes_leaves_no_file_unannounced(
    table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    command = [sys.executable, "-m", "hoodie.cli", "serve", "--root", str(table), "--port", "0", "--markers"]
    with subprocess.Popen([*command, "--marker-batch-interval-ms", "10000"], stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        markers = markers_at(table, int(one.stdout.readline().rsplit(":", 1)[1]), timeout_s=60)
        markers.create("p/a", MarkerKind.CREATE)
        waiting = threading.Thread(target=markers.create, args=("p/b", MarkerKind.MERGE))
        waiting.start()
        time.sleep(0.5)
        assert names(table) == ["p/a"]
        assert waiting.is_alive()
        os.kill(one.pid, signal.SIGKILL)
        waiting.join(30)
    assert names(table) == ["p/a", "p/b"]
    markers.create("p/c", MarkerKind.CREATE)
    markers.drop()
    assert names(table) == []
    assert len(warnings(caplog)) == 1


def test_what_died_after_its_server_had_is_found_wherever_it_was_announced(table: Path) -> None:
    """By the server, by its own list, and by a process that had made direct ones: what a roll-back deletes is all."""
    made = ["p/a_0-1-2_1.parquet", "p/b_0-1-2_1.parquet", "p/c_0-1-2_1.parquet"]
    with served(table) as port:
        markers = markers_at(table, port)
        markers.create(made[0], MarkerKind.CREATE)
    markers.create(made[1], MarkerKind.MERGE)
    markers_of(LocalStorage(str(table)), INSTANT).create(made[2], MarkerKind.CREATE)
    assert names(table) == made


def test_files_of_a_task_that_was_killed_and_ran_again_go_however_they_were_announced(table: Path) -> None:
    """The first attempt had the server, the second one only its own list: one file is the write's, the other goes."""
    handle = load_handle(LocalStorage(str(table)), SystemEnv())
    first, second = (f"p/f-0_{attempt}-1-2_{INSTANT}.parquet" for attempt in range(2))
    with served(table) as port:
        markers_at(table, port).create(first, MarkerKind.CREATE)
    markers = markers_at(table, port)
    markers.create(second, MarkerKind.CREATE)
    for path in (first, second):
        handle.storage.put(path, b"x")
    remove_losers(handle, INSTANT, markers, [WriteStat(file_id="f-0", path=second, partition_path="p")])
    assert [file.path for file in handle.storage.list_dir("p").files] == [second]


def options_for(port: int) -> dict[str, str]:
    return {
        "hoodie.write.markers.type": "TIMELINE_SERVER_BASED",
        "hoodie.filesystem.view.type": "REMOTE_FIRST",
        "hoodie.filesystem.view.remote.host": "127.0.0.1",
        "hoodie.filesystem.view.remote.port": str(port),
    }


def rows(start: int, count: int) -> pa.Table:
    found = range(start, start + count)
    return pa.table({"id": [f"k{number}" for number in found], "p": [f"p{number % 5}" for number in found]}, SCHEMA)


class DyingService(MarkerService):
    """One that stops answering after some markers."""

    after = 3

    def create_known(self, parameters: object) -> None:
        return None

    def answer(self, method: str, path: str, parameters: object) -> object:  # type: ignore[override]
        self.after -= 1
        if self.after < 0:
            return Answer(503, b"it dies")
        return super().answer(method, path, parameters)  # type: ignore[arg-type]


def test_a_write_whose_server_dies_in_the_middle_has_all_its_rows_and_leaves_nothing(
    table: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker, "RETRY_S", 600.0)  # the second write, however late it comes, finds the silence
    service = DyingService([str(table)], batching=Batching(2, 0))
    with running_server(Service([str(table)]), service) as port:
        Table.open(str(table)).write("upsert", rows(0, 50), options_for(port))
        Table.open(str(table)).write("upsert", rows(0, 60), options_for(port))
    assert Table.open(str(table)).scan().read_all().num_rows == 60
    assert service.after < 0
    assert not list((table / ".hoodie" / ".temp").iterdir())
    assert len([one for one in warnings(caplog) if "marker" in one]) == 2  # one of each write


def test_a_write_without_any_server_has_all_its_rows_and_one_warning(
    table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    Table.open(str(table)).write("upsert", rows(0, 50), options_for(port))
    assert Table.open(str(table)).scan().read_all().num_rows == 50
    assert not list((table / ".hoodie" / ".temp").iterdir())
    assert len([one for one in warnings(caplog) if f"127.0.0.1:{port}" in one]) == 1


def test_a_write_asks_the_server_and_deletes_by_it(table: Path, caplog: pytest.LogCaptureFixture) -> None:
    asked: list[str] = []

    class Listening(MarkerService):
        def answer(self, method: str, path: str, parameters: object) -> object:  # type: ignore[override]
            asked.append(path.rpartition("marker/")[2])
            return super().answer(method, path, parameters)  # type: ignore[arg-type]

    service = Listening([str(table)], batching=Batching(2, 0))
    with running_server(Service([str(table)]), service) as port:
        Table.open(str(table)).write("upsert", rows(0, 50), options_for(port))
    assert asked[0] == "create"
    assert asked[-1] == "dir/delete"
    assert not list((table / ".hoodie" / ".temp").iterdir())
    assert not [one for one in warnings(caplog) if "marker" in one]
