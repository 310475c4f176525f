"""Markers that a timeline server writes, in few files.

1. The server answers once a marker is durable. Where it does not, or says what is no answer about markers, the marker
   goes to a list of this process, as do all further ones that this process makes for the write. Hudi would not read
   direct markers beside lists, so there are none.
2. A marker may be in both: a lost answer does not tell. Both say the same.
3. Markers are read from storage: none that counts is anywhere else. They are deleted by the server, which may know more
   than is there, and here where it does not.
4. A silent server costs each process one warning for a write and no more than one time-out; none fails for it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from weakref import WeakValueDictionary

from hoodie.errors import Conflict, HudiError, Unavailable
from hoodie.remote.connection import MARKER, NO_RETRIES, Connection, Retries, ServerAddress, Told
from hoodie.remote.json_values import not_understood, short
from hoodie.spec import InstantTime, Marker, MarkerKind, marker_dir, marker_name
from hoodie.storage import Storage
from hoodie.timeline import Markers
from hoodie.timeline.marker_lists import ListedMarkers

log = logging.getLogger(__name__)

_KEPT_WRITES = 64


@dataclass(frozen=True, slots=True)
class ServerMarkers:
    """Markers of the write `instant` that the server at `address` is asked to write. `own`: how this process makes
    those that it does not; lists if nothing is said. `looks_around`: what tells the server to look whether others are
    about to write the file group first (nothing: it does not look); where they are it makes no marker.
    """

    storage: Storage
    instant: InstantTime
    address: ServerAddress
    retries: Retries = NO_RETRIES
    own: Markers | None = None
    looks_around: tuple[tuple[str, str], ...] = ()

    def create(self, data_path: str, kind: MarkerKind) -> None:
        """See `Markers`: one request, or as `own` does where it fails. A `Conflict` may also mean that the server saw
        others at work, where it looks around; `is_repeated` among its facts: the marker may be this writer's own.
        """
        name = marker_name(data_path, kind)
        asked = self._asked_server()
        if asked is not None:
            try:
                told = self._command(asked.connection, "create", markername=name, **dict(self.looks_around))
                is_new = _truth(told)
            except (Conflict, Unavailable) as error:
                asked.gave_up(error, f"marker {name}")
            else:
                asked.answered()
                # One that is there after an answer was lost is ours.
                if is_new or (told.is_repeated and not self.looks_around):
                    return
                raise Conflict(f"There is a marker {name} already", path=name, is_repeated=told.is_repeated)
        self._instead.create(data_path, kind)

    def load(self) -> tuple[Marker, ...] | None:
        """See `Markers`: from storage."""
        return self._instead.load()

    def drop(self) -> None:
        """See `Markers`: one request; one call where the server does not answer, or finds none."""
        asked = self._asked_server()
        if asked is not None:
            try:
                was_there = _truth(self._command(asked.connection, "dir/delete"))
            except (Conflict, Unavailable) as error:
                asked.gave_up(error, f"deleting the markers of {self.instant}")
            else:
                asked.answered()
                if was_there:
                    return
        self._instead.drop()

    @property
    def _instead(self) -> Markers:
        return self.own or ListedMarkers(self.storage, self.instant)

    def _asked_server(self) -> _AskedServer | None:
        """The server, while it is asked for this write by this process."""
        found = _server_for(self)
        return found if found.may_ask() else None

    def _command(self, connection: Connection, path: str, **parameters: str) -> Told:
        folder = self.storage.absolute(marker_dir(self.instant))
        return connection.command(MARKER + path, {"markerdirpath": folder, **parameters})


class _AskedServer:
    """What this process knows of the server in one write. Threads may share it."""

    def __init__(self, connection: Connection, table: str) -> None:
        self.connection = connection
        self._table = table
        self._is_silent = False

    def may_ask(self) -> bool:
        """Whether it answered whenever it was asked, and other writes know of no silence."""
        if not self._is_silent and not self.connection.breaker.may_ask(self._table):
            self._is_silent = True
        return not self._is_silent

    def answered(self) -> None:
        self.connection.breaker.answered(self._table)

    def gave_up(self, error: HudiError, what: str) -> None:
        """Takes the server for silent. One warning for each write and each silence."""
        was_silent, self._is_silent = self._is_silent, True
        is_known = self.connection.breaker.failed(self._table, error)
        if not was_silent and not is_known:
            log.warning("%s: done without the timeline server, as is the rest of this write. %s", what, error)


_Key = tuple[int, ServerAddress, str, InstantTime]
_servers: OrderedDict[_Key, _AskedServer] = OrderedDict()
_connections: WeakValueDictionary[tuple[int, ServerAddress, Retries], Connection] = WeakValueDictionary()
"""Each as long as a server that is asked has it: where servers come and go, their sockets do, too."""
_lock = threading.Lock()


def _server_for(markers: ServerMarkers) -> _AskedServer:
    """The one of this process and write: connections do not outlive a fork."""
    table, process = markers.storage.absolute(""), os.getpid()
    key = (process, markers.address, table, markers.instant)
    with _lock:
        found = _servers.get(key)
        if found is None:
            place = (process, markers.address, markers.retries)
            connection = _connections.setdefault(place, Connection(markers.address, retries=markers.retries))
            found = _servers[key] = _AskedServer(connection, table)
        _servers.move_to_end(key)
        while len(_servers) > _KEPT_WRITES:
            _servers.popitem(last=False)
        return found


def _truth(told: Told) -> bool:
    if not isinstance(told.value, bool):
        raise not_understood(f"{short(told.value)} is neither true nor false")
    return told.value
