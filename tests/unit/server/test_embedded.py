"""A timeline server in a writer: it knows the table, serves others, and is never in the way."""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra `server`")

import hoodie.server.embedded as module
from hoodie.config import Config, resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Unavailable
from hoodie.fileview import FolderView
from hoodie.remote import Connection, RemoteView, asked_server
from hoodie.remote.connection import MARKER
from hoodie.remote.embedding import with_embedded_server
from hoodie.remote.server_markers import ServerMarkers
from hoodie.server import Answer, embedded_view
from hoodie.server.embedded import embedded_address, stop_embedded
from hoodie.server.marker_service import MarkerService
from hoodie.server.service import Service
from hoodie.spec import MARKER_TYPE_FILE, Instant, MarkerKind, marker_dir
from hoodie.state.handle import timeline_of
from hoodie.storage import MemoryStorage
from hoodie.table import Table
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lake import Awake, Lake, logged_lake, row
from hoodie.timeline import DirectMarkers
from hoodie.timeline.marker_lists import ListedMarkers
from hoodie.transaction import Transaction, markers_for

EMBEDDED = "hoodie.embed.timeline.server"
TYPE = "hoodie.write.markers.type"
BY_SERVER = {TYPE: "TIMELINE_SERVER_BASED"}
STRATEGY = "hoodie.write.concurrency.early.conflict.detection.strategy"
LOOKS = "org.apache.hudi.table.marker."


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    stop_embedded()
    yield
    stop_embedded()
    assert not [one for one in threading.enumerate() if one.name == "timeline server"]


@pytest.fixture
def lake(version: int, tmp_path: Path) -> Lake:
    made = logged_lake(version, **{EMBEDDED: "true"})
    made.uri = str(tmp_path / "lake")
    return made


class Spread(LocalEngine):
    """An engine that says its tasks run elsewhere."""

    @property
    def driver_host(self) -> str | None:
        return "127.0.0.1"


def servers() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "timeline server"]


