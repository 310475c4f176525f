"""Providers that options name (`hoodie.write.lock.provider`), by Hudi's class names and ours: one line for each.

Without a name, and for Hudi's in-process and storage-based providers, a table has the lock of its storage, which keeps
at least as many writers apart. One that lies elsewhere is taken before the storage's own where that costs nothing
(local disk, memory): so writers that name no provider are kept out, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import unquote, urlsplit

from hoodie.errors import Invalid
from hoodie.locks.dynamodb import DynamoDBLocks
from hoodie.locks.hive_metastore import HiveMetastoreLocks
from hoodie.locks.implicit_key import implicit_key
from hoodie.locks.lock_file import LockFiles
from hoodie.locks.lock_provider import Held, LockProvider, TellsHolders
from hoodie.locks.waiting import AT_ONCE, Patience
from hoodie.locks.zookeeper import ZooKeeperLocks
from hoodie.storage.lock_holder import LockHolder

S = TypeVar("S")

Settings = Mapping[str, str]
"""Options of locks by their keys, and `hoodie.table.name`."""

_PACKAGE: Final = "org.apache.hudi.client.transaction.lock."
_KEYS: Final = "hoodie.write.lock.zookeeper."
_LOCK_KEY: Final = f"{_KEYS}lock_key"
_BY_KEY: Final = ("zookeeper", f"{_PACKAGE}ZookeeperBasedLockProvider")
_DYNAMODB: Final = "hoodie.write.lock.dynamodb."
_FILES: Final = "hoodie.write.lock.filesystem."
_HIVE: Final = "hoodie.write.lock.hivemetastore."
_AWS: Final = "org.apache.hudi.aws.transaction.lock."


@dataclass(frozen=True, slots=True)
class Together:
    """A provider elsewhere and that of the storage: both locks are held. Scopes are the storage's alone."""

    elsewhere: LockProvider
    own: LockProvider

    @contextmanager
    def acquire(self, what: str, scope: str = "", patience: Patience = AT_ONCE) -> Iterator[Held]:
        """The locks, held inside the block; see `LockProvider`."""
        if scope:
            with self.own.acquire(what, scope, patience) as own:
                yield own
            return
        with self.elsewhere.acquire(what, scope, patience) as first, self.own.acquire(what, scope, patience) as own:
            yield _BothHeld(first, own)

    def holders(self, scope: str = "") -> tuple[LockHolder | None, ...]:
        """See `TellsHolders`: those of the lock elsewhere, and who holds that of the storage alone."""
        there = () if scope else told_holders(self.elsewhere)
        return (*there, *(one for one in told_holders(self.own, scope) if one not in there))


def told_holders(provider: LockProvider, scope: str = "") -> tuple[LockHolder | None, ...]:
    """Who holds a lock, as its provider tells it; nobody where it cannot."""
    return provider.holders(scope) if isinstance(provider, TellsHolders) else ()


@dataclass(frozen=True, slots=True)
class _BothHeld:
    first: Held
    second: Held

    def ensure_held(self) -> None:
        """See `Held`."""
        self.first.ensure_held()
        self.second.ensure_held()

    def fenced(self, storage: S) -> S:
        """See `Held`."""
        return self.second.fenced(self.first.fenced(storage))


def elsewhere(name: str, settings: Settings, table_path: str) -> LockProvider | None:
    """The provider of that name for the table at a path (as users write it); None for the lock of its storage.

    Raises:
        Invalid: no such provider, or an option it needs is missing.
    """
    if name not in PROVIDERS:
        raise Invalid(
            f"There is no lock provider {name!r}",
            remedy=f"Set hoodie.write.lock.provider to one of {', '.join(PROVIDERS)}",
        )
    make = PROVIDERS[name]
    return None if make is None else make(settings, table_path)


