"""The page that lists the tables of a service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from hoodie.present.page.document import FOOT, document, heading
from hoodie.present.page.markup import Child, Html, element
from hoodie.present.page.parts import Cell, Page, Place, pager, section, table, word
from hoodie.present.page.words import ago, moment
from hoodie.present.sheet import Column
from hoodie.units import count_text

TABLE_ROWS = 50


@dataclass(frozen=True, slots=True)
class TableLine:
    """A table in the list. `trouble`: why nothing else is known of it; `stuck`: pending instants that are older than
    any work should take.
    """

    place: str
    name: str = ""
    kind: str = ""
    version: int = 0
    last_write: datetime | None = None
    instants: int = 0
    pending: int = 0
    stuck: int = 0
    trouble: str = ""


def tables_page(
    lines: Sequence[TableLine],
    page: Page,
    link: Callable[[str], str],
    *,
    roots: Sequence[str],
    note: str,
    now: datetime,
    place: Place,
) -> str:
    """The page with a part of the list. `link`: the address of a table's page; `note`: what the list leaves out."""
    rows: list[list[Cell]] = [
        [
            [
                element("a", entry.name or entry.place, href=link(entry.place)),
                element("br"),
                element("small", entry.place),
            ],
            _state(entry),
            f"{entry.kind}, version {entry.version}" if entry.kind else "",
            [moment(entry.last_write, "never"), element("br"), element("small", ago(entry.last_write, now))]
            if not entry.trouble
            else None,
            entry.instants,
            entry.pending,
        ]
        for entry in lines
    ]
    shown: Child = (
        Html(table(_COLUMNS, rows, label="Tables") + pager(place, page, "tables"))
        if rows
        else element("p", f"No table was found {'where was looked' if note else 'below the roots'}.")
    )
    return document(
        "Tables",
        heading("Tables", f"below {', '.join(roots)}"),
        element(
            "main",
            section("tables", count_text(page.total, "table"), shown, element("p", note) if note else None),
            section("open", "Open another one", _open_form()),
            id="content",
        ),
        FOOT,
    )


def _open_form() -> Html:
    return element(
        "form",
        element("label", "Path or URL ", element("input", name="basepath", required=True)),
        element("button", "Open"),
        method="get",
        action="/table",
    )


def _state(entry: TableLine) -> Html:
    if entry.trouble:
        return Html(word("cannot be read", "error") + element("small", " ", entry.trouble))
    if entry.stuck:
        return word(f"{entry.stuck:,} hang", "error")
    return word("pending", "warning") if entry.pending else word("quiet", "good")


_COLUMNS = (
    Column("table", wraps=True),
    Column("state", wraps=True),
    Column("kind"),
    Column("last write (UTC)"),
    Column("instants", is_number=True),
    Column("pending", is_number=True),
)
