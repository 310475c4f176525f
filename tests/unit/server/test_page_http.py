"""Pages, figures and readiness over HTTP: who may see them, what a browser is told, what is counted."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("uvicorn", reason="needs the extra `server`")

from prometheus_client.parser import text_string_to_metric_families

import hoodie.server.page_http as module
from hoodie.present.page.document import content_policy
from hoodie.server import Service, http, readiness
from hoodie.server.metrics import endpoint_of
from hoodie.server.pages import Pages
from hoodie.testing.env import FakeEnv
from hoodie.testing.http_service import get, listening_service
from hoodie.testing.lake import Lake, row
from hoodie.testing.page_reader import ensure_harmless

TOKEN = "a token of sixteen/and more"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
PAGES = ("/", "/table", "/partition")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(uri=str(tmp_path / "lake"))
    made.upsert(row("a"))
    return made


@pytest.fixture
def port(lake: Lake) -> Iterator[int]:
    with listening_service(Service([lake.uri]), token=TOKEN) as found:
        yield found


def entered(port: int, path: str = "/") -> str:
    """The cookie that somebody gets who tells the token."""
    status, _, headers = get(port, f"{path}{'&' if '?' in path else '?'}token={quote(TOKEN)}")
    assert status == 303
    return headers["set-cookie"]


@pytest.mark.parametrize("path", PAGES)
def test_without_a_token_nothing_is_shown(path: str, lake: Lake, port: int) -> None:
    for asked in (path, f"{path}?basepath={quote(lake.uri)}", f"{path}?token=wrong", f"{path}?token=%ff"):
        status, body, headers = get(port, asked)
        assert status == 401
        assert "set-cookie" not in headers
        page = ensure_harmless(body.decode())
        assert "A token is needed" in page.text(within="h1")
        assert lake.uri not in body.decode()


def test_a_token_in_an_address_becomes_a_cookie_and_leaves_the_address(lake: Lake, port: int) -> None:
    status, body, headers = get(port, f"/table?basepath={quote(lake.uri)}&token={quote(TOKEN)}&order=name")
    assert (status, body) == (303, b"")
    assert headers["location"] == f"/table?basepath={quote(lake.uri, safe='')}&order=name"
    cookie = headers["set-cookie"]
    for said in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"):
        assert said in cookie
    assert "token" not in cookie
    status, body, _ = get(port, headers["location"], {"Cookie": cookie.partition(";")[0]})
    assert status == 200
    assert TOKEN not in body.decode()
    assert get(port, "/table?basepath=" + quote(lake.uri), BEARER)[0] == 200


def test_a_cookie_that_was_made_up_or_is_over_opens_nothing(port: int) -> None:
    name, _, value = entered(port).partition(";")[0].partition("=")
    until, _, signature = value.partition(".")
    for wrong in (
        f"{int(until) + 1}.{signature}",
        f"{until}.{signature[:-1]}x",
        f".{signature}",
        until,
        "²." + signature,
        "",
    ):
        assert get(port, "/", {"Cookie": f"{name}={wrong}".encode().decode("latin-1")})[0] == 401
    assert get(port, "/", {"Cookie": f"other={value}"})[0] == 401
    assert get(port, "/", {"Cookie": f"{name}={value}"})[0] == 200


def test_a_cookie_ends_with_its_time_and_with_the_token(lake: Lake) -> None:
    env = FakeEnv()
    with listening_service(Service([lake.uri], env=env), token=TOKEN) as port:
        cookie = {"Cookie": entered(port).partition(";")[0]}
        assert get(port, "/", cookie)[0] == 200
        env.advance(timedelta(seconds=module.COOKIE_S + 1))
        assert get(port, "/", cookie)[0] == 401
        fresh = {"Cookie": entered(port).partition(";")[0]}
    with listening_service(Service([lake.uri], env=env), token=f"{TOKEN} another") as port:
        assert get(port, "/", fresh)[0] == 401


def test_only_pages_take_the_cookie(lake: Lake, port: int) -> None:
    cookie = {"Cookie": entered(port).partition(";")[0]}
    assert get(port, f"/v1/hoodie/view/slices/all?basepath={quote(lake.uri)}", cookie)[0] == 401
    assert get(port, "/v1/hoodie/view/refresh/?basepath=" + quote(lake.uri), cookie, "POST")[0] == 401
    assert get(port, "/metrics", cookie)[0] == 401
    assert get(port, "/metrics", BEARER)[0] == 200


def test_a_service_without_a_token_takes_it_out_of_addresses_too(lake: Lake) -> None:
    with listening_service(Service([lake.uri])) as port:
        assert get(port, "/")[0] == 200
        status, _, headers = get(port, "/?token=whatever")
        assert (status, headers["location"]) == (303, "/")
        assert "set-cookie" not in headers
        assert get(port, "/metrics")[0] == 200


def test_clients_of_hudi_that_need_no_token_see_no_pages(lake: Lake) -> None:
    with listening_service(Service([lake.uri]), token=TOKEN, allows_hudi_clients=True) as port:
        for path in (*PAGES, "/metrics"):
            assert get(port, path)[0] == 401


def test_a_page_may_load_nothing_and_stands_in_no_frame(lake: Lake, port: int) -> None:
    for path, status in (("/", 200), ("/table?basepath=/nothing", 403), ("/table", 404)):
        found, _, headers = get(port, path, BEARER)
        assert found == status
        assert headers["content-security-policy"] == f"{content_policy()}; frame-ancestors 'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize("path", [*PAGES, "/metrics", "/health"])
def test_pages_only_tell(path: str, lake: Lake, port: int) -> None:
    before = lake.files()
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert get(port, path, BEARER, method)[0] == 405
    assert get(port, path, {**BEARER, "Origin": "http://localhost"})[0] == 403
    assert get(port, path, {**BEARER, "Sec-Fetch-Site": "cross-site"})[0] == 403
    assert lake.files() == before


def test_no_token_is_logged(lake: Lake, port: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        cookie = entered(port)
        get(port, "/table?basepath=/nothing&token=a%20wrong%20token%20that%20is%20long")
        get(port, f"/table?basepath={quote(lake.uri + '/no')}", BEARER)
        get(port, "/", {"Cookie": cookie.partition(";")[0]})
    assert "no page for" in caplog.text
    for secret in (TOKEN, quote(TOKEN), "wrong", cookie.partition("=")[2].partition(";")[0]):
        assert secret not in caplog.text


def test_a_page_that_takes_too_long_is_given_up(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    monkeypatch.setattr(http, "ANSWER_S", 0.3)
    monkeypatch.setattr(Pages, "answer", lambda *_: gate.wait(20))
    with listening_service(Service([lake.uri])) as port:
        status, body, _ = get(port, "/table?basepath=" + quote(lake.uri))
        assert status == 503
        assert "does not answer in time" in ensure_harmless(body.decode()).text()
        assert get(port, "/health")[0] == 200
        gate.set()


def figures(port: int) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = get(port, "/metrics", BEARER)[1].decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_figures_count_requests_tables_and_views(lake: Lake, port: int) -> None:
    get(port, f"/table?basepath={quote(lake.uri)}", BEARER)
    get(port, f"/table?basepath={quote(lake.uri)}", BEARER)
    get(port, "/nothing/at/all")
    get(port, "/v1/hoodie/view/no/such")
    get(port, "/", {"Host": "evil.example"})
    found = figures(port)

    def requests(endpoint: str, status: str) -> float:
        labels = frozenset({("endpoint", endpoint), ("method", "GET"), ("status", status)})
        return found[("hoodie_requests_total", labels)]

    assert requests("/table", "200") == 2
    assert requests("other", "404") == 1
    assert requests("other", "401") == 1
    assert requests("/", "400") == 1
    assert found[("hoodie_request_seconds_count", frozenset({("endpoint", "/table")}))] == 2
    assert found[("hoodie_tables", frozenset())] == 1
    assert found[("hoodie_partitions", frozenset())] == 1
    assert found[("hoodie_views_opened_total", frozenset())] == 1
    assert found[("hoodie_views_loaded_total", frozenset())] == 1
    assert found[("hoodie_views_looks_total", frozenset())] == 1
    assert found[("hoodie_questions", frozenset())] == 0
    assert lake.uri not in get(port, "/metrics", BEARER)[1].decode()


def test_endpoints_are_of_a_short_list() -> None:
    assert endpoint_of("/v1/hoodie/view/slices/all/") == "view/slices/all"
    assert endpoint_of("/v1/hoodie/view/loadpartitions") == "view/loadpartitions"
    assert endpoint_of("/v1/hoodie/marker/create/") == "markers"
    assert {endpoint_of(path) for path in ("/v1/hoodie/view/x", "//", "/table/", "/tableé", "")} == {"other"}


def test_readiness_is_whether_the_roots_can_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "LOOK_EVERY_S", -1.0)
    root = tmp_path / "secret-name"
    root.mkdir()
    with listening_service(Service([str(root), "memory://anything"]), token=TOKEN) as port:
        assert get(port, "/health")[:2] == (200, b'{"status":"ready"}')
        shutil.rmtree(root)
        status, body, _ = get(port, "/health")
        assert status == 503
        assert body == b'{"status":"unready","reason":"1 of 2 roots cannot be reached"}'
        page = get(port, "/", BEARER)[1].decode()
        assert f"{root} cannot be reached: No such file or directory" in page
        assert "No table was found where was looked" in page


def test_a_root_that_nobody_may_list_is_said_by_probe_and_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def denied(path: Any) -> Any:
        if path == str(tmp_path):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    with listening_service(Service([str(tmp_path)])) as port:
        monkeypatch.setattr(os, "scandir", denied)
        assert get(port, "/health")[0] == 503
        assert f"{tmp_path} cannot be reached: Permission denied" in get(port, "/")[1].decode()