def group_locks(name: str, settings: Settings, group: tuple[str, str]) -> LockProvider | None:
    """The provider of that name for one file group (partition, file id), where Hudi has such locks, too: in ZooKeeper,
    the lock key being that of the group.
    """
    return _zookeeper({**settings, _LOCK_KEY: "/".join(one for one in group if one)}, "") if name in _BY_KEY else None


def _zookeeper(settings: Settings, table_path: str) -> LockProvider:
    del table_path
    key = settings.get(_LOCK_KEY) or _needed(settings, "hoodie.table.name")
    return _zookeeper_at(settings, f"{_needed(settings, _KEYS + 'base_path').rstrip('/')}/{key}")


def _zookeeper_implicit(settings: Settings, table_path: str) -> LockProvider:
    return _zookeeper_at(settings, f"/tmp/{implicit_key(table_path)}/lock_key")


def _zookeeper_at(settings: Settings, path: str) -> LockProvider:
    return ZooKeeperLocks(
        _needed(settings, f"{_KEYS}url"),
        path,
        int(settings[f"{_KEYS}session_timeout_ms"]),
        int(settings[f"{_KEYS}connection_timeout_ms"]),
    )


def _dynamodb(settings: Settings, table_path: str) -> LockProvider:
    del table_path
    return _dynamodb_at(settings, settings.get(f"{_DYNAMODB}partition_key") or _needed(settings, "hoodie.table.name"))


def _dynamodb_implicit(settings: Settings, table_path: str) -> LockProvider:
    return _dynamodb_at(settings, implicit_key(table_path))


def _dynamodb_at(settings: Settings, key: str) -> LockProvider:
    return DynamoDBLocks(
        _needed(settings, f"{_DYNAMODB}table"),
        key,
        settings[f"{_DYNAMODB}region"],
        settings.get(f"{_DYNAMODB}endpoint_url"),
    )


def _hive(settings: Settings, table_path: str) -> LockProvider:
    del table_path
    return HiveMetastoreLocks(
        _needed(settings, f"{_HIVE}uris"),
        _needed(settings, f"{_HIVE}database"),
        _needed(settings, f"{_HIVE}table"),
        int(settings["hoodie.write.lock.heartbeat_interval_ms"]),
    )


def _lock_files(settings: Settings, table_path: str) -> LockProvider:
    folder = settings.get(f"{_FILES}path")
    own = None if folder else ".hoodie/lock"
    place = urlsplit(folder or f"{table_path.rstrip('/')}/.hoodie")
    if place.scheme not in ("", "file"):
        raise Invalid(
            f"A lock file cannot lie in {place.geturl()}: only on a local disk it is made once",
            remedy=f"Set {_FILES}path to a local folder that all writers see, or leave the provider out",
            key=f"{_FILES}path",
        )
    return LockFiles(unquote(place.path), int(settings[f"{_FILES}expire"]) * 60_000, own)


def _needed(settings: Settings, key: str) -> str:
    value = settings.get(key)
    if not value:
        raise Invalid(f"The lock provider needs {key}", remedy="Set it to what the other writers have", key=key)
    return value


PROVIDERS: Final[Mapping[str, Callable[[Settings, str], LockProvider] | None]] = {
    "": None,
    f"{_PACKAGE}InProcessLockProvider": None,
    f"{_PACKAGE}StorageBasedLockProvider": None,
    "zookeeper": _zookeeper,
    f"{_PACKAGE}ZookeeperBasedLockProvider": _zookeeper,
    "zookeeper_implicit": _zookeeper_implicit,
    f"{_PACKAGE}ZookeeperBasedImplicitBasePathLockProvider": _zookeeper_implicit,
    "file_system": _lock_files,
    f"{_PACKAGE}FileSystemBasedLockProvider": _lock_files,
    "hive": _hive,
    "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider": _hive,
    "dynamodb": _dynamodb,
    f"{_AWS}DynamoDBBasedLockProvider": _dynamodb,
    "dynamodb_implicit": _dynamodb_implicit,
    f"{_AWS}DynamoDBBasedImplicitPartitionKeyLockProvider": _dynamodb_implicit,
}
