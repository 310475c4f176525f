"""Requests that create a marker, answered before the HTTP library looks at them: that look is most of what they cost.

1. Only the plainest of requests: one whole head in one piece, known headers in a form everybody agrees on, no body, for
   a folder that is known. All others go on to the library as they came, whatever is wrong with them: what is refused
   is refused there.
2. What guards other requests guards these: the name of the service, its token, web pages, the number of connections.
3. A connection is answered one request after the other. What comes meanwhile waits for its turn, and is bounded.

It reads and writes bytes, and knows no socket.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote_plus

from hoodie.remote.connection import MARKER
from hoodie.server.marker_service import MarkerService
from hoodie.server.service import Answer
from hoodie.server.wake_ups import WakeUps

_HEAD: Final = re.compile(
    rb"POST " + re.escape(MARKER.encode()) + rb"create/?\?([!-\"$-~]+) HTTP/1\.1\r\n((?:[A-Za-z-]+: ?[!-~ ]*\r\n)+)\r\n"
)
_PLAIN: Final = frozenset(
    {"host", "content-length", "accept-encoding", "accept", "authorization", "user-agent", "connection"}
)
"""Headers that a request may have; one with others is left to the library."""


@dataclass(frozen=True, slots=True)
class QuickMarkers:
    """Answers plain requests that create a marker of `markers`. `may_ask`: whether a request with these headers would
    be answered. `counted` hears the status of each, and how many seconds it took; `wake_ups` are those of the loop.
    """

    markers: MarkerService
    may_ask: Callable[[Mapping[str, str]], bool]
    counted: Callable[[int, float], None]
    wake_ups: WakeUps

    def begun(self, data: bytes) -> Future[bool] | None:
        """The answer to what came over a connection; None for what the library has to answer."""
        match = _HEAD.fullmatch(data)
        if match is None:
            return None
        headers = _plain_headers(match[2])
        if headers is None or not self.may_ask(headers):
            return None
        asked = (one.partition("=") for one in match[1].decode("ascii").split("&"))
        return self.markers.create_known({_unquoted(name): _unquoted(value) for name, _, value in asked})


def encode_answer(said: Answer, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The bytes of an answer, with these headers."""
    head = [
        f"HTTP/1.1 {said.status} {HTTPStatus(said.status).phrase}".encode(),
        *(b": ".join(one) for one in headers),
        b"content-type: text/plain; charset=utf-8",
        b"content-length: " + str(len(said.body)).encode(),
    ]
    return b"\r\n".join(head) + b"\r\n\r\n" + said.body


@lru_cache(maxsize=256)
def _plain_headers(block: bytes) -> Mapping[str, str] | None:
    """The headers in a block of lines, in which a connection repeats itself; None where one is not plain."""
    headers: dict[str, str] = {}
    for line in block.decode("ascii").split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        name = name.lower()
        if name in headers or name not in _PLAIN:
            return None
        headers[name] = value.strip(" ")
    if headers.get("content-length", "0") != "0" or headers.get("connection", "keep-alive").lower() != "keep-alive":
        return None
    return headers


@lru_cache(maxsize=1024)
def _unquoted(text: str) -> str:
    return unquote_plus(text)
