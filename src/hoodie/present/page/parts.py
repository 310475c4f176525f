"""What pages are put together from: tiles, tables, bars, commands to copy, links between pages of a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from hoodie.present.page.markup import Child, Html, element
from hoodie.present.sheet import Column, Tone

Cell = Child | Sequence[Child]


@dataclass(frozen=True, slots=True)
class Place:
    """A page of a service: its path and parameters."""

    path: str
    parameters: Mapping[str, str]

    def address(self, **more: str | int) -> str:
        """Its address, with some parameters changed; empty ones are left out."""
        said = {**self.parameters, **{name: str(value) for name, value in more.items()}}
        return f"{self.path}?{urlencode({name: value for name, value in said.items() if value})}"


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a long list: rows from `first` on, of `total`. `number` counts from 1."""

    number: int
    size: int
    total: int

    @property
    def last_number(self) -> int:
        return max(1, -(-self.total // self.size))

    @property
    def shown(self) -> slice:
        """Which rows."""
        first = (min(max(1, self.number), self.last_number) - 1) * self.size
        return slice(first, first + self.size)


def tile(name: str, value: Child, about: Child = None, tone: Tone = "") -> Html:
    """One figure of the row at the top."""
    return element(
        "li",
        element("span", name, class_="name"),
        element("strong", value),
        element("small", about),
        class_=tone or None,
    )


def section(anchor: str, title: str, *content: Child | Iterable[Child]) -> Html:
    """A part of a page that has a name and an address."""
    heading = element("h2", title, id=f"{anchor}-title")
    return element("section", heading, *content, id=anchor, aria_labelledby=f"{anchor}-title")


def table(
    columns: Sequence[Column], rows: Iterable[Sequence[Cell]], tones: Sequence[Tone] = (), *, label: str = ""
) -> Html:
    """Rows of cells under columns, in a box that scrolls to the side where it does not fit."""
    classes = ["number" if column.is_number else "wraps" if column.wraps else None for column in columns]
    head = [element("th", entry.name, scope="col", class_=kind) for entry, kind in zip(columns, classes, strict=True)]
    body = [
        element(
            "tr",
            [element("td", cell, class_=kind) for cell, kind in zip(row, classes, strict=True)],
            class_=(tones[number] or None) if tones else None,
        )
        for number, row in enumerate(rows)
    ]
    inner = element("table", element("thead", element("tr", head)), element("tbody", body))
    return element("div", inner, class_="scrolls", tabindex=0, role="region", aria_label=label or "table")


def bar(parts: Sequence[tuple[str, float]], whole: float) -> Html:
    """A bar of parts, each with its class, as shares of `whole`."""
    drawn: list[Html] = []
    at = 0.0
    for kind, size in parts:
        width = 100 * size / whole if whole else 0.0
        drawn.append(
            element("rect", x=f"{at:.2f}%", y=0, width=f"{max(width, 0.4 if size else 0):.2f}%", height=12, class_=kind)
        )
        at += width
    return element("svg", drawn, class_="bar", height=12, aria_hidden="true")


def remedy(text: str, commands: Iterable[str]) -> Html:
    """What helps: words as they are, and each of the commands in them with a button that copies it, where there is a
    script.
    """
    parts: list[Child] = []
    for command in commands:
        before, _, text = text.partition(command)
        parts += [before, element("code", command, class_="command")]
    return element("span", parts, text)


def word(text: str, tone: Tone = "") -> Html:
    """A word with a coloured ground."""
    return element("span", text, class_=f"word {tone}".strip())


def pager(place: Place | None, page: Page, noun: str) -> Html:
    """Which part of a list is shown, with links to the parts beside it."""
    if page.total <= page.size:
        return Html("")
    shown = page.shown
    said = f"{shown.start + 1:,} to {min(shown.stop, page.total):,} of {page.total:,} {noun}"
    if place is None:
        return element("p", said, class_="pager")
    number = shown.start // page.size + 1
    links = [
        element("a", text, href=place.address(page=to), rel=rel)
        for text, rel, to in (("← before", "prev", number - 1), ("after →", "next", number + 1))
        if 1 <= to <= page.last_number
    ]
    return element("nav", element("span", said), links, class_="pager", aria_label=f"Parts of the list of {noun}")


def choices(place: Place | None, name: str, known: Mapping[str, str], chosen: str) -> Html:
    """Links that choose one of several orders; nothing where nobody can follow them."""
    if place is None:
        return Html("")
    links = [
        element(
            "a", text, href=place.address(**{name: key, "page": ""}), aria_current="true" if key == chosen else None
        )
        for key, text in known.items()
    ]
    return element("nav", element("span", "Order:"), links, class_="choices", aria_label="Order")
