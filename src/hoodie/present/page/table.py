"""The page about one table: at the top how it is, then what helps, what runs, what happened, where bytes lie."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hoodie.present.health import TONES, state_text
from hoodie.present.page.document import FOOT, document
from hoodie.present.page.markup import Html, element
from hoodie.present.page.parts import Cell, Place, remedy, section, table, tile, word
from hoodie.present.page.sizes import SHOWN_DEBTS, base_sizes, log_debts, overlaps, partitions
from hoodie.present.page.spread import spread_drawings
from hoodie.present.page.timeline import MAX_DRAWN, timeline_drawing, timeline_list
from hoodie.present.page.words import ago, moment, percent, span
from hoodie.present.sheet import Column, Tone
from hoodie.services.health import Concern, TableHealth
from hoodie.services.overview.table_overview import TableOverview
from hoodie.services.overview.waiting import Waiting
from hoodie.spec import COMPLETED_WRITE_ACTIONS, TableConfig
from hoodie.units import count_text, size_text

SHOWN_CONCERNS = 100


@dataclass(frozen=True, slots=True)
class Links:
    """Where a page that a service sends leads to. `place`: itself, `home`: the list of tables, `examine`: the same
    with every file looked at, `partition`: the page about one.
    """

    place: Place
    home: str
    examine: str
    partition: Callable[[str], str]


def table_page(overview: TableOverview, links: Links | None = None, *, order: str = "size", number: int = 1) -> str:
    """The page. Without `links` it stands alone, as a file. `order` and `number`: which part of the list of
    partitions, in which order.
    """
    health, place = overview.health, links.place if links else None
    parts = [
        ("concerns", "What needs attention", _concerns(overview, links)),
        ("waiting", "Running and pending", _waiting(overview.waiting)),
        ("timeline", "Timeline", _timeline(overview)),
        ("sizes", "Sizes of base files", base_sizes(health.base_sizes, health.small_limit)),
        ("overlap", "Files that a look-up reads", overlaps(health.overlaps)),
        ("debt", "Log files to merge", _debts(health)),
        (
            "partitions",
            "Partitions",
            partitions(health.partitions, order, number, place, links.partition if links else None),
        ),
        ("spread", "Spread over prefixes", spread_drawings(health.spread)),
        ("properties", "How it is set up", _properties(overview.config)),
    ]
    shown = [(anchor, title, content) for anchor, title, content in parts if content]
    return document(
        f"{health.name} – {_state_text(overview)}",
        element(
            "header",
            element("p", element("a", "All tables", href=links.home), class_="crumbs") if links else None,
            element("h1", health.name, " ", _state(overview)),
            _facts(health),
            element("nav", [element("a", title, href=f"#{anchor}") for anchor, title, _ in shown], class_="parts"),
        ),
        element(
            "main",
            _tiles(overview),
            [section(anchor, title, content) for anchor, title, content in shown],
            id="content",
        ),
        FOOT,
    )


def _state(overview: TableOverview) -> Html:
    return word(_state_text(overview), _state_tone(overview))


def _state_text(overview: TableOverview) -> str:
    """Whether the table is healthy: a write that died is no concern of the doctor's yet, but one of who looks."""
    return "needs attention" if _failed(overview) else state_text(overview.health)


def _state_tone(overview: TableOverview) -> Tone:
    if overview.health.is_healthy:
        return "warning" if _failed(overview) else "good"
    return _worst(overview.health.concerns)


def _failed(overview: TableOverview) -> int:
    return sum(entry.has_failed for entry in overview.waiting)


def _worst(concerns: Sequence[Concern]) -> Tone:
    return TONES[concerns[0].severity] if concerns else ""


def _facts(health: TableHealth) -> Html:
    about = f" · {health.table_type} · version {health.version} · looked at "
    return element("p", element("code", health.uri), about, moment(health.examined), " UTC", class_="facts")


def _tiles(overview: TableOverview) -> Html:
    health = overview.health
    base = sum(entry.base_bytes for entry in health.partitions)
    logs = sum(entry.log_bytes for entry in health.partitions)
    old, old_files = (
        sum(entry.old_bytes for entry in health.partitions),
        sum(entry.old_files for entry in health.partitions),
    )
    small = sum(entry.small_files for entry in health.partitions)
    groups = sum(entry.file_groups for entry in health.partitions)
    alarming = [entry for entry in health.concerns if entry.severity != "note"]
    tones = {entry.kind: TONES[entry.severity] for entry in reversed(health.concerns)}
    failed = _failed(overview)
    waiting = f"{len(overview.waiting):,}"
    return element(
        "ul",
        tile(
            "state",
            count_text(len(alarming), "concern") if alarming else _state_text(overview),
            None if overview.is_examined else "by names and sizes of files",
            _state_tone(overview),
        ),
        _last_write(overview),
        tile("pending", waiting, f"{failed:,} died or hang" if failed else "", "error" if failed else ""),
        tile(
            "read by queries",
            size_text(base + logs),
            f"{count_text(groups, 'file group')}, {count_text(len(health.partitions), 'partition')}",
        ),
        tile(
            "small files",
            f"{small:,}",
            f"{percent(small, len(health.base_sizes))} of base files",
            tones.get("small files", ""),
        ),
        tile(
            "logs to merge",
            size_text(logs),
            f"{percent(logs, base)} of base files",
            tones.get("log debt", ""),
        ),
        tile(
            "old versions",
            size_text(old),
            f"{old_files:,} files, for time travel",
            tones.get("old versions", ""),
        ),
        class_="tiles",
    )


