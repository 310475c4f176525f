"""Timelines, file layouts, findings and commits as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table as Grid

from hoodie.cli.facts import finding_rows
from hoodie.cli.plain import count_text, plain_text
from hoodie.notebook import size_text
from hoodie.spec import Instant, State

if TYPE_CHECKING:
    from hoodie.query import Finding
    from hoodie.view import FileSlice
    from hoodie.write import Committed


def timeline_grid(instants: Sequence[Instant]) -> Grid:
    """Table of instants; pending ones stand out."""
    grid = Grid("requested", "completed", "action", "state", title=f"Timeline: {count_text(len(instants), 'instant')}")
    for instant in instants:
        style = None if instant.state is State.COMPLETED else "yellow"
        grid.add_row(instant.requested, instant.completed or "", instant.action, instant.state.name, style=style)
    return grid


def files_grid(slices: Sequence[FileSlice]) -> Grid:
    """Table of file slices with their sizes."""
    total = size_text(sum(part.size_bytes for part in slices))
    grid = Grid("partition", title=f"Files: {count_text(len(slices), 'file slice')}, {total}")
    grid.add_column("file group", overflow="fold")
    grid.add_column("base instant")
    for heading in ("base file", "logs"):
        grid.add_column(heading, justify="right")
    for part in slices:
        base = size_text(part.base.size_bytes) if part.base else ""
        logs = f"{len(part.logs)} ({size_text(sum(log.size_bytes for log in part.logs))})" if part.logs else ""
        grid.add_row(part.partition, part.file_id, part.base_instant, base, logs)
    return grid


def findings_grid(findings: Sequence[Finding]) -> Grid:
    """Table of what is wrong with a table."""
    rows = finding_rows(findings)
    grid = Grid(*rows[0], title=count_text(len(rows), "finding"), title_style="red")
    for row in rows:
        grid.add_row(*(plain_text(value) for value in row.values()))
    return grid


def commit_grid(committed: Committed, seconds: float) -> Grid:
    """Summary of a commit."""
    grid = Grid(show_header=False, title=f"{committed.operation}: committed in {seconds:.1f} s")
    grid.add_column(style="dim")
    grid.add_column(justify="right")
    grid.add_row("instant", committed.instant)
    grid.add_row("completed", committed.completed or "")
    for what in ("inserts", "updates", "deletes", "rows_written", "files"):
        grid.add_row(what.replace("_", " "), f"{getattr(committed, what):,}")
    grid.add_row("size", size_text(committed.size_bytes))
    grid.add_row("partitions", f"{len(committed.partitions):,}")
    return grid
