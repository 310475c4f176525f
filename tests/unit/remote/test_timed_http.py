"""Answers that do not end: what is sent slowly, without end, or after the end."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import hoodie.remote.timed_http as module
from hoodie.errors import Unavailable
from hoodie.remote import Connection, ServerAddress

OK = b"HTTP/1.1 200 OK\r\n"
PACKED = OK + b"Content-Encoding: gzip\r\n"
TIMEOUT_S = 0.5

Sender = Callable[[socket.socket], None]


def drips(what: bytes) -> Sender:
    def send(connection: socket.socket) -> None:
        connection.sendall(what)
        while True:
            connection.sendall(b" ")
            time.sleep(0.05)

    return send


def repeats(what: bytes, more: bytes) -> Sender:
    def send(connection: socket.socket) -> None:
        connection.sendall(what)
        while True:
            connection.sendall(more)

    return send


def once(what: bytes) -> Sender:
    return lambda connection: connection.sendall(what)


def chunked(body: bytes, *, size: int = 7, end: bytes = b"0\r\n\r\n") -> bytes:
    parts = (body[place : place + size] for place in range(0, len(body), size))
    return b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in parts) + end


class Server:
    """Sends the same to whoever asks. `count` is how many connections there were."""

    def __init__(self, send: Sender) -> None:
        self.count = 0
        self._send = send
        self._socket = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._run, daemon=True).start()

    def connection(self, timeout_s: float = TIMEOUT_S) -> Connection:
        return Connection(ServerAddress("127.0.0.1", self._socket.getsockname()[1], timeout_s=timeout_s))

    def close(self) -> None:
        self._socket.close()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while connection.recv(65536):
                self._send(connection)
        except OSError:
            pass


@pytest.fixture
def serve() -> Iterator[Callable[[Sender], Server]]:
    servers: list[Server] = []

    def started(send: Sender) -> Server:
        servers.append(Server(send))
        return servers[-1]

    yield started
    for server in servers:
        server.close()


def asked(connection: Connection, times: int = 1) -> list[object]:
    """What came of questions within five seconds: answers, an error, or nothing."""
    found: list[object] = []

    def ask() -> None:
        try:
            for _ in range(times):
                found.append(connection.ask("x", {}))
        except Unavailable as error:
            found.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(5)
    return found


SLOW = {
    "head": drips(OK + b"X-A: "),
    "body": drips(OK + b"Content-Length: 100000\r\n\r\n["),
    "body without a length": drips(OK + b"\r\n["),
    "chunk": drips(OK + b"Transfer-Encoding: chunked\r\n\r\nfffff\r\n["),
    "chunk's length": drips(OK + b"Transfer-Encoding: chunked\r\n\r\n"),
    "packed blocks of nothing": repeats(PACKED + b"\r\n" + gzip.compress(b"[]")[:10], b"\0\0\0\xff\xff" * 10_000),
    "other answers first": repeats(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "nothing": lambda connection: None,
}


@pytest.mark.parametrize("name", SLOW)
def test_an_answer_that_takes_too_long_is_given_up(name: str, serve: Callable[[Sender], Server]) -> None:
    (error,) = asked(serve(SLOW[name]).connection())
    assert isinstance(error, Unavailable)
    assert "does not answer" in str(error)


ENDLESS = {
    "packed blocks of nothing": repeats(PACKED + b"\r\n" + gzip.compress(b"[]")[:10], b"\0\0\0\xff\xff" * 10_000),
    "text": repeats(OK + b"\r\n[", b" " * 10_000),
    "chunks": repeats(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"8\r\n        \r\n" * 1000),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_an_answer_without_end_is_given_up_by_its_size(
    name: str, serve: Callable[[Sender], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_ANSWER_BYTES", 1_000_000)
    (error,) = asked(serve(ENDLESS[name]).connection(timeout_s=60))
    assert "larger than any" in str(error)


AFTER_THE_END = {
    "without a length": repeats(PACKED + b"\r\n" + gzip.compress(b"[1]"), b"\0" * 1000),
    "with a length": once(PACKED + b"Content-Length: 100000\r\n\r\n" + gzip.compress(b"[1]")),
    "in chunks": once(PACKED + chunked(gzip.compress(b"[1]"), end=b"")),
}


@pytest.mark.parametrize("name", AFTER_THE_END)
def test_what_follows_a_packed_answer_is_not_waited_for(name: str, serve: Callable[[Sender], Server]) -> None:
    assert asked(serve(AFTER_THE_END[name]).connection(timeout_s=60), times=2) == [[1]] * 2


@pytest.mark.parametrize(
    "sent",
    [
        OK + chunked(b"[1]"),
        PACKED + chunked(gzip.compress(b"[1]")),
        OK + b"Content-Length: 3\r\n\r\n[1]",
        PACKED + b"Content-Length: %d\r\n\r\n" % len(gzip.compress(b"[1]")) + gzip.compress(b"[1]"),
    ],
    ids=["chunks", "packed chunks", "length", "packed with a length"],
)
def test_a_connection_serves_the_next_question_too(sent: bytes, serve: Callable[[Sender], Server]) -> None:
    server = serve(once(sent))
    connection = server.connection(timeout_s=60)
    assert [connection.ask("x", {}) for _ in range(3)] == [[1]] * 3
    assert server.count == 1


def test_chunks_that_are_cut_off_are_no_answer(serve: Callable[[Sender], Server]) -> None:
    def send(connection: socket.socket) -> None:
        connection.sendall(OK + chunked(b"[1]", end=b""))
        connection.close()

    (error,) = asked(serve(send).connection(timeout_s=60))
    assert isinstance(error, Unavailable)
