"""Requests that can be answered before the HTTP library looks at them: that look is most of what such a one costs.

1. Only the plainest of requests: one whole head in one piece, known headers in a form everybody agrees on, no body. All
   others go on to the library as they came, whatever is wrong with them: what is refused is refused there.
2. What guards other requests guards these: the name of the service, its token, web pages, the number of connections.

It reads and writes bytes, and knows no socket.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Final

# Each line in one way only: a pattern that could read one in two ways would try all of them before it gives up.
_HEAD: Final = re.compile(rb"(GET|POST) (/[!-\"$-~]*) HTTP/1\.1\r\n((?:[A-Za-z-]+:[ -~]*\r\n)+)\r\n")
_PLAIN: Final = frozenset(
    {"host", "content-length", "accept-encoding", "accept", "authorization", "user-agent", "connection"}
)
"""Headers that a request may have; one with others is left to the library."""
_MAX_KNOWN: Final = 1024


@dataclass(frozen=True, slots=True)
class PlainRequest:
    """A request without a body. `target`: path and query as they were sent; `headers`: by name, in small letters."""

    method: str
    target: bytes
    headers: Mapping[str, str]


def plain_request(data: bytes) -> PlainRequest | None:
    """The request in what came over a connection; None for what the library has to answer."""
    match = _HEAD.fullmatch(data)
    if match is None:
        return None
    block = match[3]
    headers = _known_headers(block) if len(block) <= _MAX_KNOWN else _plain_headers(block)
    return None if headers is None else PlainRequest(match[1].decode(), match[2], headers)


def encode_answer(status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bytes:
    """The bytes of an answer, with these headers."""
    head = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode(), *map(b": ".join, headers)]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


@lru_cache(maxsize=256)
def _known_headers(block: bytes) -> Mapping[str, str] | None:
    """`_plain_headers` of a short block: a connection repeats itself."""
    return _plain_headers(block)


def _plain_headers(block: bytes) -> Mapping[str, str] | None:
    """The headers in a block of lines; None where one is not plain."""
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
