"""The pages of a service for people: tables below its roots, one table, one partition. It knows no HTTP library.

1. A page is made from the view that the service keeps: a table that was loaded is not listed again.
2. What was found out of a table is kept for `FRESH_S` seconds while its timeline stays the same, of `MAX_KEPT` tables.
   What an instant did is read once.
3. Every file is looked into only when somebody asks for that, and once for each timeline.
4. Only tables below the roots are opened. Nothing is ever written.
"""

from __future__ import annotations

import logging
import shlex
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from hoodie.config import resolve
from hoodie.env import Env
from hoodie.errors import HudiError, Invalid, Unsupported
from hoodie.present.page.messages import message_page
from hoodie.present.page.partition import OnePartition, partition_page
from hoodie.present.page.parts import Page, Place
from hoodie.present.page.table import Links, table_page
from hoodie.present.page.tables import TABLE_ROWS, TableLine, tables_page
from hoodie.query import Finding
from hoodie.server.answer import Answer
from hoodie.server.discovery import Found, find_tables
from hoodie.server.kept_view import KeptView
from hoodie.server.page_view import page_view
from hoodie.server.places import is_below, place_of
from hoodie.server.routes import MAX_TEXT, ensure_partition, is_text
from hoodie.server.service import Service
from hoodie.services.health import STUCK_SECONDS, findings_of
from hoodie.services.overview.group_sizes import group_sizes
from hoodie.services.overview.instant_works import InstantWork, moment_of
from hoodie.services.overview.table_overview import TableOverview, overview_of
from hoodie.spec import Instant
from hoodie.state.handle import load_handle, timeline_of
from hoodie.timeline import Timeline

log = logging.getLogger(__name__)

HOME, TABLE, PARTITION = "/", "/table", "/partition"
FRESH_S = 30.0
MAX_KEPT = 64
LINE_THREADS = 8
LOOK = "files"
"""The value of the parameter `look` with which every file is looked into."""


