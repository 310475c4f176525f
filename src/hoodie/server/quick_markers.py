"""Plain requests that create a marker in a folder that is known, answered before the HTTP library looks at them.

A connection is answered one request after the other. What comes meanwhile waits for its turn, and is bounded.
"""

from __future__ import annotations

import re
from concurrent.futures import Future
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_plus

from hoodie.remote.connection import MARKER
from hoodie.server.marker_service import MarkerService
from hoodie.server.plain_requests import PlainRequest

_CREATE: Final = re.compile(re.escape(MARKER.encode()) + rb"create/?\?(.+)")

_MAX_KNOWN: Final = 512


def begun_marker(markers: MarkerService, request: PlainRequest) -> Future[bool] | None:
    """What `markers` will answer to a request; None for one that the library has to answer."""
    match = _CREATE.fullmatch(request.target)
    if match is None or request.method != "POST":
        return None
    asked = (one.partition("=") for one in match[1].decode("ascii").split("&"))
    return markers.create_known({_unquoted(name): _unquoted(value) for name, _, value in asked})


def _unquoted(text: str) -> str:
    return _known(text) if len(text) <= _MAX_KNOWN else unquote_plus(text)


@lru_cache(maxsize=1024)
def _known(text: str) -> str:
    """`text` unquoted: writers name the same folders again and again."""
    return unquote_plus(text)
