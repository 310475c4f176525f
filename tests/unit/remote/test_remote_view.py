"""A view by a timeline server asks little, and falls back where it gets no answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

import pytest

from hoodie.errors import Conflict, Unavailable
from hoodie.fileview import FolderView
from hoodie.remote import FallingBackView, RemoteView
from hoodie.remote.json_values import Json
from hoodie.server import Service
from hoodie.state.handle import timeline_of
from hoodie.table import Table
from hoodie.testing.counting_file_view import CountingFileView
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.in_process_server import InProcessServer
from hoodie.testing.lake import Lake, logged_lake, row


@pytest.fixture
def lake(version: int) -> Lake:
    made = logged_lake(version)
    made.upsert(row("a", part="p"), row("b", part="q"), row("c", part="r"))
    made.upsert(row("a", "new", ts=2, part="p"))
    return made


@pytest.fixture
def server(lake: Lake) -> InProcessServer:
    return InProcessServer(Service([lake.uri]))


def remote(lake: Lake, server: InProcessServer) -> RemoteView:
    return RemoteView(server, lake.storage, timeline_of(lake.handle()))


def falling_back(lake: Lake, server: InProcessServer) -> tuple[FallingBackView, CountingFileView]:
    timeline = timeline_of(lake.handle())
    local = CountingFileView(FolderView(lake.storage, timeline))
    return FallingBackView(RemoteView(server, lake.storage, timeline), lambda: local, lake.storage), local


def test_a_partition_costs_two_questions_once_and_no_listing(lake: Lake, server: InProcessServer) -> None:
    counted = CountingStorage(lake.storage)
    view = RemoteView(server, counted, timeline_of(lake.handle()))
    assert len(view.load(["p"]).slices_at()) == 1
    view.load(["p"])
    assert server.asked == ["filegroups/all/partition/", "filegroups/replaced/partition/"]
    assert [call.path for call in counted.calls if call.op in ("list_dir", "list")] == []


def test_the_server_alone_is_asked_and_its_silence_is_an_error(lake: Lake, server: InProcessServer) -> None:
    server.is_down = True
    with pytest.raises(Unavailable):
        remote(lake, server).load()


def test_another_timeline_is_an_error(lake: Lake, server: InProcessServer) -> None:
    view = remote(lake, server)
    lake.upsert(row("z", part="p"))
    with pytest.raises(Conflict):
        view.load(["p"])


def test_replaced_groups_are_known_with_the_time_they_were_replaced(lake: Lake, server: InProcessServer) -> None:
    before = timeline_of(lake.handle()).instants[-1].requested
    lake.write("insert_overwrite", [row("d", part="q")])
    view = remote(lake, server).load()
    there = FolderView(lake.storage, view.timeline).load()
    assert view.slices_at() == there.slices_at()
    assert view.slices_at(before) == there.slices_at(before)
    assert view.slices_at(before) != view.slices_at()


def test_what_one_partition_lacks_is_asked_elsewhere_with_one_warning(
    lake: Lake, server: InProcessServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.broken = ("p", "r")
    view, local = falling_back(lake, server)
    with caplog.at_level(logging.WARNING):
        found = view.load()
    assert found.slices_at() == FolderView(lake.storage, found.timeline).load().slices_at()
    assert local.asked == [("files", ["p", "r"])]
    assert len(caplog.records) == 1
    assert "partition 'p'" in caplog.text


@pytest.mark.parametrize("failure", ["down", "another timeline"])
def test_a_server_that_does_not_answer_is_asked_once(
    failure: str, lake: Lake, server: InProcessServer, caplog: pytest.LogCaptureFixture
) -> None:
    view, local = falling_back(lake, server)
    server.is_down = failure == "down"
    if failure != "down":
        lake.upsert(row("z", part="p"))
    with caplog.at_level(logging.WARNING):
        view.files(["p", "q"])
        view.load(["r"])
        assert view.partitions() == ("p", "q", "r")
    assert len(server.asked) == 1
    assert [what for what, _ in local.asked] == ["files", "files", "partitions"]
    assert len(caplog.records) == 1


class Changed:
    """A server whose answers are changed on their way: `about` is the partition it thinks it is asked about."""

    def __init__(self, server: InProcessServer, about: str | None = None, text: tuple[str, str] = ("", "")) -> None:
        self._server = server
        self._about = about
        self._text = text

    def ask(self, path: str, parameters: Mapping[str, str]) -> Json:
        about = {"partition": self._about} if self._about and "partition" in parameters else {}
        return json.loads(json.dumps(self._server.ask(path, {**parameters, **about})).replace(*self._text))

    def ask_files(self, path: str, parameters: Mapping[str, str]) -> bytes | None:
        return self._server.ask_files(path, parameters)


WRONG = {
    "another partition": ("q", ("", "")),
    "a partition outside": (None, ('"partition": "p"', '"partition": "../../../etc"')),
    "an absolute partition": (None, ('"partition": "p"', '"partition": "/p"')),
    "the folder of the timeline": (None, ('"partition": "p"', '"partition": ".hoodie/p"')),
    "half a character": (None, (".parquet", "\\ud800.parquet")),
    "a name that ends early": (None, (".parquet", "_\\u0000.parquet")),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_refused_and_the_table_asked(
    name: str, lake: Lake, server: InProcessServer, caplog: pytest.LogCaptureFixture
) -> None:
    timeline = timeline_of(lake.handle())
    wrong = RemoteView(Changed(server, *WRONG[name]), lake.storage, timeline)
    with pytest.raises(Unavailable, match="cannot be used"):
        wrong.files(["p"])
    there = FolderView(lake.storage, timeline)
    view = FallingBackView(wrong, lambda: there, lake.storage)
    assert view.files(["p", "q"]) == there.files(["p", "q"])
    assert len(caplog.records) == 1


@pytest.mark.parametrize("name", ["../p", "/p", "p//q", "p/", ".", ".hoodie", ".hoodie/metadata", "\\ud800", "\\u0000"])
def test_partitions_that_lead_out_of_the_table_are_refused(name: str, lake: Lake, server: InProcessServer) -> None:
    wrong = RemoteView(Changed(server, None, ('"q":', f'"{name}":')), lake.storage, timeline_of(lake.handle()))
    with pytest.raises(Unavailable, match="no partition of a table"):
        wrong.partitions()


def test_change_data_files_are_no_log_files_of_a_slice() -> None:
    lake = Lake(options={"hoodie.table.cdc.enabled": "true"})
    lake.upsert(row("a", part="p"))
    lake.upsert(row("a", "new", ts=2, part="p"))
    handle = lake.handle()
    (there,) = FolderView(lake.storage, timeline_of(handle)).files(["p"])
    (found,) = remote(lake, InProcessServer(Service([lake.uri]))).files(["p"])
    assert found == there
    assert found.changes == there.changes != ()


def test_a_table_that_is_opened_with_a_server_asks_it_and_reads_without_it(
    lake: Lake, server: InProcessServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("hoodie.remote.asking.connection_to", lambda address, retries: server)
    table = Table.open(lake.uri, server="somewhere:1")
    expected = sorted(lake.rows())
    rows = table.scan(columns=["id", "v"]).read_all()
    assert sorted(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True)) == expected
    assert [part.paths for part in table.files()] == [part.paths for part in lake.table.files()]
    assert "filegroups/all/partition/" in server.asked
    assert not caplog.records
    lake.upsert(row("z", part="p"))
    server.is_down = True
    assert len(table.scan().read_all()) == len(expected) + 1
    assert len(caplog.records) == 1


@pytest.fixture
def arrow_server(server: InProcessServer) -> InProcessServer:
    server.has_arrow = True
    return server


def test_a_server_of_ours_is_asked_once_for_all_files_and_once_for_a_partition(
    lake: Lake, arrow_server: InProcessServer
) -> None:
    timeline = timeline_of(lake.handle())
    there = FolderView(lake.storage, timeline)
    view = RemoteView(arrow_server, lake.storage, timeline)
    assert view.files() == there.files()
    assert view.load().slices_at() == there.load().slices_at()
    assert arrow_server.asked == ["files/all"]
    view = RemoteView(arrow_server, lake.storage, timeline)
    assert view.files(["p"]) == there.files(["p"])
    assert view.partitions() == ("p", "q", "r")
    assert arrow_server.asked == ["files/all", "files/partition", "files/partitions"]
    told = RemoteView(arrow_server, lake.storage, timeline).columns()
    assert told is not None
    assert {name: len(files.names) for name, files in told.items()} == {
        one.partition: len(one.everything) for one in there.files()
    }


@pytest.mark.parametrize("falls_back", [False, True])
def test_some_partitions_of_many_are_asked_about_together_and_once(
    falls_back: bool, lake: Lake, arrow_server: InProcessServer
) -> None:
    there = FolderView(lake.storage, timeline_of(lake.handle()))
    view, local = falling_back(lake, arrow_server) if falls_back else (remote(lake, arrow_server), None)
    assert view.files(["r", "p"]) == there.files(["p", "r"])
    assert view.load(["p", "r"]).slices_at() == there.load(["p", "r"]).slices_at()
    assert view.files(["p", "q", "r", "nowhere"]) == there.files(["nowhere", "p", "q", "r"])
    assert arrow_server.asked == ["files/chosen", "files/chosen"]
    assert local is None or not local.asked


def test_who_knows_all_files_asks_about_no_partition(lake: Lake, arrow_server: InProcessServer) -> None:
    view = remote(lake, arrow_server)
    view.columns()
    assert [one.partition for one in view.files(["p", "q"])] == ["p", "q"]
    assert arrow_server.asked == ["files/all"]


def test_names_that_fill_the_head_of_a_request_are_asked_in_several(lake: Lake, arrow_server: InProcessServer) -> None:
    view = remote(lake, arrow_server)
    names = [f"nowhere/ä{'x' * 100}{number:03}" for number in range(100)]
    assert [one.partition for one in view.files(names)] == sorted(names)
    assert arrow_server.asked == ["files/chosen"] * 3


def test_a_partition_the_server_fails_for_is_asked_elsewhere_and_no_other(
    lake: Lake, arrow_server: InProcessServer, caplog: pytest.LogCaptureFixture
) -> None:
    arrow_server.broken = ("q",)
    view, local = falling_back(lake, arrow_server)
    with caplog.at_level(logging.WARNING):
        assert view.files(["p", "q", "r"]) == FolderView(lake.storage, view.timeline).files()
    assert local.asked == [("files", ["q"])]
    assert arrow_server.asked == ["files/chosen", *["files/partition"] * 3]
    (said,) = caplog.records
    assert "partition 'q'" in said.getMessage()


def test_a_stream_about_other_partitions_is_refused(lake: Lake, arrow_server: InProcessServer) -> None:
    view = remote(lake, arrow_server)
    whole = arrow_server.ask_files
    arrow_server.ask_files = lambda path, about: whole(path, {**about, "partitions": '["p", "r"]'})  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="tells of others"):
        view.files(["p", "q"])


def test_a_wrong_stream_is_refused_and_the_table_asked(
    lake: Lake, arrow_server: InProcessServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    timeline = timeline_of(lake.handle())
    there = FolderView(lake.storage, timeline)
    whole = arrow_server.ask_files
    for damage in (lambda body: body[:-9], lambda body: body.replace(b"parquet", b"par/uet"), lambda _: b"[]"):
        monkeypatch.setattr(
            arrow_server, "ask_files", lambda path, about, damage=damage: damage(whole(path, about) or b"")
        )
        caplog.clear()
        for names in (None, ["p", "q"]):
            view = FallingBackView(RemoteView(arrow_server, lake.storage, timeline), lambda: there, lake.storage)
            assert view.files(names) == there.files(names)
        with pytest.raises(Unavailable, match="cannot be used"):
            RemoteView(arrow_server, lake.storage, timeline).files()


def test_a_stream_about_another_partition_is_refused(lake: Lake, arrow_server: InProcessServer) -> None:
    view = RemoteView(arrow_server, lake.storage, timeline_of(lake.handle()))
    whole = arrow_server.ask_files
    arrow_server.ask_files = lambda path, about: whole(path, {**about, "partition": "q"})  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="tells of others"):
        view.files(["p"])
