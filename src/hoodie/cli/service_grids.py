"""Plans and results of table services, and a table's health, as tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table as Grid

from hoodie.cli.plain import count_text, plain_text
from hoodie.notebook import size_text

if TYPE_CHECKING:
    from hoodie.services.health import TableHealth
    from hoodie.services.preview import ServicePreview

SHOWN_STEPS = 50
_STYLES = {"error": "red", "warning": "yellow", "note": None}


def preview_grid(preview: ServicePreview) -> Grid:
    """What a service would do, the first steps of many."""
    total = f"{count_text(preview.files, 'file')}, {size_text(preview.size_bytes)}"
    seconds = "" if preview.estimated_seconds is None else f", about {preview.estimated_seconds:.0f} s"
    grid = Grid("action", "partition", title=f"{preview.service} would touch {total}{seconds}")
    grid.add_column("file group", overflow="fold")
    for heading in ("files", "size"):
        grid.add_column(heading, justify="right")
    grid.add_column("reason", overflow="fold")
    for step in preview.steps[:SHOWN_STEPS]:
        size = size_text(step.size_bytes)
        grid.add_row(step.action, step.partition, step.file_id or "", f"{len(step.paths):,}", size, step.reason)
    left = len(preview.steps) - SHOWN_STEPS
    if left > 0:
        grid.caption = f"{left:,} more steps; --json has all"
    return grid


def result_grid(what: str, facts: Mapping[str, Any], seconds: float) -> Grid:
    """What a service has done."""
    grid = Grid(show_header=False, title=f"{what}: done in {seconds:.1f} s")
    grid.add_column(style="dim")
    grid.add_column(justify="right", overflow="fold")
    for name, value in facts.items():
        if name.endswith("bytes") and isinstance(value, int):
            shown = size_text(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            shown = f"{value:,}"
        elif isinstance(value, list | tuple | dict):
            shown = f"{len(value):,}"
        else:
            shown = plain_text(value)
        grid.add_row(name.replace("_", " "), shown)
    return grid


def health_grid(health: TableHealth) -> Grid:
    """What is wrong or slow, and the remedy of each."""
    grid = Grid("", "kind", title=f"{health.name}: {count_text(len(health.concerns), 'concern')}")
    for heading in ("where", "what", "remedy"):
        grid.add_column(heading, overflow="fold")
    for one in health.concerns:
        grid.add_row(one.severity, one.kind, one.subject, one.message, one.remedy, style=_STYLES[one.severity])
    return grid
