"""Which partitions of the metadata table there are, as the table's properties say it, and their folders.

1. Properties are what readers go by: a partition is announced after it is complete, and withdrawn before its folder
   goes.
2. Without `files` there is no metadata table: withdrawing it withdraws all. What is being built then is what the next
   metadata table will have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from hoodie.metadata import FILES
from hoodie.spec import keys
from hoodie.state.handle import TableHandle
from hoodie.timeline import store_table_config


def maintained_partitions(handle: TableHandle) -> tuple[str, ...]:
    """Partitions that every action of the table has to keep true: those that are ready, and those being built."""
    config = handle.config
    return tuple(sorted({*config.metadata_partitions, *config.metadata_partitions_inflight}))


def announce(handle: TableHandle, ready: Iterable[str]) -> TableHandle:
    """The handle of a table that says these partitions are ready, besides those that are."""
    names = set(ready)
    config = handle.config
    return _stored(
        handle,
        {*config.metadata_partitions, *names},
        {name for name in config.metadata_partitions_inflight if name not in names},
    )


def announce_inflight(handle: TableHandle, building: Iterable[str]) -> TableHandle:
    """The handle of a table that says these partitions are being built: writers keep them, readers do not look."""
    config = handle.config
    return _stored(handle, config.metadata_partitions, {*config.metadata_partitions_inflight, *building})


def withdraw(handle: TableHandle, names: Collection[str]) -> TableHandle:
    """The handle of a table whose metadata table has these partitions no more: neither in properties nor as folders."""
    if FILES in names:
        handle = _stored(handle, (), ())
        handle.storage.delete_dir(keys.METADATA_TABLE_DIR)
        return handle
    config = handle.config
    handle = _stored(
        handle,
        [name for name in config.metadata_partitions if name not in names],
        [name for name in config.metadata_partitions_inflight if name not in names],
    )
    for name in sorted(names):
        handle.storage.delete_dir(f"{keys.METADATA_TABLE_DIR}/{name}")
    return handle


def set_aside(handle: TableHandle) -> TableHandle:
    """The handle of a table whose metadata table is gone, and whose properties remember what it had."""
    handle = _stored(handle, (), _remembered(handle, maintained_partitions(handle)))
    handle.storage.delete_dir(keys.METADATA_TABLE_DIR)
    return handle


def remember(handle: TableHandle, names: Collection[str]) -> TableHandle:
    """The handle of a table that says of partitions which are gone that they are being built: who makes a metadata
    table again knows them.
    """
    return announce_inflight(handle, _remembered(handle, names))


def _remembered(handle: TableHandle, names: Collection[str]) -> Collection[str]:
    """None in version 6: Hudi 0.15 writes to partitions that are being built, and fails where they have no groups."""
    return names if handle.profile.indexes.is_built_beside_writes else ()


def without_partitions(handle: TableHandle, names: Collection[str]) -> TableHandle:
    """The handle of the table as it would be without these partitions. Nothing is stored."""
    config = handle.config
    return replace(
        handle,
        config=config.with_changes(
            _properties(
                [name for name in config.metadata_partitions if name not in names],
                [name for name in config.metadata_partitions_inflight if name not in names],
            )
        ),
    )


def _properties(ready: Iterable[str], building: Iterable[str]) -> dict[str, str]:
    return {
        keys.METADATA_PARTITIONS: ",".join(sorted(ready)),
        keys.METADATA_PARTITIONS_INFLIGHT: ",".join(sorted(building)),
    }


def _stored(handle: TableHandle, ready: Collection[str], building: Collection[str]) -> TableHandle:
    wanted = _properties(ready, building)
    raw = handle.config.raw
    if all(raw.get(key, "") == value for key, value in wanted.items()):
        return handle
    stored = store_table_config(handle.storage, handle.config, handle.config.with_changes(wanted), handle.env)
    return replace(handle, config=stored)
