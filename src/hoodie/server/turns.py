"""Who may work at the same time: threads for questions, some for each table, so that one that hangs stops no other.

1. A question waits for its turn, then for its answer, and no longer than a limit for both.
2. A thread cannot be stopped. One whose question was given up keeps its turn until it ends: of a table that hangs no
   more than its share of threads ever do.
3. Threads end with the process, whatever they wait for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

PER_TABLE = 8
ALL = 256

Found = TypeVar("Found")


@dataclass(slots=True)
class _Lane:
    """Turns of one table. `users`: questions that wait, and threads that work."""

    free: asyncio.Semaphore
    users: int = 0


@dataclass(slots=True)
class Turns:
    """Turns of all tables, for one event loop. `limit_s`: how long a question may take."""

    limit_s: float
    per_table: int = PER_TABLE
    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(ALL))
    _lanes: dict[str, _Lane] = field(default_factory=dict)

    def users(self) -> int:
        """Questions that wait, and threads that work."""
        return sum(lane.users for lane in self._lanes.values())

    async def run(self, table: str, ask: Callable[[], Found]) -> Found:
        """What `ask` returns, in a thread of its own.

        Raises:
            TimeoutError: there was no turn, or no answer, within the limit.
        """
        async with asyncio.timeout(self.limit_s):
            await self._take(table)
            loop = asyncio.get_running_loop()
            answered: asyncio.Future[Found] = loop.create_future()

            def end(settle: Callable[[], None]) -> None:
                self._give_back(table)
                if not answered.done():
                    settle()

            def work() -> None:
                try:
                    settle = partial(answered.set_result, ask())
                except BaseException as error:  # it is the caller's
                    settle = partial(answered.set_exception, error)
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(end, settle)

            try:
                threading.Thread(target=work, name="timeline service", daemon=True).start()
            except RuntimeError:
                self._give_back(table)
                raise
            return await answered

    async def _take(self, table: str) -> None:
        lane = self._lanes.setdefault(table, _Lane(asyncio.Semaphore(self.per_table)))
        lane.users += 1
        try:
            await lane.free.acquire()
            try:
                await self.free.acquire()
            except BaseException:
                lane.free.release()
                raise
        except BaseException:
            self._leave(table)
            raise

    def _give_back(self, table: str) -> None:
        self.free.release()
        self._lanes[table].free.release()
        self._leave(table)

    def _leave(self, table: str) -> None:
        lane = self._lanes[table]
        lane.users -= 1
        if not lane.users:
            del self._lanes[table]
