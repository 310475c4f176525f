"""Questions to a timeline server over HTTP, and its answers as JSON.

1. One connection for each thread is kept; one that the server closed meanwhile is made anew, once, and what was said
   is said again.
2. An answer is bounded in size, packed or not, and in time as a whole (`timed_http`). Whatever is wrong with it, or
   with the way there, is `Unavailable` with the address that was tried; with its `status` where the server itself says
   that it cannot.
3. Where client and server know different timelines it is `Conflict`: asking again helps only with another timeline.
   Both Hudi's server and ours say so with status 400 and `OTHER_TIMELINE`; 400 has other reasons, too.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlencode, urlsplit

from hoodie.env import Env, SystemEnv
from hoodie.errors import Conflict, HudiError, Invalid, Unavailable
from hoodie.remote.breaker import breaker_at
from hoodie.remote.files_arrow import MEDIA_TYPE
from hoodie.remote.json_values import Json, short
from hoodie.remote.timed_http import TimedConnection, read_body

VIEW = "/v1/hoodie/view/"
MARKER = "/v1/hoodie/marker/"
DEFAULT_PORT = 26754
MAX_TIMEOUT_S = 86_400.0
OTHER_TIMELINE = "Last known instant from client was"
UNASKABLE = 501
"""What stands for the status of a question that cannot be sent: it fails alone, as those a server has no answer to."""

_SHOWN = 300
_NOT_FOUND = 404
_LATER = (429, 502, 503, 504)
"""Statuses of a server that may answer when it is asked again, as one may that did not answer at all."""
_ANYHOW = "See its log; without it the table can be read and written as well"
_REFUSALS = {
    400: ("does not take the question", "See that it is known by the name it is asked by, and what it said"),
    401: ("wants another token", "Give the one it was started with: hoodie.filesystem.view.remote.token"),
    403: ("does not serve the table", "Start it with a root the table lies below, or ask another one"),
    404: ("finds no such table", "See that it reads the same storage, and that this is a timeline server"),
    503: ("is too busy or closed", "It is asked again later; without it the table can be read and written as well"),
}
"""What a status says, and what to do."""
_NO_MARKERS = "writes no markers", "Start it with --markers, or leave hoodie.write.markers.type out"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a timeline server listens. `token`: what it wants to be told; `timeout_s`: for a question and its whole
    answer.

    Raises:
        Invalid: no machine has such a name, or no request can tell such a token.
    """

    host: str
    port: int = DEFAULT_PORT
    token: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if not is_host(self.host) or not 0 < self.port < 1 << 16:
            raise _no_address(f"{self.host}:{self.port}")
        if self.token is not None and not _is_token(self.token):
            raise Invalid(
                "The token for the timeline server has characters that no request can tell",
                remedy="Use ASCII without spaces at the ends; what is read from a file may end with a line break",
            )
        if not 0 < self.timeout_s <= MAX_TIMEOUT_S:
            raise Invalid(
                f"A timeline server cannot be asked within {self.timeout_s} seconds",
                remedy=f"Set timeout_s to more than 0 and at most {MAX_TIMEOUT_S}",
                value=self.timeout_s,
            )

    @property
    def text(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"


def parse_server(text: str, token: str | None = None, timeout_s: float = 60.0) -> ServerAddress:
    """The address in `host:port`, `host` or `http://host:port`.

    Raises:
        Invalid: it is none, or no request can tell such a token.
    """
    try:
        parts = urlsplit(text if "//" in text else f"//{text}", scheme="http")
        host, port = parts.hostname, DEFAULT_PORT if parts.port is None else parts.port
    except ValueError as error:
        raise _no_address(text) from error
    if text.strip().isdigit():
        raise Invalid(f"{short(text)} is a port without a host", remedy=f"Write localhost:{text.strip()}", value=text)
    has_more = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme != "http" or host is None or has_more:
        raise _no_address(text)
    return ServerAddress(host, port, token, timeout_s)


def is_host(text: str) -> bool:
    """Whether a machine can have such a name or address: without scheme, brackets and port."""
    if ":" in text or not text.strip("0123456789."):
        try:
            ipaddress.ip_address(text)
        except ValueError:
            return False
        return True
    try:
        text.encode("idna")
    except UnicodeError:  # an empty or too long part
        return False
    return text.isprintable() and not any(sign in text for sign in " /\\?#@[]")


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a server that did not answer is asked again, and after how long: each pause is twice the one before,
    up to a limit, and a little longer by chance, so that not all come back at once.
    """

    times: int = 0
    first_s: float = 0.1
    limit_s: float = 2.0

    def pause_s(self, number: int, chance: float) -> float:
        """Seconds before the server is asked again for the `number`-th time (from 0); `chance` is in [0, 1)."""
        return min(self.first_s * 2.0 ** min(number, 32), self.limit_s) * (1 + chance / 4)


NO_RETRIES: Final = Retries()


@dataclass(frozen=True, slots=True)
class Told:
    """An answer, and whether the question was sent twice: the first one may have been heard."""

    value: Json
    is_repeated: bool


class Connection:
    """A timeline server at an address. Threads may share it."""

    def __init__(self, address: ServerAddress, env: Env | None = None, retries: Retries = NO_RETRIES) -> None:
        self.address = address
        self._retries = retries
        self.breaker = breaker_at(address.host, address.port, address.token)
        self._env = env or SystemEnv()
        self._kept = threading.local()
        self._knows_files = True

    def ask(self, path: str, parameters: Mapping[str, str]) -> Json:
        """The answer to a question below `/v1/hoodie/view/`.

        Raises:
            Conflict: the server knows another timeline.
            Unavailable: it did not answer, or with what is no answer.
        """
        return self._answered("GET", self._target(VIEW + path, parameters)).value

    def ask_files(self, path: str, parameters: Mapping[str, str]) -> bytes | None:
        """The Arrow stream that answers a question about files (`files_arrow`); None from a server that does not know
        the question, which is not asked such a one again. It comes unpacked: packing takes longer than a local network.

        Raises:
            As `ask`.
        """
        if not self._knows_files:
            return None
        try:
            body: bytes = self._answered("GET", self._target(VIEW + path, parameters), accepts=MEDIA_TYPE).value
        except Unavailable as error:
            if not _is_unknown(error.facts.get("status"), error.facts.get("said")):
                raise
            self._knows_files = False
            return None
        return body

    def command(self, path: str, parameters: Mapping[str, str]) -> Told:
        """The answer to a command. It may have been sent more than once.

        Raises:
            Unavailable: the server did not answer, or with what is no answer. What was asked for may have been done.
        """
        return self._answered("POST", self._target(path, parameters))

    def _answered(self, method: str, target: str, accepts: str = "") -> Told:
        for number in range(self._retries.times):
            try:
                told = self._asked(method, target, accepts)
            except Unavailable as error:
                if error.facts.get("status", 503) not in _LATER:
                    raise
                self._env.sleep(self._retries.pause_s(number, self._env.random()))
            else:
                return replace(told, is_repeated=True) if number else told
        told = self._asked(method, target, accepts)
        return replace(told, is_repeated=True) if self._retries.times else told

    def _asked(self, method: str, target: str, accepts: str) -> Told:
        """The answer: JSON, or bytes of the one type that is accepted."""
        try:
            status, body, is_repeated = self._exchanged(method, target, accepts)
        except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
            self._forget()
            raise self._unavailable(_shown(str(error)) or type(error).__name__) from error
        if status == 200 and accepts:
            return Told(body, is_repeated)
        if status == 200:
            try:
                return Told(json.loads(body), is_repeated)
            except (ValueError, RecursionError) as error:
                raise self._unavailable("its answer is no JSON") from error
        raise self._refused(target, status, body)

    def _target(self, path: str, parameters: Mapping[str, str]) -> str:
        try:
            return f"{path}?{urlencode(parameters)}"
        except UnicodeEncodeError as error:
            raise Unavailable(
                "A name that is no text cannot be asked about", remedy="Rename it", status=UNASKABLE
            ) from error

    def _exchanged(self, method: str, target: str, accepts: str) -> tuple[int, bytes, bool]:
        until = self._env.monotonic() + self.address.timeout_s
        was_kept = self._kept_connection() is not None
        try:
            return *self._request(method, target, until, accepts), False
        except (http.client.BadStatusLine, ConnectionError):
            if not was_kept:
                raise
            self._forget()  # closed by the server since the last question: once more
            return *self._request(method, target, until, accepts), True

    def _request(self, method: str, target: str, until: float, accepts: str) -> tuple[int, bytes]:
        connection = self._kept_connection()
        if connection is None:
            connection = TimedConnection(self.address.host, self.address.port, self._env.monotonic)
            self._kept.connection, self._kept.process = connection, os.getpid()
        connection.until = until
        headers = {"Accept": accepts, "Accept-Encoding": "identity"} if accepts else {"Accept-Encoding": "gzip"}
        if self.address.token:
            headers["Authorization"] = f"Bearer {self.address.token}"
        connection.request(method, target, headers=headers)
        answer = connection.getresponse()
        return answer.status, read_body(connection, answer)

    def _kept_connection(self) -> TimedConnection | None:
        """The connection of this thread; none that a process had before it was forked, which goes on with it."""
        found: TimedConnection | None = getattr(self._kept, "connection", None)
        if found is None or found.sock is None or self._kept.process != os.getpid():
            return None
        return found

    def _forget(self) -> None:
        connection = getattr(self._kept, "connection", None)
        self._kept.connection = None
        if connection is not None:
            connection.close()

    def _refused(self, target: str, status: int, body: bytes) -> HudiError:
        said = _shown(body[: 4 * _SHOWN].decode(errors="replace"))
        if status == 400 and OTHER_TIMELINE in said:
            return Conflict(
                f"The timeline server at {self.address.text} knows another timeline of the table",
                remedy="Open the table again",
                said=said,
            )
        what, remedy = _REFUSALS.get(status, ("cannot answer", _ANYHOW))
        if target.startswith(MARKER) and _is_unknown(status, said):
            what, remedy = _NO_MARKERS
        return Unavailable(
            f"The timeline server at {self.address.text} {what} ({status}): {said or 'nothing said'}",
            remedy=remedy,
            address=self.address.text,
            status=status,
            said=said,
        )

    def _unavailable(self, what: str) -> Unavailable:
        return Unavailable(
            f"The timeline server at {self.address.text} does not answer: {what}",
            remedy="See that it runs and can be reached from here",
            address=self.address.text,
        )


_connections: dict[tuple[ServerAddress, Retries], Connection] = {}
_lock = threading.Lock()


def connection_to(address: ServerAddress, retries: Retries = NO_RETRIES) -> Connection:
    """The connection of this process to an address: all who ask there share it."""
    way = address, retries
    with _lock:
        if way not in _connections:
            _connections[way] = Connection(address, retries=retries)
        return _connections[way]


def _is_unknown(status: object, said: object) -> bool:
    """Whether the server knows no such question: it says 404 as well where the table is none."""
    return status == _NOT_FOUND and "not found" in str(said).lower()


def _is_token(token: str) -> bool:
    return token.isascii() and token.isprintable() and token == token.strip()


def _no_address(text: str) -> Invalid:
    return Invalid(f"{short(text)} is no address of a timeline server", remedy="Write host:port", value=text)


def _shown(text: str) -> str:
    """The beginning of what was said, without what a terminal would obey."""
    return "".join(sign if sign.isprintable() else " " for sign in text[:_SHOWN]).strip()
