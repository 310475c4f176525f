"""Savepoints: who made them, when, what for, and how much they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from hoodie.present.forms import Form
from hoodie.present.sheet import Sheet, listing

if TYPE_CHECKING:
    from hoodie.services.rollback.savepoint import Savepoint


def _json(savepoint: Savepoint) -> dict[str, Any]:
    return {
        "instant": savepoint.instant,
        "user": savepoint.user,
        "comments": savepoint.comments,
        "created_ms": savepoint.created_ms,
        "files": len(savepoint.paths),
        "partitions": len(savepoint.files),
    }


def _sheet(savepoints: Sequence[Savepoint]) -> Sheet:
    return listing("Savepoints", [_json(savepoint) for savepoint in savepoints])


_SAVEPOINT: Form[Savepoint] = Form(_json, lambda savepoint: f"Savepoint of {savepoint.instant}", listing=_sheet)
_SAVEPOINTS: Form[Sequence[Savepoint]] = Form(list, sheet=_sheet)

FORMS: Final = {"Savepoint": _SAVEPOINT, "TableSavepoints": _SAVEPOINTS}
