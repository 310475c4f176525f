"""Answers over HTTP: kept connections, packed and damaged bodies, and servers that are none."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import hoodie.remote.timed_http as module
from hoodie.errors import Conflict, Invalid, Unavailable
from hoodie.remote import Connection, ServerAddress, parse_server

PACKED = gzip.compress(b'["packed"]')


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    requests: list[tuple[str, dict[str, list[str]], str | None]]
    connections: set[Any]

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.requests.append((url.path, parse_qs(url.query), self.headers["Authorization"]))
        self.connections.add(self.client_address)
        match url.path.rpartition("/")[2]:
            case "packed":
                self._send(200, PACKED, packed=True)
            case "cut":
                self._send(200, PACKED[:-12], packed=True)
            case "short":
                self._send(200, b"[1]", length=100)
            case "bomb":
                self._send(200, gzip.compress(b"[" + b" " * 5_000_000 + b"]"), packed=True)
            case "html":
                self._send(200, b"<html>")
            case "unknown":
                self._send(404, b"Not found")
            case "nowhere":
                self._send(404, b"There is no table at x")
            case "deep":
                self._send(200, b"[" * 200_000)
            case "refused":
                self._send(400, b"Last known instant from client was 1")
            case "noise":
                self.wfile.write(b"\x1b[31m" + b"y" * 60_000 + b"\r\n\r\n")
                self.close_connection = True
            case "host":
                self._send(400, b"This service has another name: \x1b[31m--name\r\ntells it" + b"x" * 10_000)
            case "failed":
                self._send(500, b"Internal server error")
            case "closing":
                self._send(200, b"[1]")
                self.close_connection = True
            case _:
                self._send(200, b"[1]")

    def _send(self, status: int, body: bytes, *, packed: bool = False, length: int | None = None) -> None:
        self.send_response(status)
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)
        if length:
            self.close_connection = True

    def log_message(self, format: str, *arguments: Any) -> None:
        del format, arguments


@pytest.fixture
def handler() -> type[Handler]:
    return type("Fresh", (Handler,), {"requests": [], "connections": set()})


@pytest.fixture
def port(handler: type[Handler]) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture
def connection(port: int) -> Connection:
    return Connection(ServerAddress("127.0.0.1", port, timeout_s=5))


def test_questions_travel_in_the_query_and_share_a_connection(connection: Connection, handler: type[Handler]) -> None:
    for _ in range(3):
        assert connection.ask("slices/all", {"partition": "a b/ü", "basepath": "/t"}) == [1]
    assert handler.requests == [("/v1/hoodie/view/slices/all", {"partition": ["a b/ü"], "basepath": ["/t"]}, None)] * 3
    assert len(handler.connections) == 1


def test_a_token_is_told(port: int, handler: type[Handler]) -> None:
    Connection(ServerAddress("127.0.0.1", port, token="secret")).ask("x", {})
    assert handler.requests[0][2] == "Bearer secret"


def test_a_connection_that_was_closed_meanwhile_is_made_anew(connection: Connection, handler: type[Handler]) -> None:
    for _ in range(3):
        assert connection.ask("closing", {}) == [1]
    assert len(handler.requests) == 3


def test_packed_answers_are_unpacked(connection: Connection) -> None:
    assert connection.ask("packed", {}) == ["packed"]


@pytest.mark.parametrize("path", ["cut", "short", "html", "deep"])
def test_what_is_no_answer_is_no_error_of_ours_and_the_next_is_asked(path: str, connection: Connection) -> None:
    with pytest.raises(Unavailable, match="does not answer") as error:
        connection.ask(path, {})
    assert "status" not in error.value.facts
    assert connection.ask("x", {}) == [1]


def test_an_answer_that_unpacks_to_more_than_any_is_given_up(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_ANSWER_BYTES", 100_000)
    with pytest.raises(Unavailable, match="larger"):
        connection.ask("bomb", {})


def test_another_timeline_is_a_conflict(connection: Connection) -> None:
    with pytest.raises(Conflict) as error:
        connection.ask("refused", {})
    assert str(error.value.facts["said"]).startswith("Last known instant")


def test_a_question_that_is_not_taken_is_no_conflict_and_is_told_in_short(connection: Connection) -> None:
    with pytest.raises(Unavailable, match="another name") as error:
        connection.ask("host", {})
    assert error.value.facts["status"] == 400
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 600


def test_what_is_no_http_is_told_in_short(connection: Connection) -> None:
    with pytest.raises(Unavailable, match="does not answer") as error:
        connection.ask("noise", {})
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 600


def test_what_the_server_cannot_is_said_with_its_status(connection: Connection) -> None:
    with pytest.raises(Unavailable, match="Internal server error") as error:
        connection.ask("failed", {})
    assert error.value.facts["status"] == 500


def test_a_server_that_is_not_there_is_named(port: int, connection: Connection) -> None:
    nobody = Connection(ServerAddress("127.0.0.1", 1, timeout_s=2))
    with pytest.raises(Unavailable, match="127.0.0.1:1 does not answer"):
        nobody.ask("x", {})


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("lake", "lake", 26754), ("lake:80", "lake", 80), ("http://lake:80/", "lake", 80), ("[::1]:9", "::1", 9)],
)
def test_addresses_are_read(text: str, host: str, port: int) -> None:
    address = parse_server(text)
    assert (address.host, address.port) == (host, port)


BAD_HOSTS = ["a..b:80", "a" * 70 + ".example:80", "[::1", "lake:0", "a b", "a\u2100b", "me@lake", "la\x00ke", "lake#x"]


@pytest.mark.parametrize(
    "text", ["", "https://lake", "lake:x", "lake:99999", "lake/path", "ftp://lake", "lake?x", *BAD_HOSTS]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="no address"):
        parse_server(text)


@pytest.mark.parametrize(
    ("host", "port"),
    [("a..b", 80), ("a" * 70, 80), ("", 80), ("lake:80", 0), ("lake", 65536), ("lake", -1), ("a\n", 1)],
)
def test_where_no_server_can_be_is_no_address(host: str, port: int) -> None:
    with pytest.raises(Invalid, match="no address"):
        ServerAddress(host, port)


@pytest.mark.parametrize("token", ["x" * 16 + "\n", "\u20ac" * 16, " a b", "a\0b", "\udc80"])
def test_a_token_that_no_request_can_tell_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(Invalid, match="token") as error:
        parse_server("lake:1", token)
    assert token not in f"{error.value} {error.value.facts}"


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e300])
def test_a_time_in_which_nobody_answers_is_refused(seconds: float) -> None:
    with pytest.raises(Invalid, match="timeout_s"):
        ServerAddress("lake", timeout_s=seconds)


def test_a_token_is_not_shown() -> None:
    assert "s3cr3t" not in repr(ServerAddress("lake", 1, "s3cr3t"))


def test_a_name_that_is_no_text_cannot_be_asked_about(connection: Connection) -> None:
    with pytest.raises(Unavailable, match="no text"):
        connection.ask("x", {"partition": "\udcff"})


def test_a_stream_of_files_is_asked_for_unpacked_and_is_bounded(
    port: int, handler: type[Handler], monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = Connection(ServerAddress("127.0.0.1", port))
    assert connection.ask_files("plain", {}) == b"[1]"
    assert connection.ask_files("packed", {}) == b'["packed"]'
    monkeypatch.setattr(module, "MAX_ANSWER_BYTES", 1_000_000)
    with pytest.raises(Unavailable, match="larger than any"):
        connection.ask_files("bomb", {})
    with pytest.raises(Unavailable, match="cut off"):
        connection.ask_files("cut", {})
    with pytest.raises(Conflict):
        connection.ask_files("refused", {})
    with pytest.raises(Unavailable) as failure:
        connection.ask_files("failed", {})
    assert failure.value.facts["status"] == 500


def test_a_server_that_does_not_know_streams_of_files_is_asked_for_one_once(port: int, handler: type[Handler]) -> None:
    connection = Connection(ServerAddress("127.0.0.1", port))
    with pytest.raises(Unavailable, match="finds no such table"):
        connection.ask_files("nowhere", {})
    assert connection.ask_files("plain", {}) == b"[1]", "it knew the question"
    assert connection.ask_files("unknown", {}) is None
    asked = len(handler.requests)
    assert connection.ask_files("plain", {}) is None
    assert len(handler.requests) == asked
    assert connection.ask("plain", {}) == [1]


def test_a_process_that_was_forked_opens_a_connection_of_its_own(
    connection: Connection, handler: type[Handler], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that share one would read each other's answers."""
    for _ in range(2):
        connection.ask("packed", {})
    assert len(handler.connections) == 1
    monkeypatch.setattr(os, "getpid", lambda: -1)
    for _ in range(2):
        connection.ask("packed", {})
    assert len(handler.connections) == 2
