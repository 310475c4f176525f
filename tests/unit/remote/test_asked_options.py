"""A server that a caller names, beside what his options say of servers."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from pathlib import Path

import pytest

from hoodie.cli.app import main
from hoodie.cli.serve import define, full_root
from hoodie.config import resolve
from hoodie.errors import Invalid, Unavailable
from hoodie.remote import ServerAddress, asked_options
from hoodie.remote.asking import TIMEOUT, asked_server
from hoodie.table import Table
from hoodie.testing.lake import Lake, row

VIEW = "hoodie.filesystem.view."
TYPE = f"{VIEW}type"


@pytest.mark.parametrize("kind", ["REMOTE_ONLY", "remote_only", "REMOTE_FIRST"])
def test_options_say_whether_the_table_itself_is_asked_too(kind: str) -> None:
    for server in ("somewhere:1", ServerAddress("somewhere", 1)):
        assert asked_options(server, {TYPE: kind})[TYPE] == kind.upper()
    assert asked_options("somewhere:1", {})[TYPE] == "REMOTE_FIRST"


def test_a_server_that_is_asked_alone_and_is_not_there_is_an_error() -> None:
    lake = Lake(9)
    lake.upsert(row("a"))
    with pytest.raises(Unavailable):
        Table.open(lake.uri, server="127.0.0.1:1", options={TYPE: "REMOTE_ONLY"}).scan().read_all()


def test_options_that_ask_for_no_server_contradict_one() -> None:
    with pytest.raises(Invalid, match="asks for none"):
        asked_options("somewhere:1", {TYPE: "MEMORY"})


@pytest.mark.parametrize("server", [26754, True, b"here:1", ("here", 1), ["here:1"], {"host": "here"}])
def test_what_is_no_address_is_said(server: object) -> None:
    with pytest.raises(Invalid, match="is no address of a timeline server"):
        asked_options(server, {})  # type: ignore[arg-type]


def test_a_port_is_no_host() -> None:
    with pytest.raises(Invalid, match="Write localhost:26754"):
        asked_options("26754", {})


@pytest.mark.parametrize(
    ("host", "remedy"),
    [
        ("localhost:26754", f"{VIEW}remote.host=localhost, and the port as {VIEW}remote.port=26754"),
        ("http://localhost", f"{VIEW}remote.host=localhost, and the port as {VIEW}remote.port=26754"),
        ("[::1]:80", f"{VIEW}remote.host=::1, and the port as {VIEW}remote.port=80"),
        ("my host", "Write the name or address of a machine"),
        ("300.1.1.1", "Write the name or address of a machine"),
    ],
)
def test_the_option_of_a_host_names_no_port(host: str, remedy: str) -> None:
    with pytest.raises(Invalid, match=re.escape(remedy)) as failure:
        asked_server(resolve({TYPE: "REMOTE_FIRST", f"{VIEW}remote.host": host}))
    assert f"{VIEW}remote.host='{host}' is no host" in failure.value.cause


def test_addresses_of_machines_are_hosts() -> None:
    for host in ("localhost", "::1", "127.0.0.1", "my-host.lan", "fe80::1", "bücher"):
        found = asked_server(resolve({TYPE: "REMOTE_FIRST", f"{VIEW}remote.host": host}))
        assert found is not None
        assert found.address.host == host


def test_a_store_of_views_without_memory_is_refused_to_writers_too() -> None:
    for memory in (0, -1):
        with pytest.raises(Invalid, match=r"spillable\.mem cannot be"):
            resolve({f"{VIEW}spillable.mem": memory})


def test_a_root_of_no_known_kind_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--root", "gopher://x/y", "--port", "0"]) != 0
    assert "gopher" in capsys.readouterr().err


def test_a_folder_is_served_by_its_full_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert full_root("lake", {}) == str(tmp_path / "lake")
    assert full_root("~/lake", {}) == "/home/me/lake"
    assert full_root("file:///lake", {}) == "file:///lake"


@pytest.mark.parametrize("said", ["rocksdb", "embedded_kv_store", "EMBEDDED_KV_STORE"])
def test_stores_are_named_as_hudi_names_them_too(said: str) -> None:
    parser = ArgumentParser()
    define(parser)
    assert parser.parse_args(["--root", "lake", "--view-store", said]).view_store == "rocksdb"


def test_how_long_an_answer_may_take_is_what_the_caller_says() -> None:
    assert asked_options("somewhere:1", {TIMEOUT: "2"})[TIMEOUT] == "2"
    assert asked_options(ServerAddress("somewhere", 1, timeout_s=7), {TIMEOUT: "2"})[TIMEOUT] == "7"
