"""Which provider keeps the writers of a table apart: the best one that its storage has, or one that options name."""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager

from hoodie.env import Env, SystemEnv
from hoodie.errors import Unsupported
from hoodie.locks.file_system import FileSystemLocks
from hoodie.locks.in_process import InProcessLocks
from hoodie.locks.lock_provider import HasLocks, Held, LockProvider
from hoodie.locks.options import NO_WAIT, LockOptions
from hoodie.locks.registry import Together, elsewhere, group_locks, told_holders
from hoodie.locks.storage_based import StorageBasedLocks
from hoodie.storage import LocalStorage, MemoryStorage, Storage
from hoodie.storage.lease import VersionedStorage
from hoodie.storage.lock_holder import LockHolder
from hoodie.storage.nested import StandsAround

_ENV = SystemEnv()


def lock_provider_of(storage: Storage) -> LockProvider:
    """The provider for the table in `storage`: for one inside another table, that of the table around it; where files
    lie in several stores, that of the table path.

    Raises:
        Unsupported: the storage has nothing to keep writers apart.
    """
    match storage:
        case HasLocks():
            return storage.lock_provider()
        case StandsAround():
            return lock_provider_of(storage.outer)
        case LocalStorage():
            return FileSystemLocks(storage)
        case MemoryStorage():
            return InProcessLocks(storage.uri)
        case VersionedStorage():
            return StorageBasedLocks(storage)
    raise Unsupported(f"Nothing keeps writers of {storage.uri} apart", remedy="Use a local folder or an object store")


def held_lock(
    storage: Storage, what: str, scope: str = "", options: LockOptions = NO_WAIT, env: Env = _ENV
) -> AbstractContextManager[Held]:
    """The lock of the table in `storage` (or of one `scope` of work on it), held inside the block, which works with
    `Held.fenced(storage)`. Raises as `LockProvider.acquire`.
    """
    return _asked(storage, options).acquire(what, scope, options.patience(env))


def held_group_lock(
    storage: Storage, what: str, group: tuple[str, str], options: LockOptions, env: Env = _ENV
) -> AbstractContextManager[Held]:
    """The lock of one file group (partition, file id), held inside the block: in ZooKeeper where options name that
    provider, as Hudi's writers take it, else that of the storage. Raises as `LockProvider.acquire`.
    """
    named = group_locks(options.provider, options.settings, group)
    if named is not None:
        return named.acquire(what, patience=options.patience(env))
    scope = "group_" + hashlib.sha256("/".join(group).encode()).hexdigest()[:32]
    return lock_provider_of(storage).acquire(what, scope, options.patience(env))


def lock_holders(storage: Storage, scope: str = "", options: LockOptions = NO_WAIT) -> tuple[LockHolder | None, ...]:
    """Who holds the lock of the table in `storage` (or of a scope), then who waits; see `TellsHolders`. Takes nothing.

    Raises:
        Unavailable: the provider does not answer.
    """
    return told_holders(_asked(storage, options), scope)


def _asked(storage: Storage, options: LockOptions) -> LockProvider:
    """The provider that options name, or that of the storage."""
    if not options.provider:
        return lock_provider_of(storage)
    outermost: Storage = storage
    while isinstance(outermost, StandsAround):
        outermost = outermost.outer
    found = elsewhere(options.provider, options.settings, outermost.uri)
    if found is None:
        return lock_provider_of(storage)
    return found if isinstance(outermost, VersionedStorage) else Together(found, lock_provider_of(storage))
