"""The timeline service over HTTP: Starlette on uvicorn, an optional extra (`pip install 'hoodie[server]'`).

1. It listens on the loopback address, unless another one is asked for: then whoever asks must tell a token, or it was
   said that none is wanted. Clients of Hudi tell none: where that is allowed, who asks from this machine need not,
   about the files of tables.
2. A request must name a host the service is known by, so that no web page of another name can send it; one that says
   that a page of another place sends it is refused.
3. The length of a request's head, the time it may take, the time an answer may take to be found and to be read, the
   number of connections and the time one may stay silent are bounded. A request with a body is refused: none needs one.
4. A table that hangs keeps no other from being answered for, and no long answer does: it is packed in its thread.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import ipaddress
import logging
import re
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from hoodie.errors import Invalid, Unavailable
from hoodie.remote import DEFAULT_PORT
from hoodie.remote.connection import MARKER, is_host
from hoodie.server.answer import Answer
from hoodie.server.marker_http import MarkerAnswers, MarkersFirst
from hoodie.server.marker_service import MarkerService, answered
from hoodie.server.metrics import Measured, Metrics, endpoint_of
from hoodie.server.packing import pack
from hoodie.server.page_http import figure_routes, page_routes
from hoodie.server.pages import Pages
from hoodie.server.plain_requests import PlainRequest, encode_answer, plain_request
from hoodie.server.quick_answers import IS_STILL, AnswersKept, KeptAnswer, QuickAnswers
from hoodie.server.quick_look_ups import looked_up
from hoodie.server.quick_markers import begun_marker
from hoodie.server.readiness import Readiness
from hoodie.server.routes import VIEW
from hoodie.server.service import Service
from hoodie.server.turns import Turns
from hoodie.server.wake_ups import WakeUps

log = logging.getLogger(__name__)

MAX_HEAD_BYTES = 256 * 1024
"""Of a request: a list of a thousand partitions fits, which Hudi's own server refuses."""
HEAD_S = 20.0
ANSWER_S = 240.0
"""Less than the 300 s that clients of Hudi wait."""
WRITE_S = 120.0
"""How long a connection may have something to read and not read all of it."""
MAX_CONNECTIONS = 512
KEEP_ALIVE_S = 75
MIN_TOKEN_LENGTH = 16

_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
_OF_PROXIES = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a service listens and to whom. `token`: what requests must tell; `names`: other names it is known by;
    `allows_hudi_clients`: who asks from this machine which files a table has need not tell it.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token: str | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()
    allows_hudi_clients: bool = False

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return _is_this_machine(self.host)

    def is_known_as(self, host_header: str) -> bool:
        """Whether a request's `Host` is a name of this service, with a port or without."""
        if _HOST.fullmatch(host_header) is None:
            return False
        name = urlsplit(f"//{host_header}").hostname
        return name in {"localhost", "127.0.0.1", "::1", *(one.lower() for one in (self.host, *self.names))}


def ensure_guarded(listening: Listening, *, without_token: bool = False) -> None:
    """Checks that not everybody can ask unless that is wanted.

    Raises:
        Invalid: it can be reached from elsewhere and asks for no token, or for one that can be guessed; or this is no
            host.
    """
    if not is_host(listening.host):
        raise Invalid(
            f"{listening.host!r} is no host",
            remedy="Write the name or address of this machine alone, such as 127.0.0.1; --port says the port",
        )
    if listening.token is not None and len(listening.token) < MIN_TOKEN_LENGTH:
        raise Invalid(
            f"The token has {len(listening.token)} characters", remedy=f"Use at least {MIN_TOKEN_LENGTH} random ones"
        )
    if not listening.is_loopback and listening.token is None and not without_token:
        raise Invalid(
            f"Whoever reaches {listening.host} could see which files the tables have",
            remedy="Give --token-file, or --without-token for clients such as Hudi's, which tell none",
        )