def test_writes_and_services_leave_the_same_table(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        lake.upsert(row("a", part="p"), row("b", part="q"))
        lake.upsert(row("a", "new", ts=2, part="p"), row("c", part="p"))
        lake.table.services.compact()
        lake.upsert(row("a", "newer", ts=3, part="p"), hoodie__clean__commits__retained="1")
        lake.write("insert_overwrite", [row("d", part="q")])
        lake.write("delete", [row("c", part="p", ts=9)])
        lake.table.services.clean(**{"hoodie.clean.commits.retained": "1"})
        lake.table.delete_partition("q")
        lake.upsert(row("e", part="q"))
    assert lake.values() == {"a": "newer", "e": "a"}
    lake.ensure_sound()
    assert not caplog.records
    assert len(servers()) == 1


def test_others_ask_it_over_http(lake: Lake) -> None:
    lake.upsert(row("a", part="p"), row("b", part="q"))
    address = embedded_address(lake.storage, Config(), None)
    assert address is not None
    timeline = timeline_of(lake.handle())
    view = RemoteView(Connection(address), lake.storage, timeline)
    assert view.load().slices_at() == FolderView(lake.storage, timeline).load().slices_at()


def test_it_serves_no_other_table(lake: Lake, tmp_path: Path) -> None:
    lake.upsert(row("a"))
    other = Lake(uri=str(tmp_path / "other"))
    other.upsert(row("a"))
    address = embedded_address(lake.storage, Config(), None)
    assert address is not None
    view = RemoteView(Connection(address), other.storage, timeline_of(other.handle()))
    with pytest.raises(Exception, match="403"):
        view.files(["p"])


def test_it_writes_the_markers_of_these_tables_and_of_no_other(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []
    answer = MarkerService.answer

    def heard(self: MarkerService, method: str, path: str, parameters: Mapping[str, str]) -> Answer | Future[bool]:
        asked.append(path.removeprefix(MARKER))
        return answer(self, method, path, parameters)

    monkeypatch.setattr(MarkerService, "answer", heard)
    with caplog.at_level(logging.WARNING):
        lake.upsert(row("a", part="p"), row("b", part="q"), **BY_SERVER)
    assert (asked[0], asked[-1]) == ("create", "dir/delete")
    assert not [path for path in lake.files() if path.startswith(".hoodie/.temp")]
    assert not caplog.records
    other = Lake(uri=str(tmp_path / "other"))
    other.upsert(row("a"))
    address = embedded_address(lake.storage, Config(), None)
    assert address is not None
    markers = ServerMarkers(other.storage, "20260101000000000", address)
    with caplog.at_level(logging.WARNING):
        markers.create("p/f.parquet", MarkerKind.CREATE)
    (said,) = caplog.records
    assert "403" in said.getMessage()


def test_one_serves_all_tables_unless_each_is_to_have_its_own(lake: Lake, tmp_path: Path) -> None:
    there = {embedded_address(Lake(uri=str(tmp_path / name)).storage, Config(), None) for name in "ab"}
    assert len(there) == 1
    alone = resolve({"hoodie.embed.timeline.server.reuse.enabled": "false"})
    own = {embedded_address(Lake(uri=str(tmp_path / name)).storage, alone, None) for name in "aab"}
    assert len(own) == 2
    assert not there & own


def test_who_gets_one(lake: Lake) -> None:
    storage = lake.storage

    def gets(engine: LocalEngine, **options: str) -> bool:
        config = resolve({name.replace("__", "."): value for name, value in options.items()})
        found = with_embedded_server(storage, config, engine)
        return found is not config

    assert not gets(LocalEngine())
    assert gets(LocalEngine(), hoodie__embed__timeline__server="true")
    assert gets(Spread())
    assert not gets(Spread(), hoodie__embed__timeline__server="false")
    assert not gets(Spread(), hoodie__filesystem__view__type="REMOTE_FIRST")
    only = resolve({"hoodie.filesystem.remote.backup.view.enable": "false"})
    found = asked_server(with_embedded_server(storage, only, Spread()))
    assert found is not None
    assert not found.falls_back


class Hdfs(MemoryStorage):
    @property
    def scheme(self) -> str:
        return "hdfs"


@pytest.mark.parametrize(
    ("engine", "options", "kind"),
    [
        (Spread(), {}, ServerMarkers),
        (Spread(), {EMBEDDED: "true"}, ServerMarkers),
        (Spread(), {EMBEDDED: "false"}, DirectMarkers),
        (Spread(), {TYPE: "DIRECT"}, DirectMarkers),
        (Spread(), {TYPE: "PROCESS_LISTS"}, ListedMarkers),
        (Spread(), {"hoodie.filesystem.view.type": "REMOTE_FIRST"}, DirectMarkers),
        (Spread(), {STRATEGY: f"{LOOKS}SimpleDirectMarkerBasedDetectionStrategy"}, DirectMarkers),
        (Spread(), {STRATEGY: f"{LOOKS}SimpleTransactionDirectMarkerBasedDetectionStrategy"}, DirectMarkers),
        (LocalEngine(), {EMBEDDED: "true"}, DirectMarkers),
        (LocalEngine(), {EMBEDDED: "true", **BY_SERVER}, ServerMarkers),
    ],
)
def test_who_does_not_say_which_markers_has_those_of_the_server_where_tasks_run_elsewhere(
    engine: LocalEngine, options: dict[str, str], kind: type
) -> None:
    storage = MemoryStorage("who-has-which-markers")
    config = with_embedded_server(storage, resolve(options), engine)
    assert type(markers_for(storage, "20260101000000000", config)) is kind


def test_on_hdfs_they_are_direct_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    storage = Hdfs("markers-on-hdfs")
    with caplog.at_level(logging.INFO, logger="hoodie"):
        for _ in range(2):
            config = with_embedded_server(storage, resolve({}), Spread())
            assert asked_server(config) is not None
            assert isinstance(markers_for(storage, "20260101000000000", config), DirectMarkers)
    assert [one.levelno for one in caplog.records if "HDFS" in one.getMessage()] == [logging.INFO]


@pytest.mark.parametrize("kind", ["TIMELINE_SERVER_BASED", "PROCESS_LISTS"])
def test_a_plan_that_is_carried_out_again_begins_its_lists_anew(
    lake: Lake, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who made them still knows of those of the first attempt, whose folder is gone."""
    lake.upsert(row("a", part="p"), row("b", part="q"), hoodie__markers__timeline_server_based__batch__num_threads="1")
    lake.upsert(row("a", "new", ts=2, part="p"))
    seen: list[tuple[list[str], set[str]]] = []
    commit = Transaction.commit

    def fails_once(self: Transaction, *arguments: Any) -> Instant:
        folder = marker_dir(self.instant)
        names = sorted(file.path.removeprefix(f"{folder}/") for file in lake.storage.list(folder))
        lines = b"".join(lake.storage.read(f"{folder}/{name}") for name in names if name != MARKER_TYPE_FILE)
        seen.append((names, set(lines.decode().split())))
        if len(seen) == 1:
            raise Unavailable("not now", remedy="Try again")
        return commit(self, *arguments)

    monkeypatch.setattr(Transaction, "commit", fails_once)
    options = {TYPE: kind, "hoodie.compact.inline.max.delta.commits": "1"}
    with pytest.raises(Unavailable, match="not now"):
        lake.table.services.compact(**options)
    lake.table.services.compact(**options)
    (first, lines), (second, lines_again) = seen
    assert first[0] == second[0] == MARKER_TYPE_FILE  # "." comes before digits
    assert lines
    assert not lines & lines_again
    assert lake.values() == {"a": "new", "b": "a"}
    lake.ensure_sound()


def test_a_port_that_is_taken_is_said_once_and_written_without(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, caplog.at_level(logging.WARNING):
        port = taken.getsockname()[1]
        for number in range(3):
            lake.upsert(row("a", str(number), ts=number), **{"hoodie.embed.timeline.server.port": str(port)})
    (said,) = caplog.records
    assert str(port) in said.getMessage()
    assert lake.values() == {"a": "2"}


def test_a_name_that_is_none_of_this_machine_is_said_once(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert embedded_address(lake.storage, Config(), "no-such-machine.invalid") is None
    (said,) = caplog.records
    assert "no-such-machine.invalid" in said.getMessage()


def test_another_address_than_loopback_wants_a_token(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    own = socket.gethostbyname(socket.gethostname())
    if own.startswith("127."):
        pytest.skip("this machine has no other address")
    lake.upsert(row("a"))
    address = embedded_address(lake.storage, Config(), own)
    assert address is not None
    assert address.token
    assert address.token not in repr(address)
    timeline = timeline_of(lake.handle())
    assert RemoteView(Connection(address), lake.storage, timeline).load().slices_at()


def test_without_the_extra_there_is_no_server(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "hoodie.server.http", raising=False)
    with caplog.at_level(logging.INFO, logger="hoodie.server.embedded"):
        lake.upsert(row("a"))
        lake.upsert(row("b"))
    assert [one.getMessage() for one in caplog.records if "hoodie[server]" in one.getMessage()] == [
        "no timeline server in this writer: uvicorn is not installed (pip install 'hoodie[server]')"
    ]
    assert sorted(lake.values()) == ["a", "b"]


def test_a_service_that_fails_is_no_failure_of_a_write(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lake.upsert(row("a"))
    monkeypatch.setattr(Service, "known_at", lambda *_: 1 / 0)
    with caplog.at_level(logging.WARNING):
        lake.upsert(row("a", "new", ts=2))
        lake.upsert(row("b", ts=2))
    assert lake.values() == {"a": "new", "b": "a"}
    (said,) = caplog.records
    assert "division" in said.getMessage()
    monkeypatch.undo()
    lake.upsert(row("c"))
    lake.ensure_sound()


def test_a_service_that_is_busy_keeps_nobody_waiting(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_view, "WAIT_S", 0.05)
    lake.upsert(row("a"))
    (running,) = module._running.values()
    (table,) = running.service._tables.values()
    free = threading.Event()

    def hold() -> None:
        with table.lock:
            free.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        lake.upsert(row("a", "new", ts=2))
    finally:
        free.set()
        holder.join()
    assert lake.values() == {"a": "new"}


def test_a_server_whose_thread_ended_is_started_again(lake: Lake) -> None:
    lake.upsert(row("a"))
    (running,) = module._running.values()
    running.server.should_exit = True
    running.thread.join(10)
    lake.upsert(row("a", "new", ts=2))
    assert lake.values() == {"a": "new"}
    assert len(servers()) == 1


def test_a_writer_that_others_overtook_decides_on_the_table_as_it_is(lake: Lake) -> None:
    lake.upsert(row("a", part="p"))
    alone = Lake(lake.version, {**lake.options, EMBEDDED: "false"}, uri=lake.uri)
    for number in range(2, 6):
        alone.upsert(row("a", str(number), ts=number, part="p"), row(f"n{number}", part="p"))
        lake.upsert(row("a", f"{number}!", ts=number, part="p"))
    assert lake.values()["a"] == "5!"
    made_again = alone.table
    made_again.drop()
    alone.upsert(row("z", part="p"))
    lake.upsert(row("y", part="p"))
    assert sorted(lake.values()) == ["y", "z"]
    lake.ensure_sound()


def test_a_warm_writer_lists_no_data_folder(lake: Lake) -> None:
    for number in range(3):
        lake.upsert(row("a", str(number), ts=number, part="p"), row(f"b{number}", part="q"))
    counted = CountingStorage(lake.storage)
    handle = lake.handle()
    table = Table(type(handle)(counted, handle.config, handle.profile, Awake()), lake.options, LocalEngine(1))
    table.upsert(lake._data([row("a", "new", ts=9, part="p")]))
    listed = [call.path for call in counted.calls if call.op in ("list_dir", "list")]
    folders = [path for path in listed if not path.startswith(".hoodie")]
    assert folders == []
    assert lake.values()["a"] == "new"
