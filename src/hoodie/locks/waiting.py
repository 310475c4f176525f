"""Waiting for what another process holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hoodie.env import Env
from hoodie.errors import Conflict
from hoodie.locks.lock_provider import Held
from hoodie.locks.providers import held_lock
from hoodie.storage import Storage

_POLL_SECONDS: Final = 0.05
_LONGEST_POLL_SECONDS: Final = 2.0


@contextmanager
def held_within(storage: Storage, env: Env, what: str, wait_ms: int) -> Iterator[Held]:
    """The lock of a table, held inside the block, after waiting for it up to `wait_ms`.

    Raises:
        Conflict: it is still held.
    """
    deadline = env.monotonic() + wait_ms / 1000
    pause = _POLL_SECONDS
    while True:
        lock = held_lock(storage, what)
        try:
            held = lock.__enter__()
            break
        except Conflict:
            if env.monotonic() >= deadline:
                raise
        env.sleep(pause)
        pause = min(pause * 2, _LONGEST_POLL_SECONDS)
    try:
        yield held
    finally:
        lock.__exit__(None, None, None)
