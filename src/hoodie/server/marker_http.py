"""The routes of markers over HTTP. A request that creates one holds no thread while it waits.

What creates a marker in a folder that is known is answered before Starlette looks at it: that is most of what it would
cost, and writes of many files ask nothing so often.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from hoodie.remote.connection import MARKER
from hoodie.server.answer import Answer
from hoodie.server.marker_service import MarkerService, answered
from hoodie.server.packing import pack
from hoodie.server.turns import Turns
from hoodie.server.wake_ups import WakeUps

log = logging.getLogger(__name__)

Refusal = Callable[[Headers], Response | None]
"""What is answered to who may not ask, by the headers of a request."""

_CREATE = frozenset({f"{MARKER}create", f"{MARKER}create/"})


class MarkerAnswers:
    """Answers requests about markers, within the time of `turns`, for one event loop."""

    def __init__(self, markers: MarkerService, turns: Turns, refusal: Refusal, wake_ups: WakeUps) -> None:
        self.markers = markers
        self._turns = turns
        self._refusal = refusal
        self._waits = wake_ups

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
        accepted = request.headers.get("accept-encoding", "")

        def answer_packed() -> Response | Future[bool]:
            found = self.markers.answer(method, path, asked)
            return pack(_response(found), accepted) if isinstance(found, Answer) else found

        try:
            found = await self._turns.run(self.markers.lane_of(asked.get("markerdirpath", "")), answer_packed)
        except TimeoutError:
            return _too_late(asked)
        return found if isinstance(found, Response) else await self._told(found, asked)

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


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, media_type="text/plain")


def _too_late(asked: Mapping[str, str]) -> Response:
    log.warning("no answer in time about the markers in %s", asked.get("markerdirpath"))
    return PlainTextResponse("The table does not answer in time", 503, {"Retry-After": "60"})
