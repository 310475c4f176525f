"""A timeline server over HTTP in a thread of this process. Needs the extra `server`."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hoodie.server import Service
from hoodie.server.http import Listening, bound_socket, server_of
from hoodie.server.marker_service import MarkerService


@contextmanager
def running_server(service: Service, markers: MarkerService | None = None, port: int = 0) -> Iterator[int]:
    """The port a server listens at inside the block."""
    listening = Listening(port=port)
    with bound_socket(listening) as place:
        server = server_of(service, listening, markers)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield place.getsockname()[1]
        finally:
            server.should_exit = server.force_exit = True
            thread.join(20)
