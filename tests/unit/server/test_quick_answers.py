"""Answers about views are given again without the HTTP library while their view is the newest, byte for byte as it gave
them, and never otherwise.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

pytest.importorskip("uvicorn", reason="needs the extra `server`")

import hoodie.server.http as module
import hoodie.server.service as service_module
from hoodie.remote.known_timeline import told
from hoodie.server import Answer, Service, quick_answers
from hoodie.server.plain_requests import PlainRequest, plain_request
from hoodie.server.quick_answers import MAX_ANSWER_BYTES, OBJECTS_BYTES, KeptAnswer, QuickAnswers
from hoodie.server.routes import ROUTES
from hoodie.server.stores.spill import SpillStores
from hoodie.server.wake_ups import WakeUps
from hoodie.state.handle import timeline_of
from hoodie.testing.http_service import get, listening_service
from hoodie.testing.lake import Lake, row

TOKEN = "a token of sixteen and more"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(uri=str(tmp_path / "lake"))
    made.upsert(*(row(f"k{number}", part=f"p{number}") for number in range(5)))
    return made


@pytest.fixture
def by_library(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of requests that the service was asked to answer."""
    found: list[str] = []
    answer = Service.answer

    def heard(self: Service, method: str, path: str, parameters: Mapping[str, str]) -> Answer:
        found.append(path)
        return answer(self, method, path, parameters)

    monkeypatch.setattr(Service, "answer", heard)
    return found


@pytest.fixture
def port(lake: Lake) -> Iterator[int]:
    with listening_service(Service([lake.uri])) as found:
        yield found


def target(lake: Lake, path: str = "slices/partition/latest/", **more: str) -> str:
    known = told(timeline_of(lake.handle()))
    return f"/v1/hoodie/view/{path}?" + urlencode({"basepath": lake.uri, "partition": "p1", **known, **more})


@pytest.mark.parametrize("encodings", ["identity", "gzip,deflate"])
@pytest.mark.parametrize(
    "path",
    ["slices/partition/latest/", "filegroups/all/partition/", "slices/all/beforeoron/latest/", "files/partition"],
)
def test_the_second_answer_is_the_first_one_and_the_service_is_not_asked(
    path: str, encodings: str, lake: Lake, port: int, by_library: list[str]
) -> None:
    lake.write("bulk_insert", [row(f"m{number}", part="p1") for number in range(3)])
    lake.write("bulk_insert", [row(f"n{number}", part="p1") for number in range(3)])
    asked = target(lake, path, maxinstant="9" * 17)
    with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        found = []
        for _ in range(3):
            connection.request("GET", asked, headers={"Accept-Encoding": encodings})
            answer = connection.getresponse()
            found.append((answer.status, answer.read(), [one for one in answer.getheaders() if one[0] != "date"]))
    assert found[0] == found[1] == found[2]
    assert (found[0][0], len(by_library)) == (200, 1)
    if ("content-encoding", "gzip") in found[0][2]:
        assert gzip.decompress(found[0][1]) == get(port, asked)[1]


@pytest.mark.parametrize("encodings", ["identity", "gzip,deflate"])
@pytest.mark.parametrize("path", sorted(name for name, route in ROUTES.items() if route.covers == "partition"))
def test_what_is_known_of_a_partition_is_answered_at_once_as_by_the_library(
    path: str, encodings: str, lake: Lake, port: int, by_library: list[str]
) -> None:
    lake.write("bulk_insert", [row(f"m{number}", part="p1") for number in range(3)])
    lake.upsert(row("k1", part="p1"))
    (replaced,) = {file_id for partition, file_id in lake.live() if partition == "p3"}
    lake.table.delete_partition("p3")
    get(port, target(lake), method="GET")
    get(port, target(lake, partition="p3"))
    by_library.clear()
    instant = timeline_of(lake.handle()).instants[0].requested
    times = {"maxinstant": "9" * 17, "mininstant": "0", "instant": instant}
    headers = {"Accept-Encoding": encodings}
    for partition in ("p1", "p3"):
        asked = target(lake, path, partition=partition, includependingcompaction="true", fileid=replaced, **times)
        at_once = _whole(port, asked, headers)
        assert not by_library
        assert at_once == _whole(port, asked, {**headers, "X-More": "what only the library understands"})
        assert len(by_library) == 1
        assert at_once[0] == 200
        by_library.clear()


