"""Pages of a service: what each shows, which tables it opens, what it reads again, and that it tells nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import hoodie.server.pages as module
from hoodie.env import SystemEnv
from hoodie.server import Service, discovery
from hoodie.server.discovery import find_tables
from hoodie.server.page_view import page_view
from hoodie.server.pages import HOME, PARTITION, TABLE, Pages
from hoodie.services.overview.group_sizes import group_sizes
from hoodie.state.handle import timeline_of
from hoodie.storage import open_storage
from hoodie.testing.lake import Lake, logged_lake, row
from hoodie.testing.page_reader import PageReader, ensure_harmless
from hoodie.timeline import instant_path


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(9, {**logged_lake(9).options, "hoodie.table.name": "trips"}, uri=str(tmp_path / "lake" / "trips"))
    made.upsert(row("a"), row("b", part="q"))
    made.upsert(row("a", "new", 2))
    return made


@pytest.fixture
def root(lake: Lake) -> Path:
    return Path(lake.uri).parent


@pytest.fixture
def pages(root: Path) -> Pages:
    return Pages(Service([str(root)]))


def read(pages: Pages, path: str, status: int = 200, **parameters: str) -> PageReader:
    found = pages.answer(path, parameters)
    assert found.status == status, found.body
    return ensure_harmless(found.body.decode())


def followed(pages: Pages, page: PageReader, where: Callable[[str], bool]) -> PageReader:
    """The page that the first fitting link of another one leads to."""
    link = urlsplit(next(link for link in page.links() if where(link)))
    return read(pages, link.path, **{name: values[0] for name, values in parse_qs(link.query).items()})


def test_from_the_list_of_tables_to_a_file_group(lake: Lake, pages: Pages) -> None:
    home = read(pages, HOME)
    assert "trips" in home.text(within="a")
    table = followed(pages, home, lambda link: link.startswith("/table?"))
    assert "MERGE_ON_READ" in table.text()
    assert table.count("g", "i") == 2
    partition = followed(pages, table, lambda link: link.startswith("/partition?") and "partition=p" in link)
    (group,) = (one for one in lake.table.files() if one.partition == "p")
    assert group.file_id in partition.text()
    assert "1" in partition.text(within="td")
    back = followed(pages, partition, lambda link: link.startswith("/table?"))
    assert "trips" in back.text(within="h1")


def test_every_link_and_order_of_a_table_has_a_page(lake: Lake, pages: Pages) -> None:
    table = read(pages, TABLE, basepath=lake.uri)
    for link in table.links():
        if link.startswith("/"):
            asked = urlsplit(link)
            read(pages, asked.path, **{name: values[0] for name, values in parse_qs(asked.query).items()})


def test_files_are_looked_into_when_somebody_asks(lake: Lake, pages: Pages) -> None:
    log = next(one for one in lake.table.files() if one.logs).logs[0]
    Path(lake.uri, log.path).unlink()
    assert "names and sizes of files say" in read(pages, TABLE, basepath=lake.uri).text()
    examined = read(pages, TABLE, basepath=lake.uri, look="files")
    assert "names and sizes of files say" not in examined.text()
    assert "missing" in examined.text(within="b")
    lake.storage.put("later", b"")
    assert "missing" in read(pages, TABLE, basepath=lake.uri, look="files").text(within="b")


def test_a_table_that_did_not_change_is_not_read_again(lake: Lake, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service([str(root)])
    pages = Pages(service)
    first = read(pages, TABLE, basepath=lake.uri)
    calls: list[object] = []
    monkeypatch.setattr(module, "overview_of", lambda *given, **_: calls.append(given))
    assert read(pages, TABLE, basepath=lake.uri).elements == first.elements
    assert calls == []
    assert service.tally.read()["loaded"] == 1
    monkeypatch.undo()
    lake.upsert(row("c", ts=3))
    assert read(pages, TABLE, basepath=lake.uri).count("g", "i") == 3
    assert service.tally.read() == {"opened": 1, "loaded": 1, "synced": 1, "looks": 1}


def test_ages_are_looked_at_anew_after_a_while(lake: Lake, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRESH_S", -1.0)
    service = Service([str(root)])
    pages = Pages(service)
    read(pages, TABLE, basepath=lake.uri)
    lake.storage.put(".hoodie/.heartbeat/1", b"")
    read(pages, TABLE, basepath=lake.uri)
    assert service.tally.read()["loaded"] == 1


@pytest.mark.parametrize("version", [6, 8, 9])
def test_what_the_service_keeps_has_the_sizes_that_lie_there(version: int, tmp_path: Path) -> None:
    made = Lake(version, logged_lake(version).options, uri=str(tmp_path / "t"))
    made.upsert(row("a"), row("b", part="q"))
    made.upsert(row("a", "new", 2))
    made.table.services.compact()
    made.upsert(row("a", "newer", 3))
    known = Service([str(tmp_path)]).with_view(made.uri, page_view)
    health = made.table.doctor()
    (p,) = group_sizes(known, "p")
    sizes = next(one for one in health.partitions if one.partition == "p")
    assert (p.base_bytes, p.log_bytes, p.old_bytes) == (sizes.base_bytes, sizes.log_bytes, sizes.old_bytes)
    assert known.slices_at() == made.table.files()


def test_change_data_files_are_no_logs_to_merge(tmp_path: Path) -> None:
    made = Lake(9, {"hoodie.table.cdc.enabled": "true"}, uri=str(tmp_path / "t"))
    made.upsert(row("a"))
    made.upsert(row("a", "new", 2))
    assert any(".cdc" in path for path in made.files())
    page = read(Pages(Service([str(tmp_path)])), TABLE, basepath=made.uri)
    assert "Log files to merge" not in page.text()


@pytest.mark.parametrize(
    ("parameters", "status"),
    [
        ({"basepath": "/etc"}, 403),
        ({"basepath": "{root}/../.."}, 404),
        ({"basepath": "relative"}, 404),
        ({"basepath": "{root}/nothing"}, 404),
        ({"basepath": "{root}"}, 404),
        ({"basepath": ""}, 404),
        ({}, 404),
        ({"basepath": "{root}/trips", "partition": "../.."}, 404),
        ({"basepath": "{root}/trips", "x": "\0"}, 400),
        ({"basepath": "{root}/trips", "x": "y" * 5000}, 400),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_no_trace(
    parameters: dict[str, str], status: int, lake: Lake, root: Path, pages: Pages
) -> None:
    before = lake.files()
    asked = {name: value.replace("{root}", str(root)) for name, value in parameters.items()}
    for path in (TABLE, PARTITION) if "partition" not in parameters else (PARTITION,):
        assert "hoodie doctor" not in read(pages, path, status, **asked).text()
    assert lake.files() == before


@pytest.mark.parametrize("number", ["0", "-1", "x", "9" * 30, "²"])
def test_a_number_that_is_none_is_the_first(number: str, lake: Lake, pages: Pages) -> None:
    assert "trips" in read(pages, TABLE, basepath=lake.uri, page=number, order=number).text()


def test_a_damaged_table_is_told_and_others_are_there(lake: Lake, root: Path, pages: Pages) -> None:
    other = Lake(uri=str(root / "other"))
    other.upsert(row("a"))
    (Path(lake.uri) / ".hoodie" / "hoodie.properties").write_bytes(b"\xff")
    for backup in (Path(lake.uri) / ".hoodie").glob("hoodie.properties.*"):
        backup.unlink()
    home = read(pages, HOME)
    assert "cannot be read" in home.text()
    assert "quiet" in home.text()
    damaged = read(pages, TABLE, 500, basepath=lake.uri)
    assert "Corrupt" in damaged.text(within="h1")
    assert f"hoodie doctor {lake.uri} says more" in damaged.text()


def test_a_damaged_instant_leaves_a_page(lake: Lake, pages: Pages) -> None:
    first = timeline_of(lake.handle()).completed_writes()[0]
    lake.storage.put(instant_path(lake.handle().profile, first), b"nothing")
    assert "cannot be read" in read(pages, TABLE, basepath=lake.uri).text()


def test_what_nobody_thought_of_is_a_page_that_tells_nothing(
    lake: Lake, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "table_page", lambda *_, **__: 1 / 0)
    said = read(pages, TABLE, 500, basepath=lake.uri).text()
    assert "Its log says why" in said
    assert "division" not in said


def test_tables_are_found_below_folders_and_not_in_tables(tmp_path: Path) -> None:
    for place in ("a", "b/c", "b/_hidden/d", ".e/f", "1/2/3/4/5/6", "1/2/3/4/5/6/7/8", "a/inner"):
        (tmp_path / place / ".hoodie").mkdir(parents=True)
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    (outside / ".hoodie").mkdir(parents=True)
    (tmp_path / "link").symlink_to(outside)
    found = find_tables([str(tmp_path)], open_storage, SystemEnv())
    assert [Path(place).relative_to(tmp_path).as_posix() for place in found.places] == ["1/2/3/4/5/6", "a", "b/c"]
    assert found.note == ""


def test_looking_for_tables_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "MAX_FOLDERS", 5)
    for number in range(20):
        (tmp_path / f"{number:02d}" / ".hoodie").mkdir(parents=True)
    found = find_tables([str(tmp_path)], open_storage, SystemEnv())
    assert len(found.places) == 4
    assert f"Not all folders below {tmp_path} were looked at (after 5)" in found.note


def test_a_service_without_tables_says_so(tmp_path: Path) -> None:
    assert "No table was found" in read(Pages(Service([str(tmp_path)])), HOME).text()
