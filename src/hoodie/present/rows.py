"""The rows of a query: the first of them, for a look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hoodie.present.forms import Form
from hoodie.present.html import SHOWN_ROWS
from hoodie.present.plain import plain_value
from hoodie.present.sheet import Column, Sheet

if TYPE_CHECKING:
    from hoodie.query import Rows


def _sheet(rows: Rows) -> Sheet:
    """The first rows. They are read for it, and stay part of the stream."""
    first = rows.peek(SHOWN_ROWS)
    columns = tuple(Column(name) for name in first.schema.names)
    cells = [["" if cell is None else str(cell) for cell in row.values()] for row in first.to_pylist()]
    return Sheet("First rows" if cells else "No rows left", columns, cells)


def _json(rows: Rows) -> list[Any]:
    return [plain_value(row) for row in rows.peek(SHOWN_ROWS).to_pylist()]


_ROWS: Form[Rows] = Form(_json, sheet=_sheet)

FORMS: Final = {"Rows": _ROWS}
