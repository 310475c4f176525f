"""Answers about views that are given again as they were given before, before the HTTP library looks at the request.

1. Workers of one write ask the same about the same timeline. An answer is kept with the whole request, the client's
   timeline in it, and for the very view it was made from: once that one is not the newest, it is not given again.
2. Kept are bytes as they went out, packed or not. They are bounded; those that were not asked for the longest go first.

All of it happens in the event loop.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hoodie.server.packing import is_packed
from hoodie.server.plain_requests import PlainRequest

MAX_KEPT_BYTES = 32 << 20
MAX_ANSWER_BYTES = 4 << 20
OBJECTS_BYTES = 5000
"""What the objects of an answer take beside its bytes, headers included: of short answers that is most."""

IS_STILL = "hoodie.is_still"
"""Where in its scope a request has `Answer.is_still` of what it was answered."""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """Headers and body of an answer that says 200. `is_still`: whether it would be given again."""

    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    is_still: Callable[[], bool]


class QuickAnswers:
    """Answers of one event loop, by request."""

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[tuple[bytes, bool], KeptAnswer] = OrderedDict()
        self._bytes = 0

    def known(self, request: PlainRequest) -> KeptAnswer | None:
        """The answer to a request; None for one that the library has to answer."""
        if request.method != "GET":
            return None
        key = request.target, is_packed(request.headers.get("accept-encoding", ""))
        found = self._kept.get(key)
        if found is None:
            return None
        if not found.is_still():
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return found

    def keep(self, target: bytes, accepted: str, answer: KeptAnswer) -> None:
        """Keeps the answer to a request for `target`, from who accepts such encodings."""
        if len(answer.body) > min(MAX_ANSWER_BYTES, self._max_bytes):
            return
        key = target, is_packed(accepted)
        self._drop(key)
        self._kept[key] = answer
        self._bytes += _size(key, answer)
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[bytes, bool]) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._bytes -= _size(key, found)


class AnswersKept:
    """An application whose answers are kept in `answers` where they may be given again."""

    def __init__(self, app: ASGIApp, answers: QuickAnswers) -> None:
        self.app = app
        self.answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        head: Message = {}

        async def heard(message: Message) -> None:
            if message["type"] == "http.response.start":
                head.update(message)
            elif message["type"] == "http.response.body" and not message.get("more_body") and IS_STILL in scope:
                answer = KeptAnswer(tuple(head["headers"]), message["body"], scope[IS_STILL])
                target = scope["raw_path"] + b"?" + scope["query_string"]
                self.answers.keep(target, Headers(scope=scope).get("accept-encoding", ""), answer)
            await send(message)

        await self.app(scope, receive, heard)


def _size(key: tuple[bytes, bool], answer: KeptAnswer) -> int:
    return len(key[0]) + len(answer.body) + OBJECTS_BYTES
