"""The timeline server inside a writer: started by the first write that can use it, and kept by later ones.

1. One for each host and port serves all tables that are written in this process (without `.reuse.enabled` each table
   has its own). It serves these tables only: views of them, and the markers of their writes, batched as the write that
   started it says.
2. It listens where executors of the engine reach this process. On the loopback address it asks for no token; on another
   one it makes one up, which is told to who gets the options of the write.
3. Its thread ends with the process, or with `stop_embedded`. What cannot be started is said once, and written without.
"""

from __future__ import annotations

import atexit
import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hoodie.config import Config
from hoodie.env import SystemEnv
from hoodie.errors import HudiError
from hoodie.layout.opening import options_for_others
from hoodie.remote import ServerAddress
from hoodie.remote.in_process import listens_here
from hoodie.server.embedded_view import EmbeddedSource
from hoodie.server.marker_conflicts import detection_of
from hoodie.server.marker_service import MarkerService, batching_of
from hoodie.server.service import Service
from hoodie.storage import Storage

if TYPE_CHECKING:
    import uvicorn

log = logging.getLogger(__name__)

LOOPBACK: Final = "127.0.0.1"
STOP_S: Final = 5.0

_INSTALL: Final = "pip install 'hoodie[server]'"
_PORT: Final = "hoodie.embed.timeline.server.port"
_REUSE: Final = "hoodie.embed.timeline.server.reuse.enabled"


@dataclass(frozen=True, slots=True)
class _Embedded:
    """A server that runs."""

    service: Service
    markers: MarkerService
    address: ServerAddress
    server: uvicorn.Server
    thread: threading.Thread


_Key = tuple[str, int, str]
_running: dict[_Key, _Embedded] = {}
_refused: set[_Key] = set()
_lock = threading.Lock()


def embedded_address(storage: Storage, config: Config, host: str | None) -> ServerAddress | None:
    """Where the server of this process listens that serves the table in `storage`, started if there is none; None where
    there cannot be one, which was said. `host` is the name by which executors reach this process (None: nobody does).
    """
    place = storage.absolute("")
    key = host or LOOPBACK, config.integer(_PORT), "" if config.flag(_REUSE) else place
    with _lock:
        if key in _refused:
            return None
        found = _running.get(key)
        if found is None or not found.thread.is_alive():
            try:
                found = _running[key] = _started(*key[:2], config)
            except ModuleNotFoundError as error:
                log.info("no timeline server in this writer: %s is not installed (%s)", error.name, _INSTALL)
            except (HudiError, OSError, RuntimeError) as error:
                log.warning("no timeline server in this writer, which goes on without: %s", error)
            if found is None:
                _refused.add(key)
                return None
    options = options_for_others({**config.explicit, **config.passed})
    found.service.admit(place, options)
    found.markers.admit(place, options)
    return found.address


def stop_embedded() -> None:
    """Stops all servers of this process."""
    with _lock:
        stopped = list(_running.values())
        _running.clear()
        _refused.clear()
    for one in stopped:
        listens_here(one.address.text, None)
        one.server.should_exit = True
    for one in stopped:
        one.thread.join(STOP_S)
        one.markers.close()


def _started(host: str, port: int, config: Config) -> _Embedded:
    from hoodie.server.http import Listening, bound_socket, server_of  # noqa: PLC0415 - optional: the extra `server`

    where = Listening(host, port)
    if not where.is_loopback:
        where = Listening(host, port, SystemEnv().uuid() + SystemEnv().uuid())
    place = bound_socket(where)
    service, markers = Service([]), MarkerService([], batching=batching_of(config), detection=detection_of(config))
    server = server_of(service, where, markers)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place]}, name="timeline server", daemon=True)
    thread.start()
    address = ServerAddress(host, place.getsockname()[1], where.token)
    listens_here(address.text, EmbeddedSource(service))
    atexit.unregister(stop_embedded)  # one for all that have run in this process
    atexit.register(stop_embedded)
    log.info("a timeline server runs in this writer, at %s", address.text)
    return _Embedded(service, markers, address, server, thread)
