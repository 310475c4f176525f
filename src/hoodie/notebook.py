"""How values show to people: small HTML tables for notebooks (everything shown is escaped), and sizes in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

SHOWN_ROWS = 20


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], total: int | None = None) -> str:
    """A table of at most `SHOWN_ROWS` rows; `total` says how many there are."""
    shown = [row for row, _ in zip(rows, range(SHOWN_ROWS), strict=False)]
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in shown)
    left = 0 if total is None else total - len(shown)
    more = f"<p>{left:,} more</p>" if left > 0 else ""
    thead = f"<thead><tr>{head}</tr></thead>" if header else ""
    return f"<table><caption>{escape(caption)}</caption>{thead}<tbody>{body}</tbody></table>{more}"


def size_text(size_bytes: int) -> str:
    """Bytes in the unit people would use."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _cell(value: object) -> str:
    return "" if value is None else escape(str(value))
