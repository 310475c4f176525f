"""Work that is to be done from some time on: one thread waits, and begins each piece in a thread of its own.

No thread is there before there is work, or keeps the process from ending.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from itertools import count

from hoodie.env import Env


class DueWork:
    """Pieces of work by the time (`env.monotonic`) they are due. Threads share it."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self._is_running = False
        self._is_closed = False

    def add(self, at: float, work: Callable[[], None]) -> None:
        """Begins `work` at a time, or at once where that has passed."""
        with self._changed:
            heapq.heappush(self._waiting, (at, next(self._number), work))
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="due work", daemon=True).start()
            self._changed.notify()

    def close(self) -> None:
        """Begins nothing more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._is_closed and not self._is_due():
                    self._changed.wait(self._waiting[0][0] - self._env.monotonic() if self._waiting else None)
                if self._is_closed:
                    return
                _, _, work = heapq.heappop(self._waiting)
            threading.Thread(target=work, name="due work", daemon=True).start()

    def _is_due(self) -> bool:
        return bool(self._waiting) and self._waiting[0][0] <= self._env.monotonic()