def test_what_is_not_known_or_is_long_or_refused_is_left_to_the_library(
    lake: Lake, port: int, by_library: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known, behind = target(lake), target(lake, lastinstantts="9" * 17)
    get(port, known)
    by_library.clear()
    asked = [
        (target(lake, partition="p2"), 200),
        (target(lake, basepath=f"{lake.uri}-other"), 403),
        (target(lake, partition="../p1"), 400),
        (target(lake, "slices/merged/beforeoron/latest/"), 400),
        (target(lake, "slices/none/"), 404),
        (target(lake, timelinehash="another"), 400),
        (target(lake, refreshoff="true"), 200),
    ]
    assert [get(port, one)[0] for one, _ in asked] == [status for _, status in asked]
    assert len(by_library) == len(asked)
    assert get(port, behind)[0] == 400
    monkeypatch.setattr(service_module, "MAX_FILES_AT_ONCE", 0)
    assert get(port, target(lake, "slices/all/"))[0] == 200
    assert len(by_library) == len(asked) + 2


def test_no_disk_and_no_path_is_asked_for_an_answer_at_once(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service([lake.uri])
    parameters = dict(parse_qsl(urlsplit(target(lake)).query))
    path = "/v1/hoodie/view/slices/partition/latest/"
    assert service.answer_at_once(path, parameters) is None  # nobody asked about the table before
    known = service.answer("GET", path, parameters)
    monkeypatch.setattr(service_module, "place_of", _hangs)
    assert service.answer_at_once(path, parameters) == known
    assert service.answer_at_once(path, {**parameters, "basepath": f"{lake.uri}/"}) is None
    monkeypatch.undo()
    monkeypatch.setattr(service_module, "PLACE_S", 0.0)  # a link may have been turned since
    service.answer("GET", path, parameters)
    assert service.answer_at_once(path, parameters) is None
    monkeypatch.undo()
    on_disk = Service([lake.uri], stores=SpillStores(str(tmp_path), 1 << 20))
    assert on_disk.answer("GET", path, parameters) == known
    assert on_disk.answer_at_once(path, parameters) is None
    on_disk.close()


def _hangs(_: str) -> str:
    raise AssertionError("a file system was asked")


def test_what_fails_at_once_is_answered_by_the_library(
    lake: Lake, port: int, by_library: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Service, path: str, parameters: Mapping[str, str]) -> Answer | None:
        raise RuntimeError("not foreseen")

    monkeypatch.setattr(Service, "answer_at_once", fails)
    assert get(port, target(lake))[0] == 200
    assert len(by_library) == 1


def test_a_long_request_is_left_to_the_library(lake: Lake, port: int, by_library: list[str]) -> None:
    get(port, target(lake))
    by_library.clear()
    assert get(port, target(lake, more="x" * 4000))[0] == 200
    assert not by_library
    assert get(port, target(lake, more="x" * 4000, most="x" * 4000))[0] == 200
    assert len(by_library) == 1


@pytest.mark.parametrize("host", ["localhost/v1/hoodie/view/slices/all?x=", "evil@localhost", "localhost:x"])
def test_a_host_is_a_name_with_a_port_or_without(host: str, lake: Lake, port: int) -> None:
    assert get(port, target(lake), {"Host": "localhost:1"})[0] == 200
    assert get(port, target(lake), {"Host": "[::1]:1"})[0] == 200
    assert get(port, target(lake), {"Host": host, "X-More": "b"})[0] == 400


def test_one_answer_that_cannot_be_given_keeps_no_other(caplog: pytest.LogCaptureFixture) -> None:
    found: list[int] = []

    def fails() -> None:
        raise RuntimeError("gone")

    async def run() -> None:
        wake_ups, answer, loop = WakeUps(), Future[bool](), asyncio.get_running_loop()
        for then in (fails, lambda: found.append(1)):
            wake_ups.call(loop, answer, then)
        answer.set_result(True)
        await asyncio.sleep(0.05)

    asyncio.run(run())
    assert found == [1]
    assert "could not be given" in caplog.text


def test_who_serves_a_writer_does_not_serve_its_table_to_all(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    service = Service([str(tmp_path / "root")])
    handle = lake.handle()
    service.known_at(handle, timeline_of(handle), ["p1"], 1.0)
    with listening_service(service) as port:
        assert get(port, target(lake))[0] == 403


def _whole(port: int, asked: str, headers: dict[str, str]) -> tuple[int, bytes, list[tuple[str, str]]]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request("GET", asked, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), [one for one in answer.getheaders() if one[0] != "date"]


def test_after_a_commit_the_service_is_asked_again(lake: Lake, port: int, by_library: list[str]) -> None:
    before = target(lake)
    first = get(port, before)[1]
    assert get(port, before)[1] == first
    lake.upsert(row("more", part="p1"))
    # Nobody told the server: what was true for who does not know of the commit either still is, as without a cache.
    assert get(port, before)[1] == first
    assert len(by_library) == 1
    assert get(port, target(lake))[1] != first
    assert get(port, before)[0] == 400  # it is behind now, and told so
    assert len(by_library) == 3


def test_what_is_forgiven_or_about_the_timeline_is_looked_at_each_time(
    lake: Lake, port: int, by_library: list[str]
) -> None:
    for path in ("timeline/instants/all/", "logcompactions/pending/", "clustering/pending/"):
        by_library.clear()
        assert [get(port, target(lake, path))[0] for _ in range(3)] == [200] * 3
        assert len(by_library) == 3, path
    lake.upsert(row("k1", part="p1"))
    lake.upsert(row("k1", part="p1"))
    before = target(lake)
    policy = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    assert lake.table.services.clean(**policy) is not None
    get(port, target(lake))
    by_library.clear()
    assert [get(port, before)[0] for _ in range(3)] == [200] * 3
    assert len(by_library) == 3


def test_a_refresh_ends_what_is_kept(lake: Lake, port: int, by_library: list[str]) -> None:
    assert get(port, target(lake))[0] == 200
    assert get(port, target(lake, "refresh/"), method="POST")[0] == 200
    assert get(port, target(lake))[0] == 200
    assert len(by_library) == 3


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "elsewhere"}, 400),
        ({"Origin": "http://localhost"}, 403),
        ({"Content-Length": "2"}, 413),
        ({"Authorization": "Bearer another"}, 401),
        ({"Authorization": ""}, 401),
    ],
)
def test_what_is_refused_is_refused_for_a_kept_answer_too(headers: dict[str, str], status: int, lake: Lake) -> None:
    tells = {"Authorization": f"Bearer {TOKEN}"}
    with listening_service(Service([lake.uri]), token=TOKEN) as port:
        assert [get(port, target(lake), tells)[0] for _ in range(2)] == [200, 200]
        assert get(port, target(lake), {**tells, **headers})[0] == status
        assert get(port, target(lake), tells, method="PUT")[0] == 405


