"""The timeline service: answers requests about tables below its roots, from views it keeps. It knows no HTTP library.

1. A table is opened when it is first asked for, a partition loaded then. Who asks for the same at once waits for it.
2. Each request carries the client's last instant and the hash of its timeline; ours also by what names and plans they
   go. Where they are not the service's, the table is looked at once and the view synced; for who does not tell of names
   and plans, once in a second; where they still are not, the answer is 400, never a guess. A clean that came last is
   forgiven, as it is by Hudi: it takes away nothing of the newest state. Who reads an older one looks for cleans after
   the answer (`query.cleaned`).
3. Answers are made from one value, beside whatever is being synced.
4. A table that cannot be synced is opened anew; what cannot be read is said, and nothing is kept of it.
5. Views that an earlier service left in their store are caught up with when they are first asked for. A store that
   fails costs no answer: the table is loaded anew, into memory.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hoodie.env import Env, SystemEnv
from hoodie.errors import HudiError, Invalid, Unavailable, Unsupported
from hoodie.layout import open_table_storage
from hoodie.remote.known_timeline import LOOK, NAMES, NO_INSTANT
from hoodie.server.answer import Answer, answer_of, json_answer, text_answer
from hoodie.server.client_timeline import differs, is_behind, is_forgiven, looks_agree, names_agree
from hoodie.server.kept_view import KeptView, aside, by_storage, lasting, load_into, open_view, resumed_view, synced
from hoodie.server.places import Lane, is_below, lane_of, place_of
from hoodie.server.routes import COMMANDS, FILES, ROUTES, VIEW, Asked, Route, asked_of
from hoodie.server.stores.memory import MemoryStores
from hoodie.server.stores.store import NotNewest, StoreFailed, Stores, ViewStore
from hoodie.server.tally import Tally
from hoodie.state.handle import TableHandle, load_handle
from hoodie.state.log_renames import is_named_alike
from hoodie.storage import Storage
from hoodie.timeline import Timeline
from hoodie.view import PartitionFiles, Replaced

log = logging.getLogger(__name__)

Found = TypeVar("Found")

MAX_TABLES = 256
"""Tables whose views are kept; of more, those that were not asked for the longest go. What is no table is not kept."""

UNTOLD_S = 1.0
"""For how long names of files and plans count as they were seen, where a client does not tell by which it goes."""

PLACE_S = 60.0
"""For how long a base path that was asked for is taken to lead where it did: links may be turned."""

MAX_FILES_AT_ONCE = 500
"""Of a partition that is answered for at once: some milliseconds, in which nobody else is answered."""

_ANYHOW = "It is asked again with the next write; without it the table can be written as well"
_BOOTSTRAPPED = "hoodie.bootstrap.base.path"
_LOADED_FIRST: Mapping[str, Callable[[Asked], Sequence[str] | None]] = {
    "partition": lambda asked: (asked.partition,),
    "chosen": lambda asked: asked.partitions,
    "all": lambda asked: None,
}
"""The partitions that are loaded for a question (None: all), by what it covers."""


@dataclass(frozen=True, slots=True)
class Kept:
    """How many tables are kept, how many partitions of them are loaded, and the places of those whose store failed."""

    tables: int
    partitions: int
    failed: tuple[str, ...]


@dataclass(slots=True)
class _Table:
    """A table's storage, where the view of it is kept, and the view once there is one. `may_resume`: what an earlier
    service kept was not looked at; `is_table`: somebody opened it; `has_failed`: its store did; `is_reopened`: the
    storage is another one than that of the view; `looked_s`: when it was looked at; `lock`: who makes the next view.
    """

    place: str
    storage: Storage
    stores: Stores
    may_resume: bool = True
    view: KeptView | None = None
    is_table: bool = False
    has_failed: bool = False
    is_reopened: bool = False
    looked_s: float = -math.inf
    lock: threading.RLock = field(default_factory=threading.RLock)


class Service:
    """Views of the tables below `roots` (paths or URLs), and of those that are admitted one by one. `options` are those
    of their storages; `stores`: where views are kept, else in memory.
    """

    def __init__(
        self,
        roots: Sequence[str],
        options: Mapping[str, str] | None = None,
        env: Env | None = None,
        stores: Stores | None = None,
    ) -> None:
        self._roots = tuple(place_of(root) for root in roots)
        for root in self._roots:
            if root.startswith("/") and not os.path.isdir(root):
                raise Invalid(f"There is no folder {root}", remedy="Name one that tables lie below", root=root)
        self._options = dict(options or {})
        self._env = env or SystemEnv()
        self._stores = stores or MemoryStores()
        self._tables: OrderedDict[str, _Table] = OrderedDict()
        self._lock = threading.Lock()
        self._admitted: dict[str, dict[str, str]] = {}
        self._places: dict[str, tuple[str, float]] = {}
        self.tally = Tally()

    @property
    def roots(self) -> tuple[str, ...]:
        """Places that tables lie below."""
        return self._roots

    @property
    def env(self) -> Env:
        return self._env

    def storage_at(self, place: str) -> Storage:
        """The storage of a place below the roots, or of a table that was admitted."""
        return open_table_storage(place, self._admitted.get(place, self._options))

    def kept(self) -> Kept:
        """What is kept. Nothing is read but stores; one that fails is given up."""
        with self._lock:
            tables = list(self._tables.values())
        partitions = 0
        for table in tables:
            try:
                view = table.view
                partitions += 0 if view is None else len(view.loaded())
            except StoreFailed as error:
                self._keep_in_memory(table, error, waits=False)  # who loads it may wait for a storage
        return Kept(
            sum(table.view is not None for table in tables),
            partitions,
            tuple(sorted(table.place for table in tables if table.has_failed)),
        )

    def with_view(self, place: str, use: Callable[[KeptView], Found], partition: str | None = None) -> Found:
        """What `use` makes of the view of the table at a place below the roots, at its timeline of now, with a
        partition (None: all) loaded. Where the store fails, in `use` as well, it is used once more with a view that is
        loaded anew.

        Raises:
            Invalid: there is no table. Unsupported: it is not served. Corrupt: it is damaged.
        """
        asked = None if partition is None else (partition,)
        with self._table(place) as table:
            return self._despite_store(table, lambda: use(self._loaded(table, self._synced(table), asked)))

    def answer(self, method: str, path: str, parameters: Mapping[str, str]) -> Answer:
        """The answer to a request. Never raises: what goes wrong is an answer, too."""
        try:
            return self._answer(method, path, parameters)
        except Exception:  # the last resort: who asks is told nothing of the inside
            log.exception("cannot answer a %s of %s", method, path)
            return text_answer(500, "The service failed; its log says why")

    def answer_at_once(self, path: str, parameters: Mapping[str, str]) -> Answer | None:
        """The answer to a question, asked with GET, about a partition that is loaded in memory and has few files, from
        who knows the timeline of its view. None for every other: something has to be looked at, waited for or refused.
        """
        route = ROUTES.get(_question(path))
        if route is None or route.covers != "partition" or route.looks or not _is_checked(route, parameters):
            return None
        try:
            asked = asked_of(parameters, route)
            place, until = self._places.get(asked.base_path, ("", 0.0))  # where it leads is not asked: a disk may hang
            table = self._tables.get(place) if self._env.monotonic() < until else None
            view = None if table is None else table.view
            if table is None or view is None or not view.store.is_in_memory:
                return None
            if not self._agrees(table, view, parameters):
                return None
            is_still = self._has_still(place, weakref.ref(view), parameters)
            files = view.files(asked.partition)
            if files is None or len(files) > MAX_FILES_AT_ONCE or not is_still():
                return None
            found = route.answer(view, asked)
        except HudiError:
            return None
        return replace(answer_of(found, parameters), is_still=is_still)

    def lane_of(self, base_path: str) -> Lane:
        """Whose turn a question about the table at a base path takes. No disk is asked: where a link leads is known if
        somebody asked before by this spelling.
        """
        known = self._places.get(base_path)
        return lane_of(base_path if known is None else known[0], self._roots)

    def admit(self, base_path: str, options: Mapping[str, str]) -> None:
        """Serves the table at a base path, too, wherever the roots are. `options` are those of its storage; newer ones,
        as of keys that were changed, are those of the view that is kept, too.
        """
        place = place_of(base_path)
        with self._lock:
            if self._admitted.get(place) == dict(options):
                return
            self._admitted[place] = dict(options)
            table = self._tables.get(place)
        if table is not None:
            table.storage, table.is_reopened = self.storage_at(place), True

    def known_at(
        self, handle: TableHandle, seen: Timeline, partitions: Collection[str] | None, wait_s: float
    ) -> tuple[Timeline, tuple[PartitionFiles, ...], Replaced]:
        """Settled files of the given partitions (None: of all there are) of the table of `handle` at `seen`, its
        timeline as its writer has just seen it; that timeline, with what is known of the history, and which groups were
        replaced when. Nothing is listed but partitions that nobody asked for before.

        Raises:
            Unavailable: somebody else had the table for longer than `wait_s`. Else as `load_into`.
        """
        with self._table(place_of(handle.storage.absolute(""))) as table:
            if not table.lock.acquire(timeout=wait_s):
                raise Unavailable("The timeline service of this process is busy with the table", remedy=_ANYHOW)
            try:
                view, table.may_resume = _known_view(table), False
                if view is None:
                    view = open_view(handle, table.stores.open(table.place), seen)
                else:
                    if (view.timeline.last_time() or "") > (seen.last_time() or ""):
                        table.looked_s = -math.inf  # who waited for a look is not given what a writer saw before it
                    view = synced(view, handle, seen)
                table.is_table = True
                view = load_into(view, partitions)
                table.view = lasting(view)
                names = view.loaded() if partitions is None else sorted(set(partitions))
                return view.timeline, tuple(map(view.partition_files, names)), view.replaced
            except BaseException:
                table.view = None
                raise
            finally:
                table.lock.release()

    def close(self) -> None:
        """Gives back what the store of the views holds. Nothing may be asked afterwards."""
        self._stores.close()

    def _answer(self, method: str, path: str, parameters: Mapping[str, str]) -> Answer:
        routes = {"GET": {**ROUTES, **FILES}, "POST": COMMANDS}.get(method, {})
        name = _question(path)
        route = routes.get(name)
        if route is None:
            return text_answer(404, "Not found")
        try:
            asked = asked_of(parameters, route)
            place = place_of(asked.base_path)
        except Invalid as error:
            return text_answer(400, str(error))
        if not self._serves(place):
            return text_answer(403, "This service does not serve tables there")
        if len(self._places) >= MAX_TABLES:
            self._places.clear()
        self._places[asked.base_path] = place, self._env.monotonic() + PLACE_S
        try:
            with self._table(place) as table:

                def answered() -> Answer:
                    if name in COMMANDS:
                        self._command(table, name, asked.partitions)
                        return json_answer(True, parameters)
                    return self._read(table, route, asked, parameters)

                return self._despite_store(table, answered)
        except Invalid as error:
            return text_answer(404, str(error))
        except Unsupported as error:
            return text_answer(501, str(error))
        except HudiError as error:
            self.tally.add("failed")
            log.warning("cannot answer for %s: %s", place, error)
            return text_answer(500, str(error))

    def _serves(self, place: str) -> bool:
        return place in self._admitted or is_below(place, self._roots)

    @contextmanager
    def _table(self, place: str) -> Iterator[_Table]:
        """The table at a place. What turns out to be none is forgotten, and takes the place of no table."""
        with self._lock:
            table = self._tables.get(place)
            if table is None:
                table = self._tables[place] = _Table(place, self.storage_at(place), self._stores)
            self._tables.move_to_end(place)
        try:
            yield table
        finally:
            with self._lock:
                self._keep(place, table)

    def _keep(self, place: str, table: _Table) -> None:
        if table.is_table:
            self._tables.setdefault(place, table)
        elif self._tables.get(place) is table:
            del self._tables[place]
        opened = [at for at, one in self._tables.items() if one.is_table]
        for at in opened[: max(0, len(opened) - MAX_TABLES)]:
            del self._tables[at]

    def _read(self, table: _Table, route: Route, asked: Asked, parameters: Mapping[str, str]) -> Answer:
        is_checked = _is_checked(route, parameters)
        last, known_hash = _known_to_client(parameters)
        asked_s = self._env.monotonic()
        view = self._opened(table)
        if route.looks or (is_checked and not self._agrees(table, view, parameters)):
            view = self._synced(table, asked_s)
        is_same = is_checked and not is_behind(view.timeline, last, known_hash)
        if is_checked and not is_same and not is_forgiven(view.timeline, known_hash):
            return text_answer(400, differs(view.timeline, last))
        if is_checked and names_agree(view.handle.config, parameters) is False:
            return text_answer(400, "Files of the table have other names by now than the client goes by")
        if route.covers in _LOADED_FIRST:
            view = self._loaded(table, view, _LOADED_FIRST[route.covers](asked))
        answer = answer_of(route.answer(view, asked), parameters)
        is_lasting = (
            is_same
            and not route.looks
            and table.view is view
            and not view.unsettled
            and looks_agree(view.timeline, parameters) is not False
        )
        if not is_lasting:
            return answer
        return replace(answer, is_still=self._has_still(table.place, weakref.ref(view), parameters))

    def _agrees(self, table: _Table, view: KeptView, parameters: Mapping[str, str]) -> bool:
        """Whether a client is told of the very state that the view is of, as far as can be told without a look. Where
        log files were listed that may be those of a pending write it cannot: a write that gives up leaves no trace.
        """
        if view.unsettled or is_behind(view.timeline, *_known_to_client(parameters)):
            return False
        known = (names_agree(view.handle.config, parameters), looks_agree(view.timeline, parameters))
        return False not in known and (None not in known or self._is_fresh(table))

    def _is_fresh(self, table: _Table) -> bool:
        return self._env.monotonic() < table.looked_s + UNTOLD_S

    def _has_still(self, place: str, view: weakref.ref[KeptView], parameters: Mapping[str, str]) -> Callable[[], bool]:
        """Tells whether a view is still the newest of its table, which counts as asked for then."""
        is_told = bool(parameters.get(NAMES) and parameters.get(LOOK))

        def is_still() -> bool:
            table, known = self._tables.get(place), view()
            if table is None or known is None or table.view is not known:
                return False
            if not is_told and not self._is_fresh(table):
                return False
            if self._lock.acquire(blocking=False):  # who holds it may be waiting for a storage
                try:
                    if place in self._tables:
                        self._tables.move_to_end(place)
                finally:
                    self._lock.release()
            return True

        return is_still

    def _command(self, table: _Table, name: str, partitions: Sequence[str]) -> None:
        with table.lock:
            if name == "refresh":
                table.view = None
                return
            view = self._opened(table)
            table.view = lasting(self._load(view, None if name == "loadallpartitions" else partitions))

    def _opened(self, table: _Table) -> KeptView:
        view = table.view
        if view is None or table.is_reopened:
            with table.lock:
                view = _known_view(table) or self._open(table)
                table.view = lasting(view)
        return view

    def _open(self, table: _Table) -> KeptView:
        looked_s = self._env.monotonic()
        handle = load_handle(table.storage, self._env)
        if handle.config.raw.get(_BOOTSTRAPPED):
            raise Unsupported(
                "The timeline service does not serve bootstrapped tables",
                remedy="Read and write this one without it: hoodie.filesystem.view.type=MEMORY",
            )
        self.tally.add("opened")
        table.looked_s = looked_s
        store = table.stores.open(table.place)
        view = self._resumed(handle, store) if table.may_resume and store.outlives else None
        table.may_resume = False
        view = view or open_view(handle, store)
        table.is_table = True
        return view

    def _resumed(self, handle: TableHandle, store: ViewStore) -> KeptView | None:
        try:
            return resumed_view(handle, store)
        except StoreFailed:
            raise
        except HudiError as error:
            log.warning("the view of %s is loaded anew: %s", handle.storage.uri, error)
            return None

    def _despite_store(self, table: _Table, ask: Callable[[], Found]) -> Found:
        """What `ask` returns, asked once more where the table's store fails: it is another one then."""
        try:
            return ask()
        except StoreFailed as error:
            self._keep_in_memory(table, error)
            return ask()

    def _keep_in_memory(self, table: _Table, error: StoreFailed, *, waits: bool = True) -> None:
        """The table's store failed: another one is used from now on, and what is in that one is not when it is opened
        again. Who does not wait, and comes while the next view is made, leaves it to whoever asks next.
        """
        table.has_failed = table.has_failed or not isinstance(error, NotNewest)
        if not table.lock.acquire(blocking=waits):
            return
        try:
            if table.stores is self._stores:
                log.warning("the view of %s is kept in memory: %s", table.storage.uri, error)
                table.stores, table.view = MemoryStores(), None
                if not isinstance(error, NotNewest):
                    self._stores.distrust()
        finally:
            table.lock.release()

    def _synced(self, table: _Table, asked_s: float = math.inf) -> KeptView:
        """The view at the timeline of now, or of a look that began after `asked_s`: who waited for it needs none of his
        own. One that was dropped meanwhile does not come back.
        """
        with table.lock:
            known = _known_view(table)
            if known is not None and table.looked_s > asked_s:
                return known
            if known is None:
                view = self._open(table)
            else:
                try:
                    before, looked_s = known.timeline, self._env.monotonic()
                    view = synced(known, load_handle(table.storage, self._env))
                    table.looked_s = looked_s
                    self.tally.add("looks" if view.timeline == before else "synced")
                except StoreFailed:
                    raise
                except HudiError as error:
                    table.view = None
                    view = self._open(table)
                    log.warning("the view of %s is loaded anew: %s", table.storage.uri, error)
            table.view = lasting(view)
            return view

    def _loaded(self, table: _Table, view: KeptView, partitions: Sequence[str] | None) -> KeptView:
        """The view with partitions (None: all) loaded, at the same timeline. It is kept where it is still the one."""
        if partitions is not None and all(map(view.has, partitions)):
            return view
        with table.lock:
            newest = _known_view(table)
            if newest is None or newest.timeline != view.timeline:
                return self._load(aside(view), partitions)
            table.view = self._load(newest, partitions)
            return table.view

    def _load(self, view: KeptView, partitions: Sequence[str] | None) -> KeptView:
        """`load_into`; what fails is tried again with the config of now, which may have its files elsewhere."""
        try:
            loaded = load_into(view, partitions)
        except StoreFailed:
            raise
        except HudiError:
            handle = load_handle(view.handle.storage, self._env)
            known = view.handle.config
            if handle.config.raw == known.raw or not is_named_alike(handle.config, known):
                raise
            loaded = load_into(replace(view, handle=handle), partitions)
        if loaded is not view:
            self.tally.add("loaded")
        return loaded


def _known_view(table: _Table) -> KeptView | None:
    """The view of a table by way of its storage of now. The caller holds its lock."""
    if table.is_reopened:
        table.is_reopened = False
        table.view = None if table.view is None else by_storage(table.view, table.storage)
    return table.view


def _question(path: str) -> str:
    """The name of the question in a path; empty where it is none about a view."""
    return path.removeprefix(VIEW).rstrip("/") if path.startswith(VIEW) else ""


def _is_checked(route: Route, parameters: Mapping[str, str]) -> bool:
    return route.is_checked and "refreshoff" not in parameters


def _known_to_client(parameters: Mapping[str, str]) -> tuple[str, str]:
    """Last instant and hash of the client's timeline."""
    return parameters.get("lastinstantts", NO_INSTANT), parameters.get("timelinehash", "")
