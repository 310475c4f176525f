"""The service over HTTP: clients get answers, everybody else a 4xx; it starts and stops."""

from __future__ import annotations

import asyncio
import gzip
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

pytest.importorskip("uvicorn", reason="needs the extra `server`")

import hoodie.server.http as module
from hoodie.cli import serve
from hoodie.cli.arguments import parse_options
from hoodie.errors import Invalid, Unavailable
from hoodie.fileview import FolderView
from hoodie.remote import Connection, RemoteView, ServerAddress
from hoodie.remote.files_arrow import MEDIA_TYPE, parse_files
from hoodie.remote.known_timeline import told
from hoodie.server import Answer, Service
from hoodie.server.http import Listening, app_of, bound_socket, ensure_guarded, named_hosts
from hoodie.server.turns import PER_TABLE
from hoodie.state.handle import timeline_of
from hoodie.testing.http_service import get, listening_service
from hoodie.testing.lake import Lake, row

VIEW = "hoodie.filesystem.view."

TOKEN = "a token of sixteen and more"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(uri=str(tmp_path / "lake"))
    made.upsert(*(row(f"k{number}", part=f"p{number}") for number in range(5)))
    return made


def running(lake: Lake, **listening: object) -> AbstractContextManager[int]:
    return listening_service(Service([lake.uri]), **listening)


@pytest.fixture
def port(lake: Lake) -> Iterator[int]:
    with running(lake) as found:
        yield found


def slices(lake: Lake, **more: str) -> str:
    known = told(timeline_of(lake.handle()))
    return "/v1/hoodie/view/slices/all/beforeoron/latest/?" + urlencode(
        {"basepath": lake.uri, "maxinstant": "9", **known, **more}
    )


def test_our_client_reads_its_view(lake: Lake, port: int) -> None:
    timeline = timeline_of(lake.handle())
    view = RemoteView(Connection(ServerAddress("127.0.0.1", port)), lake.storage, timeline)
    assert view.load().slices_at() == FolderView(lake.storage, timeline).load().slices_at()


def test_files_of_all_partitions_come_as_one_arrow_stream(lake: Lake, port: int) -> None:
    known = {"basepath": lake.uri, **told(timeline_of(lake.handle()))}
    status, body, headers = get(port, f"/v1/hoodie/view/files/all/?{urlencode(known)}")
    assert (status, headers["content-type"], headers.get("content-encoding")) == (200, MEDIA_TYPE, None)
    assert {name: [*files.items()] for name, files in parse_files(body).items()} == {
        files.partition: [(one.path.rpartition("/")[2], one.size_bytes) for one in files.everything]
        for files in FolderView(lake.storage, timeline_of(lake.handle())).files()
    }
    assert list(parse_files(get(port, f"/v1/hoodie/view/files/partitions/?{urlencode(known)}")[1])) == [
        f"p{number}" for number in range(5)
    ]
    assert get(port, f"/v1/hoodie/view/files/all/?{urlencode({**known, 'timelinehash': 'other'})}")[0] == 400