@dataclass(slots=True)
class _Known:
    """What is known of one table: the overview at `timeline`, made at `made_s`; `findings` of every file, where
    somebody asked for them at that timeline; what each instant did. `lock`: who finds out more.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    timeline: Timeline | None = None
    made_s: float = 0.0
    overview: TableOverview | None = None
    findings: Sequence[Finding] | None = None
    works: Mapping[Instant, InstantWork] = field(default_factory=dict)


class Pages:
    """Pages about the tables of a service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._env = service.env
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._found: tuple[float, Found] | None = None
        self._lock = threading.Lock()
        self._finding = threading.Lock()

    @property
    def env(self) -> Env:
        return self._env

    def answer(self, path: str, parameters: Mapping[str, str]) -> Answer:
        """The page at a path, with its status. Never raises: what goes wrong is a page, too."""
        pages: Mapping[str, Callable[[Mapping[str, str]], str]] = {
            HOME: self._tables,
            TABLE: self._table,
            PARTITION: self._partition,
        }
        try:
            _ensure_possible(parameters)
            return _page(200, pages[path](parameters))
        except _Refused as refusal:
            return _page(403, message_page("Not here", str(refusal)))
        except HudiError as error:
            log.warning("no page for %s: %s", parameters.get("basepath", path), error)
            return _page(_status(error), _trouble_page(error, parameters.get("basepath", "")))
        except Exception:  # the last resort: who asks is told nothing of the inside
            log.exception("cannot make the page %s", path)
            return _page(500, message_page("The service failed", "Its log says why."))

    def _tables(self, parameters: Mapping[str, str]) -> str:
        found = self._found_tables()
        page = Page(_number(parameters), TABLE_ROWS, len(found.places))
        with ThreadPoolExecutor(LINE_THREADS) as pool:
            lines = list(pool.map(self._line, found.places[page.shown]))
        return tables_page(
            lines,
            page,
            lambda place: Place(TABLE, {"basepath": place}).address(),
            roots=self._service.roots,
            note=found.note,
            now=self._env.now(),
            place=Place(HOME, {}),
        )

    def _table(self, parameters: Mapping[str, str]) -> str:
        place = self._place(parameters)
        overview = self._overview(place, is_examined=parameters.get("look") == LOOK)
        order, look = parameters.get("order", ""), parameters.get("look", "")
        table = Place(TABLE, {"basepath": place, "order": order, "look": look})
        links = Links(
            place=table,
            home=HOME,
            examine=table.address(look=LOOK),
            partition=lambda name: Place(PARTITION, {"basepath": place, "partition": name}).address(),
        )
        return table_page(overview, links, order=order, number=_number(parameters))

    def _partition(self, parameters: Mapping[str, str]) -> str:
        place, partition = self._place(parameters), parameters.get("partition", "")
        ensure_partition(partition)

        def shown(view: KeptView) -> OnePartition:
            groups = tuple(group_sizes(page_view(view, partition), partition))
            return OnePartition(view.handle.config.name, partition, groups)

        one = self._service.with_view(place, shown, partition)
        order = parameters.get("order", "")
        here = Place(PARTITION, {"basepath": place, "partition": partition, "order": order})
        up = Place(TABLE, {"basepath": place}).address()
        return partition_page(one, here, up, order=order, number=_number(parameters))

    def _place(self, parameters: Mapping[str, str]) -> str:
        place = place_of(parameters.get("basepath", ""))
        if not is_below(place, self._service.roots):
            raise _Refused("This service does not serve tables there.")
        return place

    def _found_tables(self) -> Found:
        """Tables below the roots, looked for anew after a while."""
        with self._finding:
            now_s = self._env.monotonic()
            if self._found is None or now_s - self._found[0] > FRESH_S:
                self._found = now_s, find_tables(self._service.roots, self._service.storage_at, self._env)
            return self._found[1]

    def _line(self, place: str) -> TableLine:
        """One look at the config and the timeline of a table."""
        name = place.rpartition("/")[2]
        try:
            handle = load_handle(self._service.storage_at(place), self._env)
            timeline = timeline_of(handle)
        except HudiError as error:
            return TableLine(place, name, trouble=error.cause)
        zone, last, pending = handle.config.timezone, timeline.last_completed_write(), timeline.pending()
        now = self._env.now()
        began = (moment_of(instant.requested, zone) for instant in pending)
        return TableLine(
            place=place,
            name=handle.config.name or name,
            kind=handle.config.table_type,
            version=handle.config.table_version,
            last_write=moment_of(last.requested, zone) if last else None,
            instants=len(timeline.instants),
            pending=len(pending),
            stuck=sum(at is not None and (now - at).total_seconds() >= STUCK_SECONDS for at in began),
        )

    def _overview(self, place: str, *, is_examined: bool) -> TableOverview:
        known = self._known_of(place)
        with known.lock:
            return self._service.with_view(place, lambda view: self._overview_of(known, view, is_examined=is_examined))

    def _overview_of(self, known: _Known, view: KeptView, *, is_examined: bool) -> TableOverview:
        now_s = self._env.monotonic()
        is_same = known.timeline is not None and known.timeline == view.timeline
        if not is_same:
            known.findings = None
        lacks = is_examined and known.findings is None
        if known.overview is None or not is_same or lacks or now_s - known.made_s > FRESH_S:
            if lacks:
                known.findings = findings_of(view.handle)
            known.overview = self._new_overview(known, view)
            known.timeline, known.made_s = view.timeline, now_s
            known.works = {work.instant: work for work in known.overview.works if work.instant.is_completed}
        return known.overview

    def _new_overview(self, known: _Known, view: KeptView) -> TableOverview:
        found = page_view(view)
        return overview_of(view.handle, resolve({}), found, findings=known.findings, known=known.works)

    def _known_of(self, place: str) -> _Known:
        with self._lock:
            known = self._known.setdefault(place, _Known())
            self._known.move_to_end(place)
            while len(self._known) > MAX_KEPT:
                self._known.popitem(last=False)
            return known


class _Refused(Exception):
    """A table that is not below the roots."""


def _page(status: int, page: str) -> Answer:
    return Answer(status, page.encode())


def _trouble_page(error: HudiError, place: str) -> str:
    is_there = place and not isinstance(error, Invalid)
    more = f"hoodie doctor {shlex.quote(place)} says more." if is_there else None
    return message_page(type(error).__name__, error.cause, f"→ {error.remedy}" if error.remedy else None, more)


def _status(error: HudiError) -> int:
    if isinstance(error, Invalid):
        return 400 if error.facts.get("parameter") else 404
    return 501 if isinstance(error, Unsupported) else 500


def _number(parameters: Mapping[str, str]) -> int:
    """The part of a list that is asked for; the first where that is no number."""
    text = parameters.get("page", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 1


def _ensure_possible(parameters: Mapping[str, str]) -> None:
    for name, value in parameters.items():
        if len(value) > MAX_TEXT or not is_text(value):
            raise Invalid(f"{name} cannot be so", remedy="Follow a link of a page", parameter=name)
