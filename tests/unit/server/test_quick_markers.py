"""Requests that create a marker are answered without the HTTP library where they are plain, and by it in every other
case: what they do, and what is refused, is the same.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

pytest.importorskip("uvicorn", reason="needs the extra `server`")

import hoodie.server.http as module
from hoodie import Table
from hoodie.server import Service
from hoodie.server.http import Listening, bound_socket, server_of
from hoodie.server.marker_folder import Batching
from hoodie.server.marker_http import MarkerAnswers
from hoodie.server.marker_service import MarkerService
from hoodie.storage import LocalStorage
from hoodie.timeline import markers_of

INSTANT = "20260101000000000"
TOKEN = "a-token-of-many-characters"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    Table.create(str(tmp_path / "t"), schema=pa.schema([("id", pa.string())]), options=options)
    return tmp_path / "t"


@contextmanager
def serving(table: Path, token: str | None = None) -> Iterator[int]:
    markers = MarkerService([str(table)], batching=Batching(2, 0))
    listening = Listening(port=0, token=token)
    with bound_socket(listening) as place:
        server = server_of(Service([str(table)]), listening, markers)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield place.getsockname()[1]
        finally:
            server.should_exit = server.force_exit = True
            thread.join(20)
            markers.close()


def request(table: Path, name: str, *headers: str, method: str = "POST", body: str = "") -> bytes:
    folder = quote(f"{table}/.hoodie/.temp/{INSTANT}", safe="")
    target = f"/v1/hoodie/marker/create?markerdirpath={folder}&markername={quote(name, safe='')}"
    lines = [f"{method} {target} HTTP/1.1", *(headers or ("Host: 127.0.0.1", "Content-Length: 0"))]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def name_of(number: int) -> str:
    return f"day=1 ü/f{number}-0_1-2-3_{INSTANT}.parquet.marker.CREATE"


def answers(connection: socket.socket, count: int) -> list[tuple[int, bytes]]:
    """The statuses and bodies of so many answers."""
    heard, found = b"", list[tuple[int, bytes]]()
    while len(found) < count:
        head, end, rest = heard.partition(b"\r\n\r\n")
        length = next(
            (int(one[15:]) for one in head.lower().split(b"\r\n") if one.startswith(b"content-length:")), None
        )
        if end and length is not None and len(rest) >= length:
            found.append((int(head.split()[1]), rest[:length]))
            heard = rest[length:]
            continue
        more = connection.recv(65536)
        if not more:
            if end:  # one of unsaid length ends with the connection
                found.append((int(head.split()[1]), rest))
            break
        heard += more
    return found


def connected(port: int) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", port), timeout=20)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def paths(table: Path) -> list[str]:
    return [one.data_path for one in markers_of(LocalStorage(str(table)), INSTANT).load() or ()]


@pytest.fixture
def by_library(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Requests about markers that came to the library."""
    found: list[str] = []
    known = MarkerAnswers.known

    async def heard(self: MarkerAnswers, scope: dict[str, object]) -> object:
        if str(scope.get("path", "")).startswith("/v1/hoodie/marker"):
            found.append(str(scope["path"]))
        return await known(self, scope)  # type: ignore[arg-type]

    monkeypatch.setattr(MarkerAnswers, "known", heard)
    return found


def test_a_folder_is_opened_by_the_library_and_further_markers_do_without_it(
    table: Path, by_library: list[str]
) -> None:
    with serving(table) as port, connected(port) as connection:
        for number in range(4):
            connection.sendall(request(table, name_of(number)))
            assert answers(connection, 1) == [(200, b"true")]
            assert f"day=1 ü/f{number}-0_1-2-3_{INSTANT}.parquet" in paths(table)
        connection.sendall(request(table, name_of(3)))
        assert answers(connection, 1) == [(200, b"false")]
        assert len(by_library) == 1
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        text = answers(connection, 1)[0][1].decode()
    assert 'hoodie_requests_total{endpoint="markers",method="POST",status="200"} 5.0' in text


