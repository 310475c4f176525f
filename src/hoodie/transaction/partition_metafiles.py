"""Partition metafiles: the small files that make folders partitions of a table."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from hoodie.engine import LocalEngine, TaskId
from hoodie.env import Env
from hoodie.errors import Conflict
from hoodie.spec import InstantTime, PartitionMetafile, encode_partition_metafile, keys, path_in
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage

CREATING_THREADS = 16


def create_partition_metafiles(handle: TableHandle, partitions: Iterable[str], instant: InstantTime) -> None:
    """Creates the metafiles of `partitions` that are not there yet, several at a time: one storage call each."""
    tasks = [_MetafileTask(handle.storage, partition, instant, handle.env) for partition in sorted(partitions)]
    LocalEngine(CREATING_THREADS).run(_create_metafile, tasks, "partition metafiles")


@dataclass(frozen=True, slots=True)
class _MetafileTask:
    storage: Storage
    partition: str
    instant: InstantTime
    env: Env


def _create_metafile(_: TaskId, task: _MetafileTask) -> None:
    depth = len(task.partition.split("/")) if task.partition else 0
    metafile = encode_partition_metafile(PartitionMetafile(task.instant, depth), task.env.now())
    with suppress(Conflict):
        task.storage.create(path_in(task.partition, keys.PARTITION_METAFILE_PREFIX), metafile)
