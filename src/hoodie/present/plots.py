"""Pictures of a table's health, as SVG elements: sizes of base files, log debt, the timeline.

Drawn by matplotlib, which only this module needs: `pip install 'hoodie[plot]'`. Names from the table are never taken
for mathematics.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hoodie.errors import Unavailable
from hoodie.spec import TimeZone, parse_instant_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hoodie.services.health import TableHealth

SHOWN_GROUPS = 20
_MIB = 1 << 20


def base_sizes_svg(health: TableHealth) -> str:
    """How large base files are.

    Raises:
        Unavailable: matplotlib is not installed.
    """
    return _picture(lambda axes: _draw_sizes(axes, health.base_sizes))


def log_debt_svg(health: TableHealth) -> str:
    """The file groups with the largest log files, beside their base files. Raises as `base_sizes_svg`."""
    return _picture(lambda axes: _draw_debts(axes, health))


def timeline_svg(health: TableHealth, timezone: TimeZone) -> str:
    """The instants of the active timeline by action; `timezone` is the one they are in. Raises as `base_sizes_svg`."""
    return _picture(lambda axes: _draw_timeline(axes, health, timezone))


def _draw_sizes(axes: Axes, sizes: Sequence[int]) -> None:
    unit, name = (_MIB, "MiB") if max(sizes, default=0) >= _MIB else (1 << 10, "KiB")
    axes.hist([size / unit for size in sizes], bins=40, color="#3f5f90")
    axes.set_xlim(left=0)
    axes.set_xlabel(name)
    axes.set_ylabel("base files")


def _draw_debts(axes: Axes, health: TableHealth) -> None:
    shown = list(reversed(health.debts[:SHOWN_GROUPS]))
    names = [_plain(f"{debt.partition}/{debt.file_id[:8]} ({debt.log_files} logs)") for debt in shown]
    axes.barh(names, [debt.base_bytes / _MIB for debt in shown], color="#c4c6d0", label="base file")
    starts = [debt.base_bytes / _MIB for debt in shown]
    axes.barh(names, [debt.log_bytes / _MIB for debt in shown], left=starts, color="#b26a00", label="log files")
    axes.set_xlabel("MiB")
    axes.legend()


def _draw_timeline(axes: Axes, health: TableHealth, timezone: TimeZone) -> None:
    for pending, colour in ((False, "#3f5f90"), (True, "#b3261e")):
        chosen = [instant for instant in health.instants if instant.is_completed is not pending]
        times: list[Any] = [parse_instant_time(instant.requested, timezone) for instant in chosen]
        label = "pending" if pending else "completed"
        if chosen:
            axes.scatter(times, [instant.action for instant in chosen], s=18, alpha=0.6, color=colour, label=label)
    axes.tick_params(axis="x", rotation=30)
    if health.instants:
        axes.legend()


def _picture(draw: Callable[[Axes], None]) -> str:
    """An SVG element."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - optional, and heavy
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