def app_of(service: Service, listening: Listening, markers: MarkerService | None = None) -> Starlette:
    """The application that answers for `service`, and writes `markers` where there are some."""

    turns = Turns(ANSWER_S)

    def refusal(headers: Headers) -> Response | None:
        return None if _tells_token(headers, listening) else _token_needed()

    async def answer(request: Request) -> Response:
        if not (_tells_token(request.headers, listening) or _is_free_to_ask(request, listening)):
            return _token_needed()
        # Not the path of `request.url`, which is made of the name of the host that the client tells.
        method, path, asked = request.method, str(request.scope["path"]), dict(request.query_params)
        accepted = request.headers.get("accept-encoding", "")

        def answer_packed() -> tuple[Answer, Response]:
            found = service.answer(method, path, asked)
            return found, pack(Response(found.body, found.status, media_type=found.media_type), accepted)

        try:
            found, response = await turns.run(service.lane_of(asked.get("basepath", "")), answer_packed)
        except TimeoutError:
            log.warning("no answer about %s within %s s", asked.get("basepath"), ANSWER_S)
            return PlainTextResponse("The table does not answer in time", 503, {"Retry-After": "60"})
        if found.is_still is not None:
            request.scope[IS_STILL] = found.is_still
        return response

    def tells_token(headers: Headers) -> bool:
        return _tells_token(headers, listening)

    wake_ups = WakeUps()
    about_markers = None if markers is None else MarkerAnswers(markers, turns, refusal, wake_ups)

    def may_ask(headers: Mapping[str, str]) -> bool:
        return listening.is_known_as(headers.get("host", "")) and _tells_token(headers, listening)

    answers = QuickAnswers()
    metrics = Metrics(service, turns)
    app = Starlette(
        routes=[
            *page_routes(Pages(service), turns, listening.token, tells_token),
            *figure_routes(metrics, Readiness(service), turns, tells_token),
            Route(f"{VIEW}{{path:path}}", answer, methods=["GET", "POST"]),
            *(() if about_markers is None else about_markers.routes()),
        ],
        middleware=[
            Middleware(Measured, metrics=metrics),
            Middleware(_Guarded, listening=listening),
            *(() if about_markers is None else (Middleware(MarkersFirst, answers=about_markers),)),
            Middleware(AnswersKept, answers=answers),
        ],
    )
    app.state.quick = _Quick(may_ask, service, answers, markers, metrics, wake_ups)
    return app


def bound_socket(listening: Listening) -> socket.socket:
    """A socket at the address; port 0 is a free one.

    Raises:
        Invalid: there is no such port.
        Unavailable: somebody else listens there, or it is no address of this machine.
    """
    if not 0 <= listening.port <= 65535:
        raise Invalid(f"There is no port {listening.port}", remedy="Choose one up to 65535, or 0 for a free one")
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    try:
        found = socket.create_server((listening.host, listening.port), family=family, backlog=256)
    except OSError as error:
        is_about_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
        raise Unavailable(
            f"Cannot listen at {listening.host}:{listening.port}: {error.strerror}",
            remedy="Choose another --port, or 0 for a free one"
            if is_about_port
            else "Choose a --host that is an address of this machine: 127.0.0.1, or 0.0.0.0 for all of them",
        ) from error
    # Connections inherit it. asyncio sets it for sockets of its own making only, and an answer in two pieces, head and
    # body, would wait 40 ms for the client's acknowledgement of the first.
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def server_of(service: Service, listening: Listening, markers: MarkerService | None = None) -> uvicorn.Server:
    """The server for a socket: `run(sockets=[bound_socket(listening)])` returns once it is told to stop."""
    app = app_of(service, listening, markers)
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=type("_Protocol", (_BoundedProtocol,), {"quick": app.state.quick}),
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=10,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        )
    )


class _Guarded:
    """Refuses what the service does not answer, whatever its path, before anything of it is looked at."""

    def __init__(self, app: ASGIApp, listening: Listening) -> None:
        self.app = app
        self.listening = listening

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = _refusal(Headers(scope=scope), self.listening)
        await (refused or self.app)(scope, receive, send)


@dataclass(frozen=True, slots=True)
class _Quick:
    """What answers plain requests before the library looks at them. `may_ask`: whether a request with these headers
    would be answered; `wake_ups` are those of the loop.
    """

    may_ask: Callable[[Mapping[str, str]], bool]
    service: Service
    answers: QuickAnswers
    markers: MarkerService | None
    metrics: Metrics
    wake_ups: WakeUps

    def answer(self, request: PlainRequest) -> KeptAnswer | None:
        """The answer to a request that needs no waiting: as it was given before, or from what is known of a table."""
        known = self.answers.known(request)
        if known is None:
            try:
                known = looked_up(self.service, request)
            except Exception:  # the library asks again, and says that it cannot be answered
                log.exception("cannot answer %s at once", request.target[:200])
            if known is not None:
                self.answers.keep(request.target, request.headers.get("accept-encoding", ""), known)
        return known


