"""A proxy in front of an S3 server that answers some requests as stores and networks do on a bad day.

1. A `Fault` says what becomes of a request; a `Plan` says which requests it strikes, by number or by a seeded chance.
2. Repeats of a request (same method and path) are struck as often as the plan says, then get through.
3. Requests pass unchanged, `Host` included, so that signatures stay valid.
4. With a delay each request waits so long, and only then goes on to the server: a store that is far away.
"""

from __future__ import annotations

import http.client
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit


class Fault(StrEnum):
    SLOW_DOWN = "503 SlowDown"
    INTERNAL_ERROR = "500 InternalError"
    DONE_BUT_FAILED = "500 after the request was done"
    RESET = "reset before the request arrives"
    LOST_ANSWER = "done, but the answer is lost"
    CUT_BODY = "body cut short"
    SKEWED_CLOCK = "403 RequestTimeTooSkewed"

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed when it is repeated."""
        return self is not Fault.SKEWED_CLOCK


@dataclass(frozen=True, slots=True)
class Plan:
    """`fault` strikes request number `at` and its next repeats, `times` in all; with `forever`, all from `at` on; with
    a `rate`, each request by chance, but none more than `times`.
    """

    fault: Fault
    at: int = 0
    times: int = 1
    forever: bool = False
    rate: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """A request that came to the proxy. `has_body`: its answer has one, so that it can be cut. It came and was answered
    at `began` and `ended`, by `time.perf_counter`.
    """

    number: int
    method: str
    path: str
    is_struck: bool
    began: float
    ended: float = float("inf")
    has_body: bool = False

    @property
    def name(self) -> tuple[str, str]:
        return self.method, self.path


@dataclass(slots=True)
class FaultProxy:
    """Counts and strikes the requests since `begin`, each after `delay_seconds`; counts the connections made since."""

    upstream: str
    delay_seconds: float = 0.0
    endpoint: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    _plan: Plan | None = None
    _chance: random.Random = field(default_factory=random.Random)
    _struck: dict[tuple[str, str], int] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.Lock)

    def begin(self, plan: Plan | None) -> None:
        """Count from 0 again and strike by this plan; None lets all requests pass."""
        with self._lock:
            self.requests, self.connections, self._plan, self._struck = [], 0, plan, {}
            self._chance = random.Random(0 if plan is None else plan.seed)

    @property
    def struck(self) -> list[Request]:
        return [request for request in self.requests if request.is_struck]

    @property
    def one_after_the_other(self) -> int:
        """The most requests of which each began when the one before had ended: no more can have waited for one
        another.
        """
        chain, free = 0, float("-inf")
        for request in sorted(self.requests, key=lambda request: request.ended):
            if request.began >= free:
                chain, free = chain + 1, request.ended
        return chain

    def fault_of(self, method: str, path: str) -> tuple[int, Fault | None]:
        """The number of a request that has come, and what strikes it."""
        with self._lock:
            number = len(self.requests)
            fault = self._plan.fault if self._plan is not None and self._strikes(number, (method, path)) else None
            self.requests.append(Request(number, method, path, fault is not None, time.perf_counter()))
            return number, fault

    def connected(self) -> None:
        """Note one more connection."""
        with self._lock:
            self.connections += 1

    def answered(self, number: int, *, has_body: bool, is_struck: bool) -> None:
        """Note what is known of a request only when the server has answered it."""
        with self._lock:
            if number < len(self.requests):
                self.requests[number] = replace(
                    self.requests[number], has_body=has_body, is_struck=is_struck, ended=time.perf_counter()
                )

    def _strikes(self, number: int, name: tuple[str, str]) -> bool:
        plan = self._plan
        assert plan is not None
        if plan.forever:
            return number >= plan.at
        before = self._struck.get(name, 0)
        begins = self._chance.random() < plan.rate if plan.rate else number == plan.at
        if before >= plan.times or not (begins or before):
            return False
        self._struck[name] = before + 1
        return True


@contextmanager
def running_fault_proxy(upstream: str, *, delay_seconds: float = 0.0) -> Iterator[FaultProxy]:
    """A proxy on a free port of 127.0.0.1, in front of the server at the URL `upstream`, inside the block."""
    proxy = FaultProxy(upstream, delay_seconds)
    server = _Server(proxy)
    proxy.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="fault proxy", daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Does nothing: connections that end at any moment are what this is about."""


_OF_A_CONNECTION: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})
_ERRORS: Final[Mapping[Fault, tuple[int, str]]] = {
    Fault.SLOW_DOWN: (503, "SlowDown"),
    Fault.INTERNAL_ERROR: (500, "InternalError"),
    Fault.DONE_BUT_FAILED: (500, "InternalError"),
    Fault.SKEWED_CLOCK: (403, "RequestTimeTooSkewed"),
}
_DONE: Final = frozenset({Fault.DONE_BUT_FAILED, Fault.LOST_ANSWER, Fault.CUT_BODY})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in one piece: else its body waits 40 ms for the client to say that it has the head
    disable_nagle_algorithm = True
    server: _Server
    _upstream: http.client.HTTPConnection | None = None

    def log_message(self, format: str, *args: Any) -> None:
        del format, args

    def setup(self) -> None:
        super().setup()
        self.server.proxy.connected()

    def do_any(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        number, fault = self.server.proxy.fault_of(self.command, self.path)
        if self.server.proxy.delay_seconds:
            time.sleep(self.server.proxy.delay_seconds)
        if fault is Fault.RESET:
            self._reset()
        elif fault is not None and fault not in _DONE:
            self._refuse(fault)
        else:
            status, headers, body = self._forwarded(data)
            is_cut = fault is Fault.CUT_BODY and len(body) > 1
            is_struck = fault is not None and (is_cut or fault is not Fault.CUT_BODY)
            self.server.proxy.answered(number, has_body=len(body) > 1, is_struck=is_struck)
            if fault is Fault.LOST_ANSWER:
                self._reset()
            elif fault is Fault.DONE_BUT_FAILED:
                self._refuse(fault)
            else:
                self._answer(status, headers, body, is_cut=is_cut)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_any

    def finish(self) -> None:
        if self._upstream is not None:
            self._upstream.close()
        super().finish()

    def _forwarded(self, data: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        if self._upstream is None:
            parts = urlsplit(self.server.proxy.upstream)
            kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
            self._upstream = kind(parts.netloc, timeout=60)
        # The headers as they came, `Host` too; http.client would add its own.
        self._upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in _OF_A_CONNECTION:
                self._upstream.putheader(name, value)
        self._upstream.putheader("Content-Length", str(len(data)))
        self._upstream.endheaders(data)
        found = self._upstream.getresponse()
        body = found.read()
        headers = [pair for pair in found.getheaders() if pair[0].lower() not in _OF_A_CONNECTION]
        if self.command == "HEAD" and (length := found.getheader("Content-Length")) is not None:
            headers.append(("Content-Length", length))
        if found.will_close:
            self._upstream.close()
            self._upstream = None
        return found.status, headers, body

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes, *, is_cut: bool = False) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if self.command != "HEAD" and status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if is_cut else body)
        self.close_connection = self.close_connection or is_cut

    def _refuse(self, fault: Fault) -> None:
        status, code = _ERRORS[fault]
        text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{fault}</Message></Error>'
        body = b"" if self.command == "HEAD" else text.encode()
        self._answer(status, [("Content-Type", "application/xml")], body)

    def _reset(self) -> None:
        """Close at once, so that the other side gets a reset and no answer."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