def test_a_server_without_arrow_streams_is_asked_for_json(
    lake: Lake, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hoodie.server.service.FILES", {})
    timeline = timeline_of(lake.handle())
    connection = Connection(ServerAddress("127.0.0.1", port))
    view = RemoteView(connection, lake.storage, timeline)
    assert view.columns() is None
    assert view.load().slices_at() == FolderView(lake.storage, timeline).load().slices_at()


def test_answers_are_plain_text_and_packed_for_who_can_unpack_them(lake: Lake, port: int) -> None:
    status, plain, headers = get(port, slices(lake))
    assert (status, headers["content-type"].partition(";")[0]) == (200, "text/plain")
    status, packed, headers = get(port, slices(lake), {"Accept-Encoding": "gzip,deflate"})
    assert (status, headers["content-encoding"]) == (200, "gzip")
    assert gzip.decompress(packed) == plain
    assert b"server" not in {name.lower().encode() for name in headers}


def test_long_answers_are_not_packed_in_the_thread_that_answers_everybody(
    lake: Lake, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def heard(*arguments: int) -> bytes:
        threads.append(threading.current_thread().name)
        return compress(*arguments)

    compress = zlib.compress
    monkeypatch.setattr("hoodie.server.packing.zlib.compress", heard)
    accepts = {"Accept-Encoding": "gzip"}
    for path in (slices(lake), f"/table?basepath={quote(lake.uri)}"):
        assert get(port, path, accepts)[2]["content-encoding"] == "gzip"
    assert threads == ["timeline service"] * 2


def test_it_says_hello_and_that_it_lives(port: int) -> None:
    assert get(port, "/")[0] == 200
    assert get(port, "/health")[:2] == (200, b'{"status":"ready"}')


def test_long_requests_are_answered_and_endless_ones_are_not(lake: Lake, port: int) -> None:
    many = "[" + ",".join(f'"partition={number:05d}"' for number in range(2000)) + "]"
    query = urlencode({"basepath": lake.uri, "partitions": many})
    assert get(port, f"/v1/hoodie/view/loadpartitions/?{query}", method="POST")[0] == 200
    try:
        status, *_ = get(port, slices(lake, instants="1" * 2 * module.MAX_HEAD_BYTES))
    except ConnectionError:  # it hangs up while the request is still being sent
        status = 400
    assert status == 400
    assert get(port, "/health")[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example", "["])
def test_a_request_to_another_name_is_refused(host: str, lake: Lake, port: int) -> None:
    assert get(port, slices(lake), {"Host": host})[0] == 400


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:26754", "[::1]:80"])
def test_its_own_names_are_known(host: str, lake: Lake, port: int) -> None:
    assert get(port, slices(lake), {"Host": host})[0] == 200


def test_a_web_page_may_not_ask(lake: Lake, port: int) -> None:
    assert get(port, slices(lake), {"Origin": "http://localhost"})[0] == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_no_page_of_another_site_may_ask(site: str, lake: Lake, port: int) -> None:
    assert get(port, slices(lake), {"Sec-Fetch-Site": site})[0] == 403
    assert get(port, slices(lake), {"Sec-Fetch-Site": "none"})[0] == 200


@pytest.mark.parametrize("path", ["/", "/table", "/partition", "/metrics", "/health", "/nothing"])
def test_every_path_is_guarded(path: str, port: int) -> None:
    assert get(port, path, {"Host": "evil.example"})[0] == 400


def test_names_are_known_in_any_case() -> None:
    listening = Listening("Lake.Example", names=("OTHER",))
    assert listening.is_known_as("lake.example:80")
    assert listening.is_known_as("LAKE.example")
    assert listening.is_known_as("Other")


@pytest.mark.parametrize("body", [b"Content-Length: 1000000", b"Transfer-Encoding: chunked"])
@pytest.mark.parametrize("path", [b"/v1/hoodie/view/refresh/", b"/nothing"])
def test_a_body_is_refused_and_not_waited_for(body: bytes, path: bytes, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sender:
        sender.sendall(b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + body + b"\r\n\r\n")
        heard = b""
        while part := sender.recv(4096):
            heard += part
    assert heard.startswith(b"HTTP/1.1 413")


def test_who_does_not_read_is_hung_up_on(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRITE_S", 0.2)
    monkeypatch.setattr(Service, "answer", lambda *_: Answer(200, bytes(30_000_000)))
    with running(lake) as port, socket.create_connection(("127.0.0.1", port), timeout=10) as lazy:
        lazy.sendall(b"GET /v1/hoodie/view/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(1.5)
        heard = 0
        with suppress(ConnectionError):
            while part := lazy.recv(1 << 20):
                heard += len(part)
        assert heard < 30_000_000


def test_a_table_that_hangs_stops_no_other(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 1.0)
    gate = threading.Event()
    real = Service.answer

    def answer(service: Service, method: str, path: str, asked: Mapping[str, str]) -> Answer:
        if asked["basepath"] == "hangs":
            gate.wait(30)
        return real(service, method, path, asked)

    monkeypatch.setattr(Service, "answer", answer)
    with running(lake) as port:
        found: list[int] = []
        hanging = "/v1/hoodie/view/slices/all?basepath=hangs"
        threads = [threading.Thread(target=lambda: found.append(get(port, hanging)[0])) for _ in range(50)]
        for thread in threads:
            thread.start()
        assert get(port, slices(lake))[0] == 200
        for thread in threads:
            thread.join(20)
        assert found == [503] * 50
        assert sum(thread.name == "timeline service" for thread in threading.enumerate()) <= PER_TABLE
        gate.set()
        assert get(port, hanging)[0] == 400


def test_who_asks_must_tell_the_token(lake: Lake) -> None:
    with running(lake, token=TOKEN) as port:
        assert get(port, slices(lake))[0] == 401
        assert get(port, slices(lake), {"Authorization": f"Bearer {TOKEN}x"})[0] == 401
        assert get(port, slices(lake), {"Authorization": f"Bearer {TOKEN}"})[0] == 200
        assert get(port, "/health")[0] == 200
        view = RemoteView(Connection(ServerAddress("127.0.0.1", port, TOKEN)), lake.storage, timeline_of(lake.handle()))
        assert len(view.partitions()) == 5
        nobody = RemoteView(Connection(ServerAddress("127.0.0.1", port)), lake.storage, timeline_of(lake.handle()))
        with pytest.raises(Unavailable, match="token"):
            nobody.partitions()


def test_clients_of_hudi_ask_from_this_machine_without_the_token(lake: Lake) -> None:
    with running(lake, token=TOKEN, allows_hudi_clients=True) as port:
        assert get(port, slices(lake))[0] == 200
        assert get(port, slices(lake), {"Authorization": f"Bearer {TOKEN}"})[0] == 200
        assert get(port, slices(lake), {"Authorization": f"Bearer {TOKEN}x"})[0] == 401
        for told_by_proxy in ("Forwarded", "Via", "X-Forwarded-For", "X-Real-IP"):
            assert get(port, slices(lake), {told_by_proxy: "127.0.0.1"})[0] == 401


def test_nobody_else_does() -> None:
    listening = Listening("0.0.0.0", token=TOKEN, allows_hudi_clients=True)
    app = app_of(Service(["/"]), listening)
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": "/v1/hoodie/view/slices/all",
        "query_string": b"basepath=/nothing",
        "headers": [(b"host", b"localhost")],
    }
    statuses = []

    async def ask(client: str) -> None:
        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            statuses.append(message.get("status"))

        await app({**scope, "client": (client, 1)}, receive, send)

    asyncio.run(ask("192.0.2.1"))
    assert statuses[0] == 401
    statuses.clear()
    asyncio.run(ask("127.0.0.1"))
    assert statuses[0] == 404


def test_who_never_ends_a_request_is_hung_up_on(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEAD_S", 0.3)
    monkeypatch.setattr(module, "KEEP_ALIVE_S", 1)
    with running(lake) as port:
        for start in (b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET /"):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
                slow.sendall(start)
                heard = b""
                while part := slow.recv(4096):
                    heard += part
                assert heard == b"" or heard.count(b"HTTP/1.1 200") == 1
        assert get(port, "/health")[0] == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_are_refused(method: str, lake: Lake, port: int) -> None:
    assert get(port, slices(lake), method=method)[0] == 405


def test_another_address_needs_a_token_or_a_word() -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        ensure_guarded(Listening(host))
    with pytest.raises(Invalid, match="could see"):
        ensure_guarded(Listening("0.0.0.0"))
    ensure_guarded(Listening("0.0.0.0"), without_token=True)
    ensure_guarded(Listening("0.0.0.0", token=TOKEN))
    with pytest.raises(Invalid, match="characters"):
        ensure_guarded(Listening(token="short"))


def test_names_are_names() -> None:
    assert named_hosts(["Lake.example"]) == ("lake.example",)
    for name in ("*", "*.example", "", "a:80", "http://a"):
        with pytest.raises(Invalid, match="no name"):
            named_hosts([name])


def test_a_port_that_is_taken_is_said(port: int) -> None:
    with pytest.raises(Unavailable, match=f"127.0.0.1:{port}"):
        bound_socket(Listening(port=port))


@pytest.mark.parametrize("port", [-1, 65536, 99999])
def test_a_port_that_cannot_be_is_said(port: int) -> None:
    with pytest.raises(Invalid, match="no port"):
        bound_socket(Listening(port=port))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--root", "{root}/nothing"], "There is no folder"),
        (["--root", "{root}", "--token-file", "{root}/nothing"], "token cannot be read"),
        (["--root", "{root}", "--port", "99999"], "no port"),
        (["--root", "{root}", "--allow-hudi-clients"], "about a token"),
        (["--root", ""], "--root is empty"),
        (["--root", "{root}", "-o", f"{VIEW}type=remote_only"], "asks another server"),
        (["--root", "{root}", "-o", f"{VIEW}type=REMOTE_FIRST"], "asks another server"),
        (["--root", "{root}", "--view-store", "rocksdb", "-o", f"{VIEW}type=SPILLABLE_DISK"], "contradict each other"),
        (
            ["--root", "{root}", "--view-store", "disk", "--memory", "2", "-o", f"{VIEW}spillable.mem=5"],
            "contradict each other",
        ),
        (["--root", "{root}", "--memory", "100"], "--memory is about views on disk"),
        (["--root", "{root}", "--marker-batch-threads", "5"], "--marker-batch-threads is about markers"),
        (["--root", "{root}", "--conflict-detector-initial-delay-ms", "0"], "is about markers"),
        (["--root", "{root}", "-o", "hoodie.table.name=x"], "no effect on a service"),
        (["--root", "{root}", "--host", "http://127.0.0.1"], "'http://127.0.0.1' is no host"),
        (["--root", "{root}", "--host", "300.1.1.1"], "is no host"),
        (["--root", "{root}", "--host", "localhost:26754"], "--port says the port"),
    ],
)
def test_the_command_says_what_is_wrong(arguments: list[str], said: str, tmp_path: Path) -> None:
    parser = ArgumentParser()
    serve.define(parser)
    with pytest.raises(Invalid, match=said):
        serve.run(parser.parse_args([one.replace("{root}", str(tmp_path)) for one in arguments]))


def test_arguments_that_say_the_same_as_an_option_get_along(tmp_path: Path) -> None:
    parser = ArgumentParser()
    serve.define(parser)
    options = ["-o", f"{VIEW}type=spillable_disk", "-o", f"{VIEW}spillable.mem={2 << 20}"]
    said = parser.parse_args(["--root", str(tmp_path), "--view-store", "disk", "--memory", "2", *options])
    config = serve._view_config(parse_options(said.option), said)
    assert (config.text(f"{VIEW}type"), config.integer(f"{VIEW}spillable.mem")) == ("SPILLABLE_DISK", 2 << 20)


def test_a_host_of_another_machine_is_no_matter_of_the_port() -> None:
    with pytest.raises(Unavailable, match="Choose a --host"):
        bound_socket(Listening("192.0.2.1", 0))
    with bound_socket(Listening(port=0)) as taken, pytest.raises(Unavailable, match="Choose another --port"):
        bound_socket(Listening(port=taken.getsockname()[1]))


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    def start(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "hoodie.cli", "serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def test_the_command_serves_until_it_is_stopped(lake: Lake, command: Callable[..., subprocess.Popen[str]]) -> None:
    process = command("--root", lake.uri, "--port", "0")
    assert process.stdout is not None
    said = process.stdout.readline()
    port = int(said.rpartition(":")[2])
    assert get(port, slices(lake))[0] == 200
    assert get(port, f"/table?basepath={lake.uri}/none")[0] == 404
    process.send_signal(signal.SIGTERM)
    said, errors = process.communicate(timeout=30)
    assert said == "stopped\n"
    assert re.search(r"^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\S* WARNING hoodie\.server", errors, re.MULTILINE)
    assert process.returncode == -signal.SIGTERM


def test_the_command_refuses_to_be_open_to_all(lake: Lake, command: Callable[..., subprocess.Popen[str]]) -> None:
    process = command("--root", lake.uri, "--host", "0.0.0.0", "--port", "0")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "--token-file" in errors


def test_an_answer_in_two_pieces_does_not_wait_for_an_acknowledgement() -> None:
    with bound_socket(Listening(port=0)) as place, socket.create_connection(place.getsockname()[:2]):
        accepted, _ = place.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
