"""Times and spans in the words of a page. Times are UTC, whatever the table's time zone."""

from __future__ import annotations

from datetime import datetime

from hoodie.present.page.markup import Html, element

_STEPS = ((60.0, "s", 1.0), (3600.0, "min", 60.0), (48 * 3600.0, "h", 3600.0))


def moment(at: datetime | None, otherwise: str = "") -> Html:
    """A time to the second."""
    if at is None:
        return element("span", otherwise)
    return element("time", f"{at:%Y-%m-%d %H:%M:%S}", datetime=at.isoformat(timespec="milliseconds"))


def span(seconds: float | None) -> str:
    """Seconds in the unit people would use."""
    if seconds is None:
        return ""
    if seconds < 1:  # also of what another clock says will be
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    for limit, unit, size in _STEPS:
        if seconds < limit:
            return f"{seconds / size:.1f} {unit}" if seconds / size < 10 else f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"


def ago(at: datetime | None, now: datetime) -> str:
    """How long ago something was."""
    if at is None:
        return ""
    seconds = (now - at).total_seconds()
    return f"{span(seconds)} ago" if seconds >= 1 else "now"


def percent(part: float, whole: float) -> str:
    """A share in whole percent; nothing of nothing is 0 %."""
    return f"{100 * part / whole:.0f} %" if whole else "0 %"