def test_requests_in_one_piece_are_answered_in_order_and_all_are_counted(lake: Lake, port: int) -> None:
    asked = f"GET {target(lake)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    body = get(port, target(lake))[1]
    last = f"GET {target(lake)} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(asked)
        assert connection.recv(1 << 20).endswith(body)
        connection.sendall(asked * 3 + last)
        heard = b""
        while more := connection.recv(1 << 20):
            heard += more
    assert heard.count(body) == heard.count(b"HTTP/1.1 200 OK") == 4
    text = get(port, "/metrics")[1].decode()
    path = "view/slices/partition/latest"
    assert f'hoodie_requests_total{{endpoint="{path}",method="GET",status="200"}} 6.0' in text


def test_the_time_that_an_answer_at_once_takes_is_measured(
    lake: Lake, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    get(port, target(lake))
    at_once = Service.answer_at_once

    def slowly(self: Service, path: str, parameters: Mapping[str, str]) -> Answer | None:
        time.sleep(0.3)
        return at_once(self, path, parameters)

    monkeypatch.setattr(Service, "answer_at_once", slowly)
    assert get(port, target(lake, maxinstant="1"))[0] == 200
    text = get(port, "/metrics")[1].decode()
    (spent,) = re.findall(r'^hoodie_request_seconds_sum\{endpoint="view/slices/partition/latest"\} (.+)$', text, re.M)
    assert float(spent) >= 0.3


def test_who_does_not_read_is_hung_up_on(lake: Lake, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRITE_S", 0.4)
    monkeypatch.setattr(Service, "answer", _large)
    asked = f"GET {target(lake)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    assert get(port, target(lake))[0] == 200
    with socket.create_connection(("127.0.0.1", port), timeout=20) as lazy:
        with suppress(ConnectionError):
            for _ in range(8):
                lazy.sendall(asked)
                time.sleep(0.3)
        heard = 0
        with suppress(ConnectionError):
            while part := lazy.recv(1 << 20):
                heard += len(part)
        assert heard < 8 * MAX_ANSWER_BYTES
    assert get(port, target(lake))[0] == 200


def _large(self: Service, method: str, path: str, parameters: Mapping[str, str]) -> Answer:
    return Answer(200, b"x" * MAX_ANSWER_BYTES, is_still=lambda: True)


def _asked(name: str, packed: str = "") -> PlainRequest:
    head = f"GET /{name} HTTP/1.1\r\nHost: h\r\nAccept-Encoding: {packed}\r\n\r\n"
    found = plain_request(head.encode())
    assert found is not None
    return found


def test_short_answers_are_bounded_by_what_their_objects_take() -> None:
    answers = QuickAnswers(max_bytes=10 * OBJECTS_BYTES)
    for number in range(50):
        answers.keep(f"/{number}".encode(), "", KeptAnswer((), b"", lambda: True))
    assert sum(answers.known(_asked(str(number))) is not None for number in range(50)) == 9


def test_what_is_kept_is_bounded_and_the_oldest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_answers, "OBJECTS_BYTES", 0)
    answers, still = QuickAnswers(max_bytes=350), {"a", "b", "c"}
    for name in ("a", "b", "c"):
        answers.keep(f"/{name}".encode(), "", KeptAnswer((), b"x" * 100, lambda name=name: name in still))  # type: ignore[misc]
    assert answers.known(_asked("a")) is not None
    assert answers.known(_asked("a", "gzip")) is None
    answers.keep(b"/d", "", KeptAnswer((), b"x" * 100, lambda: True))
    assert [answers.known(_asked(name)) is not None for name in "abcd"] == [True, False, True, True]
    answers.keep(b"/e", "", KeptAnswer((), b"x" * 400, lambda: True))
    assert answers.known(_asked("e")) is None
    still.clear()
    assert [answers.known(_asked(name)) is not None for name in "acd"] == [False, False, True]
    answers.keep(b"/f", "", KeptAnswer((), b"x" * 240, lambda: True))
    assert [answers.known(_asked(name)) is not None for name in "df"] == [True, True]
