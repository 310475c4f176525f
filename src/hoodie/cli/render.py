"""Timelines, file layouts, findings, commits and rows as tables for the terminal, and as plain values for JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text

from hoodie.cli.plain import plain_text
from hoodie.read import Finding
from hoodie.spec import Instant, State
from hoodie.view import FileSlice
from hoodie.write import Committed

_WIDEST_CELL = 40
_GAP = 3
_NULL = Text("NULL", style="dim")


def timeline_rows(instants: Iterable[Instant]) -> list[dict[str, str | None]]:
    """One row per instant, in the given order."""
    return [
        {
            "requested_time": instant.requested,
            "completion_time": instant.completed,
            "action": instant.action,
            "state": instant.state.name,
        }
        for instant in instants
    ]


def timeline_grid(instants: Sequence[Instant]) -> Grid:
    """Table of instants; pending ones stand out."""
    grid = Grid("requested", "completed", "action", "state", title=f"Timeline: {_count(len(instants), 'instant')}")
    for instant in instants:
        style = None if instant.state is State.COMPLETED else "yellow"
        grid.add_row(instant.requested, instant.completed or "", instant.action, instant.state.name, style=style)
    return grid


def files_rows(slices: Iterable[FileSlice]) -> list[dict[str, Any]]:
    """One row per file slice; files by their names inside the partition."""
    return [
        {
            "partition": part.partition,
            "file_id": part.file_id,
            "base_instant": part.base_instant,
            "base_file": _file_name(part.base.path) if part.base else None,
            "log_files": [_file_name(log.path) for log in part.logs],
        }
        for part in slices
    ]


def files_grid(slices: Sequence[FileSlice]) -> Grid:
    """Table of file slices with their sizes."""
    total = size_text(sum(part.size_bytes for part in slices))
    grid = Grid("partition", title=f"Files: {_count(len(slices), 'file slice')}, {total}")
    grid.add_column("file group", overflow="fold")
    grid.add_column("base instant")
    for heading in ("base file", "logs"):
        grid.add_column(heading, justify="right")
    for part in slices:
        base = size_text(part.base.size_bytes) if part.base else ""
        grid.add_row(part.partition, part.file_id, part.base_instant, base, str(len(part.logs)))
    return grid


def finding_rows(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """One row per finding with the fields it has."""
    return [dataclasses.asdict(finding) for finding in findings]


def findings_grid(findings: Sequence[Finding]) -> Grid:
    """Table of what is wrong with a table."""
    rows = finding_rows(findings)
    grid = Grid(*rows[0], title=_count(len(rows), "finding"), title_style="red")
    for row in rows:
        grid.add_row(*(plain_text(value) for value in row.values()))
    return grid


def commit_row(committed: Committed) -> dict[str, Any]:
    """The outcome of a write by its field names."""
    return {**dataclasses.asdict(committed), "partitions": list(committed.partitions)}


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


def rows_grid(rows: pa.Table, total: int, width: int) -> Group:
    """The given rows as a table that fits `width`; below it, how many rows and columns there are besides."""
    shown = _columns_that_fit(rows, width)
    grid = Grid()
    for name in shown:
        numeric = pa.types.is_integer(rows.schema.field(name).type) or pa.types.is_floating(
            rows.schema.field(name).type
        )
        grid.add_column(Text(name), justify="right" if numeric else "left", overflow="ellipsis", max_width=_WIDEST_CELL)
    columns = [rows.column(name).to_pylist() for name in shown]
    for cells in zip(*columns, strict=True):
        grid.add_row(*(_NULL if cell is None else Text(plain_text(cell)) for cell in cells))
    return Group(grid, Text(_caption(rows, total, len(shown)), style="dim"))


def size_text(size_bytes: int) -> str:
    """Bytes in the unit people would use."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _columns_that_fit(rows: pa.Table, width: int) -> list[str]:
    shown: list[str] = []
    left = width - 1
    for name in rows.column_names:
        cells = (len(plain_text(value)) for value in rows.column(name).to_pylist())
        left -= min(_WIDEST_CELL, max([len(name), *cells])) + _GAP
        if shown and left < 0:
            break
        shown.append(name)
    return shown


def _caption(rows: pa.Table, total: int, columns_shown: int) -> str:
    caption = _count(total, "row")
    if rows.num_rows < total:
        caption = f"first {rows.num_rows} of {caption}"
    missing = rows.num_columns - columns_shown
    return caption if not missing else f"{caption}; {_count(missing, 'more column')}, choose with --columns"


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
