"""A table's health as one HTML page: what needs attention, file sizes, log debt, partitions, timeline.

1. The page stands alone: pictures are SVG inside it, there is no script, and nothing is loaded from anywhere.
2. What comes from the table (names, paths, messages) is escaped, in text and in pictures.
3. Pictures are drawn by matplotlib, which only this module needs: `pip install 'hoodie[plot]'`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from hoodie.errors import Unavailable
from hoodie.notebook import size_text
from hoodie.services.health import Concern, TableHealth
from hoodie.spec import TimeZone, parse_instant_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN_GROUPS = 20
SHOWN_PARTITIONS = 100
_MIB = 1 << 20
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
    state = ("healthy", "healthy") if health.is_healthy else ("attention", "needs attention")
    parts = [
        f"<h1>{escape(health.name)}</h1>",
        f"<p class='facts'>{escape(health.uri)} · {escape(health.table_type)} · version {health.version} · "
        f"examined {health.examined:%Y-%m-%d %H:%M:%S} UTC · <b class='{state[0]}'>{state[1]}</b></p>",
        *_section("What needs attention", _concerns(health.concerns)),
        *_section("Sizes of base files", _picture(lambda axes: _draw_sizes(axes, health.base_sizes))),
    ]
    if health.debts:
        parts += _section("Log debt", _picture(lambda axes: _draw_debts(axes, health)))
    parts += [
        *_section("Timeline", _picture(lambda axes: _draw_timeline(axes, health, timezone))),
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
        f"<tr><td style='color:{_COLOURS[one.severity]}'>{one.severity}</td><td>{escape(one.kind)}</td>"
        f"<td>{escape(one.subject)}</td><td>{escape(one.message)}</td><td><code>{escape(one.remedy)}</code></td></tr>"
        for one in concerns
    )
    return f"<table><tr><th></th><th>kind</th><th>where</th><th>what</th><th>remedy</th></tr>{rows}</table>"


def _partitions(health: TableHealth) -> str:
    shown = sorted(health.partitions, key=lambda one: -(one.base_bytes + one.log_bytes))[:SHOWN_PARTITIONS]
    names = ("file groups", "base files", "size", "small files", "log files", "size", "old files", "size")
    head = "".join(f"<th class='number'>{name}</th>" for name in names)
    rows = "".join(
        f"<tr><td>{escape(one.partition) or '(not partitioned)'}</td>"
        + _numbers(one.file_groups, one.base_files, size_text(one.base_bytes), one.small_files, one.log_files)
        + _numbers(size_text(one.log_bytes), one.old_files, size_text(one.old_bytes))
        + "</tr>"
        for one in shown
    )
    left = len(health.partitions) - len(shown)
    more = f"<p>{left:,} more partitions are smaller.</p>" if left else ""
    return f"<table><tr><th>partition</th>{head}</tr>{rows}</table>{more}"


def _numbers(*cells: int | str) -> str:
    return "".join(
        f"<td class='number'>{cell:,}</td>" if isinstance(cell, int) else f"<td class='number'>{cell}</td>"
        for cell in cells
    )


def _draw_sizes(axes: Axes, sizes: Sequence[int]) -> None:
    unit, name = (_MIB, "MiB") if max(sizes, default=0) >= _MIB else (1 << 10, "KiB")
    axes.hist([size / unit for size in sizes], bins=40, color="#3f5f90")
    axes.set_xlim(left=0)
    axes.set_xlabel(name)
    axes.set_ylabel("base files")


def _draw_debts(axes: Axes, health: TableHealth) -> None:
    shown = list(reversed(health.debts[:SHOWN_GROUPS]))
    names = [_plain(f"{one.partition}/{one.file_id[:8]} ({one.log_files} logs)") for one in shown]
    axes.barh(names, [one.base_bytes / _MIB for one in shown], color="#c4c6d0", label="base file")
    starts = [one.base_bytes / _MIB for one in shown]
    axes.barh(names, [one.log_bytes / _MIB for one in shown], left=starts, color="#b26a00", label="log files")
    axes.set_xlabel("MiB")
    axes.legend()


def _draw_timeline(axes: Axes, health: TableHealth, timezone: TimeZone) -> None:
    for pending, colour in ((False, "#3f5f90"), (True, "#b3261e")):
        chosen = [one for one in health.instants if one.is_completed is not pending]
        times: list[Any] = [parse_instant_time(one.requested, timezone) for one in chosen]
        label = "pending" if pending else "completed"
        if chosen:
            axes.scatter(times, [one.action for one in chosen], s=18, alpha=0.6, color=colour, label=label)
    axes.tick_params(axis="x", rotation=30)
    if health.instants:
        axes.legend()


def _picture(draw: Callable[[Axes], None]) -> str:
    """An SVG element."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise Unavailable("The report draws with matplotlib", remedy="pip install 'hoodie[plot]'") from error
    figure: Any = Figure(figsize=(10, 3.6), layout="constrained")
    draw(figure.subplots())
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _plain(text: str) -> str:
    """`text` without what matplotlib takes for mathematics."""
    return text.replace("$", r"\$")
