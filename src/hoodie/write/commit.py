"""The frame around every write: open an instant, finalise its files, complete it.

1. Nothing is visible before `finish` creates the completed instant, and everything is visible after it.
2. A file of this write that is not in its statistics (a retried or speculative task wrote it) is deleted before the
   instant completes; the markers tell.
3. Partition metafiles exist before the instant completes.
"""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hoodie.errors import Conflict, HudiError
from hoodie.handle import TableHandle
from hoodie.spec import CommitMetadata, Instant, PartitionMetafile, WriteStat, encode_partition_metafile, marker_dir
from hoodie.timeline import complete, load_markers

log = logging.getLogger(__name__)

PARTITION_METAFILE = ".hoodie_partition_metadata"


@dataclass(frozen=True, slots=True)
class Committed:
    """What a finished write did. Counts are rows, `size_bytes` is the size of all base files written."""

    instant: str
    completed: str | None
    operation: str
    files: int
    size_bytes: int
    rows_written: int
    inserts: int
    updates: int
    deletes: int
    partitions: tuple[str, ...]


def finish(
    handle: TableHandle,
    inflight: Instant,
    operation: str,
    stats: Sequence[WriteStat],
    extra_metadata: Mapping[str, str],
    replaced: Mapping[str, tuple[str, ...]] | None,
    known_partitions: Iterable[str],
) -> Committed:
    """The outcome after the write became visible.

    Raises:
        Fenced: another writer rolled this write back meanwhile; nothing became visible.
    """
    _remove_losers(handle, inflight.requested, stats)
    touched = dict.fromkeys(stat.partition_path for stat in stats)
    for partition in touched.keys() - set(known_partitions):
        ensure_partition(handle, partition, inflight.requested)
    metadata = CommitMetadata(
        partition_to_write_stats=_by_partition(stats),
        compacted=False,
        extra_metadata=dict(extra_metadata),
        operation_type=operation.upper(),
        partition_to_replace_file_ids=replaced,
    )
    payload = handle.profile.commit_codec.encode(metadata, inflight.action)
    done = complete(handle.storage, handle.profile, inflight, payload, handle.env, handle.config.timezone)
    drop_leftovers(handle, inflight.requested)
    return Committed(
        instant=done.requested,
        completed=done.completed,
        operation=operation,
        files=len(stats),
        size_bytes=sum(stat.file_size_bytes for stat in stats),
        rows_written=sum(stat.num_writes for stat in stats),
        inserts=sum(stat.num_inserts for stat in stats),
        updates=sum(stat.num_update_writes for stat in stats),
        deletes=sum(stat.num_deletes for stat in stats),
        partitions=tuple(touched),
    )


def ensure_partition(handle: TableHandle, partition: str, instant: str) -> None:
    """Make the partition metafile of `partition` unless it is there: it is what makes a folder a partition."""
    depth = len(partition.split("/")) if partition else 0
    path = f"{partition}/{PARTITION_METAFILE}" if partition else PARTITION_METAFILE
    with contextlib.suppress(Conflict):
        handle.storage.create(path, encode_partition_metafile(PartitionMetafile(instant, depth), handle.env.now()))


def drop_leftovers(handle: TableHandle, instant: str) -> None:
    """Delete markers and spool files of a write that is over. A failure costs disk space only, so it is logged."""
    try:
        handle.storage.delete_dir(marker_dir(instant))
    except HudiError as error:
        log.warning("could not delete the markers of %s: %s", instant, error)


def _remove_losers(handle: TableHandle, instant: str, stats: Sequence[WriteStat]) -> None:
    kept = {stat.path for stat in stats}
    for marker in load_markers(handle.storage, instant) or ():
        if marker.data_path not in kept and handle.storage.delete(marker.data_path):
            log.info("deleted %s, left by a retried task", marker.data_path)


def _by_partition(stats: Sequence[WriteStat]) -> dict[str, tuple[WriteStat, ...]]:
    grouped: dict[str, list[WriteStat]] = defaultdict(list)
    for stat in stats:
        grouped[stat.partition_path].append(stat)
    return {name: tuple(group) for name, group in grouped.items()}
