"""What a service would do: its steps with their reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hoodie.present.forms import Form, fields_json
from hoodie.present.sheet import Column, Sheet
from hoodie.units import count_text, size_text

if TYPE_CHECKING:
    from hoodie.services.preview import ServicePreview

_COLUMNS: Final = (
    Column("action"),
    Column("partition"),
    Column("file group", wraps=True),
    Column("files", is_number=True),
    Column("size", is_number=True),
    Column("reason", wraps=True),
)
_ON_TERMINAL: Final = 50


def _json(preview: ServicePreview) -> dict[str, Any]:
    return {
        "service": preview.service,
        "files": preview.files,
        "size_bytes": preview.size_bytes,
        "estimated_seconds": preview.estimated_seconds,
        "steps": [fields_json(step) for step in preview.steps],
        "notes": preview.notes,
    }


def _sheet(preview: ServicePreview) -> Sheet:
    total = f"{count_text(preview.files, 'file')}, {size_text(preview.size_bytes)}"
    seconds = "" if preview.estimated_seconds is None else f", about {preview.estimated_seconds:.0f} s"
    rows = [
        (
            step.action,
            step.partition,
            step.file_id or "",
            f"{len(step.paths):,}",
            size_text(step.size_bytes),
            step.reason,
        )
        for step in preview.steps
    ]
    title = f"{preview.service} would touch {total}{seconds}"
    return Sheet(title, _COLUMNS, rows, notes=preview.notes, on_terminal=_ON_TERMINAL)


_PREVIEW: Form[ServicePreview] = Form(_json, sheet=_sheet)

FORMS: Final = {"ServicePreview": _PREVIEW}
