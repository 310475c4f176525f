"""The markers that a timeline service writes: of all tables it serves, asked for as Hudi asks. No HTTP library.

1. It is a part of its own, which a service has or has not: it is the only one that writes.
2. Nothing is written but `MARKERS<n>` and `MARKERS.type` in `<table>/.hoodie/.temp/<instant>`, and nothing is deleted
   but such a folder. The table lies below a root, or was admitted, and is one; instants are digits, markers name files
   in the table.
3. A folder is read when it is first asked for. Those that were not asked for the longest are forgotten, and are read
   again: what was answered is on storage.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from hoodie.config import Config
from hoodie.env import Env, SystemEnv
from hoodie.errors import HudiError, Invalid
from hoodie.layout import open_table_storage
from hoodie.remote.connection import MARKER
from hoodie.remote.json_values import Json
from hoodie.server.answer import Answer
from hoodie.server.due_work import DueWork
from hoodie.server.marker_conflicts import Detection, WatchedTables
from hoodie.server.marker_folder import Batching, MarkerFolder
from hoodie.server.places import Lane, is_below, lane_of, place_of
from hoodie.server.routes import ensure_partition, is_text
from hoodie.spec import MarkerKind, parse_marker, split_joined
from hoodie.spec.keys import TEMP_DIR
from hoodie.timeline import is_table
from hoodie.transaction.lookout import group_of

log = logging.getLogger(__name__)

MAX_FOLDERS = 256
MAX_NAME = 4096

_FOLDER = re.compile(rf"(.+)/{re.escape(TEMP_DIR)}/([0-9]{{1,20}})/?")
_UNFIT = re.compile("[\0\n\r\ud800-\udfff]")
"""What cannot be part of a path, or of a line as Java reads them."""
_LISTS = "hoodie.markers.timeline_server_based.batch.num_threads"
_INTERVAL = "hoodie.markers.timeline_server_based.batch.interval_ms"
_WISH = "basepath"
"""Tells that a marker is to be made only if nobody else is about to write the file group: only then Hudi sends it."""
_BY_BUCKET = "bybucket"
_APPEND = f".marker.{MarkerKind.APPEND.value}"


def batching_of(config: Config) -> Batching:
    """How markers are batched, by Hudi's keys."""
    return Batching(config.integer(_LISTS), config.integer(_INTERVAL) / 1000)


