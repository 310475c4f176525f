"""The two locks of a service that works beside writers: one for each plan, and the table lock.

1. Who carries out a plan, takes it off the timeline or rolls it back holds the plan's own lock; nobody waits for that.
2. The table lock is waited for: a service that has worked for an hour does not give up for a short write.
3. Who needs both takes the plan's lock first, or takes it without waiting.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from hoodie.locks import held_lock, held_within
from hoodie.spec import InstantTime
from hoodie.state.handle import TableHandle
from hoodie.timeline import recover_table_config


@contextmanager
def executor_lock(handle: TableHandle, requested: InstantTime) -> Iterator[TableHandle]:
    """The handle of the one executor that works on the plan of an instant, inside the block.

    Raises:
        Conflict: another holds the plan's lock.
    """
    with held_lock(handle.storage, f"compaction {requested}", f"compaction_{requested}") as held:
        yield replace(handle, storage=held.fenced(handle.storage))


@contextmanager
def table_lock(handle: TableHandle, what: str, wait_ms: int) -> Iterator[TableHandle]:
    """The handle with the table's lock, which is held inside the block, after waiting for it up to `wait_ms`. Others
    may have changed the table meanwhile: its properties are as the caller has read them.

    Raises:
        Conflict: it is still held.
    """
    with held_within(handle.storage, handle.env, what, wait_ms) as held:
        storage = held.fenced(handle.storage)
        recover_table_config(storage)
        yield replace(handle, storage=storage)
