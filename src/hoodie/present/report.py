"""A table's health as one HTML page: what needs attention, file sizes, log debt, partitions, timeline.

1. The page stands alone: pictures are SVG inside it, there is no script, and nothing is loaded from anywhere.
2. What comes from the table (names, paths, messages) is escaped, in text and in pictures.
3. Its pictures are in `plots`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from hoodie.present.health import state_text
from hoodie.present.plots import base_sizes_svg, log_debt_svg, timeline_svg
from hoodie.services.health import Concern, TableHealth
from hoodie.spec import TimeZone
from hoodie.units import size_text

SHOWN_PARTITIONS = 100
_COLOURS = {"error": "#b3261e", "warning": "#b26a00", "note": "#386a20"}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1b1f; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
h1 { margin-bottom: 0 } .facts { color: #5b5b63; margin-top: .2rem }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ddd; overflow-wrap: anywhere }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
code { background: #f2f2f5; padding: .1rem .3rem; border-radius: 3px } svg { max-width: 100%; height: auto }
.healthy { color: #386a20 } .attention { color: #b3261e }
"""


def html_report(health: TableHealth, timezone: TimeZone = "LOCAL") -> str:
    """The page. `timezone` is the one the table's instants are in.

    Raises:
        Unavailable: matplotlib is not installed.
    """
    parts = [
        f"<h1>{escape(health.name)}</h1>",
        f"<p class='facts'>{escape(health.uri)} · {escape(health.table_type)} · version {health.version} · "
        f"examined {health.examined:%Y-%m-%d %H:%M:%S} UTC · "
        f"<b class='{'healthy' if health.is_healthy else 'attention'}'>{state_text(health)}</b></p>",
        *_section("What needs attention", _concerns(health.concerns)),
        *_section("Sizes of base files", base_sizes_svg(health)),
    ]
    if health.debts:
        parts += _section("Log debt", log_debt_svg(health))
    parts += [
        *_section("Timeline", timeline_svg(health, timezone)),
        *_section("Partitions", _partitions(health)),
    ]
    head = f"<meta charset='utf-8'><title>{escape(health.name)}</title><style>{_STYLE}</style>"
    return f"<!doctype html><html lang='en'><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def _section(title: str, content: str) -> Iterable[str]:
    return f"<h2>{escape(title)}</h2>", content


def _concerns(concerns: Sequence[Concern]) -> str:
    if not concerns:
        return "<p>Nothing.</p>"
    rows = "".join(
        f"<tr><td style='color:{_COLOURS[concern.severity]}'>{concern.severity}</td><td>{escape(concern.kind)}</td>"
        f"<td>{escape(concern.subject)}</td><td>{escape(concern.message)}</td><td><code>{escape(concern.remedy)}</code></td></tr>"
        for concern in concerns
    )
    return f"<table><tr><th></th><th>kind</th><th>where</th><th>what</th><th>remedy</th></tr>{rows}</table>"


def _partitions(health: TableHealth) -> str:
    shown = sorted(health.partitions, key=lambda sizes: -(sizes.base_bytes + sizes.log_bytes))[:SHOWN_PARTITIONS]
    names = ("file groups", "base files", "size", "small files", "log files", "size", "old files", "size")
    head = "".join(f"<th class='number'>{name}</th>" for name in names)
    rows = "".join(
        f"<tr><td>{escape(sizes.partition) or '(not partitioned)'}</td>"
        + _numbers(sizes.file_groups, sizes.base_files, size_text(sizes.base_bytes), sizes.small_files, sizes.log_files)
        + _numbers(size_text(sizes.log_bytes), sizes.old_files, size_text(sizes.old_bytes))
        + "</tr>"
        for sizes in shown
    )
    left = len(health.partitions) - len(shown)
    more = f"<p>{left:,} more partitions are smaller.</p>" if left else ""
    return f"<table><tr><th>partition</th>{head}</tr>{rows}</table>{more}"


def _numbers(*cells: int | str) -> str:
    return "".join(
        f"<td class='number'>{cell:,}</td>" if isinstance(cell, int) else f"<td class='number'>{cell}</td>"
        for cell in cells
    )
