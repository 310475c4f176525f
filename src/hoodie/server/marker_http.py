"""The routes of markers over HTTP. A request that creates one holds no thread while it waits.

What creates a marker in a folder that is known is answered before Starlette looks at it: that is most of what it would
cost, and writes of many files ask nothing so often.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from hoodie.remote.connection import MARKER
from hoodie.server.marker_service import MarkerService, answered
from hoodie.server.service import Answer
from hoodie.server.turns import Turns

log = logging.getLogger(__name__)

Refusal = Callable[[Headers], Response | None]
"""What is answered to who may not ask, by the headers of a request."""

_CREATE = frozenset({f"{MARKER}create", f"{MARKER}create/"})


class MarkerAnswers:
    """Answers requests about markers, within the time of `turns`, for one event loop."""

    def __init__(self, markers: MarkerService, turns: Turns, refusal: Refusal) -> None:
        self.markers = markers
        self._turns = turns
        self._refusal = refusal
        self._waits = _Waits()

    def routes(self) -> list[Route]:
        """All routes of markers."""
        return [Route(f"{MARKER}{{path:path}}", self._answer, methods=["GET", "POST"])]

    async def known(self, scope: Scope) -> Response | None:
        """The answer to a request that creates a marker in a folder that is known. None for any other."""
        if scope["type"] != "http" or scope["path"] not in _CREATE or scope["method"] != "POST":
            return None
        asked = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        found = self.markers.create_known(asked) if self._refusal(Headers(scope=scope)) is None else None
        return None if found is None else await self._told(found, asked)

    async def _answer(self, request: Request) -> Response:
        refused = self._refusal(request.headers)
        if refused is not None:
            return refused
        method, path, asked = request.method, request.url.path, dict(request.query_params)
        try:
            ask = asked.get("markerdirpath", "")
            found = await self._turns.run(ask, lambda: self.markers.answer(method, path, asked))
        except TimeoutError:
            return _too_late(asked)
        return _response(found) if isinstance(found, Answer) else await self._told(found, asked)

    async def _told(self, answer: Future[bool], asked: Mapping[str, str]) -> Response:
        try:
            async with asyncio.timeout(self._turns.limit_s):
                await self._waits.done(answer)
        except TimeoutError:
            return _too_late(asked)
        return _response(answered(answer))


class MarkersFirst:
    """An application before which `answers` answers what it knows."""

    def __init__(self, app: ASGIApp, answers: MarkerAnswers) -> None:
        self.app = app
        self.answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self.answers.known(scope) or self.app)(scope, receive, send)


class _Waits:
    """Requests of one event loop that wait for markers. A batch of them is woken at once: each wake-up of the loop
    costs as much as answering a request.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._woken: list[asyncio.Future[None]] = []

    async def done(self, answer: Future[bool]) -> None:
        """Returns once the answer is there."""
        if answer.done():
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        answer.add_done_callback(lambda _: self._wake_later(loop, waiter))
        await waiter

    def _wake_later(self, loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
        with self._lock:
            self._woken.append(waiter)
            is_first = len(self._woken) == 1
        if is_first:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        with self._lock:
            woken, self._woken = self._woken, []
        for waiter in woken:
            if not waiter.done():
                waiter.set_result(None)


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, media_type="text/plain")


def _too_late(asked: Mapping[str, str]) -> Response:
    log.warning("no answer in time about the markers in %s", asked.get("markerdirpath"))
    return PlainTextResponse("The table does not answer in time", 503, {"Retry-After": "60"})
