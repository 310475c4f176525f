"""The table while its lock is held.

It stands beside `handle`, so that who only reads loads no locks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hoodie.env import Env
from hoodie.locks import LockOptions, held_lock
from hoodie.spec import profile_of
from hoodie.state.handle import TableHandle, storage_of
from hoodie.storage import Snapshot, Storage
from hoodie.timeline import load_held_config, load_held_snapshot


@contextmanager
def held_table(storage: Storage, what: str, env: Env, options: LockOptions) -> Iterator[TableHandle]:
    """The table as it is once its lock is held, which it is inside the block. `what` is being done; `options` say which
    lock it is, and how long to wait for it.

    What a dead update of its properties left is gone then: who comes next to write heals it, whatever it does.

    Raises:
        Conflict: another writer holds it. Else as `open_handle`.
    """
    with held_lock(storage, what, options=options, env=env) as held:
        yield load_held_handle(held.fenced(storage), env)


def load_held_handle(storage: Storage, env: Env) -> TableHandle:
    """The table in `storage`, whose lock the caller holds; what a dead update of its properties left is gone then."""
    config = load_held_config(storage, env)
    return TableHandle(storage_of(storage, config), config, profile_of(config), env)


def load_held_look(storage: Storage, env: Env) -> tuple[TableHandle, Snapshot]:
    """The same, and what lay in the table's own folder at that moment."""
    config, below = load_held_snapshot(storage, env)
    return TableHandle(storage_of(storage, config), config, profile_of(config), env), below
