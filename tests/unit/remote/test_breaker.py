"""Servers that do not answer are left alone for a while, by all views of this process."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from hoodie.env import Env
from hoodie.errors import Conflict, HudiError, Unavailable
from hoodie.fileview import FolderView
from hoodie.remote import Connection, FallingBackView, RemoteView, ServerAddress
from hoodie.remote.breaker import RETRY_S, Breaker
from hoodie.state.handle import timeline_of
from hoodie.table import Table
from hoodie.testing.env import FakeEnv
from hoodie.testing.lake import Lake, row

REFUSED = Unavailable("no connection", address="lake:1")


def closed(status: int) -> Unavailable:
    return Unavailable("no", address="lake:1", status=status)


@pytest.fixture
def env() -> Env:
    return FakeEnv()


@pytest.mark.parametrize("error", [REFUSED, *map(closed, (401, 429, 502, 503, 504))], ids=str)
def test_a_server_that_does_not_answer_is_asked_about_no_table(error: HudiError, env: Env) -> None:
    breaker = Breaker(env)
    assert breaker.may_ask("/t")
    assert not breaker.failed("/t", error)
    assert not breaker.may_ask("/t")
    assert not breaker.may_ask("/u")


@pytest.mark.parametrize("error", [closed(403), closed(404), Unavailable("nonsense")], ids=str)
def test_a_table_that_is_not_served_is_not_asked_about_and_others_are(error: HudiError, env: Env) -> None:
    breaker = Breaker(env)
    breaker.failed("/t", error)
    assert not breaker.may_ask("/t")
    assert breaker.may_ask("/u")
    breaker.answered("/u")
    assert not breaker.may_ask("/t")


@pytest.mark.parametrize("error", [Conflict("another timeline", address="lake:1"), closed(500), closed(400)], ids=str)
def test_what_is_about_a_question_or_a_client_is_an_answer(error: HudiError, env: Env) -> None:
    breaker = Breaker(env)
    breaker.failed("/t", REFUSED)
    breaker.failed("/t", error)
    assert breaker.may_ask("/t")


def test_one_view_asks_again_after_a_while_and_its_answer_counts(env: Env) -> None:
    breaker = Breaker(env)
    breaker.failed("/t", REFUSED)
    env.sleep(RETRY_S)
    assert [breaker.may_ask("/t") for _ in range(3)] == [True, False, False]
    assert breaker.failed("/t", REFUSED)
    assert not breaker.may_ask("/t")
    env.sleep(RETRY_S)
    assert breaker.may_ask("/u")
    breaker.answered("/u")
    assert [breaker.may_ask("/t") for _ in range(3)] == [True] * 3
    assert not breaker.failed("/t", REFUSED)


class Refusing:
    """Answers all questions alike, and counts them; with None it is silent."""

    def __init__(self, answer: bytes | None) -> None:
        self.count = 0
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = ServerAddress("127.0.0.1", self._socket.getsockname()[1], timeout_s=0.3)
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        while connection.recv(65536):
            self.count += 1
            if self._answer is not None:
                connection.sendall(self._answer)


@pytest.fixture
def serve() -> Iterator[Callable[[int | None, bytes], Refusing]]:
    servers: list[Refusing] = []

    def started(status: int | None, said: bytes = b"") -> Refusing:
        head = b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status or 0, len(said))
        servers.append(Refusing(None if status is None else head + said))
        return servers[-1]

    yield started
    for server in servers:
        server.close()


@pytest.fixture
def lake() -> Lake:
    made = Lake()
    made.upsert(row("a", part="p"), row("b", part="q"))
    return made


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (None, "takes too long|timed out"),
        (401, "wants another token"),
        (403, "does not serve the table"),
        (404, "finds no such table"),
        (503, "busy or closed"),
    ],
)
def test_calls_of_a_table_ask_a_failing_server_once_with_one_warning(
    status: int | None,
    message: str,
    lake: Lake,
    serve: Callable[..., Refusing],
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = serve(status, b"no")
    table = Table.open(lake.uri, server=server.address)
    again = Table.open(lake.uri, server=server.address)
    with caplog.at_level(logging.WARNING):
        assert [len(one.files()) for one in (table, table, again)] == [2, 2, 2]
    assert server.count == 1
    (warning,) = caplog.records
    caplog_text = warning.getMessage()
    assert any(part in caplog_text for part in message.split("|"))


def test_who_has_nobody_else_to_ask_asks(lake: Lake, serve: Callable[..., Refusing]) -> None:
    server = serve(503)
    view = RemoteView(Connection(server.address), lake.storage, timeline_of(lake.handle()))
    for _ in range(2):
        with pytest.raises(Unavailable, match="busy or closed"):
            view.files(["p"])
    assert server.count == 2


def test_a_question_that_is_not_taken_is_no_other_timeline_and_the_view_asks_no_more(
    lake: Lake, serve: Callable[..., Refusing], caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(400, b"This service has another name: --name tells it")
    timeline = timeline_of(lake.handle())
    there = FolderView(lake.storage, timeline)
    remote = RemoteView(Connection(server.address), lake.storage, timeline)
    with pytest.raises(Unavailable, match="another name") as error:
        remote.partitions()
    assert error.value.facts["status"] == 400
    assert FallingBackView(remote, lambda: there, lake.storage).files(["p", "q"]) == there.files(["p", "q"])
    assert server.count == 2
    assert len(caplog.records) == 1
