"""New instant times: never twice, never backwards.

1. Within one process times only grow, per clock and time zone, even when the wall clock steps back.
2. They are greater than every time the caller knows of (`after`), so a table's own order holds across processes.
3. A table whose newest time lies far in the future (a writer's clock was wrong) keeps that for itself: it does not move
   the times of other tables.

It does not wait out clock skew between machines: one writer at a time is what storage guarantees.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from weakref import WeakKeyDictionary

from hoodie.env import Env, SystemEnv
from hoodie.spec import InstantTime, TimeZone, format_instant_time, next_instant_time

_SKEW = timedelta(hours=1)
_LOCK = threading.Lock()
_LAST: WeakKeyDictionary[object, dict[str, InstantTime]] = WeakKeyDictionary()


def new_instant_time(env: Env, timezone: TimeZone, after: InstantTime | None) -> InstantTime:
    """A 17-digit time: now, or the first one greater than `after` and all times given before in this process."""
    with _LOCK:
        # Every SystemEnv reads the same clock, so they share what was given; a test's clock stands for itself.
        given = _LAST.setdefault(SystemEnv if isinstance(env, SystemEnv) else env, {})
        floor = max(filter(None, (after, given.get(timezone))), default="")
        moment = env.now()
        now = format_instant_time(moment, timezone)
        time = now if now > floor else next_instant_time(floor)
        if time < format_instant_time(moment + _SKEW, timezone):
            given[timezone] = time
        return time
