"""How a table is: what needs attention, with the remedy of each. The page with pictures is in `page`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hoodie.present.forms import Form, fields_json
from hoodie.present.sheet import Cells, Column, Sheet, Tone, sheet_of
from hoodie.units import count_text

if TYPE_CHECKING:
    from hoodie.services.health import Concern, Severity, TableHealth

TONES: Final[dict[Severity, Tone]] = {"error": "error", "warning": "warning", "note": ""}
_CELLS: Final[Cells[Concern]] = {
    Column(""): lambda concern: concern.severity,
    Column("kind"): lambda concern: concern.kind,
    Column("where", wraps=True): lambda concern: concern.subject,
    Column("what", wraps=True): lambda concern: concern.message,
    Column("remedy", wraps=True): lambda concern: concern.remedy,
}


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
        **({} if health.spread is None else {"places": [fields_json(place) for place in health.spread.places]}),
        "overlaps": [fields_json(overlap) for overlap in health.overlaps],
    }


def _sheet(health: TableHealth) -> Sheet:
    title = f"{health.name}: {state_text(health)}, {count_text(len(health.concerns), 'concern')}"
    return sheet_of(title, _CELLS, health.concerns, tone=lambda concern: TONES[concern.severity])


_HEALTH: Form[TableHealth] = Form(_json, sheet=_sheet)

FORMS: Final = {"TableHealth": _HEALTH}
