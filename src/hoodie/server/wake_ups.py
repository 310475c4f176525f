"""Answers that threads find, told to an event loop: those of one batch in one go, since each wake-up of the loop costs
as much as answering a request.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

log = logging.getLogger(__name__)


class WakeUps:
    """What one event loop is to do when answers are there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due: list[Callable[[], None]] = []

    def call(self, loop: asyncio.AbstractEventLoop, answer: Future[Any], then: Callable[[], None]) -> None:
        """Calls `then` in the loop once the answer is there, or never where the loop is closed by then."""
        answer.add_done_callback(lambda _: self._later(loop, then))

    async def done(self, answer: Future[Any]) -> None:
        """Returns once the answer is there."""
        if answer.done():
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not waiter.done():
                waiter.set_result(None)

        self.call(loop, answer, wake)
        await waiter

    def _later(self, loop: asyncio.AbstractEventLoop, then: Callable[[], None]) -> None:
        with self._lock:
            self._due.append(then)
            is_first = len(self._due) == 1
        if is_first:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        with self._lock:
            due, self._due = self._due, []
        for then in due:
            try:
                then()
            except Exception:  # the others wait, too
                log.exception("an answer that was there could not be given")
