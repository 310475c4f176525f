"""Who may work at the same time: threads for questions, some for each table and for all tables below one root, so that
one that hangs stops no other.

1. A question waits for its turn, then for its answer, and no longer than a limit for both.
2. A thread cannot be stopped. One whose question was given up keeps its turn until it ends: of a table that hangs no
   more than its share of threads ever do, and of all tables of a storage that hangs no more than its root's.
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

from hoodie.server.places import Lane

PER_TABLE = 8
PER_ROOT = 128
ALL = 256

Found = TypeVar("Found")


@dataclass(slots=True)
class _Share:
    """Turns of one table, or root. `users`: questions that wait, and threads that work."""

    free: asyncio.Semaphore
    users: int = 0


@dataclass(slots=True)
class Turns:
    """Turns of all tables, for one event loop. `limit_s`: how long a question may take."""

    limit_s: float
    per_table: int = PER_TABLE
    per_root: int = PER_ROOT
    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(ALL))
    _tables: dict[Lane, _Share] = field(default_factory=dict)
    _roots: dict[str, _Share] = field(default_factory=dict)

    def users(self) -> int:
        """Questions that wait, and threads that work."""
        return sum(share.users for share in self._tables.values())

    async def run(self, lane: Lane, ask: Callable[[], Found]) -> Found:
        """What `ask` returns, in a thread of its own.

        Raises:
            TimeoutError: there was no turn, or no answer, within the limit.
        """
        async with asyncio.timeout(self.limit_s):
            await self._take(lane)
            loop = asyncio.get_running_loop()
            answered: asyncio.Future[Found] = loop.create_future()

            def end(settle: Callable[[], None]) -> None:
                self._give_back(lane)
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
                self._give_back(lane)
                raise
            return await answered

    async def _take(self, lane: Lane) -> None:
        table = self._tables.setdefault(lane, _Share(asyncio.Semaphore(self.per_table)))
        root = self._roots.setdefault(lane.root, _Share(asyncio.Semaphore(self.per_root)))
        table.users += 1
        root.users += 1
        taken: list[asyncio.Semaphore] = []
        try:
            for free in (table.free, root.free, self.free):
                await free.acquire()
                taken.append(free)
        except BaseException:
            for free in taken:
                free.release()
            self._leave(lane)
            raise

    def _give_back(self, lane: Lane) -> None:
        for free in (self._tables[lane].free, self._roots[lane.root].free, self.free):
            free.release()
        self._leave(lane)

    def _leave(self, lane: Lane) -> None:
        table, root = self._tables[lane], self._roots[lane.root]
        table.users -= 1
        root.users -= 1
        if not table.users:
            del self._tables[lane]
        if not root.users:
            del self._roots[lane.root]
