"""Where the files of a table with storage paths lie: a row for each root, with a drawing of its prefixes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from hoodie.present.page.markup import Html, element
from hoodie.present.page.parts import Cell, table
from hoodie.present.page.words import percent
from hoodie.present.sheet import Column
from hoodie.services.spread import PlaceSizes, Spread
from hoodie.units import count_text, size_text

MAX_COLUMNS: Final = 128
"""Columns of a drawing: where there are more prefixes, neighbours share one."""
_HEIGHT: Final = 30


def spread_drawings(found: Spread | None) -> Html:
    """What lies in each root and how evenly; nothing of a table without storage paths."""
    if found is None:
        return Html("")
    roots: dict[str, list[PlaceSizes]] = defaultdict(list)
    for place in found.places:
        roots[place.root].append(place)
    most = max((max(_columns(places)) for places in roots.values()), default=0)
    rows = [_row(root, places, most) for root, places in roots.items()]
    groups = found.file_groups
    of_all = f" of {found.prefixes:,}" if found.prefixes else ""
    said = f"Half of {count_text(groups, 'file group')} lie in {found.crowded:,}{of_all} places."
    hint = "Each bar is a prefix, or some that are neighbours: its height is how many files lie there."
    return Html(
        element("p", said) + table(_COLUMNS, rows, label="Spread over prefixes") + element("p", hint, class_="hint")
    )


def _row(root: str, places: Sequence[PlaceSizes], most: int) -> list[Cell]:
    files = sum(place.files for place in places)
    busiest = max(places, key=lambda place: place.files)
    used = sum(place.files > 0 for place in places)
    return [
        root or "(the table path)",
        f"{used:,} of {len(places):,}" if root else None,
        sum(place.file_groups for place in places),
        files,
        size_text(sum(place.size_bytes for place in places)),
        f"{busiest.prefix or '(none)'}: {percent(busiest.files, files)}" if root and files else None,
        _drawing(_columns(places), most, root),
    ]


def _columns(places: Sequence[PlaceSizes]) -> list[int]:
    """Files of each prefix in order, of neighbours together where there are many."""
    count = min(len(places), MAX_COLUMNS)
    columns = [0] * count
    for number, place in enumerate(places):
        columns[number * count // len(places)] += place.files
    return columns


def _drawing(columns: Sequence[int], most: int, root: str) -> Html:
    width = 100 / len(columns)
    bars = [
        element(
            "rect",
            x=f"{number * width:.2f}%",
            y=_HEIGHT - height,
            width=f"{max(width * 0.9, 0.2):.2f}%",
            height=height,
            class_="base",
        )
        for number, files in enumerate(columns)
        if files and (height := max(1.0, _HEIGHT * files / most))
    ]
    label = f"Files by prefix of {root or 'the table path'}: {min(columns):,} to {max(columns):,} a bar"
    return element("svg", bars, class_="bar", height=_HEIGHT, role="img", aria_label=label)


_COLUMNS: Final = (
    Column("storage path", wraps=True),
    Column("prefixes with files", is_number=True),
    Column("file groups", is_number=True),
    Column("files", is_number=True),
    Column("bytes", is_number=True),
    Column("busiest prefix"),
    Column("", wraps=True),
)
