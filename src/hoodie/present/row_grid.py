"""Rows of a query as a table that fits the terminal."""

from __future__ import annotations

import pyarrow as pa
from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text

from hoodie.present.plain import plain_text, visible_text
from hoodie.units import count_text

_WIDEST_CELL = 40
_GAP = 3
_NULL = Text("NULL", style="dim")


def rows_grid(rows: pa.Table, total: int, width: int) -> Group:
    """The given rows as a table that fits `width`; below it, how many rows and columns there are besides."""
    shown = _columns_that_fit(rows, width)
    grid = Grid()
    for name in shown:
        numeric = pa.types.is_integer(rows.schema.field(name).type) or pa.types.is_floating(
            rows.schema.field(name).type
        )
        grid.add_column(
            Text(visible_text(name)),
            justify="right" if numeric else "left",
            overflow="ellipsis",
            max_width=_WIDEST_CELL,
        )
    columns = [rows.column(name).to_pylist() for name in shown]
    for cells in zip(*columns, strict=True):
        grid.add_row(*(_NULL if cell is None else Text(plain_text(cell)) for cell in cells))
    return Group(grid, Text(_caption(rows, total, len(shown)), style="dim"))


def _columns_that_fit(rows: pa.Table, width: int) -> list[str]:
    shown: list[str] = []
    left = width - 1
    for name in rows.column_names:
        cells = (len(plain_text(value)) for value in rows.column(name).to_pylist())
        left -= min(_WIDEST_CELL, max([len(visible_text(name)), *cells])) + _GAP
        if shown and left < 0:
            break
        shown.append(name)
    return shown


def _caption(rows: pa.Table, total: int, columns_shown: int) -> str:
    caption = count_text(total, "row")
    if rows.num_rows < total:
        caption = f"first {rows.num_rows} of {caption}"
    missing = rows.num_columns - columns_shown
    return caption if not missing else f"{caption}; {count_text(missing, 'more column')}, choose with --columns"
