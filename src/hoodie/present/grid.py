"""Sheets as tables of the terminal."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text

from hoodie.present.plain import visible_text
from hoodie.present.sheet import Column, Sheet, Tone

_STYLES: dict[Tone, str | None] = {"": None, "good": None, "warning": "yellow", "error": "red"}


def sheet_grid(sheet: Sheet) -> Group:
    """A table that rich can print; below it how many rows are left out, and the notes. No text is taken for markup."""
    grid = Grid(title=_text(sheet.title), show_header=sheet.has_heading)
    for column in sheet.columns:
        _add(grid, column)
    if not sheet.has_heading:
        grid.columns[0].style = "dim"
    shown = sheet.rows[: sheet.on_terminal]
    for number, row in enumerate(shown):
        grid.add_row(*map(_text, row), style=_STYLES[sheet.tones[number]] if sheet.tones else None)
    left = len(sheet.rows) - len(shown)
    more = [f"{left:,} more; --json has all"] if left else []
    return Group(grid, *(_text(f"  {note}") for note in (*more, *sheet.notes)))


def _add(grid: Grid, column: Column) -> None:
    grid.add_column(
        _text(column.name),
        justify="right" if column.is_number else "left",
        overflow="fold" if column.wraps else "ellipsis",
    )


def _text(text: str) -> Text:
    return Text(visible_text(text))
