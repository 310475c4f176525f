"""How a table is: what needs attention, with the remedy of each. The page with pictures is in `report`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hoodie.present.forms import Form, fields_json
from hoodie.present.sheet import Column, Sheet, Tone
from hoodie.units import count_text

if TYPE_CHECKING:
    from hoodie.services.health import Severity, TableHealth

TONES: Final[dict[Severity, Tone]] = {"error": "error", "warning": "warning", "note": ""}
_COLUMNS: Final = (
    Column(""),
    Column("kind"),
    Column("where", wraps=True),
    Column("what", wraps=True),
    Column("remedy", wraps=True),
)


def state_text(health: TableHealth) -> str:
    """Whether the table is healthy, in words."""
    return "healthy" if health.is_healthy else "needs attention"


def _json(health: TableHealth) -> dict[str, Any]:
    return {
        "name": health.name,
        "uri": health.uri,
        "table_type": health.table_type,
        "version": health.version,
        "examined": health.examined.isoformat(),
        "healthy": health.is_healthy,
        "concerns": [fields_json(concern) for concern in health.concerns],
        "partitions": [fields_json(partition) for partition in health.partitions],
        "log_debt": [fields_json(debt) for debt in health.debts],
    }


def _sheet(health: TableHealth) -> Sheet:
    rows = [
        (concern.severity, concern.kind, concern.subject, concern.message, concern.remedy)
        for concern in health.concerns
    ]
    title = f"{health.name}: {state_text(health)}, {count_text(len(rows), 'concern')}"
    return Sheet(title, _COLUMNS, rows, [TONES[concern.severity] for concern in health.concerns])


_HEALTH: Form[TableHealth] = Form(_json, sheet=_sheet)

FORMS: Final = {"TableHealth": _HEALTH}
