"""The timeline as a drawing and as a list: what each instant did, how long it took, what it wrote.

1. The drawing has a lane for each kind of action, and below it on the same axis how long each took, what it wrote and
   the log files that no compaction has merged yet. Instants stand one after another, so that all can be told apart; the
   script moves them to where their times are, and zooms. Heights are square roots: a bulk insert hides no small commit.
2. Pending instants are outlined, those that have failed are crossed as well: no meaning hangs on a colour alone.
3. At most `MAX_DRAWN` instants are drawn and `MAX_LISTED` listed, the newest: `SHOWN_ROWS` of them at first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from hoodie.present.page.markup import Html, element
from hoodie.present.page.parts import Cell, table, word
from hoodie.present.page.words import moment, span
from hoodie.present.sheet import Column, Tone
from hoodie.services.overview.instant_works import InstantWork, log_debt_after
from hoodie.services.overview.waiting import Waiting
from hoodie.units import count_text, size_text

MAX_DRAWN = 500
MAX_LISTED = 100
SHOWN_ROWS = 10

_LANES = (
    *("commit", "deltacommit", "compaction", "log compaction", "logcompaction", "replacecommit", "clustering"),
    *("clean", "rollback", "restore", "savepoint", "indexing"),
)
_WIDTH, _LEFT, _RIGHT = 1000, 118, 934
_LANE, _PANEL, _GAP = 24, 58, 22


@dataclass(frozen=True, slots=True)
class _Panel:
    """Bars below the lanes. Each instant has parts, stacked from the bottom, with their classes."""

    title: str
    parts: Callable[[int], Sequence[tuple[str, float]]]
    text: Callable[[float], str]
    highest: float


def timeline_drawing(works: Sequence[InstantWork], waiting: Sequence[Waiting], log_bytes: int, now: datetime) -> Html:
    """The drawing of the newest instants, with its tools. `log_bytes`: of log files now."""
    shown = [work for work in works[-MAX_DRAWN:] if work.began is not None]
    if not shown:
        return element("p", "Nothing has happened to this table yet.")
    panels = _panels(shown, log_debt_after(shown, log_bytes))
    lanes = [kind for kind in _LANES if any(work.kind == kind for work in shown)]
    lanes += sorted({work.kind for work in shown} - set(lanes))
    top = len(lanes) * _LANE + _GAP
    foot = top + len(panels) * (_PANEL + _GAP)
    states = {entry.instant: entry for entry in waiting}
    drawn = [
        _instant(
            _Drawn(number, len(shown), lanes.index(work.kind), work, states.get(work.instant)),
            _bars(number, len(shown), panels, top),
            now,
        )
        for number, work in enumerate(shown)
    ]
    svg = element(
        "svg",
        [_lane(number, kind) for number, kind in enumerate(lanes)],
        [_frame(panel, top + number * (_PANEL + _GAP)) for number, panel in enumerate(panels)],
        drawn,
        element("g", _ticks(shown, foot), class_="ticks"),
        class_="timeline",
        viewBox=f"0 0 {_WIDTH} {foot + 8}",
        tabindex=0,
        role="application",
        aria_label="Timeline: arrow keys go from instant to instant, plus and minus zoom, 0 shows all",
        aria_describedby="told",
        data_left=_LEFT,
        data_right=_RIGHT,
        data_foot=foot,
    )
    return Html(
        _tools() + element("div", svg, class_="scrolls") + element("p", id="told", class_="told", aria_live="polite")
    )


def timeline_list(works: Sequence[InstantWork], waiting: Sequence[Waiting]) -> Html:
    """The newest instants, newest first: a few, and more for who wants to see them."""
    states = {entry.instant: entry for entry in waiting}
    shown = list(reversed(works[-MAX_LISTED:]))
    rows = [_row(work, states.get(work.instant)) for work in shown]
    first, others, left = rows[:SHOWN_ROWS], rows[SHOWN_ROWS:], len(works) - len(shown)
    rest = element(
        "details",
        element("summary", f"{len(others):,} before these"),
        table(_COLUMNS, others, label="Older instants"),
        element("p", f"{left:,} older ones are on the timeline: hoodie timeline has all.", class_="hint")
        if left
        else None,
    )
    return Html(table(_COLUMNS, first, label="Newest instants") + (rest if others else ""))


_COLUMNS = (
    Column("began (UTC)"),
    Column("action"),
    Column("operation"),
    Column("took", is_number=True),
    Column("files", is_number=True),
    Column("written", is_number=True),
    Column("inserts", is_number=True),
    Column("updates", is_number=True),
    Column("deletes", is_number=True),
    Column("note", wraps=True),
)


def _row(work: InstantWork, waiting: Waiting | None) -> list[Cell]:
    has_written = work.operation is not None
    numbers: list[Cell] = [
        work.files if has_written else None,
        size_text(work.bytes_written) if has_written else None,
        *((work.inserts, work.updates, work.deletes) if has_written else (None,) * 3),
    ]
    began = [moment(work.began, work.requested), element("br"), element("small", work.requested)]
    note = [f"removed {count_text(work.files_deleted, 'file')}; " if work.files_deleted else "", work.note]
    state = _state_word(waiting) if waiting else None
    return [began, [work.kind, " " if state else None, state], work.operation, span(work.seconds), *numbers, note]


def _state_word(waiting: Waiting) -> Html:
    return word(waiting.verdict if waiting.has_failed else waiting.instant.state.name.lower(), _tone(waiting))


def _tone(waiting: Waiting) -> Tone:
    return "error" if waiting.has_failed else "warning"


def _panels(works: Sequence[InstantWork], debts: Sequence[int | None]) -> list[_Panel]:
    seconds = [work.seconds or 0.0 for work in works]
    found = [
        _Panel("took", lambda number: [("took", seconds[number])], span, max(seconds)),
        _Panel(
            "written",
            lambda number: [("bases", works[number].base_bytes), ("logs", works[number].log_bytes)],
            lambda size: size_text(int(size)),
            max(work.bytes_written for work in works),
        ),
    ]
    highest = max((debt or 0 for debt in debts), default=0)
    if highest:
        debt = _Panel(
            "logs to merge", lambda number: [("debt", debts[number] or 0)], lambda size: size_text(int(size)), highest
        )
        found.append(debt)
    return found


def _bars(number: int, count: int, panels: Sequence[_Panel], top: int) -> list[Html]:
    x, width = _slot(number, count)
    drawn: list[Html] = []
    for index, panel in enumerate(panels):
        bottom = float(top + index * (_PANEL + _GAP) + _PANEL)
        parts = panel.parts(number)
        whole = sum(size for _, size in parts)
        for kind, size in parts:
            if size > 0 and panel.highest:
                height = max(1.5, _PANEL * math.sqrt(whole / panel.highest) * size / whole)
                bottom -= height
                drawn.append(element("rect", x=x, y=bottom, width=width, height=height, class_=kind))
    return drawn


@dataclass(frozen=True, slots=True)
class _Drawn:
    """One instant that is drawn: which of how many, and in which lane."""

    number: int
    count: int
    lane: int
    work: InstantWork
    waiting: Waiting | None


def _instant(entry: _Drawn, bars: Sequence[Html], now: datetime) -> Html:
    work, waiting = entry.work, entry.waiting
    x, width = _slot(entry.number, entry.count)
    y = entry.lane * _LANE + 4
    has_failed = waiting is not None and waiting.has_failed
    states = " pending" * (waiting is not None) + " failed" * has_failed
    began_ms = int(work.began.timestamp() * 1000) if work.began else 0
    ended_ms = int(now.timestamp() * 1000) if waiting else began_ms + int(1000 * (work.seconds or 0))
    cross = element("text", "✕", x=x + width / 2, y=y + 12, text_anchor="middle") if has_failed else None
    return element(
        "g",
        element("title", _told(work, waiting)),
        element("rect", x=x, y=y, width=width, height=_LANE - 8, rx=2, class_="act"),
        bars,
        cross,
        class_=f"i {work.kind.replace(' ', '-')}{states}",
        data_a=began_ms,
        data_b=max(began_ms, ended_ms),
        data_n=entry.number,
    )


def _told(work: InstantWork, waiting: Waiting | None) -> str:
    """All that is known of an instant, in lines."""
    state = f"{waiting.instant.state.name.lower()}, {waiting.verdict}" if waiting else "completed"
    took = f", took {span(work.seconds)}" if work.seconds is not None else ""
    began = f", began {work.began:%Y-%m-%d %H:%M:%S} UTC" if work.began else ""
    lines = [f"{work.kind} {work.requested}: {state}{began}{took}"]
    if work.operation is not None:
        sizes = f"{size_text(work.base_bytes)} of base files, {size_text(work.log_bytes)} of log files"
        rows = f"{work.inserts:,} inserts, {work.updates:,} updates, {work.deletes:,} deletes"
        where = f"{count_text(work.files, 'file')} in {count_text(work.partitions, 'partition')}"
        lines.append(f"{work.operation}: {where}; {sizes}; {rows}")
    if work.log_bytes_merged:
        lines.append(f"merged {size_text(work.log_bytes_merged)} of log files")
    if work.files_deleted:
        lines.append(f"removed {count_text(work.files_deleted, 'file')}")
    return "\n".join([*lines, *filter(None, (work.note,))])


def _lane(number: int, kind: str) -> Html:
    y = number * _LANE
    line = element("line", x1=_LEFT, x2=_RIGHT, y1=y + _LANE - 1, y2=y + _LANE - 1)
    return element("g", line, element("text", kind, x=_LEFT - 8, y=y + 16, text_anchor="end", class_="title"))


def _frame(panel: _Panel, y: int) -> Html:
    return element(
        "g",
        element("line", x1=_LEFT, x2=_RIGHT, y1=y + _PANEL, y2=y + _PANEL),
        element("text", panel.title, x=_LEFT - 8, y=y + 12, text_anchor="end", class_="title"),
        element("text", panel.text(panel.highest), x=_LEFT - 8, y=y + 26, text_anchor="end"),
        element("line", x1=_LEFT, x2=_RIGHT, y1=y + _PANEL / 2, y2=y + _PANEL / 2, class_="half"),
        element("text", panel.text(panel.highest / 4), x=_WIDTH, y=y + _PANEL / 2 + 4, text_anchor="end"),
        element("text", "0", x=_LEFT - 8, y=y + _PANEL, text_anchor="end"),
    )


def _ticks(works: Sequence[InstantWork], y: int) -> list[Html]:
    """Times of some of the instants, below them."""
    chosen = sorted({round(part * (len(works) - 1) / 6) for part in range(7)})
    return [
        element("text", f"{began:%m-%d %H:%M}", x=sum(_slot(number, len(works))), y=y, text_anchor="end")
        for number in chosen
        if (began := works[number].began) is not None and (number or len(works) > 1)
    ]


def _tools() -> Html:
    names = (("in", "Zoom in"), ("out", "Zoom out"), ("back", "← Earlier"), ("on", "Later →"), ("all", "All"))
    buttons = [element("button", text, type="button", data_do=does) for does, text in names]
    by_time = element("button", "To scale of time", type="button", data_do="time", aria_pressed="false")
    hint = element(
        "span",
        "Higher is more; what is small is drawn higher than to scale, so that it can be seen. Drag moves, Ctrl and "
        "wheel zoom; so do arrow keys, + and −.",
        class_="hint",
    )
    return element("div", buttons, by_time, hint, class_="tools", id="timeline-tools", hidden=True)


def _slot(number: int, count: int) -> tuple[float, float]:
    slot = (_RIGHT - _LEFT) / count
    return _LEFT + (number + 0.1) * slot, max(2.0, min(slot * 0.8, 28.0))