class _BoundedProtocol(H11Protocol):
    """A connection that is closed when the head of a request, or the reading of what was answered, takes too long:
    uvicorn waits for ever.
    """

    quick: _Quick
    _asked: Future[bool] | None = None
    _kept = b""
    _quick_since: float | None = None
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _unread_since: float | None = None

    def connection_made(self, transport: Any) -> None:
        self.access_log = False  # addresses may hold a token, and an application around may listen to all loggers
        super().connection_made(transport)
        self._wait_for_head()
        self._watch_reader()

    def data_received(self, data: bytes) -> None:
        if self._asked is not None:
            self._kept += data
            if len(self._kept) > MAX_HEAD_BYTES:
                self.flow.pause_reading()
            return
        if self._is_between_requests() and len(self.connections) < MAX_CONNECTIONS and self._answers_quickly(data):
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._head_timer is None:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        if self._write_timer is not None:
            self._write_timer.cancel()
        super().connection_lost(exc)

    def _is_between_requests(self) -> bool:
        """Whether the next byte begins a request."""
        is_through = self.cycle is None or self.cycle.response_complete
        is_idle = self.conn.our_state is h11.IDLE and self.conn.their_state is h11.IDLE
        return is_through and is_idle and not self.conn.trailing_data[0]

    def _answers_quickly(self, data: bytes) -> bool:
        """Whether what came begins with a request that is answered here: now, or once there is an answer."""
        began = self.loop.time()
        end = data.find(b"\r\n\r\n") + 4
        request = plain_request(data[:end])
        if request is None or not self.quick.may_ask(request.headers):
            return False
        # Who asks more before it has read what it was answered is left to the library, which lets it wait.
        if end == len(data) and not self.transport.get_write_buffer_size():
            known = self.quick.answer(request)
            if known is not None:
                self._begin_quickly(began)
                self._say(request.target.decode(), "GET", 200, known.headers, known.body)
                return True
        asked = None if self.quick.markers is None else begun_marker(self.quick.markers, request)
        if asked is None:
            return False
        self._begin_quickly(began)
        self._kept = data[end:]
        self._answer_later(asked)
        return True

    def _begin_quickly(self, began: float) -> None:
        self._stop_waiting()
        self._unset_keepalive_if_required()
        self._quick_since = began

    def _say(self, target: str, method: str, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
        """Answers a request of which the library knows nothing."""
        began = self._quick_since or 0.0
        self.server_state.total_requests += 1
        self._quick_since = now = self.loop.time()
        self.quick.metrics.counted(endpoint_of(target.partition("?")[0]), method, status, now - began)
        self.transport.write(encode_answer(status, (*self.server_state.default_headers, *headers), body))

    def _answer_later(self, asked: Future[bool]) -> None:
        """Answers a request that creates a marker, and then what came after it."""
        self._asked = asked

        def there() -> None:
            if self.transport.is_closing():
                return
            self._asked = None
            said = answered(asked)
            length = str(len(said.body)).encode()
            headers = ((b"content-type", b"text/plain; charset=utf-8"), (b"content-length", length))
            self._say(MARKER, "POST", said.status, headers, said.body)
            kept, self._kept = self._kept, b""
            if kept:
                self.flow.resume_reading()
                self.data_received(kept)

        self.quick.wake_ups.call(self.loop, asked, there)

    def _wait_for_head(self) -> None:
        self._head_timer = asyncio.get_running_loop().call_later(HEAD_S, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _watch_reader(self) -> None:
        """Hangs up on who left bytes unread for too long; closing would wait until they are read. Also on who waits for
        too long for an answer that is given quickly, or has asked nothing since: a timer for each of these would cost
        as much as they do.
        """
        now = asyncio.get_running_loop().time()
        if not self.transport.get_write_buffer_size():
            self._unread_since = None
        elif self._unread_since is None:
            self._unread_since = now
        elif now - self._unread_since > WRITE_S:
            self.transport.abort()
            return
        if self._quick_since is not None and self._is_over(now - self._quick_since):
            self.transport.close()
            return
        self._write_timer = asyncio.get_running_loop().call_later(WRITE_S / 4, self._watch_reader)

    def _is_over(self, silent_s: float) -> bool:
        """Whether a connection is given up that asked quickly, and has been silent for so long since, or unanswered."""
        if self._asked is not None:
            if silent_s > ANSWER_S:
                log.warning("no answer about markers within %s s", ANSWER_S)
            return silent_s > ANSWER_S
        return silent_s > KEEP_ALIVE_S and self.timeout_keep_alive_task is None and self._is_between_requests()


def named_hosts(names: Sequence[str]) -> tuple[str, ...]:
    """Other names of the service, as requests spell them.

    Raises:
        Invalid: one is no name.
    """
    for name in names:
        if not name or any(sign in name for sign in "*/:@ "):
            raise Invalid(f"{name!r} is no name of a machine", remedy="Give names as clients write them, without port")
    return tuple(name.lower() for name in names)


def _refusal(headers: Headers, listening: Listening) -> Response | None:
    if not listening.is_known_as(headers.get("host", "")):
        return PlainTextResponse("This service has another name: --name tells it", 400)
    if "origin" in headers or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return PlainTextResponse("Web pages may not ask", 403)
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        return PlainTextResponse("Send parameters in the address, without a body", 413, {"Connection": "close"})
    return None


def _is_free_to_ask(request: Request, listening: Listening) -> bool:
    """Whether a client of this machine may ask without a token. What a proxy hands on comes from anywhere, and who
    tells a wrong token is told so.
    """
    if not listening.allows_hudi_clients or request.client is None:
        return False
    has_more = any(name in request.headers for name in _OF_PROXIES) or "authorization" in request.headers
    return not has_more and _is_this_machine(request.client.host)


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token_needed() -> Response:
    return PlainTextResponse("A token is needed", 401, {"WWW-Authenticate": "Bearer"})


def _tells_token(headers: Mapping[str, str], listening: Listening) -> bool:
    if listening.token is None:
        return True
    return hmac.compare_digest(headers.get("authorization", "").encode(), f"Bearer {listening.token}".encode())
