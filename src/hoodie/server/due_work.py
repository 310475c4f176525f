"""Work that is to be done from some time on: one thread waits, and begins each piece in a thread of its own, or where
there can be none does it itself.

No thread is there before there is work, or keeps the process from ending.
"""

from __future__ import annotations

import heapq
import logging
import threading
from collections.abc import Callable
from itertools import count

from hoodie.env import Env

log = logging.getLogger(__name__)


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
                threading.Thread(target=self._run, name="due work", daemon=True).start()
                self._is_running = True
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
            try:
                threading.Thread(target=work, name="due work", daemon=True).start()
            except RuntimeError:  # there can be no more threads now; work that is lost would be waited for for ever
                self._do(work)

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            log.exception("work that was due has failed")

    def _is_due(self) -> bool:
        return bool(self._waiting) and self._waiting[0][0] <= self._env.monotonic()
