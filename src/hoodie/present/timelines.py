"""Instants of a table: in the order given, and for those who look at a whole timeline the newest first."""

# `hoodie timeline` is asked often and by scripts: nothing is imported here that takes longer to load than its answer.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from hoodie.present.forms import Form
from hoodie.present.sheet import Cells, Column, Sheet, sheet_of
from hoodie.units import count_text

if TYPE_CHECKING:
    from hoodie.spec import Instant
    from hoodie.timeline import Timeline

_CELLS: Final[Cells[Instant]] = {
    Column("requested"): lambda instant: instant.requested,
    Column("completed"): lambda instant: instant.completed or "",
    Column("action"): lambda instant: instant.action,
    Column("state"): lambda instant: instant.state.name,
}


def _instant_json(instant: Instant) -> dict[str, str | None]:
    return {
        "requested_time": instant.requested,
        "completion_time": instant.completed,
        "action": instant.action,
        "state": instant.state.name,
    }


def _sheet(title: str, instants: Iterable[Instant]) -> Sheet:
    return sheet_of(title, _CELLS, instants, tone=lambda instant: "" if instant.is_completed else "warning")


def _instants_sheet(instants: Sequence[Instant]) -> Sheet:
    return _sheet(f"Timeline: {count_text(len(instants), 'instant')}", instants)


def _newest_first(title: str, instants: Sequence[Instant]) -> Sheet:
    return _sheet(f"{title}, newest first", reversed(instants))


_INSTANT: Form[Instant] = Form(
    _instant_json, title=lambda instant: f"{instant.action} {instant.requested}", listing=_instants_sheet
)
_TIMELINE: Form[Timeline] = Form(
    lambda timeline: timeline.instants, sheet=lambda timeline: _newest_first("Timeline", timeline.instants)
)
_HISTORY: Form[Iterable[Instant]] = Form(list, sheet=lambda history: _newest_first("History", tuple(history)))

FORMS: Final = {"Instant": _INSTANT, "Timeline": _TIMELINE, "TableHistory": _HISTORY}
