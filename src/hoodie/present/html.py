"""Sheets as HTML tables. Everything shown is escaped."""

from __future__ import annotations

from html import escape

from hoodie.present.sheet import Sheet

SHOWN_ROWS = 20


def sheet_html(sheet: Sheet) -> str:
    """A table of at most `SHOWN_ROWS` rows; below it how many more there are, and the notes."""
    names = "".join(f"<th>{escape(column.name)}</th>" for column in sheet.columns)
    head = f"<thead><tr>{names}</tr></thead>" if sheet.has_heading else ""
    shown = sheet.rows[:SHOWN_ROWS]
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in shown)
    left = len(sheet.rows) - len(shown)
    notes = (*([f"{left:,} more"] if left else []), *sheet.notes)
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<table><caption>{escape(sheet.title)}</caption>{head}<tbody>{body}</tbody></table>{below}"
