"""A timeline service that listens, in a thread of the test, and what somebody gets from it."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hoodie.server import Service
from hoodie.server.http import Listening, bound_socket, server_of


@contextmanager
def listening_service(service: Service, **listening: object) -> Iterator[int]:
    """The port of a free one at which the service answers until the block ends. `listening`: fields of `Listening`."""
    where = Listening(port=0, **listening)  # type: ignore[arg-type]
    place = bound_socket(where)
    server = server_of(service, where)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield place.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)
    assert not thread.is_alive()


def get(
    port: int, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> tuple[int, bytes, Mapping[str, str]]:
    """Status, body and headers of an answer; no redirect is followed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, headers=dict(headers or {}))
    answer = connection.getresponse()
    found = answer.status, answer.read(), dict(answer.getheaders())
    connection.close()
    return found