def test_requests_in_one_piece_and_pieces_of_a_request_are_answered_in_order(table: Path) -> None:
    with serving(table) as port, connected(port) as connection:
        connection.sendall(request(table, name_of(0)))
        assert answers(connection, 1) == [(200, b"true")]
        both = request(table, name_of(1)) + request(table, name_of(0)) + request(table, name_of(2))
        connection.sendall(both)
        assert answers(connection, 3) == [(200, b"true"), (200, b"false"), (200, b"true")]
        last = request(table, name_of(3))
        connection.sendall(request(table, name_of(4)) + last[:30])
        time.sleep(0.1)
        connection.sendall(last[30:])
        assert answers(connection, 2) == [(200, b"true"), (200, b"true")]
        connection.sendall(request(table, name_of(5)) + b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert [status for status, _ in answers(connection, 2)] == [200, 200]
    assert len(paths(table)) == 6


@pytest.mark.parametrize(
    ("headers", "more", "status"),
    [
        (("Host: elsewhere", "Content-Length: 0"), {}, 400),
        (("Host: 127.0.0.1", "Content-Length: 0", "Origin: http://x"), {}, 403),
        (("Host: 127.0.0.1", "Content-Length: 0", "Sec-Fetch-Site: cross-site"), {}, 403),
        (("Host: 127.0.0.1", "Content-Length: 2"), {"body": "{}"}, 413),
        (("Host: 127.0.0.1", "Host: elsewhere", "Content-Length: 0"), {}, 400),
        (("Content-Length: 0",), {}, 400),
        (("Host: 127.0.0.1", "Content-Length: 0"), {"method": "PUT"}, 405),
        (("Host: 127.0.0.1", "Content-Length : 0"), {}, 400),
    ],
)
def test_what_is_refused_is_refused_in_a_known_folder_too(
    table: Path, headers: tuple[str, ...], more: dict[str, str], status: int
) -> None:
    with serving(table) as port:
        with connected(port) as connection:
            connection.sendall(request(table, name_of(0)))
            assert answers(connection, 1) == [(200, b"true")]
        with connected(port) as connection:
            connection.sendall(request(table, name_of(1), *headers, **more))
            assert answers(connection, 1)[0][0] == status
    assert len(paths(table)) == 1


@pytest.mark.parametrize(("told", "status"), [(None, 401), ("wrong", 401), (TOKEN, 200)])
def test_a_token_is_asked_for(table: Path, told: str | None, status: int) -> None:
    plain = ("Host: 127.0.0.1", "Content-Length: 0")
    with serving(table, TOKEN) as port, connected(port) as connection:
        connection.sendall(request(table, name_of(0), *plain, f"Authorization: Bearer {TOKEN}"))
        assert answers(connection, 1) == [(200, b"true")]
        headers = plain if told is None else (*plain, f"Authorization: Bearer {told}")
        connection.sendall(request(table, name_of(1), *headers))
        assert answers(connection, 1)[0][0] == status


@pytest.mark.parametrize("name", ["../f.parquet.marker.CREATE", "p/f.parquet", "p/f\n.parquet.marker.CREATE"])
def test_what_is_no_marker_is_refused(table: Path, name: str) -> None:
    with serving(table) as port, connected(port) as connection:
        connection.sendall(request(table, name_of(0)) + request(table, name))
        assert [status for status, _ in answers(connection, 2)] == [200, 400]
    assert len(paths(table)) == 1


def test_who_falls_silent_after_a_quick_answer_is_hung_up_on(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRITE_S", 0.2)
    monkeypatch.setattr(module, "KEEP_ALIVE_S", 0.2)
    with serving(table) as port, connected(port) as opening, connected(port) as connection:
        opening.sendall(request(table, name_of(0)))
        assert answers(opening, 1) == [(200, b"true")]
        connection.sendall(request(table, name_of(1)))
        assert answers(connection, 1) == [(200, b"true")]
        assert connection.recv(1) == b""


def test_a_connection_that_goes_away_before_its_answer_harms_nobody(table: Path) -> None:
    with serving(table) as port:
        with connected(port) as connection:
            connection.sendall(request(table, name_of(0)))
            assert answers(connection, 1) == [(200, b"true")]
        for number in range(1, 20):
            with connected(port) as connection:
                connection.sendall(request(table, name_of(number)))
        with connected(port) as connection:
            connection.sendall(request(table, name_of(20)))
            assert answers(connection, 1) == [(200, b"true")]
