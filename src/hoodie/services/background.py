"""Services that run beside the writers of this process, each table's one after the other, in threads.

1. A call is named; while one of a name waits or runs, another of it is not taken: what is left over is found by the
   next commit.
2. A call that fails is logged with its remedy. What it worked on is on the timeline: the next commit of a process that
   is asked to hands it over again, in this process or another.
3. Who ends the process in order waits for what runs, as for any thread; who dies leaves what a dead service leaves.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final

from hoodie.errors import Conflict, HudiError

log = logging.getLogger(__name__)


class BackgroundWork:
    """Threads by table, and what they are about to do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._running: dict[tuple[str, str], Future[None]] = {}

    def submit(self, uri: str, name: str, call: Callable[[], object]) -> bool:
        """Hands the call over to the thread of the table at `uri`; False when one of the name waits or runs there."""
        with self._lock:
            running = self._running.get((uri, name))
            if running is not None and not running.done():
                return False
            pool = self._pools.get(uri)
            if pool is None:
                pool = self._pools[uri] = ThreadPoolExecutor(1, thread_name_prefix="hoodie-service")
            self._running[uri, name] = pool.submit(_logged, uri, name, call)
        return True

    def wait(self, uri: str, timeout_s: float | None = None) -> bool:
        """Waits for all that was handed over for the table; whether it is done."""
        with self._lock:
            mine = [future for (at, _), future in self._running.items() if at == uri]
        return not wait(mine, timeout_s).not_done


def _logged(uri: str, name: str, call: Callable[[], object]) -> None:
    try:
        call()
    except Conflict as conflict:
        log.info("%s of %s is left to the next commit: %s", name, uri, conflict)
    except HudiError as error:
        log.warning("%s of %s failed: %s; the next commit tries again", name, uri, error)
    except Exception:  # a thread has nobody to tell
        log.exception("%s of %s failed; the next commit tries again", name, uri)


BACKGROUND: Final = BackgroundWork()
"""That of this process."""
