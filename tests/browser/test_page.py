"""The pages of a service in a real Chromium, light and dark, of a table of 100 000 files.

It needs a Chromium on this machine (`apt-get install chromium`, or `CHROMIUM=/path`) and playwright, which `make
test-browser` installs; it is skipped, with the reason, where one of them is missing. That target fails without a
Chromium (`HOODIE_BROWSER_NEEDED`). `HOODIE_PICTURES=docs` puts the pictures there that the documentation shows.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from hoodie.server import Service
from hoodie.testing.http_service import listening_service
from hoodie.testing.lake import Lake, row
from hoodie.testing.large_table import LargeTable

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
NO_CHROMIUM = "there is no Chromium on this machine: apt-get install chromium, or CHROMIUM=/path"
if CHROMIUM is None and "HOODIE_BROWSER_NEEDED" in os.environ:
    raise RuntimeError(NO_CHROMIUM)

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-browser")

TOKEN = "a token of sixteen and more"
PICTURE_BYTES = 300_000
RENAME = """folder => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) walker.currentNode.data = walker.currentNode.data.replaceAll(folder, "/lake");
}"""
HOSTILE = {"hoodie.table.name": "hostile", "hoodie.datasource.write.hive_style_partitioning": "true"}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    LargeTable(folder / "trips", files=100_000, partitions=365, now=datetime.now(UTC)).make()
    hostile = Lake(options=HOSTILE, uri=str(folder / "hostile"))
    hostile.upsert(row("a", part="<img src=x onerror=document.title='run'>"), row("b", part="<b>bold"))
    return folder


@pytest.fixture(scope="module")
def port(root: Path) -> Iterator[int]:
    with listening_service(Service([str(root)]), token=TOKEN) as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@contextmanager
def reader(chromium: Any, port: int, scheme: str = "light") -> Iterator[Any]:
    """A reader who knows the token. Whatever the browser complains of, or asks of another place, fails the test."""
    context = chromium.new_context(color_scheme=scheme, viewport={"width": 1200, "height": 900})
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: complaints.append(asked.url) if f":{port}/" not in asked.url else None)
    page.set_default_timeout(120_000)
    page.goto(f"http://localhost:{port}/?token={quote(TOKEN)}")
    assert page.url == f"http://localhost:{port}/"
    yield page
    context.close()
    assert complaints == []


def table_of(root: Path, port: int, name: str = "trips") -> str:
    return f"http://localhost:{port}/table?basepath={quote(str(root / name))}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_of_100_000_files_is_seen_at_a_glance(
    chromium: Any, root: Path, port: int, scheme: str, tmp_path: Path
) -> None:
    with reader(chromium, port, scheme) as page:
        page.click("text=trips")
        assert page.inner_text("h1").startswith("trips")
        tiles = page.inner_text(".tiles")
        assert "365 partitions" in tiles
        assert "1 died or hang" in tiles
        assert "needs attention" in page.inner_text("h1")
        assert page.locator("tr").count() < 400
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert light == ("rgb(246, 247, 249)" if scheme == "light" else "rgb(20, 23, 27)")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        picture = Path(os.environ.get("HOODIE_PICTURES", tmp_path)) / f"page-{scheme}.png"
        page.evaluate(RENAME, str(root))
        page.screenshot(path=picture, clip={"x": 0, "y": 0, "width": 1200, "height": 1340}, full_page=True)
        assert 10_000 < picture.stat().st_size < PICTURE_BYTES


def test_the_timeline_zooms_and_goes_by_the_keyboard(chromium: Any, root: Path, port: int) -> None:
    with reader(chromium, port) as page:
        page.goto(table_of(root, port))

        def shown() -> int:
            return int(page.evaluate("document.querySelectorAll('g.i:not([style*=none])').length"))

        every = shown()
        page.click("button:text('Zoom in')")
        assert shown() < every
        page.focus("svg.timeline")
        page.keyboard.press("0")
        assert shown() == every
        page.keyboard.press("Home")
        assert "BULK_INSERT" in page.inner_text("#told")
        page.keyboard.press("ArrowRight")
        assert "UPSERT" in page.inner_text("#told")
        page.keyboard.press("+")
        page.keyboard.press("+")
        assert shown() < every
        page.click("button:text('To scale of time')")
        assert page.get_attribute("button:text('To scale of time')", "aria-pressed") == "true"
        assert shown() == every
        page.locator("g.failed .act").last.click()
        assert "dead" in page.inner_text("#told")


def test_partitions_are_walked_in_parts_down_to_file_groups(chromium: Any, root: Path, port: int) -> None:
    with reader(chromium, port) as page:
        page.goto(table_of(root, port))
        page.click("text=most logs")
        page.click("#partitions >> text=after →")
        assert "51 to 100 of 365 partitions" in page.inner_text("#partitions")
        page.locator("#partitions td a").first.click()
        assert "of 27" in page.inner_text("#groups .pager")
        page.click("#groups >> text=after →")
        assert "51 to 100 of 27" in page.inner_text("#groups .pager")


def test_names_run_nothing(chromium: Any, root: Path, port: int) -> None:
    with reader(chromium, port) as page:
        page.goto(table_of(root, port, "hostile"))
        page.wait_for_timeout(200)
        assert page.title().startswith("hostile")
        assert page.locator("main img").count() == 0
        assert "<b>bold" in page.inner_text("#partitions")
        page.click("#partitions >> text=onerror")
        assert "onerror" in page.inner_text("h1")


def test_without_its_script_a_page_says_the_same(chromium: Any, root: Path, port: int) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{table_of(root, port)}&token={quote(TOKEN)}")
    assert "token" not in page.url
    assert page.locator("g.i").count() > 30
    assert not page.is_visible("#timeline-tools")
    assert "BULK_INSERT" in page.text_content("#timeline")
    context.close()


def test_who_knows_no_token_is_asked_for_it(chromium: Any, root: Path, port: int) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(f"http://localhost:{port}/")
    page.fill("input[name=token]", TOKEN)
    page.click("text=Open")
    assert page.url == f"http://localhost:{port}/"
    assert "2 tables" in page.inner_text("main")
    assert page.evaluate("document.cookie") == ""
    context.close()


def test_the_report_is_a_file_that_works_alone(chromium: Any, root: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    Lake(uri=str(root / "hostile")).table.report(str(file))
    context = chromium.new_context(offline=True)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file.as_uri())
    page.click("button:text('Zoom in')")
    assert "hostile" in page.inner_text("h1")
    assert complaints == []
    context.close()
