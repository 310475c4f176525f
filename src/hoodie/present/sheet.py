"""A table of texts as people see it, before it is HTML or a grid of the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from hoodie.present.plain import plain_text
from hoodie.units import size_text

T = TypeVar("T")

Tone = Literal["", "good", "warning", "error"]

_LISTED = 3


@dataclass(frozen=True, slots=True)
class Column:
    """A column: numbers stand to the right, and what `wraps` (paths, sentences) may take several lines."""

    name: str
    is_number: bool = False
    wraps: bool = False


@dataclass(frozen=True, slots=True)
class Sheet:
    """Rows of texts under columns. Columns without names have no heading: their first is the name of a fact.

    `tones` has one for each row, or is empty. `on_terminal` is how many rows a terminal shows at most.
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[str]]
    tones: Sequence[Tone] = ()
    notes: tuple[str, ...] = ()
    on_terminal: int | None = None

    @property
    def has_heading(self) -> bool:
        """Whether a column has a name."""
        return any(column.name for column in self.columns)


Cells = Mapping[Column, Callable[[T], str]]
"""The columns of a sheet about values of one class, each with the text of a value in it."""


def sheet_of(
    title: str,
    cells: Cells[T],
    values: Iterable[T],
    *,
    tone: Callable[[T], Tone] | None = None,
    notes: tuple[str, ...] = (),
    on_terminal: int | None = None,
) -> Sheet:
    """A sheet with one row for each value."""
    shown = tuple(values)
    rows = [[text(value) for text in cells.values()] for value in shown]
    tones = [] if tone is None else [tone(value) for value in shown]
    return Sheet(title, tuple(cells), rows, tones, notes, on_terminal)


def facts(title: str, values: Mapping[str, Any]) -> Sheet:
    """A sheet of named values. A name that ends in `bytes` has a size; of a long list the count is shown."""
    rows = [(_label(name), fact_text(name, value)) for name, value in values.items()]
    return Sheet(title, (Column(""), Column("", wraps=True)), rows)


def listing(title: str, rows: Sequence[Mapping[str, Any]]) -> Sheet:
    """A sheet with one row for each mapping. All have the keys of the first, which are the columns."""
    names = tuple(rows[0]) if rows else ()
    columns = tuple(Column(_label(name), _is_number(row[name] for row in rows), wraps=True) for name in names)
    return Sheet(title, columns, [[fact_text(name, row[name]) for name in names] for row in rows])


def fact_text(name: str, value: Any) -> str:
    """One value in one line of text."""
    match value:
        case None:
            return ""
        case int() if not isinstance(value, bool):
            return size_text(value) if name.endswith("bytes") else f"{value:,}"
        case list() | tuple() if len(value) <= _LISTED and all(isinstance(part, str) for part in value):
            return plain_text(", ".join(value))
        case list() | tuple() | dict():
            return f"{len(value):,}"
        case _:
            return plain_text(value)


def _label(name: str) -> str:
    return "size" if name == "size_bytes" else name.replace("_", " ")


def _is_number(cells: Iterable[Any]) -> bool:
    return all(isinstance(cell, int) and not isinstance(cell, bool) for cell in cells)
