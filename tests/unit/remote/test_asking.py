"""Who is told by options to ask a timeline server asks it, whatever he does, and gets along without an answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from hoodie.config import resolve
from hoodie.errors import Conflict, HudiError, Invalid, Unavailable, Unsupported
from hoodie.fileview import FolderView
from hoodie.fileview.log_sizes import with_stored_sizes
from hoodie.remote import AskedServer, Connection, ServerAddress, asked_server, open_writer_view, options_of
from hoodie.remote.connection import Retries, Told, connection_to
from hoodie.server import Service
from hoodie.state.handle import timeline_of
from hoodie.table import Table
from hoodie.testing.env import FakeEnv
from hoodie.testing.in_process_server import InProcessServer
from hoodie.testing.lake import Lake, logged_lake, row

TYPE = "hoodie.filesystem.view.type"
REMOTE = "hoodie.filesystem.view.remote."


@pytest.fixture
def lake(version: int) -> Lake:
    made = logged_lake(version, hoodie__clean__automatic="false", hoodie__archive__automatic="false")
    made.upsert(row("a", part="p"), row("b", part="q"))
    made.upsert(row("a", "new", ts=2, part="p"))
    return made


@pytest.fixture
def server(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> InProcessServer:
    made = InProcessServer(Service([lake.uri]))
    monkeypatch.setattr("hoodie.remote.asking.connection_to", lambda address, retries: made)
    return made


def opened(lake: Lake, kind: str = "REMOTE_ONLY", **more: Any) -> Table:
    return Table.open(lake.uri, options={**lake.options, TYPE: kind, **more})


ASKING: Mapping[str, Callable[[Table], object]] = {
    "scan": lambda table: table.scan().read_all(),
    "lookup": lambda table: table.lookup("a").read_all(),
    "files": lambda table: table.files(),
    "upsert": lambda table: table.upsert(Lake()._data([row("a", "up", 9, "p")])),
    "delete": lambda table: table.delete(Lake()._data([row("a", "up", 9, "p")])),
    "delete of a partition": lambda table: table.delete_partition("q"),
    "compaction": lambda table: table.services.compact(),
    "log compaction": lambda table: table.services.compact_logs(
        **{"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": "2"}
    ),
    "clean": lambda table: table.services.clean(**{"hoodie.clean.commits.retained": "1"}),
    "expiry": lambda table: table.services.ttl(**{"hoodie.partition.ttl.strategy.days.retain": "1"}),
}


@pytest.mark.parametrize("name", list(ASKING))
def test_whoever_needs_the_files_asks(name: str, lake: Lake, server: InProcessServer) -> None:
    if name == "clean":
        lake.upsert(row("a", "newer", ts=3, part="p"))
    ASKING[name](opened(lake))
    assert server.asked


@pytest.mark.parametrize("name", [name for name in ASKING if name != "log compaction"])
def test_who_may_ask_nobody_else_fails_without_an_answer(name: str, lake: Lake, server: InProcessServer) -> None:
    server.is_down = True
    before = lake.table.timeline().completed()
    with pytest.raises(Unavailable, match="no connection"):
        ASKING[name](opened(lake))
    assert lake.table.timeline().completed() == before


@pytest.mark.parametrize("kind", ["REMOTE_FIRST", "REMOTE_ONLY", "MEMORY"])
def test_whoever_knows_the_files_the_table_becomes_the_same(
    kind: str, lake: Lake, server: InProcessServer, caplog: pytest.LogCaptureFixture
) -> None:
    table = opened(lake, kind)
    with caplog.at_level(logging.WARNING):
        table.upsert(lake._data([row("b", "up", ts=4, part="q"), row("c", part="p")]))
        table.services.compact()
        table.delete(lake._data([row("a", ts=9, part="p")]))
        table.services.clean(**{"hoodie.clean.commits.retained": "1"})
        table.upsert(lake._data([row("d", part="s")]))
    assert lake.values() == {"b": "up", "c": "a", "d": "a"}
    lake.ensure_sound()
    assert not caplog.records
    assert bool(server.asked) == (kind != "MEMORY")


def test_a_write_goes_on_without_a_server_that_is_silent_or_behind(
    lake: Lake, server: InProcessServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.is_down = True
    table = opened(lake, "REMOTE_FIRST")
    with caplog.at_level(logging.WARNING):
        table.upsert(lake._data([row("c", part="p")]))
    (warning,) = [one.getMessage() for one in caplog.records]
    assert warning.startswith("no connection. The table itself is asked for partition 'p', and")
    assert lake.values()["c"] == "a"


def test_log_files_of_version_6_are_as_large_as_they_are(
    server: InProcessServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = logged_lake(6)
    lake.upsert(row("a", part="p"))
    lake.upsert(row("a", "new", ts=2, part="p"))
    ours = InProcessServer(Service([lake.uri]))
    monkeypatch.setattr("hoodie.remote.asking.connection_to", lambda address, retries: ours)
    (log,) = [log for part in lake.table.files() for log in part.logs]
    lake.storage.put(log.path, lake.storage.read(log.path) + b"#HUDI#")  # as a writer that died leaves it
    handle = lake.handle()
    timeline = timeline_of(handle)
    view = open_writer_view(AskedServer(ServerAddress("somewhere", 1)), handle, timeline)
    (found,) = [log for part in view.load(["p"]).slices_at() for log in part.logs]
    assert found.size_bytes == log.size_bytes + 6
    assert view.files() == FolderView(lake.storage, timeline).files()
    assert view.committed_logs([found])[log.path].committed_bytes == log.size_bytes
    assert with_stored_sizes(lake.storage, [found])[log.path] == found


def test_options_name_a_server() -> None:
    assert asked_server(resolve({})) is None
    assert asked_server(resolve({TYPE: "SPILLABLE_DISK", f"{REMOTE}host": "lake"})) is None
    assert asked_server(resolve({TYPE: "REMOTE_ONLY"})) == AskedServer(ServerAddress("localhost"), falls_back=False)
    given = {TYPE: "REMOTE_FIRST", f"{REMOTE}host": "lake", f"{REMOTE}port": "81", f"{REMOTE}timeout.secs": "5"}
    assert asked_server(resolve(given)) == AskedServer(ServerAddress("lake", 81, None, 5.0))
    retries = {f"{REMOTE}retry.enable": "true", f"{REMOTE}retry.max_numbers": "7"}
    found = asked_server(resolve({**given, **retries}))
    assert found is not None
    assert found.retries == Retries(7, 0.1, 2.0)
    address = ServerAddress("lake", 81, "a token that is told", 5.0)
    named = resolve(options_of(address))
    assert asked_server(named) == AskedServer(address)
    assert "told" not in repr(named)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({TYPE: "REMOTE"}, Invalid),
        ({TYPE: "REMOTE_ONLY", f"{REMOTE}host": "a b"}, Invalid),
        ({TYPE: "REMOTE_ONLY", f"{REMOTE}port": "70000"}, Invalid),
        ({TYPE: "REMOTE_ONLY", f"{REMOTE}port": "0"}, Invalid),
        ({f"{REMOTE}retry.exceptions": "java.lang.RuntimeException"}, Unsupported),
    ],
)
def test_options_that_name_none_are_refused(options: Mapping[str, str], kind: type[HudiError]) -> None:
    with pytest.raises(kind):
        asked_server(resolve(options))


class Flaky(Connection):
    """A connection that gets an answer at the third attempt."""

    def __init__(self, error: HudiError, env: FakeEnv, times: int) -> None:
        super().__init__(ServerAddress("nowhere"), env, Retries(times, 0.1, 0.15))
        self.error = error
        self.count = 0

    def _asked(self, method: str, target: str, accepts: str) -> Told:
        del method
        self.count += 1
        if self.count < 3:
            raise self.error
        return Told(target, False)


def test_who_does_not_answer_is_asked_again_after_pauses() -> None:
    env = FakeEnv()
    begun = env.monotonic()
    assert Flaky(Unavailable("gone"), env, 2).ask("x", {}) == "/v1/hoodie/view/x?"
    assert 0.25 <= env.monotonic() - begun <= 0.35
    assert Flaky(Unavailable("busy", status=503), env, 5).ask("x", {})


@pytest.mark.parametrize(
    ("error", "times", "count"),
    [
        (Unavailable("gone"), 1, 2),
        (Unavailable("gone"), 0, 1),
        (Unavailable("no such table", status=404), 5, 1),
        (Conflict("another timeline"), 5, 1),
    ],
)
def test_who_will_not_answer_is_not(error: HudiError, times: int, count: int) -> None:
    flaky = Flaky(error, FakeEnv(), times)
    with pytest.raises(type(error)):
        flaky.ask("x", {})
    assert flaky.count == count


def test_all_who_ask_in_the_same_way_share_a_connection() -> None:
    address = ServerAddress("shared.example")
    assert connection_to(address) is connection_to(ServerAddress("shared.example"))
    assert connection_to(address, Retries(3)) is not connection_to(address)
