"""How a write announces its files: which kind of markers its options ask for, and which it gets.

1. Direct ones are the default, as for Hudi's Java client; on Spark those of the timeline server in the driver
   (`remote.embedding`). A server is asked where one is asked for the table's files, too: an embedded one sees to that.
   Without one `TIMELINE_SERVER_BASED` is direct, as it is for Hudi.
2. `PROCESS_LISTS` is ours: lists as a server writes them, one for each process that writes files. A process writes its
   list anew for each file it begins, so it makes as many calls as direct markers do, but leaves few files to delete.
3. On HDFS a server makes direct ones, as Hudi does: the name node has them in memory, and limits no requests.
"""

from __future__ import annotations

import functools
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hoodie.config import Config
from hoodie.spec import InstantTime
from hoodie.storage import Storage
from hoodie.timeline import Markers, markers_of
from hoodie.timeline.marker_lists import ListedMarkers
from hoodie.transaction.early_detection import EarlyDetection, ServedMarkers, WatchfulMarkers
from hoodie.transaction.lookout import Lookout

if TYPE_CHECKING:
    from hoodie.remote.server_markers import ServerMarkers

log = logging.getLogger(__name__)

LONGEST_S: Final = 20.0
"""Longest time a server has for a marker, whatever the options say: a file waits for it, and does as well without."""

_TYPE: Final = "hoodie.write.markers.type"
_BY_SERVER: Final = "TIMELINE_SERVER_BASED"
_BY_PROCESS: Final = "PROCESS_LISTS"
_VIEW: Final = "hoodie.filesystem.view.type"
_REMOTE: Final = frozenset({"REMOTE_ONLY", "REMOTE_FIRST"})


def markers_for(storage: Storage, instant: InstantTime, config: Config, attempt: int = 0) -> Markers:
    """The markers of the write `instant`, as the options of the writer want them. `attempt`: which one it is of those
    that carry out a plan at its instant; a process begins its list anew for each.
    """
    own = ListedMarkers(storage, instant, attempt)
    served = _by_server(storage, instant, config)
    return _by_hand(own, config) if served is None else replace(served, own=own)


def watchful_markers(lookout: Lookout, asked: EarlyDetection, config: Config) -> Markers:
    """The same for a write that looks around before it announces a file (`early_detection`)."""
    storage, instant = lookout.handle.storage, lookout.instant
    served = _by_server(storage, instant, config)
    if served is None:
        return WatchfulMarkers(_by_hand(ListedMarkers(storage, instant), config), lookout, asked.locks)
    instead = WatchfulMarkers(ListedMarkers(storage, instant), lookout, asked.locks)
    return ServedMarkers(replace(served, own=instead, looks_around=lookout.wishes), instead, lookout)


def _by_hand(listed: ListedMarkers, config: Config) -> Markers:
    return listed if config.text(_TYPE) == _BY_PROCESS else markers_of(listed.storage, listed.instant)


def _by_server(storage: Storage, instant: InstantTime, config: Config) -> ServerMarkers | None:
    if config.text(_TYPE) != _BY_SERVER or config.text(_VIEW) not in _REMOTE:
        return None
    if storage.scheme == "hdfs":
        _warn_once("Markers are direct ones, not those of a timeline server: on HDFS nothing is gained by them")
        return None
    from hoodie.remote import asked_server  # noqa: PLC0415 - HTTP is loaded by who asks a server
    from hoodie.remote.server_markers import ServerMarkers  # noqa: PLC0415 - as above

    server = asked_server(config)
    if server is None:
        return None
    address = replace(server.address, timeout_s=min(server.address.timeout_s, LONGEST_S))
    return ServerMarkers(storage, instant, address, server.retries)


@functools.cache
def _warn_once(what: str) -> None:
    log.warning(what)
