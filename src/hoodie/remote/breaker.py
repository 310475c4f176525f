"""What this process knows of timeline servers that do not answer, so that not every view waits for them.

1. A server that cannot be reached, is too slow, wants another token or is closed is not asked for `RETRY_S` seconds, by
   whichever view. One that does not serve a table, or answers nonsense about it, is not asked about that table.
2. Once the time is over one view asks; others wait for what becomes of it. Whatever answer it gets ends the silence.
3. Nobody is kept from asking who has nobody else to ask: `FallingBackView` looks here, `RemoteView` does not.
"""

from __future__ import annotations

import threading

from hoodie.env import Env, SystemEnv
from hoodie.errors import Conflict, HudiError

RETRY_S = 30.0

_OF_ALL_TABLES = ""
_STATUSES_OF_SERVER = (401, 429, 502, 503, 504)
_STATUSES_OF_TABLE = (403, 404)


class Breaker:
    """Whether a server is asked. Threads may share it."""

    def __init__(self, env: Env | None = None) -> None:
        self._env = env or SystemEnv()
        self._lock = threading.Lock()
        self._silent_until: dict[str, float] = {}

    def may_ask(self, table: str) -> bool:
        """Whether the server is asked about a table. True for one caller at the end of a silence."""
        now = self._env.monotonic()
        with self._lock:
            kept = [place for place in (_OF_ALL_TABLES, table) if place in self._silent_until]
            if any(self._silent_until[place] > now for place in kept):
                return False
            for place in kept:
                self._silent_until[place] = now + RETRY_S
        return True

    def answered(self, table: str) -> None:
        """The server answered about a table."""
        if self._silent_until:
            with self._lock:
                self._silent_until.pop(_OF_ALL_TABLES, None)
                self._silent_until.pop(table, None)

    def failed(self, table: str, error: HudiError) -> bool:
        """The server did not answer about a table. Returns whether that was known before."""
        place = _silenced(table, error)
        if place is None:
            self.answered(table)
            return False
        with self._lock:
            if place == table:
                self._silent_until.pop(_OF_ALL_TABLES, None)
            is_known = place in self._silent_until
            self._silent_until[place] = self._env.monotonic() + RETRY_S
        return is_known


_breakers: dict[tuple[str, int, str | None], Breaker] = {}
_lock = threading.Lock()


def breaker_at(host: str, port: int, token: str | None) -> Breaker:
    """The one of this process for an address and what is told there."""
    with _lock:
        return _breakers.setdefault((host, port, token), Breaker())


def _silenced(table: str, error: HudiError) -> str | None:
    """About which tables the server is not asked after an error: all, one or none."""
    status = error.facts.get("status")
    if isinstance(error, Conflict):
        return None
    if status in _STATUSES_OF_SERVER or (status is None and "address" in error.facts):
        return _OF_ALL_TABLES
    return table if status in _STATUSES_OF_TABLE or status is None else None
