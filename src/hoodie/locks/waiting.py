"""Waiting for a lock: how long, and in which order.

1. Threads of one process stand in line for a lock: the first one asks the provider, the others sleep until it is their
   turn. So a process is one waiter, however many threads it has, and its threads get the lock in the order they came.
2. Among processes the provider decides: by a queue of its own (ZooKeeper), by the file `waiting.flock` (files), else by
   chance, between pauses that grow.
3. A wait has one end, which the options say. What a provider answered last is the error then.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from hoodie.env import Env, SystemEnv
from hoodie.errors import Conflict

T = TypeVar("T")

log = logging.getLogger(__name__)

_FIRST_PAUSE_S: Final = 0.002
_LOUD_S: Final = 2.0

_lines: dict[Hashable, deque[threading.Event]] = {}
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class Patience:
    """How long who comes for a lock waits for it. `env` has the clock and the sleep."""

    env: Env
    wait_ms: int = 0

    @property
    def waits(self) -> bool:
        return self.wait_ms > 0


AT_ONCE: Final = Patience(SystemEnv())
"""Now or not at all."""


def in_line(lock: Hashable, patience: Patience, longest_pause_s: float, attempt: Callable[[], T]) -> T:
    """What `attempt` gives, as soon as it is not refused. `lock` is the lock's name in this process.

    Raises:
        Conflict: it is refused to the end of the wait. Else what `attempt` raises.
    """
    if lock not in _lines or not patience.waits:
        try:
            return attempt()
        except Conflict:
            if not patience.waits:
                raise
    with place_in_line(lock, patience):
        return _tried(patience, longest_pause_s, attempt)


@contextmanager
def place_in_line(lock: Hashable, patience: Patience) -> Iterator[None]:
    """Runs the block when all threads of this process that came before have left theirs, or the wait is over."""
    turn = _joined(lock)
    try:
        # Who stands behind others sleeps by the real clock: the first one wakes it.
        turn.wait(min(patience.wait_ms / 1000, threading.TIMEOUT_MAX))
        yield
    finally:
        _leave(lock, turn)


def waiting_threads() -> int:
    """How many threads of this process wait for a lock now."""
    with _guard:
        return sum(map(len, _lines.values()))


def _tried(patience: Patience, longest_pause_s: float, attempt: Callable[[], T]) -> T:
    env = patience.env
    began_s = env.monotonic()
    pause_s, is_loud = _FIRST_PAUSE_S, False
    while True:
        try:
            return attempt()
        except Conflict as conflict:
            waited_s = env.monotonic() - began_s
            if waited_s * 1000 >= patience.wait_ms:
                raise
            if waited_s >= _LOUD_S and not is_loud:
                is_loud = True
                log.warning("waiting for up to %.0f s: %s", patience.wait_ms / 1000, conflict.cause)
        env.sleep(pause_s * (0.5 + env.random() / 2))
        pause_s = min(2 * pause_s, longest_pause_s)


def _joined(lock: Hashable) -> threading.Event:
    turn = threading.Event()
    with _guard:
        line = _lines.setdefault(lock, deque())
        line.append(turn)
        if line[0] is turn:
            turn.set()
    return turn


def _leave(lock: Hashable, turn: threading.Event) -> None:
    with _guard:
        line = _lines.get(lock)
        if line is None or turn not in line:  # in a forked child nobody stands in line
            return
        line.remove(turn)
        if line:
            line[0].set()
        else:
            del _lines[lock]


def _forget_lines() -> None:
    global _guard  # noqa: PLW0603 - another thread may have held it when the child was forked
    _guard = threading.Lock()
    _lines.clear()


os.register_at_fork(after_in_child=_forget_lines)
