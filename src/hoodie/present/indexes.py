"""The indexes of a table, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from hoodie.present.forms import Form
from hoodie.present.sheet import Column, Sheet

if TYPE_CHECKING:
    from hoodie.metadata import IndexDefinition

    Indexes = Mapping[str, IndexDefinition | None]

_COLUMNS: Final = (Column("name"), Column("kind"), Column("columns", wraps=True))


def _json(indexes: Indexes) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "kind": definition.kind if definition else name,
            "columns": list(definition.source_fields) if definition else [],
        }
        for name, definition in indexes.items()
    ]


def _sheet(indexes: Indexes) -> Sheet:
    rows = [(row["name"], row["kind"], ", ".join(row["columns"])) for row in _json(indexes)]
    return Sheet("Indexes", _COLUMNS, rows)


_INDEXES: Form[Indexes] = Form(_json, sheet=_sheet)

FORMS: Final = {"TableIndexes": _INDEXES}