@dataclass(slots=True)
class _Known:
    """A folder that was asked for, and whose it is; `lock` is held by who reads it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    place: str = ""
    folder: MarkerFolder | None = None


class MarkerService:
    """Markers of the tables below `roots` (paths or URLs), and of those that are admitted one by one. `options` are
    those of their storages. `detection`: how others are looked for, for those who want to hear of them.
    """

    def __init__(
        self,
        roots: Sequence[str],
        options: Mapping[str, str] | None = None,
        batching: Batching | None = None,
        env: Env | None = None,
        detection: Detection | None = None,
    ) -> None:
        self._roots = tuple(place_of(root) for root in roots)
        self._options = dict(options or {})
        self._batching = batching or Batching()
        self._env = env or SystemEnv()
        self._folders: OrderedDict[str, _Known] = OrderedDict()
        self._admitted: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()
        self._due = DueWork(self._env)
        self._watched = WatchedTables(detection or Detection(), self._later)

    def admit(self, base_path: str, options: Mapping[str, str]) -> None:
        """Writes markers of the table at a base path, too, wherever the roots are. `options` are those of its storage;
        newer ones, as of keys that were changed, are those of folders that are known, too.
        """
        place = place_of(base_path)
        with self._lock:
            if self._admitted.get(place) == dict(options):
                return
            self._admitted[place] = dict(options)
            folders = [one.folder for one in self._folders.values() if one.folder is not None and one.place == place]
        if folders:
            storage = open_table_storage(place, options)
            self._watched.reopen(place, storage)
            for folder in folders:
                folder.storage = storage

    def lane_of(self, folder: str) -> Lane:
        """Whose turn a question about a folder of markers takes. No disk is asked."""
        match = _FOLDER.fullmatch(folder)
        return lane_of("" if match is None else match[1], self._roots)

    def answer(self, method: str, path: str, parameters: Mapping[str, str]) -> Answer | Future[bool]:
        """The answer to a request; for a marker to be created what `answered` makes one of, once it is there. Reads
        the folder where it is asked for first. Never raises: what goes wrong is an answer, too.
        """
        try:
            return self._answer(method, path.removeprefix(MARKER).rstrip("/"), parameters)
        except Exception as error:
            return refused(error)

    def create_known(self, parameters: Mapping[str, str]) -> Future[bool] | None:
        """The answer to the creation of a marker where nothing has to be read for it: at once. Else None."""
        known = self._folders.get(parameters.get("markerdirpath", ""))
        if known is None or known.folder is None:
            return None
        name = parameters.get("markername", "")
        if not is_marker_name(name) or (_WISH in parameters and self._is_suspect(known.place, known.folder, name)):
            return None
        return known.folder.create(name)

    def close(self) -> None:
        """Begins no more batches. Who waits is told nothing."""
        self._due.close()

    def _answer(self, method: str, name: str, parameters: Mapping[str, str]) -> Answer | Future[bool]:
        if (method, name) not in _QUESTIONS:
            return Answer(404, b"Not found")
        key = parameters.get("markerdirpath", "")
        if name == "create":
            ensure_marker_name(parameters.get("markername", ""))
            folder = self._folder(key)
            if _WISH in parameters and self._is_taken(key, folder, parameters):
                return _json(value=False)
            return folder.create(parameters["markername"])
        if name == "dir/exists":
            return _json(self._folder(key).exists())
        if name == "dir/delete":
            folder = self._folder(key)
            try:
                return _json(folder.delete())
            finally:
                self._forget(key, folder)
        names = self._folder(key).names()
        if name == "all":
            return _json(names)
        return _json([one for one in names if one.endswith(_APPEND) == (name == "append")])

    def _is_suspect(self, place: str, folder: MarkerFolder, name: str) -> bool:
        """Whether storage must be asked before the marker may be made."""
        table, group = self._watched.known(place), group_of(name.rpartition(".marker.")[0])
        return table is None or (group is not None and table.suspects(folder.instant, group))

    def _is_taken(self, key: str, folder: MarkerFolder, parameters: Mapping[str, str]) -> bool:
        """Whether another write that goes on has announced the file group. Asks storage where need be."""
        match, group = _FOLDER.fullmatch(key), group_of(parameters["markername"].rpartition(".marker.")[0])
        if match is None or group is None:
            return False
        table = self._watched.at(place_of(match[1]), folder.storage, self._env)
        by_bucket = _BY_BUCKET in parameters
        return table.suspects(folder.instant, group) and table.is_taken(folder.instant, group, by_bucket=by_bucket)

    def _later(self, after_s: float, work: Callable[[], None]) -> None:
        self._due.add(self._env.monotonic() + after_s, work)

    def _folder(self, key: str) -> MarkerFolder:
        """The folder a client names, as it spells it.

        Raises:
            Invalid: it is none, or not one of a table that is served. Corrupt, Unavailable: it cannot be read.
        """
        with self._lock:
            known = self._folders.get(key)
            if known is None:
                known = self._folders[key] = _Known()
            self._folders.move_to_end(key)
        try:
            with known.lock:
                if known.folder is None:
                    known.place, known.folder = self._opened(key)
                return known.folder
        finally:
            with self._lock:
                self._keep(key, known)

    def _opened(self, key: str) -> tuple[str, MarkerFolder]:
        match = _FOLDER.fullmatch(key)
        if match is None or len(key) > MAX_NAME or not is_text(key):
            raise Invalid(f"{key[:200]!r} is no folder of markers", remedy=f"Send <table>/{TEMP_DIR}/<instant>")
        place = place_of(match[1])
        with self._lock:
            admitted = self._admitted.get(place)
            kept = [one.folder for one in self._folders.values() if one.folder is not None and one.place == place]
        if admitted is None and not is_below(place, self._roots):
            raise _NotServed("This service does not serve tables there")
        for same in kept:
            if same.instant == match[2]:
                return place, same
        storage = open_table_storage(place, self._options if admitted is None else admitted)
        if not is_table(storage):
            raise _NoTable("There is no table there")
        return place, MarkerFolder(storage, match[2], self._batching, self._env, self._when_due)

    def _when_due(self, folder: MarkerFolder, at: float) -> None:
        self._due.add(at, folder.write_batch)

    def _keep(self, key: str, known: _Known) -> None:
        if known.folder is None:
            if self._folders.get(key) is known:
                del self._folders[key]
            return
        idle = [at for at, one in self._folders.items() if one.folder is not None and one.folder.is_idle]
        for at in idle[: max(0, len(self._folders) - MAX_FOLDERS)]:
            if at != key:
                del self._folders[at]

    def _forget(self, key: str, folder: MarkerFolder) -> None:
        with self._lock:
            for at in [at for at, one in self._folders.items() if one.folder is folder or at == key]:
                self._watched.forget(self._folders.pop(at).place, folder.instant)


class _NotServed(Invalid):
    """A table outside the roots."""


class _NoTable(Invalid):
    """A folder that is no table."""


_QUESTIONS = frozenset(
    {
        ("GET", "all"),
        ("GET", "create-and-merge"),
        ("GET", "append"),
        ("GET", "dir/exists"),
        ("POST", "create"),
        ("POST", "dir/delete"),
    }
)


def ensure_marker_name(name: str) -> None:
    """Checks that a marker names one file in a table, in one line.

    Raises:
        Invalid: it does not.
    """
    marker = parse_marker(name) if len(name) <= MAX_NAME and not _UNFIT.search(name) else None
    if marker is None or len(split_joined(name)) != 1:
        raise Invalid(f"{name[:200]!r} is no marker", remedy="Send <partition>/<file>.marker.<CREATE|MERGE|APPEND>")
    ensure_partition(marker.data_path.rpartition("/")[0])


def is_marker_name(name: str) -> bool:
    """Whether `ensure_marker_name` lets it pass."""
    try:
        ensure_marker_name(name)
    except Invalid:
        return False
    return True


def answered(answer: Future[bool]) -> Answer:
    """The answer of a future that is done."""
    error = answer.exception()
    return _json(answer.result()) if error is None else refused(error)


def refused(error: BaseException) -> Answer:
    """The answer to a request that failed."""
    match error:
        case _NotServed():
            return Answer(403, str(error).encode())
        case _NoTable():
            return Answer(404, str(error).encode())
        case Invalid():
            return Answer(400, str(error).encode())
        case HudiError():
            return Answer(503, str(error).encode())
    log.error("cannot answer about markers", exc_info=error)
    return Answer(500, b"The service failed; its log says why")


def _json(value: Json) -> Answer:
    return Answer(200, json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
