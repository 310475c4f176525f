"""What a service would do: its steps with their reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hoodie.present.forms import Form, fields_json
from hoodie.present.sheet import Cells, Column, Sheet, sheet_of
from hoodie.units import count_text, size_text

if TYPE_CHECKING:
    from hoodie.services.preview import PreviewStep, ServicePreview

_CELLS: Final[Cells[PreviewStep]] = {
    Column("action"): lambda step: step.action,
    Column("partition"): lambda step: step.partition,
    Column("file group", wraps=True): lambda step: step.file_id or "",
    Column("files", is_number=True): lambda step: f"{len(step.paths):,}",
    Column("size", is_number=True): lambda step: size_text(step.size_bytes),
    Column("reason", wraps=True): lambda step: step.reason,
}
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
    title = f"{preview.service} would touch {total}{seconds}"
    return sheet_of(title, _CELLS, preview.steps, notes=preview.notes, on_terminal=_ON_TERMINAL)


_PREVIEW: Form[ServicePreview] = Form(_json, sheet=_sheet)

FORMS: Final = {"ServicePreview": _PREVIEW}
