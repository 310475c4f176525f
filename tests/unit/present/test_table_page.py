"""The page about a table: what it shows, that it is bounded, and that nothing a table says becomes part of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hoodie.config import resolve
from hoodie.env import SystemEnv
from hoodie.present.page.markup import Html, element
from hoodie.present.page.partition import OnePartition, partition_page
from hoodie.present.page.parts import Page, Place
from hoodie.present.page.sizes import PAGE_ROWS
from hoodie.present.page.table import Links, table_page
from hoodie.present.page.tables import TableLine, tables_page
from hoodie.present.page.timeline import MAX_DRAWN, MAX_LISTED
from hoodie.present.page.words import ago, percent, span
from hoodie.services.health import Concern, LogDebt, PartitionSizes
from hoodie.services.overview.group_sizes import GroupSizes
from hoodie.services.overview.instant_works import InstantWork
from hoodie.services.overview.table_overview import TableOverview, examined_overview
from hoodie.services.overview.waiting import Waiting
from hoodie.services.remedies import told
from hoodie.spec import Instant, State
from hoodie.table import Table
from hoodie.testing.lake import Lake, logged_lake, row
from hoodie.testing.page_reader import ensure_harmless, read_page
from hoodie.timeline import create_requested, to_inflight

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'onmouseover='x",
    "</style></title><b>",
    "\u202egnp.exe",
    "&lt;b&gt;",
)
PLACE = Place("/table", {"basepath": "/lake/a b&c"})
LINKS = Links(PLACE, "/", PLACE.address(look="all"), lambda name: Place("/partition", {"partition": name}).address())
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def overview(lake: Lake) -> TableOverview:
    return examined_overview(lake.handle(), resolve(lake.options))


@pytest.fixture
def plain() -> TableOverview:
    lake = Lake()
    lake.upsert(row("a"))
    return overview(lake)


def instant(number: int, action: str = "commit", state: State = State.COMPLETED) -> Instant:
    at = (NOW + timedelta(minutes=number)).strftime("%Y%m%d%H%M%S000")
    return Instant(at, action, state, at if state is State.COMPLETED else None)


def work(number: int, action: str = "commit", note: str = "") -> InstantWork:
    began = NOW + timedelta(minutes=number)
    return InstantWork(instant(number, action), action, began, 1.0, "UPSERT", 1, 1, 1000 + number, inserts=1, note=note)


@KINDS
@pytest.mark.parametrize("version", [6, 8, 9])
def test_every_kind_of_table_has_a_page_that_says_how_it_is(version: int, kind: str) -> None:
    lake = logged_lake(version, **{"hoodie.datasource.write.table.type": kind})
    lake.upsert(row("a"), row("b", part="q"))
    lake.upsert(row("a", "new", 2))
    page = ensure_harmless(table_page(overview(lake)))
    said = page.text()
    for words in ("lake", kind, f"version {version}", "What needs attention", "Timeline", "Partitions", "record key"):
        assert words in said
    assert page.count("g", "i") == 2
    assert ("Log files to merge" in said) is (kind == "MERGE_ON_READ")
    assert all(link.startswith("#") for link in page.links())


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_table_nobody_wrote_to_has_a_page(version: int) -> None:
    lake = Lake(version)
    Table.create(lake.uri, options=lake.options)
    said = ensure_harmless(table_page(overview(lake))).text()
    assert "healthy" in said
    assert "never" in said
    assert "Nothing has happened to this table yet." in said
    assert "There are no base files." in said


def named(name: str, overview: TableOverview) -> list[str]:
    """All pages about a table, and about the table `overview`, in which everything has that name."""
    health = replace(
        overview.health,
        name=name,
        uri=name,
        partitions=(replace(overview.health.partitions[0], partition=name),),
        debts=(LogDebt(name, name, 1, 1, 1),),
        concerns=(
            Concern("error", name, name, name, name),
            Concern("error", name, name, name, f"hoodie {name}", (f"hoodie {name}",)),
        ),
    )
    works = (*overview.works, work(1, "commit", name), replace(work(2), operation=name, kind=name))
    waiting = (Waiting(instant(3, name, State.INFLIGHT), False, NOW, 1.0, None, 0, 0, "dead", name),)
    table = replace(overview, health=health, works=works, waiting=waiting)
    line = TableLine(place=name, name=name, kind=name, trouble=name)
    list_page = tables_page(
        [line], Page(1, 50, 1), lambda at: PLACE.address(at=at), roots=[name], note=name, now=NOW, place=PLACE
    )
    one = OnePartition(name, name, (GroupSizes(name, name, 1, 1, 1, 1, 1, name, name),))
    return [table_page(table), table_page(table, LINKS), list_page, partition_page(one, PLACE, PLACE.address())]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_a_table_are_text_and_never_part_of_the_page(name: str, plain: TableOverview) -> None:
    for page, harmless in zip(named(name, plain), named("harmless", plain), strict=True):
        found = ensure_harmless(page)
        assert [tag for tag, _ in found.elements] == [tag for tag, _ in read_page(harmless).elements]
        assert [set(said) for _, said in found.elements] == [set(said) for _, said in read_page(harmless).elements]
        assert "\u202e" not in page
        assert name.replace("\u202e", "\\u202e") in found.text()


def test_instants_that_are_pending_or_have_failed_are_marked() -> None:
    lake = logged_lake(9)
    lake.upsert(row("a"), row("b", part="q"))
    lake.upsert(row("a", "new", 2))
    lake.table.services.schedule_compaction()
    handle = lake.handle()
    dead = create_requested(handle.storage, handle.profile, "20260102040000000", "deltacommit")
    to_inflight(handle.storage, handle.profile, dead)
    page = ensure_harmless(table_page(overview(lake)))
    assert (page.count("g", "pending"), page.count("g", "failed")) == (2, 1)
    said = page.text()
    for words in (
        "plan, not carried out",
        "older than it should be",
        "1 died or hang",
        f"hoodie rollback {lake.uri} 202",
    ):
        assert words in said


def test_commands_stand_alone_and_words_beside_them_are_none(plain: TableOverview) -> None:
    """A button copies all that a command is."""
    remedy = told("to join them: `hoodie compact-base {uri}`; or write more", uri="/lake")
    waits = told("the next clean rolls it back, or: `hoodie rollback /lake {at}`", at="20260102040000000")
    dead = Waiting(instant(3, "commit", State.INFLIGHT), False, NOW, 600.0, 300.0, 0, 0, "dead", *waits)
    health = replace(plain.health, concerns=(Concern("note", "small files", "p", "many", *remedy),))
    page = ensure_harmless(table_page(replace(plain, health=health, waiting=(dead,))))
    commands = [said for tag, said in page.elements if tag == "code" and said.get("class") == "command"]
    assert len(commands) == 3
    assert page.text(within="code").count("hoodie compact-base /lake") == 1
    assert "joins" not in page.text(within="code")
    assert "write more" not in page.text(within="code")
    said = " ".join(page.text().split())
    assert f"dead write in {dead.instant.requested}.commit: dead: no heartbeat for 5.0 min" in said
    assert page.text().count("hoodie rollback /lake 20260102040000000") == 2


def test_no_bar_of_the_timeline_lies_under_the_figure_beside_it(plain: TableOverview) -> None:
    page = read_page(table_page(replace(plain, works=tuple(work(n) for n in range(50)))))
    bars = [said for tag, said in page.elements if tag == "rect" and said.get("class") in ("took", "bases", "logs")]
    ends = [float(said["x"] or 0) + float(said["width"] or 0) for said in bars]
    figures = [float(said["x"] or 0) for tag, said in page.elements if tag == "text" and said.get("x") == "1000"]
    assert len(ends) >= 100
    assert figures
    assert max(ends) <= min(figures) - 6 * len("1023.9 GiB")


def test_what_each_instant_did_is_told() -> None:
    lake = Lake()
    lake.upsert(row("a"), row("b", part="q"))
    titles = read_page(table_page(overview(lake))).text(within="title")
    assert "UPSERT: 2 files in 2 partitions" in titles
    assert "2 inserts, 0 updates, 0 deletes" in titles
    assert "took" in titles


def test_a_large_table_makes_a_page_of_bounded_size(plain: TableOverview) -> None:
    partitions = tuple(PartitionSizes(f"p={n:06d}", 1, 1, n, 1, 0, 0, 0, 0) for n in range(100_000))
    debts = tuple(LogDebt(f"p={n}", "f", 1, 1, 1) for n in range(100_000))
    concerns = tuple(Concern("note", "small files", f"p={n}", "many", "write more") for n in range(100_000))
    health = replace(
        plain.health, partitions=partitions, debts=debts, concerns=concerns, base_sizes=tuple(range(100_000))
    )
    large = replace(plain, health=health, works=tuple(work(n) for n in range(2_000)))
    page = table_page(large, LINKS, number=2)
    read = ensure_harmless(page)
    assert len(page) < 600_000
    assert read.count("g", "i") == MAX_DRAWN
    assert read.count("tr") < PAGE_ROWS + MAX_LISTED + 80
    said = read.text()
    assert "51 to 100 of 100,000 partitions" in said
    assert "p=099949" in said
    assert "99,999 more like this" in said
    assert f"The newest 500 instants; {2_000 - MAX_DRAWN:,} are older." in said


def test_a_part_of_the_list_that_is_not_there_is_the_last(plain: TableOverview) -> None:
    partitions = tuple(PartitionSizes(f"p={n:03d}", 1, 1, n, 1, 0, 0, 0, 0) for n in range(120))
    many = replace(plain, health=replace(plain.health, partitions=partitions))
    said = read_page(table_page(many, LINKS, order="name", number=99)).text()
    assert "101 to 120 of 120 partitions" in said
    assert "p=119" in said
    assert "p=099" not in said


def test_counts_are_whole_numbers(plain: TableOverview) -> None:
    sizes = replace(plain.health, base_sizes=(10, 3_000_000, 3_100_000, 200 << 20))
    page = read_page(table_page(replace(plain, health=sizes)))
    cells = page.text(within="td")
    assert "2.0 MiB to 4.0 MiB 2" in cells
    assert "128.0 MiB to 256.0 MiB 1" in cells
    assert "3 of 4 base files (75 %)" in page.text()


def test_links_keep_the_place_and_escape_it(plain: TableOverview) -> None:
    links = read_page(table_page(plain, LINKS)).links()
    assert "/table?basepath=%2Flake%2Fa+b%26c&order=small" in links
    assert "/partition?partition=p" in links


def test_file_groups_of_a_partition_are_shown_in_parts() -> None:
    groups = [GroupSizes(f"f{n:04d}", "1", n, 0, 0, 0, 0, "1", None) for n in range(70)]
    groups[69] = replace(groups[69], compaction="20260101000000000", log_files=2, log_bytes=5)
    one = OnePartition("lake", "", groups)
    page = ensure_harmless(partition_page(one, PLACE, "/table?x", number=1))
    said = page.text()
    assert "(not partitioned)" in said
    assert "compaction 20260101000000000 is pending" in said
    assert "1 to 50 of 70 file groups" in said
    assert "f0010" not in said
    assert "f0010" in read_page(partition_page(one, PLACE, "/table?x", number=2)).text()


def test_the_list_of_tables_says_what_hangs_and_what_cannot_be_read() -> None:
    lines = [
        TableLine("/lake/a", "a", "COPY_ON_WRITE", 9, NOW - timedelta(hours=5), 12, 2, 1),
        TableLine("/lake/b", "b", "COPY_ON_WRITE", 9, NOW, 12, 1),
        TableLine("/lake/c", trouble="Corrupt: no"),
    ]
    page = tables_page(
        lines, Page(1, 50, 3), lambda at: f"/table?at={at}", roots=["/lake"], note="", now=NOW, place=PLACE
    )
    said = ensure_harmless(page).text()
    for words in ("1 hang", "pending", "cannot be read", "Corrupt: no", "5.0 h ago", "3 tables", "below /lake"):
        assert words in said


def test_markup_escapes_everything_but_markup() -> None:
    made = element(
        "a", "<b>", Html("<i>x</i>"), 12345, None, ["&"], href='"><', class_="k", data_n=1.50, open=True, x=None
    )
    assert made == '<a href="&quot;&gt;&lt;" class="k" data-n="1.5" open>&lt;b&gt;<i>x</i>12,345&amp;</a>'


def test_spans_are_in_the_unit_people_use() -> None:
    assert [span(seconds) for seconds in (0.0123, 5.25, 65, 7200, 86400 * 3, None)] == [
        "12 ms", "5.2 s", "1.1 min", "2.0 h", "3 days", "",
    ]  # fmt: skip
    assert ago(NOW, NOW) == "now"
    assert (percent(1, 3), percent(0, 0)) == ("33 %", "0 %")


def test_the_report_is_the_page_without_links() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    page = ensure_harmless(lake.table.report())
    assert not [link for link in page.links() if not link.startswith("#")]
    assert f"{SystemEnv().now():%Y-%m-%d}" in page.text()
