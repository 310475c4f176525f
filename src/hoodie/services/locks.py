"""The two locks of a service that works beside writers: one for each plan, and the table lock.

1. Who carries out a plan, takes it off the timeline or rolls it back holds the plan's own lock; nobody waits for that.
2. The table lock is waited for: a service that has worked for an hour does not give up for a short write.
3. Who needs both takes the plan's lock first, or takes it without waiting.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from hoodie.locks import held_lock, held_within
from hoodie.spec import InstantTime
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage
from hoodie.timeline import recover_table_config


def executor_lock(storage: Storage, requested: InstantTime) -> AbstractContextManager[None]:
    """Hold what lets one executor at a time work on the plan of an instant.

    Raises:
        Conflict: another holds it.
    """
    return held_lock(storage, f"compaction {requested}", f"compaction_{requested}")


@contextmanager
def table_lock(handle: TableHandle, what: str, wait_ms: int) -> Iterator[None]:
    """Hold the table lock, after waiting for it up to `wait_ms`.

    Raises:
        Conflict: it is still held.
    """
    with held_within(handle.storage, handle.env, what, wait_ms):
        recover_table_config(handle.storage)
        yield
