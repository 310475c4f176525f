"""A write whose timeline server fails it, at this question or that: the same rows, no file left over, one warning for
views and one for markers; or, where nobody else may be asked, an error that says so, and the table as it was.
"""

from __future__ import annotations

import itertools
import logging
import socket
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

import pytest

from hoodie.errors import Conflict, HudiError, Unavailable
from hoodie.remote.connection import MARKER, Connection
from hoodie.server import Answer, Service
from hoodie.server.marker_folder import Batching
from hoodie.server.marker_service import MarkerService, answered
from hoodie.table import Table
from hoodie.testing.lake import Lake, logged_lake, row

_HOSTS = itertools.count()


@dataclass
class Server:
    """Answers for the table of a lake; question `at` and those that follow end as `fault` says."""

    lake: Lake
    at: int = 0
    fault: Callable[[Answer], Answer] = lambda answer: answer
    has_effect: bool = False
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.host = f"server-{next(_HOSTS)}"
        self._service = Service([self.lake.uri])
        self._markers = MarkerService([self.lake.uri], batching=Batching(2, 0))

    def exchanged(self, method: str, target: str) -> tuple[int, bytes, bool]:
        """In place of what `Connection` sends and gets."""
        path, _, query = target.partition("?")
        self.asked.append(path)
        fails = 0 < self.at <= len(self.asked)
        answer = Answer(503, b"")
        if not fails or (self.has_effect and len(self.asked) == self.at):
            answer = self._answer(method, path, dict(parse_qsl(query, keep_blank_values=True)))
        answer = self.fault(answer) if fails else answer
        return answer.status, answer.body, False

    def table(self, kind: str) -> Table:
        options = {
            "hoodie.filesystem.view.type": kind,
            "hoodie.filesystem.view.remote.host": self.host,
            "hoodie.write.markers.type": "TIMELINE_SERVER_BASED",
        }
        return Table.open(self.lake.uri, options={**self.lake.options, **options})

    def _answer(self, method: str, path: str, parameters: dict[str, str]) -> Answer:
        if not path.startswith(MARKER):
            return self._service.answer(method, path, parameters)
        found = self._markers.answer(method, path, parameters)
        if isinstance(found, Future):
            found.exception(10)
            found = answered(found)
        return found


def lake_of(version: int) -> Lake:
    lake = logged_lake(version)
    lake.upsert(row("a", part="p"), row("b", part="q"))
    lake.upsert(row("a", "old", ts=2, part="p"))
    return lake


def upsert(lake: Lake, server: Server, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Connection, "_exchanged", lambda _, method, target, accepts: server.exchanged(method, target))
        server.table(kind).upsert(lake._data([row("a", "new", ts=3, part="p"), row("c", part="q"), row("d", part="r")]))


def refuses(_: Answer) -> Answer:
    raise ConnectionRefusedError(111, "Connection refused")


def is_slow(_: Answer) -> Answer:
    raise TimeoutError("timed out")


def has_no_name(_: Answer) -> Answer:
    raise socket.gaierror(-2, "Name or service not known")


def is_elsewhere(_: Answer) -> Answer:
    return Answer(400, b"Last known instant from client was 1 but server has the following timeline []")


OLD = {"a": "old", "b": "a"}
NEW = {"a": "new", "b": "a", "c": "a", "d": "a"}
FAULTS: dict[str, tuple[Callable[[Answer], Answer], bool, int, int]] = {
    # what it does, whether the question at which it begins has its effect, table version, at which of two questions
    "killed": (refuses, False, 9, 1),
    "killed behind its last effect": (refuses, True, 8, 2),
    "too slow from then on": (is_slow, False, 6, 2),
    "too slow behind an effect": (is_slow, True, 9, 1),
}


@pytest.mark.parametrize("name", list(FAULTS))
def test_a_server_that_fails_at_a_question_of_a_write_costs_no_row(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fault, has_effect, version, first = FAULTS[name]
    lake = lake_of(version)
    whole = Server(lake)
    upsert(lake, whole, "REMOTE_FIRST", monkeypatch)
    assert any(path.startswith(MARKER) for path in whole.asked)
    for at in range(first, len(whole.asked) + 1, 2):
        lake = lake_of(version)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            upsert(lake, Server(lake, at, fault, has_effect), "REMOTE_FIRST", monkeypatch)
        assert 1 <= len(caplog.records) <= 2, (at, caplog.messages)
        assert lake.values() == NEW, at
        assert not [path for path in lake.files() if path.startswith(".hoodie/.temp")], at
        lake.ensure_sound()


@pytest.mark.parametrize(
    ("fault", "error"), [(is_elsewhere, Conflict), (has_no_name, Unavailable), (is_slow, Unavailable)]
)
def test_who_may_ask_another_goes_on_and_who_may_not_changes_nothing(
    fault: Callable[[Answer], Answer], error: type[HudiError], version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_of(version)
    before = len(lake.table.timeline().completed())
    with pytest.raises(error):
        upsert(lake, Server(lake, 1, fault), "REMOTE_ONLY", monkeypatch)
    assert lake.values() == OLD
    assert len(lake.table.timeline().completed()) == before
    upsert(lake, Server(lake, 1, fault), "REMOTE_FIRST", monkeypatch)
    assert lake.values() == NEW
    lake.ensure_sound()


def test_a_server_that_is_elsewhere_now_is_asked_there(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lake = lake_of(9)
    upsert(lake, Server(lake, 4, refuses), "REMOTE_FIRST", monkeypatch)
    caplog.clear()
    again = Server(lake)
    with caplog.at_level(logging.WARNING):
        upsert(lake, again, "REMOTE_FIRST", monkeypatch)
    assert again.asked
    assert not caplog.records
    assert lake.values() == NEW