def _last_write(overview: TableOverview) -> Html:
    writes = [
        entry
        for entry in overview.works
        if entry.instant.is_completed and entry.instant.action in COMPLETED_WRITE_ACTIONS
    ]
    if not writes:
        return tile("last write", "never")
    last = writes[-1]
    took = f", took {span(last.seconds)}" if last.seconds is not None else ""
    return tile(
        "last write",
        ago(last.began, overview.health.examined) or last.requested,
        f"{last.operation or last.kind}{took}",
    )


def _concerns(overview: TableOverview, links: Links | None) -> Html:
    kinds: dict[tuple[str, str], list[Concern]] = defaultdict(list)
    for entry in (*_dead_writes(overview), *overview.health.concerns):
        kinds[entry.severity, entry.kind].append(entry)
    shown = [_one_kind(many) for many in kinds.values()]
    looked = None
    if not overview.is_examined:
        looked = element(
            "p",
            "This is what names and sizes of files say. ",
            element("a", "Look into every file", href=links.examine, rel="nofollow") if links else None,
            " to compare them with the commits, as hoodie doctor does: it takes longer.",
            class_="hint",
        )
    return Html((element("ul", shown, class_="concerns") if shown else element("p", "Nothing.")) + (looked or ""))


def _dead_writes(overview: TableOverview) -> Iterator[Concern]:
    """Writes that died and are no concern of the doctor's: they are not old enough yet."""
    known = {entry.subject for entry in overview.health.concerns}
    for entry in overview.waiting:
        subject = f"{entry.instant.requested}.{entry.instant.action}"
        if entry.has_failed and subject not in known:
            said = _VERDICTS[entry.verdict] + ("" if entry.silent_s is None else f" for {span(entry.silent_s)}")
            yield Concern("warning", "dead write", subject, said, entry.remedy, entry.commands)


def _one_kind(concerns: Sequence[Concern]) -> Html:
    """The first of concerns of one kind, and the others for who wants to see them."""
    first, others = concerns[0], concerns[1:SHOWN_CONCERNS]
    left = len(concerns) - 1 - len(others)
    rest = element(
        "details",
        element("summary", f"{len(concerns) - 1:,} more like this"),
        element(
            "ul",
            [element("li", _said(entry), _help(entry) if entry.remedy != first.remedy else None) for entry in others],
        ),
        element("p", f"and {left:,} others: hoodie doctor has all.", class_="hint") if left else None,
    )
    return element(
        "li",
        element("p", word(first.severity, TONES[first.severity]), " ", _said(first)),
        _help(first),
        rest if others else None,
        class_=first.severity,
    )


def _said(concern: Concern) -> Html:
    return Html(
        element("b", concern.kind) + element("span", " in ", concern.subject or "the table", ": ", concern.message)
    )


def _help(concern: Concern) -> Html:
    is_command = concern.commands == (concern.remedy,)
    return element("p", None if is_command else "→ ", remedy(concern.remedy, concern.commands))


def _waiting(waiting: Sequence[Waiting]) -> Html:
    if not waiting:
        return element("p", "Nothing runs, and no plan waits.")
    rows: list[list[Cell]] = [
        [
            [moment(entry.began, entry.instant.requested), element("br"), element("small", entry.instant.requested)],
            entry.instant.action,
            entry.instant.state.name.lower(),
            word(
                _VERDICTS[entry.verdict], "error" if entry.has_failed else "good" if entry.verdict == "running" else ""
            ),
            span(entry.age_s),
            f"{span(entry.silent_s)} ago" if entry.silent_s is not None else "none",
            f"{count_text(entry.groups, 'file group')}, {size_text(entry.size_bytes)}" if entry.is_plan else None,
            remedy(entry.remedy, entry.commands),
        ]
        for entry in waiting[:SHOWN_CONCERNS]
    ]
    left = len(waiting) - len(rows)
    more = element("p", f"{left:,} more: hoodie timeline has all.", class_="hint") if left else ""
    return Html(table(_WAITING_COLUMNS, rows, label="What is pending") + more)


_VERDICTS = {
    "planned": "plan, not carried out",
    "running": "running",
    "unknown": "running or dead",
    "stuck": "older than it should be",
    "dead": "dead: no heartbeat",
}
_WAITING_COLUMNS = (
    Column("began (UTC)"),
    Column("action"),
    Column("state"),
    Column("is"),
    Column("since", is_number=True),
    Column("heartbeat"),
    Column("about", wraps=True),
    Column("remedy", wraps=True),
)


def _timeline(overview: TableOverview) -> Html:
    logs = sum(entry.log_bytes for entry in overview.health.partitions)
    drawing = timeline_drawing(overview.works, overview.waiting, logs, overview.health.examined)
    left = len(overview.works) - MAX_DRAWN
    cut = element("p", f"The newest {MAX_DRAWN:,} instants; {left:,} are older.", class_="hint") if left > 0 else ""
    listed = timeline_list(overview.works, overview.waiting)
    return Html(drawing + cut + (listed if overview.works else ""))


def _debts(health: TableHealth) -> Html:
    if not health.debts:
        return Html("")
    left = len(health.debts) - SHOWN_DEBTS
    more = element("p", f"{left:,} more file groups have smaller ones.", class_="hint") if left > 0 else ""
    return Html(log_debts(health.debts) + more)


def _properties(config: TableConfig) -> Html:
    said: dict[str, str] = {
        "record key": ", ".join(config.record_key_fields) or "made by the writer",
        "partitioned by": ", ".join(config.partition_fields) or "nothing",
        "ordered by": ", ".join(config.ordering_fields) or "commit",
        "base files": config.base_file_format,
        "instants are in": config.timezone,
        "metadata table": ", ".join(config.metadata_partitions) or "none",
        "change data": config.cdc_logging_mode if config.cdc_enabled else "not logged",
    }
    return table((Column("what"), Column("is", wraps=True)), [list(pair) for pair in said.items()], label="Properties")
