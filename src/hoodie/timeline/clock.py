"""New instant times: never twice, never backwards.

1. Within one process times only grow, per clock and time zone, even when the wall clock steps back.
2. They are greater than every time the caller knows of (`after`), so a table's own order holds across processes.

It does not wait out clock skew between machines: one writer at a time is what storage guarantees.
"""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from hoodie.env import Env, SystemEnv
from hoodie.spec import InstantTime, TimeZone, format_instant_time, next_instant_time

_LOCK = threading.Lock()
_LAST: WeakKeyDictionary[object, dict[str, InstantTime]] = WeakKeyDictionary()


def new_instant_time(env: Env, timezone: TimeZone, after: InstantTime | None) -> InstantTime:
    """A 17-digit time: now, or the first one greater than `after` and all times given before in this process."""
    with _LOCK:
        # Every SystemEnv reads the same clock, so they share what was given; a test's clock stands for itself.
        given = _LAST.setdefault(SystemEnv if isinstance(env, SystemEnv) else env, {})
        floor = max(filter(None, (after, given.get(timezone))), default="")
        now = format_instant_time(env.now(), timezone)
        given[timezone] = now if now > floor else next_instant_time(floor)
        return given[timezone]
